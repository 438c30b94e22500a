//! Coverage of modules that have thousands of functions, in which only some counters are looked at.

use std::collections::BTreeSet;
use std::sync::Arc;

use spelunk::choice::{Chooser, Value};
use spelunk::coverage::{FeatureSet, feature_of, slot_of};
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::target::Target;
use spelunk::trace::Action;

/// A rule that calls one of so many functions, each of which has a branch.
fn module(functions: u32) -> Vec<u8> {
    let function = "(func (param i32) (result i32) (if (i32.and (local.get 0) (i32.const 1)) (then (return (i32.const 7)))) \
                    (i32.const 8))";
    let indices: String = (0..functions).map(|index| format!(" {index}")).collect();
    let text = format!(
        "(module {} (table {functions} funcref) (elem (i32.const 0){indices}) (type $t (func (param i32) (result i32)))
           (func (export \"rule:call\") (param i32 i32)
             (drop (call_indirect (type $t) (local.get 1) (local.get 0)))))",
        function.repeat(functions as usize)
    );
    wat::parse_str(text).unwrap()
}

#[test]
fn a_step_covers_the_functions_that_it_enters() {
    const FUNCTIONS: u32 = 3_000;
    let program = Program::load(&module(FUNCTIONS), Limits::default(), Selection::default()).unwrap();
    let edges = program.edges().edges.clone();
    let mut machine = Machine::new(Arc::new(program)).unwrap();
    let mut chooser = Chooser::default();
    let mut call = |machine: &mut Machine, function: u32, argument: i64| {
        let answers = [i64::from(function), argument].map(|value| Some(Value::Integer(value)));
        chooser.begin(0, answers);
        machine.step(Action::Rule(0), &mut chooser);
    };
    let covered = |machine: &mut Machine, seen: &FeatureSet| {
        let mut new = Vec::new();
        machine.coverage(seen, &mut new);
        assert!(new.is_sorted());
        new.into_iter().map(slot_of).collect::<Vec<u32>>()
    };
    let of_rule = FUNCTIONS;
    for function in (0..FUNCTIONS).step_by(7) {
        call(&mut machine, function, 0);
        let even = covered(&mut machine, &FeatureSet::default());
        call(&mut machine, function, 1);
        let odd = covered(&mut machine, &FeatureSet::default());
        let functions: BTreeSet<u32> =
            even.iter().chain(&odd).map(|slot| edges[*slot as usize].function).collect();
        assert!(functions.contains(&function) && functions.iter().all(|f| [function, of_rule].contains(f)));
        assert_ne!(even, odd);
        // What a step covers is not looked at, and the next step forgets it.
        call(&mut machine, (function + 1_000) % FUNCTIONS, 1);
        call(&mut machine, function, 0);
        assert_eq!(covered(&mut machine, &FeatureSet::default()), even);
        // What was seen before is not new.
        let mut seen = FeatureSet::default();
        even.iter().for_each(|slot| assert!(seen.insert(feature_of(*slot))));
        call(&mut machine, function, 0);
        assert_eq!(covered(&mut machine, &seen), [0u32; 0]);
    }
}
