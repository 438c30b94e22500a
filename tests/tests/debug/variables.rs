//! Variables of the source and lines of it, in a program in C.

use std::sync::Arc;

use spelunk::debug::{Command, Debugger, Expression, Timeline};
use spelunk::machine::{Limits, Program, Selection};
use spelunk_tests::{explore, machine, seeded, shrunk, tools};

#[test]
fn variables_of_the_source_are_found_and_the_steps_that_change_them() {
    let Some(wasm) = tools::compiled("debug/ring.c", &["-g", "-O1"]) else { return };
    let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap());
    let mut searched = machine(&program);
    let (found, _) = explore(&mut searched, seeded(1), 1000);
    let trace = shrunk(&mut searched, &found.expect("the fourth put fails")).trace;
    let timeline = Timeline::new(machine(&program), &trace, true, usize::MAX).unwrap();
    let mut debugger = Debugger::new(timeline);
    // Shrunk, each puts a 1.
    let last = debugger.timeline().len();
    let first = last - 3;
    let mut check = |position: usize, text: &str, expected: &str| {
        let expression = Expression::parse(text).unwrap();
        let value = debugger.evaluate(&expression, position).unwrap().0.map(|value| value.to_string());
        assert_eq!(value.unwrap_or_else(|why| why), expected, "{text}");
    };
    check(first - 1, "ring.head", "0");
    check(first, "ring.head", "1");
    check(last, "total", "3");
    check(last - 1, "total == ring.slots[0].amount + ring.slots[1].amount + ring.slots[2].amount", "true");
    check(last, "ring.slots[1].state", "1");
    check(last, "ring.slots[1]", "01 00 00 00 01 00 00 00");
    check(last, "u32[&ring.slots[2].amount]", "1");
    check(last, "&ring.head == &ring", "true");
    check(last, "ring.slots[3]", "`ring` has no such part");
    let mut answer = |text: &str| {
        let command = Command::parse(text).unwrap().unwrap();
        debugger.execute(&command).unwrap().text
    };
    answer("end");
    let stack = answer("backtrace");
    let frames: Vec<&str> = stack.lines().collect();
    assert!(
        frames[0].starts_with("#0   must_be_free at ") && frames[0].ends_with("debug/ring.c:17:9"),
        "{stack}"
    );
    assert!(
        frames[1].starts_with("#1   rule_put at ") && frames[1].ends_with("debug/ring.c:23:5"),
        "{stack}"
    );
    answer("last ring.slots[1]");
    assert_eq!(answer("list").lines().position(|line| line.starts_with('>')), Some(first + 1));
    for variable in ["ring.head", "ring.slots[1].state", "ring.slots[1].amount", "total"] {
        let written = answer("written");
        assert!(
            written.lines().any(|line| line.contains(&format!("  {variable}: "))),
            "{variable}: {written}"
        );
    }
    assert!(answer("statics ring").contains("  ring  28 bytes, other"), "{}", answer("statics"));
    assert!(answer("bisect total >= 2").starts_with(&format!("step {} of {last}: put", first + 1)));
}
