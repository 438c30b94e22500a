//! Errors of the stack are found where they are, and nowhere else.

use std::fs;
use std::sync::Arc;

use spelunk::choice::Chooser;
use spelunk::machine::{Limits, Machine, Program, Sanitizer, Selection};
use spelunk::outcome::{Failure, FailureKind, Outcome};
use spelunk::search::Explorer;
use spelunk::target::Target;
use spelunk::trace::Action;
use spelunk_instrumenter::{Options, instrument};
use spelunk_tests::{check_replays, machine, on_guest_stack, seeded, tools, wasm};

fn with(sanitize: &[Sanitizer]) -> Selection {
    Selection { sanitize: sanitize.to_vec(), ..Selection::default() }
}

const STACK: &[Sanitizer] = &[Sanitizer::Stack];
const BOTH: &[Sanitizer] = &[Sanitizer::Heap, Sanitizer::Stack];

fn load(wasm: &[u8], sanitize: &[Sanitizer]) -> Arc<Program> {
    let program = Program::load(wasm, Limits::default(), with(sanitize));
    Arc::new(program.unwrap_or_else(|error| panic!("{error:#}")))
}

fn rule(machine: &Machine, name: &str) -> Action {
    let rule = machine.rules().iter().position(|known| &*known.name == name);
    Action::Rule(rule.unwrap_or_else(|| panic!("no rule {name}")) as u16)
}

/// What calling a rule once from the start comes to.
fn call(machine: &mut Machine, name: &str) -> Outcome {
    machine.reset();
    let rule = rule(machine, name);
    machine.step(rule, &mut Chooser::default())
}

/// By rule: the function whose frame it is, the function that the place is in, and what is beyond it.
const ERRORS: &[(&str, &str, &str)] = &[
    ("write_after", "write_after", "write_after"),
    ("read_after", "read_after", "read_after"),
    ("write_by_pointer", "write_by_pointer", "write_by_pointer"),
    ("off_by_one", "off_by_one", "off_by_one"),
    ("fill_too_much", "fill_too_much", "fill_too_much"),
    ("copy_too_much", "copy_too_much", "copy_too_much"),
    ("string_too_long", "string_too_long", "string_too_long"),
    ("end_of_struct", "end_of_struct", "end_of_struct"),
    ("in_inlined", "in_inlined", "inlined"),
    ("in_recursion", "deeper", "deeper"),
    ("too_few_arguments", "too_few_arguments", "add"),
    ("by_value", "by_value", "total"),
    ("in_large_frame", "in_large_frame", "in_large_frame"),
    ("by_callee", "by_callee", "fills"),
    ("with_variable_size", "variable", "variable"),
    ("aligned", "aligned", "aligned"),
    ("by_the_host", "by_the_host", "by_the_host"),
];

/// The function of `errors.c` that this line, from 1, is of.
fn function_at(line: usize) -> &'static str {
    let source = include_str!("../guests/stack/errors.c");
    let name = |line: &'static str| {
        let rule = line.strip_prefix("RULE(").and_then(|rest| rest.split(')').next());
        let function = || line.strip_prefix("static ")?.split_once('(')?.0.rsplit([' ', '*']).next();
        rule.or_else(|| line.contains(") {").then(function)?)
    };
    source.lines().take(line).filter_map(name).last().expect("a function is before it")
}

/// What is wrong with what calling a rule comes to.
fn mistold(outcome: &Outcome, (rule, frame, function): (&str, &str, &str)) -> Option<String> {
    let Outcome::Fail(failure) = outcome else { return Some(format!("{rule}: {outcome:?}")) };
    let Failure { kind, message, place, .. } = &**failure;
    let line = place.as_deref().and_then(|place| place.split_once("stack/errors.c:"));
    let line = line.and_then(|(_, line)| line.split(':').next()?.parse().ok());
    let is_told = *kind == FailureKind::StackBufferOverflow
        && message.contains(&format!(" beyond the frame of {frame}"))
        && line.is_some_and(|line| function_at(line) == function);
    (!is_told).then(|| format!("{rule}: {failure:?}"))
}

#[test]
fn each_error_of_a_c_program_is_found_and_told() {
    let plain = &["-O0", "-fno-stack-protector", "-fno-sanitize=undefined"];
    for flags in [&plain[..], &["-O1"], &["-O2"], &["-O2", "-mbulk-memory"]] {
        let Some(wasm) = tools::compiled("stack/errors.c", flags) else { return };
        for sanitize in [STACK, BOTH] {
            let program = load(&wasm, sanitize);
            on_guest_stack(|| {
                let mut machine = machine(&program);
                let told = ERRORS.iter().filter_map(|error| mistold(&call(&mut machine, error.0), *error));
                assert_eq!(told.collect::<Vec<_>>(), [] as [String; 0], "{flags:?}");
                let of_heap = match call(&mut machine, "of_the_heap") {
                    Outcome::Fail(failure) => Some(failure.kind),
                    _ => None,
                };
                assert_eq!(of_heap, (sanitize == BOTH).then_some(FailureKind::HeapBufferOverflow));
                for rule in ["none", "none_by_the_host"] {
                    assert_eq!(call(&mut machine, rule), Outcome::Pass, "{flags:?}");
                }
            });
        }
    }
}
