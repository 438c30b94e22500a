//! Timelines of modules, forwards and back.

use super::*;
use crate::choice::Chooser;
use crate::machine::{Limits, Machine, Program, Selection};
use crate::outcome::FailureKind;
use crate::replay::Replayed;
use crate::target::attempt;
use crate::trace::{Action, Trace};
use std::sync::Arc;

/// Adds what is drawn to a number in memory and to a global, and fails where the number is at least 5000. What it does to memory moves
/// from page to page, and grows it now and then.
const ADDER: &str = r#"(module
  (memory (export "memory") 1)
  (global $calls (export "calls") (mut i32) (i32.const 0))
  (func (export "rule:add") (param i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (i32.store (i32.const 16) (i32.add (i32.load (i32.const 16)) (i32.and (local.get 0) (i32.const 7))))
    (i32.store (i32.and (i32.mul (global.get $calls) (i32.const 1000)) (i32.const 0xfffc)) (local.get 0))
    (if (i32.eqz (i32.and (global.get $calls) (i32.const 0xff))) (then (drop (memory.grow (i32.const 1))))))
  (func (export "invariant:small") (result i32) (i32.lt_u (global.get $calls) (i32.const 1000))))"#;

fn machine(wat: &str, uses_snapshots: bool) -> Machine {
    let wasm = wat::parse_str(wat).unwrap();
    let program = Program::load(&wasm, Limits::default(), Selection::default()).unwrap();
    let mut machine = Machine::new(Arc::new(program)).unwrap();
    machine.set_uses_snapshots(uses_snapshots).unwrap();
    machine
}

/// Calls the first rule so many times.
fn steps(wat: &str, count: usize) -> Trace {
    let mut machine = machine(wat, true);
    let (mut chooser, mut enabled, mut trace) = (Chooser::default(), Vec::new(), Trace::default());
    for seed in 0..count as u64 {
        attempt(&mut machine, &mut chooser, &mut enabled, (Action::Rule(0), seed), [], &mut trace);
    }
    trace
}

fn timeline(uses_snapshots: bool, count: usize, room: usize) -> Timeline {
    Timeline::new(machine(ADDER, uses_snapshots), &steps(ADDER, count), false, room).unwrap()
}

fn expression(text: &str) -> Expression {
    Expression::parse(text).unwrap()
}

#[test]
fn a_thousand_steps_back_and_forth_lead_to_the_same_states() {
    let mut all = timeline(true, 1000, usize::MAX);
    assert_eq!((all.len(), all.kept(), all.stride()), (1000, 1001, 1));
    assert!(matches!(all.end(), Replayed::Failed(failure) if failure.kind == FailureKind::Invariant));
    let hashes: Vec<u128> = (0..=1000).map(|position| all.hash(position)).collect();
    let mut distinct = hashes.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 1001);
    for position in (0..=1000).rev().chain(0..=1000).chain((0..=1000).map(|n| n * 617 % 1001)) {
        assert_eq!(all.go(position).unwrap(), hashes[position]);
    }
    // To ask a step what it did leads nowhere else.
    for number in (1..=1000).step_by(37) {
        assert_eq!(all.told(number).unwrap().args.len(), 1);
        assert_eq!(all.go(number - 1).unwrap(), hashes[number - 1]);
    }
    // What is not kept is performed again.
    let mut few = timeline(true, 1000, 0);
    assert_eq!((few.kept(), few.failure(1000).is_some()), (2, true));
    let mut none = timeline(false, 1000, usize::MAX);
    for position in [1000, 999, 0, 1, 500, 499, 1000] {
        assert_eq!(few.go(position).unwrap(), hashes[position]);
        assert_eq!(none.go(position).unwrap(), hashes[position]);
        let (one, other) = (all.image(position).unwrap(), few.image(position).unwrap());
        assert_eq!((one.hash(), other.hash()), (hashes[position], hashes[position]));
    }
}

