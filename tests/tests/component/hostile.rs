//! Components that mean harm: what they do is an outcome, and what cannot be linked is an error.

use std::path::Path;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use spelunk::check::{Options, TroubleKind, check as check_all};
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::outcome::Outcome;
use spelunk::target::Target;
use spelunk::trace::Action;
use spelunk_tests::{explore, machine, on_guest_stack, seeded};

use crate::oracle;

/// What comes of a component: the first failure, or the error of loading it.
fn comes_to(wat: &str) -> String {
    let wasm = wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}\n{wat}"));
    on_guest_stack(|| match Program::load(&wasm, Limits::default(), Selection::default()) {
        Err(error) => format!("{error:#}"),
        Ok(program) => {
            let mut machine = Machine::new(Arc::new(program)).unwrap_or_else(|error| panic!("{error:#}"));
            let (found, _) = explore(&mut machine, seeded(1), 2_000);
            found.map_or("no finding".to_string(), |found| found.failure.to_string())
        }
    })
}

/// A component with a function that takes and returns these, whose core does this.
fn with(types: &str, core: &str) -> String {
    format!(
        r#"(component
        (core module $m (memory (export "memory") 1)
          (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
          {core})
        (core instance $i (instantiate $m))
        (func $f {types} (canon lift (core func $i "f") (memory $i "memory") (realloc (func $i "realloc"))))
        (export "f" (func $f)))"#
    )
}

#[track_caller]
fn check(types: &str, core: &str, expected: &str) {
    assert_eq!(comes_to(&with(types, core)), expected);
}

