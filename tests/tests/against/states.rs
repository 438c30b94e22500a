//! Both guests have a state each, which snapshots, campaigns and other machines hold together.

use std::sync::Arc;

use spelunk::choice::Chooser;
use spelunk::file::Conditions;
use spelunk::machine::{Edges, Limits, Machine, Program, Reader, Selection};
use spelunk::outcome::Outcome;
use spelunk::search::Explorer;
use spelunk::target::Target;
use spelunk::trace::Action;
use spelunk_tests::{Kept, machine, on_guest_stack, seeded};

use super::{checked, finds, finds_nothing, first, pair, pair_of};

/// Two that count, in a global and in memory, where the other's stays as it is above a limit.
fn counters(limit: u32) -> Arc<Program> {
    let one = r#"(memory 2) (global $n (mut i32) (i32.const 0))
      (func (export "add") (global.set $n (i32.add (global.get $n) (i32.const 1))))
      (func (export "get") (result i32) (global.get $n))"#;
    let other = format!(
        r#"(memory 1) (memory $m 1)
          (func (export "get") (result i32) (i32.load $m (i32.const 5000)))
          (func (export "add") (if (i32.lt_u (i32.load $m (i32.const 5000)) (i32.const {limit}))
            (then (i32.store $m (i32.const 5000) (i32.add (i32.load $m (i32.const 5000)) (i32.const 1))))))"#
    );
    pair(one, &other, &[])
}

/// The steps `add` and `get`.
const ADD: Action = Action::Rule(0);
const GET: Action = Action::Rule(1);

fn step(machine: &mut Machine, action: Action) -> String {
    match machine.step(action, &mut Chooser::default()) {
        Outcome::Pass => "passes".to_string(),
        Outcome::Fail(failure) => failure.message,
        other => format!("{other:?}"),
    }
}

#[test]
fn a_snapshot_holds_both_and_another_machine_reads_it() {
    on_guest_stack(|| {
        let program = counters(3);
        let mut one = machine(&program);
        one.reset();
        let start = one.state();
        for _ in 0..4 {
            assert_eq!(step(&mut one, ADD), "passes");
        }
        let (snapshot, state) = (one.snapshot().unwrap(), one.state());
        assert_ne!(start, state);
        assert_eq!(state, one.state_from_scratch());
        let mut kept = Kept::default();
        let record = snapshot.write(&mut kept).unwrap();
        one.reset();
        assert_eq!((one.state(), step(&mut one, GET)), (start, "passes".to_string()));
        let read = Reader::new(&mut kept, &program).unwrap().read(&record).unwrap();
        assert_eq!(read.hash(), state);
        let mut other = machine(&program);
        other.restore(&read);
        assert_eq!(other.state(), state);
        assert_eq!(step(&mut other, GET), "`get` returns 4, and against it 3");
        one.restore(&snapshot);
        assert_eq!(step(&mut one, GET), "`get` returns 4, and against it 3");
    });
}

#[test]
fn a_record_that_is_damaged_or_of_one_guest_is_refused() {
    let program = counters(3);
    let mut kept = Kept::default();
    let record = machine(&program).snapshot().unwrap().write(&mut kept).unwrap();
    for end in 0..record.len() {
        assert!(Reader::new(&mut kept, &program).unwrap().read(&record[..end]).is_err(), "{end}");
    }
    for at in 0..12 {
        let mut wrong = record.clone();
        wrong[at] ^= 0x81;
        assert!(Reader::new(&mut kept, &program).unwrap().read(&wrong).is_err(), "{at}");
    }
    let alone = wat::parse_str(r#"(module (func (export "f")))"#).unwrap();
    let alone = Arc::new(Program::load(&alone, Limits::default(), Default::default()).unwrap());
    let of_one = machine(&alone).snapshot().unwrap().write(&mut kept).unwrap();
    let refused = [
        Reader::new(&mut kept, &program).unwrap().read(&of_one).err(),
        Reader::new(&mut kept, &alone).unwrap().read(&record).err(),
    ];
    for error in refused {
        let expected = "the program, or the snapshot, is one of two modules that are compared, and not both";
        assert_eq!(error.unwrap().to_string(), expected);
    }
}

#[test]
fn any_number_of_workers_finds_the_same() {
    on_guest_stack(|| {
        let program = counters(5);
        let explored = |workers: usize| {
            let mut machines: Vec<Machine> = (0..workers).map(|_| machine(&program)).collect();
            let mut explorer = Explorer::with_workers(&mut machines, seeded(3));
            explorer.explore(|progress| progress.runs < 500);
            let findings: Vec<_> = explorer.findings().cloned().collect();
            assert_eq!(findings.len(), 1);
            (findings, explorer.progress())
        };
        assert_eq!(explored(1), explored(3));
    });
}

/// Edges of both are counted: five numbers in a row are found that only one of them looks at.
#[test]
fn what_is_new_in_either_is_news() {
    let one = r#"(func (export "f") (param i32) (result i32) (i32.const 0))"#;
    let steps = (0..5).map(|at| {
        format!(
            r#"(if (i32.eq (global.get $p) (i32.const {at})) (then
              (if (i32.eq (i32.and (local.get 0) (i32.const 63)) (i32.const {})) (then
                (global.set $p (i32.const {})) (return (i32.const 0))))
              (global.set $p (i32.const 0)) (return (i32.const 0))))"#,
            7 * at + 3,
            at + 1
        )
    });
    let other = format!(
        r#"(global $p (mut i32) (i32.const 0)) (func (export "f") (param i32) (result i32) {} (i32.const 1))"#,
        steps.collect::<String>()
    );
    let program = pair(one, &other, &[]);
    let functions = &program.edges().functions;
    let names: Vec<&str> = functions.iter().map(|function| &*function.name).collect();
    assert_eq!(names, ["f", "against:f"]);
    let of_first = program.edges().edges.iter().filter(|edge| edge.function == 0).count();
    assert_eq!((of_first, program.edges().edges.len() > 10), (1, true));
    let steps = ": 6 steps";
    for (program, expected) in [
        (program, "`f` returns 0, and against it 1 @ the result of f"),
        (pair(&other, one, &[]), "`f` returns 1, and against it 0 @ the result of f"),
    ] {
        let found = first(&program);
        let (difference, calls) = found.split_once('\n').unwrap();
        assert_eq!(format!("{difference}: {} steps", calls.lines().count()), format!("{expected}{steps}"));
    }
}