#[test]
fn what_a_step_wrote_is_what_differs() {
    let mut all = timeline(true, 300, usize::MAX);
    let mut few = timeline(true, 300, 0);
    for number in [1, 2, 255, 256, 257, 300] {
        let written = all.written(number).unwrap();
        assert_eq!(written, few.written(number).unwrap());
        let (before, after) = (all.image(number - 1).unwrap(), all.image(number).unwrap());
        let size = after.memory_bytes(0).unwrap();
        let (mut then, now) =
            (before.bytes(0, 0..before.memory_bytes(0).unwrap()).unwrap(), after.bytes(0, 0..size).unwrap());
        then.resize(now.len(), 0);
        let differs: Vec<u64> = (0..size).filter(|at| then[*at as usize] != now[*at as usize]).collect();
        let told: Vec<u64> = written[0].ranges.iter().cloned().flatten().collect();
        assert_eq!((told, written[0].left_out), (differs, 0));
    }
    let image = all.image(256).unwrap();
    assert_eq!(image.memory_bytes(0), Some(2 * 65536));
    assert_eq!(image.bytes(0, 2 * 65536 - 1..2 * 65536), Some(vec![0]));
    assert_eq!(image.bytes(0, 2 * 65536 - 1..2 * 65536 + 1), None);
    assert_eq!(image.bytes(1, 0..1), None);
    assert_eq!(all.image(255).unwrap().memory_bytes(0), Some(65536));
}

#[test]
fn a_watch_stops_at_each_step_that_changes_it_and_last_finds_it() {
    let mut debugger = Debugger::new(timeline(true, 40, usize::MAX));
    let sum = expression("u32[16]");
    let values: Vec<Seen> = (0..=40).map(|position| debugger.evaluate(&sum, position).unwrap()).collect();
    let changed: Vec<usize> = (1..=40).filter(|number| values[*number] != values[number - 1]).collect();
    assert!((20..40).contains(&changed.len()), "{changed:?}");
    debugger.watch(sum.clone()).unwrap();
    let mut stops = Vec::new();
    loop {
        let stop = debugger.run(true).unwrap();
        if stop.reasons == [Reason::End] {
            break;
        }
        stops.push(stop.position);
    }
    assert_eq!(stops, changed);
    debugger.go(40).unwrap();
    let mut back = Vec::new();
    loop {
        let stop = debugger.run(false).unwrap();
        if stop.reasons == [Reason::Start] {
            break;
        }
        back.push(stop.position);
    }
    back.reverse();
    let before_the_end: Vec<usize> = changed.iter().copied().filter(|number| *number < 40).collect();
    assert_eq!(back, before_the_end);
    for position in 0..=40 {
        debugger.go(position).unwrap();
        let found = debugger.last(&sum).unwrap().map(|(number, ..)| number);
        assert_eq!(found, changed.iter().copied().rfind(|number| *number <= position));
    }
}

#[test]
fn bisect_says_the_first_step_also_of_what_does_not_stay() {
    let mut debugger = Debugger::new(timeline(true, 40, usize::MAX));
    let mut bisect = |text: &str| debugger.bisect(&expression(text)).map_err(|error| error.to_string());
    assert_eq!(bisect("calls == 7"), Ok(Some(7)));
    assert_eq!(bisect("$calls >= 7 && $0 < 9"), Ok(Some(7)));
    assert_eq!(bisect("calls == 0"), Ok(Some(0)));
    assert_eq!(bisect("calls & 8"), Ok(Some(8)));
    assert_eq!(bisect("calls == 41"), Ok(None));
    assert_eq!(
        bisect("mem[0..+4]"),
        Err("`mem[0..+4]` is bytes, which is neither true nor false".to_string())
    );
    assert_eq!(
        bisect("nothing > 1"),
        Err("`nothing > 1` has a value after no step: nothing is called `nothing` here".to_string())
    );
    assert_eq!(
        bisect("u32[0xfffd] == 1"),
        Err("`u32[0xfffd] == 1` has a value after no step: 0xfffd..0x10001 is beyond the memory, which has 0x10000 bytes here".to_string())
    );
}