/// What a function returns that the specification has it trap for.
#[test]
fn what_is_returned_is_looked_at() {
    let returns = |words: &str| {
        let stores: Vec<String> = words
            .split(' ')
            .enumerate()
            .map(|(index, word)| format!("(i32.store (i32.const {}) (i32.const {word}))", 64 + 4 * index))
            .collect();
        format!(r#"(func (export "f") (result i32) {} (i32.const 64))"#, stores.concat())
    };
    let text = "(result string)";
    check(text, &returns("65530 7"), "abi: a text of 7 units at 0xfffa ends outside of memory");
    check(text, &returns("-1 -1"), "abi: a text of 4294967295 units at 0xffffffff ends outside of memory");
    check(text, &returns("60 8"), "no finding");
    check(text, &format!("(data (i32.const 8) \"\\ff\") {}", returns("8 1")), "abi: a text is not UTF-8");
    let list = "(result (list u32))";
    check(list, &returns("66 1"), "abi: a list begins at 0x42, which is not aligned to 4 bytes");
    check(list, &returns("0 16385"), "abi: a list of 16385 elements at 0x0 ends outside of memory");
    check(list, &returns("0 1073741825"), "abi: a list of 1073741825 elements at 0x0 ends outside of memory");
    check("(result (option u64))", &returns("2 0 0 0"), "abi: a value is of the case 2, and there are 2");
    check("(result (tuple u32 char))", &returns("0 0xd800"), "abi: 0xd800 is no character");
    check("(result (tuple u32 char))", &returns("0 0x110000"), "abi: 0x110000 is no character");
    check("(result (tuple bool bool))", &returns("0xffff"), "no finding");
    let at = |at: &str| format!(r#"(func (export "f") (result i32) (i32.const {at}))"#);
    check("(result (tuple u32 u32))", &at("2"), "abi: values are at 0x2, which is not aligned to 4 bytes");
    check("(result (tuple u32 u32))", &at("65532"), "abi: values of 8 bytes at 0xfffc end outside of memory");
    check(
        "(result (tuple u32 u32))",
        &at("-4"),
        "abi: values of 8 bytes at 0xfffffffc end outside of memory",
    );
    check("(result char)", &at("-1"), "abi: 0xffffffff is no character");
    check("(result u8)", &at("-1"), "no finding");
}

/// Lists of lists that are all in one place are more than there is memory for.
#[test]
fn what_is_passed_is_counted() {
    let core = r#"(func (export "f") (result i32) (local $at i32)
        (loop $more
          (i32.store (local.get $at) (i32.const 0))
          (i32.store offset=4 (local.get $at) (i32.const 8192))
          (local.set $at (i32.add (local.get $at) (i32.const 8)))
          (br_if $more (i32.lt_u (local.get $at) (i32.const 65536))))
        (i32.const 0))"#;
    let expected = "abi: a call passes more than 1048576 values, or 64 MiB of text";
    check("(result (list (list (list bool))))", core, expected);
    check("(result (list (list string)))", core, expected);
}

#[test]
fn room_for_values_is_looked_at() {
    let with = |realloc: &str| {
        with("(param \"text\" string)", r#"(func (export "f") (param i32 i32))"#)
            .replace("(i32.const 1024))\n", realloc)
    };
    let check = |realloc: &str, expected: &str| assert_eq!(comes_to(&with(realloc)), expected);
    check("(i32.const 1024))\n", "no finding");
    check(
        "(i32.const 65536))\n",
        "abi: its realloc gave 0x10000 as room for 1 bytes, which is outside of memory",
    );
    check(
        "(i32.const -1))\n",
        "abi: its realloc gave 0xffffffff as room for 1 bytes, which is outside of memory",
    );
    check("(unreachable))\n", "trap: wasm `unreachable` instruction executed");
    check(
        "(loop (br 0)) (unreachable))\n",
        "hang: the step did not end within its budget (--step-budget), in realloc+0x1",
    );
}

#[test]
fn handles_are_looked_at() {
    let with = |body: &str| {
        format!(
            r#"(component
            (core module $Drop (func (export "drop") (param i32)))
            (core instance $drop (instantiate $Drop))
            (type $r' (resource (rep i32) (dtor (func $drop "drop"))))
            (type $other' (resource (rep i32)))
            (core func $new (canon resource.new $r')) (core func $rep (canon resource.rep $r'))
            (core func $discard (canon resource.drop $r')) (core func $another (canon resource.new $other'))
            (core module $m
              (import "" "new" (func $new (param i32) (result i32)))
              (import "" "rep" (func $rep (param i32) (result i32)))
              (import "" "discard" (func $discard (param i32)))
              (import "" "another" (func $another (param i32) (result i32)))
              (func (export "f") (result i32) (local $h i32) {body}))
            (core instance $i (instantiate $m (with "" (instance (export "new" (func $new))
              (export "rep" (func $rep)) (export "discard" (func $discard)) (export "another" (func $another))))))
            (export $r "r" (type $r'))
            (func $f (result (own $r)) (canon lift (core func $i "f")))
            (export "f" (func $f)))"#
        )
    };
    let check = |body: &str, expected: &str| assert_eq!(comes_to(&with(body)), expected);
    check("(call $new (i32.const 7))", "no finding");
    check("(i32.const 0)", "abi: there is no handle 0");
    check("(i32.const 5)", "abi: there is no handle 5");
    check("(call $rep (i32.const -1))", "abi: there is no handle 4294967295");
    check("(call $another (i32.const 7))", "abi: the handle 1 is of a resource of another type");
    check(
        "(local.set $h (call $new (i32.const 7))) (call $discard (local.get $h)) (call $discard (local.get $h)) (i32.const 0)",
        "abi: there is no handle 1",
    );
    check(
        "(local.set $h (call $new (i32.const 7))) (call $discard (local.get $h)) (local.get $h)",
        "abi: there is no handle 1",
    );
    check(
        "(loop (drop (call $new (i32.const 7))) (br 0)) (unreachable)",
        "abi: there are more than 65536 handles",
    );
}

/// An instance that is handed values, or has returned, calls nothing outside of it.
#[test]
fn an_instance_is_left_when_it_may_be() {
    let with = |while_handed: &str, after: &str| {
        format!(
            r#"(component
            (type $r (resource (rep i32)))
            (core func $new (canon resource.new $r))
            (core module $M (import "" "new" (func $new (param i32) (result i32)))
              (memory (export "memory") 1)
              (func (export "realloc") (param i32 i32 i32 i32) (result i32) {while_handed} (i32.const 1024))
              (func (export "f") (param i32 i32))
              (func (export "after") {after}))
            (core instance $m (instantiate $M (with "" (instance (export "new" (func $new))))))
            (func $f (param "text" string) (canon lift (core func $m "f") (memory $m "memory")
              (realloc (func $m "realloc")) (post-return (func $m "after"))))
            (export "f" (func $f)))"#
        )
    };
    let calls = "(drop (call $new (i32.const 1)))";
    let expected = "abi: it calls what it imports while it is handed values or after it returned";
    assert_eq!(comes_to(&with("", "")), "no finding");
    assert_eq!(comes_to(&with(calls, "")), expected);
    assert_eq!(comes_to(&with("", calls)), expected);
}

/// What an instance is lent by another it drops, once, before it returns.
#[test]
fn what_is_lent_is_given_back() {
    let with = |look: &str| {
        format!(
            r#"(component
            (component $C
              (type $r' (resource (rep i32)))
              (core func $new (canon resource.new $r'))
              (core module $M (import "" "new" (func $new (param i32) (result i32)))
                (func (export "make") (result i32) (call $new (i32.const 7))))
              (core instance $m (instantiate $M (with "" (instance (export "new" (func $new))))))
              (export $r "r" (type $r'))
              (func $make (result (own $r)) (canon lift (core func $m "make")))
              (export "make" (func $make)))
            (instance $c (instantiate $C))
            (alias export $c "r" (type $r))
            (component $D
              (import "r" (type $r (sub resource)))
              (core func $drop (canon resource.drop $r))
              (core module $M (import "" "drop" (func $drop (param i32)))
                (func (export "look") (param i32) {look}))
              (core instance $m (instantiate $M (with "" (instance (export "drop" (func $drop))))))
              (func $look (param "one" (borrow $r)) (canon lift (core func $m "look")))
              (export "look" (func $look)))
            (instance $d (instantiate $D (with "r" (type $r))))
            (export "c" (instance $c)) (export "d" (instance $d)))"#
        )
    };
    let drop = "(call $drop (local.get 0))";
    assert_eq!(comes_to(&with(drop)), "no finding");
    assert_eq!(comes_to(&with("")), "abi: it returned and did not drop a handle that it borrowed");
    assert_eq!(comes_to(&with(&drop.repeat(2))), "abi: there is no handle 1");
}

#[test]
fn what_cannot_be_linked_is_refused_by_its_name() {
    let refused = |wat: &str, expected: &str| assert_eq!(comes_to(wat), expected);
    refused("(component)", "the component exports no function");
    refused(r#"(component (import "m" (core module)))"#, "the component exports no function");
    refused(
        r#"(component (import "m" (core module $m (export "f" (func)))) (core instance $i (instantiate $m))
           (func $f (canon lift (core func $i "f"))) (export "f" (func $f)))"#,
        "the component cannot be linked: the component imports a module, `m`; only functions, types and instances can be imported",
    );
}

/// Any bytes.
#[test]
fn damaged_components_are_outcomes_or_errors() {
    let count: usize = std::env::var("SPELUNK_MUTANTS").map_or(2_000, |count| count.parse().unwrap());
    let boxes = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/components/boxes.wat");
    let mut corpus = vec![wat::parse_file(boxes).unwrap()];
    corpus.extend(
        (0..20).map(|seed| wat::parse_str(oracle::component(&mut SmallRng::seed_from_u64(seed))).unwrap()),
    );
    let limits =
        Limits { step_budget: 10_000, stub_imports: spelunk::file::StubImports::Drawn, ..Limits::default() };
    let mut rng = SmallRng::seed_from_u64(1);
    let mut loaded = 0;
    on_guest_stack(|| {
        for _ in 0..count {
            let mut bytes = corpus[rng.random_range(0..corpus.len())].clone();
            mutate(&mut bytes, &corpus, &mut rng);
            let Ok(program) = Program::load(&bytes, limits, Selection::default()) else { continue };
            loaded += 1;
            // A start function may trap.
            let Ok(mut machine) = Machine::new(Arc::new(program)) else { continue };
            explore(&mut machine, seeded(1), 5);
        }
    });
    assert!(loaded > count / 50, "{loaded} of {count} could be loaded");
}

fn mutate(bytes: &mut [u8], corpus: &[Vec<u8>], rng: &mut impl Rng) {
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(8..bytes.len());
        match rng.random_range(0..6) {
            0 | 1 => bytes[at] = bytes[at].wrapping_add(rng.random_range(1..4)),
            2 => bytes[at] = rng.random(),
            3 => bytes[at] ^= 1 << rng.random_range(0..8),
            4 => {
                let other = &corpus[rng.random_range(0..corpus.len())];
                let from = rng.random_range(0..other.len());
                let len = rng.random_range(1..32).min(other.len() - from).min(bytes.len() - at);
                bytes[at..at + len].copy_from_slice(&other[from..from + len]);
            }
            _ => {
                let end = (at + rng.random_range(1..8)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                let to = rng.random_range(8..=bytes.len() - part.len());
                bytes[to..to + part.len()].copy_from_slice(&part);
            }
        }
    }
}

/// What is bounded where values are drawn is no bound that a check keeps silent about.
#[test]
fn a_check_is_complete_only_where_all_values_were_tried() {
    let is_complete = |wat: &str| {
        let wasm = wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}\n{wat}"));
        let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap());
        let options = Options::default();
        let checked = on_guest_stack(|| {
            check_all(&mut [machine(&program)], &options, &|_| None, &mut |_, _| ())
                .map_err(|trouble| trouble.kind)
        });
        match checked {
            Ok(checked) => checked.findings.is_empty() && checked.limit.is_none(),
            Err(TroubleKind::Unbounded(..)) => false,
            Err(kind) => panic!("{kind:?}"),
        }
    };
    let one = r#"(type $one' (enum "only")) (import "one" (type $one (eq $one')))"#;
    let list = with("(param \"all\" (list $one))", r#"(func (export "f") (param i32 i32))"#);
    assert!(!is_complete(&list.replacen("(component", &format!("(component {one}"), 1)));
    assert!(is_complete(&with("(param \"is\" bool)", r#"(func (export "f") (param i32))"#)));
}

/// A rule goes on to be called where there are many of what it returns.
#[test]
fn resources_without_end_are_made() {
    let wat = r#"(component
      (type $r' (resource (rep i32)))
      (core func $resource (canon resource.new $r'))
      (core module $M (import "" "new" (func $new (param i32) (result i32)))
        (global $made (mut i32) (i32.const 0))
        (func (export "f") (result i32)
          (global.set $made (i32.add (global.get $made) (i32.const 1)))
          (if (i32.eq (global.get $made) (i32.const 40)) (then unreachable))
          (call $new (global.get $made))))
      (core instance $m (instantiate $M (with "" (instance (export "new" (func $resource))))))
      (export $r "r" (type $r'))
      (func $f (result (own $r)) (canon lift (core func $m "f")))
      (export "f" (func $f)))"#;
    let program = Program::load(&wat::parse_str(wat).unwrap(), Limits::default(), Selection::default());
    let program = Arc::new(program.unwrap());
    on_guest_stack(|| {
        let (mut machine, mut enabled) = (machine(&program), Vec::new());
        for call in 1..=40 {
            machine.enabled(&mut enabled).unwrap();
            assert!(enabled.contains(&0), "{call}");
            let outcome = machine.step(Action::Rule(0), &mut oracle::drawing(call));
            assert_eq!(matches!(outcome, Outcome::Fail(_)), call == 40, "{call}: {outcome:?}");
        }
    });
}

/// Each type is made of the one before, twice.
#[test]
fn types_that_double_are_refused() {
    let mut types = String::from("(type $t0 (tuple u8 u8))");
    for index in 1..14 {
        types += &format!("(type $t{index} (tuple $t{0} $t{0}))", index - 1);
    }
    let component = with("(result (list $t13))", r#"(func (export "f") (result i32) (i32.const 0))"#);
    let expected = "the component cannot be linked: in the exported function `f`: a type has more than 10000 parts, where those are \
                    written out that stand in it more than once";
    assert_eq!(comes_to(&component.replacen("(component", &format!("(component {types}"), 1)), expected);
}