/// Where edges are numbered at run time, those of both have a map each.
#[test]
fn edges_may_be_hashed() {
    let selection = Selection { edges: Edges::Hashed, ..Selection::default() };
    let counts = |text: &str| {
        format!(
            r#"(func (export "f") (param i32) (result i32) (if (local.get 0) (then (nop))) (i32.const {text}))"#
        )
    };
    let conditions = || Conditions { selection: selection.clone(), ..Conditions::default() };
    finds_nothing(&pair_of(&counts("1"), &counts("1"), &[], conditions()).unwrap(), 500);
    on_guest_stack(|| {
        let program = pair_of(&counts("1"), &counts("1"), &[], conditions()).unwrap();
        let mut machine = machine(&program);
        let mut explorer = Explorer::new(&mut machine, seeded(1));
        explorer.explore(|progress| progress.runs < 100);
        // Each has two ways through it.
        assert_eq!(explorer.progress().edges % 2, 0);
        assert!(explorer.progress().edges >= 4);
    });
    finds(
        &pair_of(&counts("1"), &counts("2"), &[], conditions()).unwrap(),
        "`f` returns 1, and against it 2 @ the result of f\nf arg0=0",
    );
}

/// What no snapshot can hold of one is replayed of both.
#[test]
fn one_without_snapshots_leaves_none() {
    let one = r#"(table 1 funcref) (global $n (mut i32) (i32.const 0))
      (func (export "add") (global.set $n (i32.add (global.get $n) (i32.const 1))))
      (func (export "get") (result i32) (global.get $n))"#;
    let other = r#"(table 0 9 funcref)
      (func (export "add") (drop (table.grow (ref.null func) (i32.const 1))))
      (func (export "get") (result i32) (select (table.size) (i32.const 9) (i32.lt_u (table.size) (i32.const 3))))"#;
    let program = pair(one, other, &[]);
    assert_eq!(program.obstacles().len(), 1);
    assert!(!machine(&program).uses_snapshots());
    finds(&program, "`get` returns 3, and against it 9 @ the result of get\nadd\nadd\nadd\nget");
}

/// A heap of objects, and exceptions, are as good as anything.
#[test]
fn modules_may_have_whatever_one_may_have() {
    let objects = |n: i32| {
        format!(
            r#"(type $t (struct (field (mut i32)))) (tag $e (param i32))
              (func (export "f") (result i32) (struct.get $t 0 (struct.new $t (i32.const {n}))))
              (func (export "g") (result i32) (block $h (result i32)
                (try_table (catch $e $h) (throw $e (i32.const {n}))) unreachable))"#
        )
    };
    finds_nothing(&pair(&objects(1), &objects(1), &[]), 500);
    let found = first(&pair(&objects(1), &objects(2), &["g"]));
    assert_eq!(found, "`f` returns 1, and against it 2 @ the result of f\nf");
    let found = first(&pair(&objects(1), &objects(2), &["f"]));
    assert_eq!(found, "`g` returns 1, and against it 2 @ the result of g\ng");
}

/// What one takes of memory is not missing to the other.
#[test]
fn each_has_its_limits() {
    let grows = r#"(memory 1) (func (export "f") (result i32) (memory.grow (i32.const 10)))"#;
    let limits = Limits { memory_bytes_max: 1 << 20, ..Limits::default() };
    let conditions = Conditions { limits, ..Conditions::default() };
    let program = pair_of(grows, grows, &[], conditions).unwrap();
    finds_nothing(&program, 1000);
    assert_eq!(checked(&program, None).census.states, 2);
}

/// A state that only one tells apart is another one of both.
#[test]
fn states_are_those_of_both() {
    let counts = |max: u32| {
        format!(
            r#"(global $n (mut i32) (i32.const 0)) (func (export "f")
              (if (i32.lt_u (global.get $n) (i32.const {max})) (then (global.set $n (i32.add (global.get $n) (i32.const 1))))))"#
        )
    };
    for (one, other) in [(2, 5), (5, 2), (5, 5)] {
        let checked = checked(&pair(&counts(one), &counts(other), &[]), None);
        assert_eq!((checked.findings.len(), checked.limit, checked.census.states), (0, None, 6));
    }
}