#[test]
fn expressions_are_what_they_look_like() {
    let mut debugger = Debugger::new(timeline(true, 3, usize::MAX));
    let mut check = |text: &str, expected: &str| {
        let found = Expression::parse(text).and_then(|expression| debugger.evaluate(&expression, 2));
        let found = match found {
            Ok(Seen(Ok(value))) => value.to_string(),
            Ok(Seen(Err(why))) => format!("absent: {why}"),
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(found, expected, "{text}");
    };
    check("1 + 2 * 3 - -4", "11");
    check("(1 + 2) * 3", "9");
    check("0x1f & 0b110 | 1", "7");
    check("1 | 6 & 3 == 3", "true");
    check("1_000 == 1000.0 && !(2 < 1.5)", "true");
    check("1.5 + 1", "2.5");
    check("2 > 1 || nothing", "true");
    check("2 < 1 && nothing", "false");
    check("!0", "true");
    check("true_", "absent: nothing is called `true_` here");
    check("\"a\" == \"a\"", "true");
    check("\"a\\\"b\"", "a\"b");
    check("\"a\" == 1", "absent: `==` does not take text and a whole number");
    check("\"a\" + 1", "absent: `+` does not take text and a whole number");
    check(
        "170141183460469231731687303715884105727 + 1",
        "absent: 170141183460469231731687303715884105727 + 1 has more than 127 bits",
    );
    check("calls + $calls + $0", "6");
    check("$9", "absent: there is no mutable global `9`");
    check("&calls", "absent: there is no variable `calls` in debug information");
    check("@calls", "absent: the state that the guest describes has no `calls` here");
    check("mem[0..+3]", "00 00 00");
    check("mem[0..+3] == mem[calls - 2..+3]", "true");
    check("i8[-1]", "absent: there is no memory at -1");
    check("u8:1[0]", "absent: there is no memory 1");
    check("u64[65528] * 0", "0");
    check("mem[0..+65537]", "absent: 65537 bytes are more than 65536");
    check("u8[0xffffffffffffffff]", "absent: there is no memory at 18446744073709551615");
    check("1 +", "error: a name is missing in `1 +`, at ``");
    check("1 2", "error: what is `2` in `1 2`?");
    check("1 < 2)", "error: what is `)` in `1 < 2)`?");
    check("12ab", "error: `12ab` is no number");
    check("mem[0]", "error: `..` is missing in `mem[0]`, at `]`");
    check(&"(".repeat(100), "error: more than 64 brackets or signs are within others");
    check(&"1+".repeat(3000), "error: an expression has at most 4096 bytes");
    check(&format!("{}1", "1+".repeat(2000)), "2001");
}

#[test]
fn loads_are_read_as_their_types_say() {
    let wat = r#"(module (memory (export "memory") 1) (data (i32.const 0) "\ff\fe\fd\fc\fb\fa\f9\f8\00\00\c0\3f\00\00\00\00\00\00\f8\3f")
        (global $wide (mut i64) (i64.const -5)) (global $part (mut f32) (f32.const 0.5))
        (func (export "rule:nothing") (global.set $wide (i64.const -5)) (global.set $part (f32.const 0.5))))"#;
    let timeline = Timeline::new(machine(wat, true), &steps(wat, 1), false, usize::MAX).unwrap();
    let mut debugger = Debugger::new(timeline);
    let mut check = |text: &str, expected: &str| {
        let seen = debugger.evaluate(&expression(text), 1).unwrap();
        assert_eq!(seen.0.unwrap().to_string(), expected, "{text}");
    };
    check("u8[0]", "255");
    check("i8[0]", "-1");
    check("u16[0]", "65279");
    check("i16[0]", "-257");
    check("u32[0]", "4244504319");
    check("i32[0]", "-50462977");
    check("u64[0]", "17940646550795321087");
    check("i64[0]", "-506097522914230529");
    check("f32[8]", "1.5");
    check("f64[12]", "1.5");
    check("mem[0..+2]", "ff fe");
    check("wide", "-5");
    check("part", "0.5");
}

#[test]
fn commands_say_what_is_wrong_with_them() {
    let check = |text: &str, expected: &str| {
        assert_eq!(Command::parse(text).unwrap_err().to_string(), expected);
    };
    check("jump", "there is no command `jump`; try `help`");
    check("goto", "`` is no number of steps");
    check("next x", "`x` is no number of steps");
    check("print", "`print` takes an expression");
    check("list 3", "`list` takes nothing");
    check("break", "`break` takes a name");
    check("memory", "`memory` takes an address, and how many bytes");
    assert_eq!(Command::parse("  # no command").unwrap(), None);
    assert_eq!(Command::parse("x :1 &a + 4 32").unwrap(), Some(Command::Memory(1, expression("&a + 4"), 32)));
    assert_eq!(split("a; print \"b;c\" ; 'd;e'"), ["a", " print \"b;c\" ", " 'd;e'"]);
    // Every command that help names there is.
    for line in HELP.lines().take_while(|line| !line.is_empty()) {
        for usage in line.split("  ").next().unwrap().split(", ").filter(|usage| !usage.is_empty()) {
            let filled = usage.replace("[N]", "1").replace("[LEN]", "16").replace("[TEXT]", "x");
            let filled =
                filled.replace("EXPR", "1").replace("ADDR", "0").replace("NAME", "x").replace("FILE", "x");
            let filled = filled.split(' ').map(|word| if word == "N" { "1" } else { word });
            let filled = filled.collect::<Vec<_>>().join(" ");
            assert!(Command::parse(&filled).unwrap().is_some(), "{usage}");
        }
    }
}

