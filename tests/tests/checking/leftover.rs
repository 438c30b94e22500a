//! What a check that compares memory says of bytes that nothing looks at.

use std::sync::Arc;

use spelunk::check::{self, Leftover, leftover};
use spelunk::machine::{Limits, Machine, Program, Selection, on_guest_stack};
use spelunk::session::Keep;
use spelunk::{Config, Session};
use spelunk_tests::checks;

/// The states of a module that counts up to this, and what makes more of them than there need be.
fn found(counts: u32, rest: &str) -> (u64, Option<Leftover>) {
    on_guest_stack(|| {
        let wasm =
            wat::parse_str(format!("(module {SLOT} {rest})").replace("COUNTS", &counts.to_string())).unwrap();
        let program = Program::load(&wasm, Limits::default(), Selection::default()).unwrap();
        let mut machine = Machine::new(Arc::new(program)).unwrap();
        let options = checks::default_options(machine.program());
        let checked = check::check(std::slice::from_mut(&mut machine), &options, &|_| None, &mut |_, _| ());
        let leftover = leftover(&mut machine, &options, (20_000, 1 << 30), &|| false);
        (checked.unwrap().census.states, leftover)
    })
}

/// A slot that is full or empty, with a value that stays when it is emptied, beside a counter.
const SLOT: &str = r#"
    (import "spelunk" "index" (func $index (param i32) (result i32)))
    (memory 1)
    (func (export "precondition:put") (result i32) (i32.eqz (i32.load (i32.const 2000))))
    (func (export "rule:put")
      (i32.store (i32.const 2004) (i32.add (i32.const 1) (call $index (i32.const 8))))
      (i32.store (i32.const 2000) (i32.const 1)))
    (func (export "precondition:take") (result i32) (i32.load (i32.const 2000)))
    (func (export "rule:count")
      (i32.store (i32.const 2100)
        (i32.rem_u (i32.add (i32.load (i32.const 2100)) (i32.const 1)) (i32.const COUNTS))))"#;

#[test]
fn a_value_that_is_left_over_is_told_from_one_that_counts() {
    let take = r#"(func (export "rule:take")
        (i32.store (i32.const 2100)
          (i32.rem_u (i32.add (i32.load (i32.const 2100)) (i32.load (i32.const 2004))) (i32.const COUNTS)))
        (i32.store (i32.const 2000) (i32.const 0)))"#;
    let (states, found_here) = found(40, take);
    // Full with one of 8, or empty with one of 8 or what was there at first, at each count.
    assert_eq!(states, 17 * 40);
    let found_here = found_here.expect("there are enough states");
    assert_eq!((found_here.words.as_slice(), found_here.states), (&[2004][..], 680));
    // Of 9 states in which it is empty one would do; of those in which it is full, the value counts.
    assert!((1.3..3.2).contains(&found_here.factor), "{}", found_here.factor);

    let clears = r#"(func (export "rule:take")
        (i32.store (i32.const 2100)
          (i32.rem_u (i32.add (i32.load (i32.const 2100)) (i32.load (i32.const 2004))) (i32.const COUNTS)))
        (i64.store (i32.const 2000) (i64.const 0)))"#;
    let (states, found_here) = found(40, clears);
    assert_eq!((states, found_here.unwrap().words), (9 * 40, vec![]));
}

#[test]
fn what_is_looked_at_later_is_not_left_over() {
    // The value of a slot that is emptied is looked at when the counter is 3.
    let take = r#"(func (export "rule:take") (i32.store (i32.const 2000) (i32.const 0)))
        (func (export "precondition:peek") (result i32)
          (i32.eq (i32.load (i32.const 2100)) (i32.const 3)))
        (func (export "rule:peek")
          (i32.store (i32.const 2100)
            (i32.rem_u (i32.add (i32.load (i32.const 2100)) (i32.load (i32.const 2004))) (i32.const COUNTS))))"#;
    let (_, found) = found(5, take);
    assert_eq!(found.unwrap().words, Vec::<u32>::new());
}

#[test]
fn a_check_says_how_many_bytes_make_more_states() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/leftover");
    let run = |features: &[&str]| {
        let guest_features = features.iter().map(|feature| feature.to_string()).collect();
        let config = Config { guest_features, keep: Keep::Findings, ..Config::check() };
        let summary = Session::open(&root).unwrap().config(config).run(&mut ()).unwrap();
        let spelunk::session::JobResult::Checked(checked) = summary.result else { panic!("it is a check") };
        (checked.census.states, checked.leftover)
    };
    let (states, leftover) = run(&[]);
    let leftover = leftover.expect("an array keeps what is popped");
    // What is pushed never matters: of 1225 states there are 4 lengths at 25 times.
    assert!((8.0..14.0).contains(&leftover.factor), "{leftover:?}");
    let items = ["STATE.stack.items[0]", "STATE.stack.items[1]", "STATE.stack.items[2]"];
    assert_eq!((states, leftover.unnamed, leftover.variables), (1225, 0, items.map(String::from).to_vec()));
    let (states, leftover) = run(&["content"]);
    assert_eq!((states, leftover), (375, None));
}