#[test]
fn a_core_dump_holds_the_state() {
    let mut timeline = timeline(true, 300, usize::MAX);
    for position in [0, 1, 256, 300] {
        let dump = core_dump(&mut timeline, position).unwrap();
        wasmparser::validate(&dump).unwrap();
        let image = timeline.image(position).unwrap();
        let (mut memory, mut globals, mut sections) = (Vec::new(), Vec::new(), Vec::new());
        for payload in wasmparser::Parser::new(0).parse_all(&dump) {
            match payload.unwrap() {
                wasmparser::Payload::MemorySection(memories) => {
                    let memories: Vec<_> = memories.into_iter().map(Result::unwrap).collect();
                    assert_eq!(memories.len(), 1);
                    memory.resize(memories[0].initial as usize * 65536, 0u8);
                }
                wasmparser::Payload::GlobalSection(all) => {
                    globals = all.into_iter().map(|global| i32_of(&global.unwrap().init_expr)).collect();
                }
                wasmparser::Payload::DataSection(all) => {
                    for data in all {
                        let data = data.unwrap();
                        let wasmparser::DataKind::Active { offset_expr, .. } = data.kind else { panic!() };
                        let at = i32_of(&offset_expr) as usize;
                        memory[at..at + data.data.len()].copy_from_slice(data.data);
                    }
                }
                wasmparser::Payload::CustomSection(section) => sections.push(section.name().to_string()),
                _ => {}
            }
        }
        assert_eq!(Some(memory), image.bytes(0, 0..image.memory_bytes(0).unwrap()));
        assert_eq!(globals, [position as i32]);
        assert_eq!(sections, ["core", "coremodules", "coreinstances", "corestack"]);
    }
}

fn i32_of(expression: &wasmparser::ConstExpr<'_>) -> i32 {
    match expression.get_operators_reader().read().unwrap() {
        wasmparser::Operator::I32Const { value } => value,
        other => panic!("{other:?}"),
    }
}

/// Nothing that a guest says moves the cursor or begins a line of ours, in any answer.
#[test]
fn a_guest_forges_nothing() {
    let wat = r#"(module
      (import "spelunk" "describe" (func $describe (param i32 i32 i32 i32)))
      (import "spelunk" "note" (func $note (param i32 i32)))
      (import "spelunk" "fail" (func $fail (param i32 i32)))
      (memory (export "memory") 1)
      (global $g (export "x\1b[2K\nholds") (mut i32) (i32.const 0))
      (data (i32.const 0) "x\1b[2K\nholds: 1 run\c2\9b1A")
      (func (export "rule:x\1b[2K\nholds")
        (global.set $g (i32.const 1))
        (call $note (i32.const 0) (i32.const 19))
        (if (i32.load (i32.const 64)) (then (call $fail (i32.const 0) (i32.const 19))))
        (i32.store (i32.const 64) (i32.const 1))
        (i32.store8 (i32.const 17) (i32.const 0x85)))
      (func (export "describe_state") (call $describe (i32.const 0) (i32.const 19) (i32.const 0) (i32.const 19))))"#;
    let timeline = Timeline::new(machine(wat, true), &steps(wat, 2), false, usize::MAX).unwrap();
    let mut debugger = Debugger::new(timeline);
    let all = [
        "next",
        "state",
        "written",
        "globals",
        "list",
        "info",
        "watch $0",
        "watches",
        "start",
        "c",
        "end",
        "bt",
        "statics",
        "last $0",
        "memory 0 32",
        "print mem[0..+20]",
        "hash",
    ];
    for text in all {
        let command = Command::parse(text).unwrap().unwrap();
        let answer = debugger.execute(&command).unwrap();
        assert!(answer.text.chars().all(|c| c == '\n' || !c.is_control()), "{text}: {:?}", answer.text);
        assert!(!answer.text.lines().any(|line| line.starts_with("holds")), "{text}: {}", answer.text);
    }
}
