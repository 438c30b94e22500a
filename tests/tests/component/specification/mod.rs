//! The tests of the component model's specification: what it says of a component is so in Spelunk, or the component is refused, and
//! `specification.txt` says which and why.

mod engine;
mod script;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use spelunk::choice::{Chooser, Value};
use spelunk::file::Given;
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::outcome::Outcome;
use spelunk::target::Target;
use spelunk::trace::Action;
use spelunk_tests::{on_guest_stack, tools};

use script::{Bytes, Call, Directive, Instance, Script};

/// Folders of tests, of those of async functions are tests that no component without these can pass.
const FOLDERS: [&str; 6] = ["async", "binary", "linking", "resources", "validation", "values"];

/// What a component is that links and has nothing to call.
const NOTHING_TO_CALL: &str = "the component exports no function";

#[test]
fn what_the_specification_says_of_components_is_so() {
    let Some(tests) = tools::component_model() else { return };
    let (mut text, mut reasons, mut wrong) = (String::new(), BTreeSet::new(), Vec::new());
    let mut passed = 0;
    for folder in FOLDERS {
        let mut files: Vec<_> =
            std::fs::read_dir(tests.join(folder)).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "wast")) {
            let name = format!("{folder}/{}", file.file_name().unwrap().to_str().unwrap());
            let report = on_guest_stack(|| report(&std::fs::read_to_string(file).unwrap()));
            text += &format!("{name}: {} passed\n", report.passed);
            for (what, count) in &report.otherwise {
                text += &format!("  {count} as the engine: {what}\n");
            }
            for (why, count) in &report.refused {
                text += &format!("  {count} refused: {why}\n");
            }
            wrong.extend(report.wrong.iter().map(|wrong| format!("{name}:{wrong}")));
            reasons.extend(report.reasons);
            passed += report.passed;
        }
    }
    text += &format!("\n{passed} passed\n\nwhat traps, and what Spelunk says of it:\n");
    for (expected, said) in reasons {
        text += &format!("  {expected}: {said}\n");
    }
    assert!(wrong.is_empty(), "{}\n\n{text}", wrong.join("\n"));
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/component/specification.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&golden, &text).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&golden).unwrap_or_default(),
        text,
        "run again with BLESS=1 if this is right"
    );
}

/// What came of a test file.
#[derive(Default)]
struct Report {
    passed: usize,
    /// Directives by the reason for which they could not be tried.
    refused: BTreeMap<String, usize>,
    /// Why something trapped, as the file says and as Spelunk does.
    reasons: Reasons,
    /// What is not as the file says, but as the engine's own component model has it.
    otherwise: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

/// An instance of a component, as far as it could be made.
enum Running {
    /// It has functions.
    Machine {
        machine: Box<Machine>,
        choices: Vec<Vec<Option<Value>>>,
    },
    Empty,
    Refused(String),
    Trapped(String),
}

/// What came of one directive.
enum Came {
    Passed,
    Refused(String),
    Otherwise(String),
    Wrong(String),
}

fn report(text: &str) -> Report {
    let (mut report, script) = (Report::default(), Script::read(text));
    let mut running: Vec<Option<Running>> = script.instances.iter().map(|_| None).collect();
    for (line, directive) in &script.directives {
        let came = one(directive, &script, &mut running, &mut report.reasons);
        match came {
            Came::Passed => report.passed += 1,
            Came::Refused(why) => *report.refused.entry(why).or_default() += 1,
            Came::Otherwise(what) => *report.otherwise.entry(what).or_default() += 1,
            Came::Wrong(what) => report.wrong.push(format!("{line}: {what}")),
        }
    }
    report
}

fn one(
    directive: &Directive,
    script: &Script,
    running: &mut [Option<Running>],
    reasons: &mut Reasons,
) -> Came {
    match directive {
        Directive::Other(what) => Came::Refused(what.clone()),
        Directive::Definition(bytes) => match loaded(bytes) {
            Ok(_) => Came::Passed,
            Err(why) => Came::Refused(why),
        },
        Directive::Invalid(bytes) => match loaded(bytes) {
            Ok(()) if engine::takes(bytes) => Came::Otherwise("it is taken, and not valid".to_string()),
            Ok(()) => Came::Wrong("it is taken, and not valid".to_string()),
            Err(_) => Came::Passed,
        },
        Directive::Instance(index) => {
            let made = running[*index].insert(instance(&script.instances[*index]));
            match made {
                Running::Refused(why) => Came::Refused(why.clone()),
                Running::Trapped(why) => Came::Wrong(format!("it cannot be instantiated: {why}")),
                Running::Machine { .. } | Running::Empty => Came::Passed,
            }
        }
        Directive::TrapsAtStart(index, expected) => match instance(&script.instances[*index]) {
            Running::Refused(why) => Came::Refused(why),
            Running::Trapped(why) => {
                reasons.insert((expected.clone(), why));
                Came::Passed
            }
            Running::Empty => Came::Refused("nothing is called, and so nothing started".to_string()),
            Running::Machine { .. } => Came::Wrong("it can be instantiated".to_string()),
        },
        Directive::Returns { instance, call, result } => {
            let must = Must::Return(result.as_ref());
            came_of((script, running, reasons), (*instance, *call), must)
        }
        Directive::Traps { instance, call, reason } => {
            came_of((script, running, reasons), (*instance, *call), Must::Trap(reason))
        }
    }
}

/// What a call must do.
enum Must<'m> {
    /// Return this, where that is asserted.
    Return(Option<&'m Option<String>>),
    Trap(&'m str),
}

type Reasons = BTreeSet<(String, String)>;

fn came_of(
    (script, running, reasons): (&Script, &mut [Option<Running>], &mut Reasons),
    (instance, number): (usize, usize),
    must: Must<'_>,
) -> Came {
    let described = &script.instances[instance];
    let call = &described.calls[number];
    let (outcome, returned) = match called(running[instance].as_mut(), call, described) {
        Ok(came) => came,
        Err(why) => return Came::Refused(why),
    };
    let came = match (&outcome, must) {
        (Outcome::Pass, Must::Return(result)) if result.is_none_or(|result| *result == returned) => {
            return Came::Passed;
        }
        (Outcome::Fail(failure), Must::Trap(reason)) => {
            reasons.insert((reason.to_string(), failure.to_string()));
            running[instance] = Some(Running::Refused("a call before it trapped".to_string()));
            return Came::Passed;
        }
        (Outcome::Pass, _) => Some(returned),
        _ => None,
    };
    let said = match &outcome {
        Outcome::Fail(failure) => failure.to_string(),
        other => format!("{other:?}, {came:?}"),
    };
    if came == engine::returns(described, number) {
        return Came::Otherwise(said);
    }
    Came::Wrong(format!("`{}` of {:?} came to {said}", call.name, call.args))
}

/// Whether a component is taken; why not.
fn loaded(bytes: &Bytes) -> Result<(), String> {
    let bytes = bytes.as_ref().map_err(|error| format!("its text cannot be read: {error}"))?;
    match Program::load(bytes, Limits::default(), Selection::default()) {
        Ok(_) => Ok(()),
        Err(error) => match format!("{error:#}") {
            why if why == NOTHING_TO_CALL => Ok(()),
            why => Err(plain(&why)),
        },
    }
}

/// A reason without places.
fn plain(why: &str) -> String {
    let why = why.split(" (at offset").next().unwrap_or(why);
    why.lines().next().unwrap_or_default().to_string()
}

/// Makes an instance, which is given the values of the calls of it.
fn instance(Instance { wasm, calls }: &Instance) -> Running {
    let bytes = match wasm {
        None => return Running::Refused("there is no such definition".to_string()),
        Some(Err(error)) => return Running::Refused(format!("its text cannot be read: {error}")),
        Some(Ok(bytes)) => bytes,
    };
    let load = |bytes: &[u8]| {
        Program::load(bytes, Limits::default(), Selection::default()).map_err(|error| format!("{error:#}"))
    };
    let program = match load(bytes) {
        Ok(program) => program,
        Err(why) if why == NOTHING_TO_CALL => return Running::Empty,
        Err(why) => return Running::Refused(plain(&why)),
    };
    let given = given(&program, calls);
    let choices = calls.iter().map(|call| choices(&program, call, &given)).collect();
    let program = match load(&given.put_into(bytes).unwrap()) {
        Ok(program) => Arc::new(program),
        Err(why) => return Running::Refused(plain(&why)),
    };
    match Machine::new(program) {
        Ok(machine) => Running::Machine { machine: Box::new(machine), choices },
        Err(error) => Running::Trapped(format!("{error:#}")),
    }
}

/// The names of the parameters of a function.
fn params(program: &Program, name: &str) -> Vec<String> {
    let ty = program.listing().rules.into_iter().find(|(rule, _)| rule == name).map(|(_, ty)| ty);
    let Some(ty) = ty else { return Vec::new() };
    let mut names = Vec::new();
    let mut depth = 0;
    let mut word = String::new();
    for letter in ty.trim_start_matches("func(").chars() {
        match letter {
            ')' if depth == 0 => break,
            '(' | '<' | '{' => depth += 1,
            ')' | '>' | '}' => depth -= 1,
            ':' if depth == 0 => names.push(std::mem::take(&mut word)),
            ',' if depth == 0 => word.clear(),
            ' ' => {}
            letter => word.push(letter),
        }
    }
    names
}

/// All values that are passed to each parameter.
fn given(program: &Program, calls: &[Call]) -> Given {
    let mut given = Given::default();
    for call in calls {
        for (param, arg) in params(program, &call.name).into_iter().zip(&call.args) {
            let values = given.0.entry(call.name.clone()).or_default().entry(param).or_default();
            if !values.contains(arg) {
                values.push(arg.clone());
            }
        }
    }
    given
}

/// The answers that make the arguments of a call.
fn choices(program: &Program, call: &Call, given: &Given) -> Vec<Option<Value>> {
    let params = params(program, &call.name).into_iter().zip(&call.args);
    let index = |(param, arg): (String, &String)| {
        let known = given.0[&call.name][&param].iter().position(|value| value == arg);
        Some(Value::Index(known.expect("it is given") as u32))
    };
    params.map(index).collect()
}

/// Calls a function; what comes of it and what it returns, or why it cannot be called.
fn called(
    running: Option<&mut Running>,
    call: &Call,
    described: &Instance,
) -> Result<(Outcome, Option<String>), String> {
    let (machine, choices) = match running {
        Some(Running::Machine { machine, choices }) => (machine, choices),
        Some(Running::Refused(why)) => return Err(why.clone()),
        Some(Running::Trapped(_)) => return Err("it trapped when it was instantiated".to_string()),
        Some(Running::Empty) | None => return Err("there is nothing to call".to_string()),
    };
    let rule = machine.rules().iter().position(|rule| rule.name == call.name);
    let rule = rule.ok_or_else(|| format!("there is no rule `{}`", call.name))?;
    let number = described.calls.iter().position(|known| known == call).expect("it is one of its calls");
    let action = Action::Rule(rule as u16);
    let begin = || {
        let mut chooser = Chooser::default();
        chooser.begin(1, choices[number].clone());
        chooser
    };
    let before = machine.snapshot().ok_or("it has no snapshots")?;
    let told = machine.tell(action, &mut begin());
    assert!(told.args.iter().map(|(_, value)| value).eq(&call.args), "{:?} for {:?}", told.args, call.args);
    machine.restore(&before);
    let outcome = machine.step(action, &mut begin());
    let returned = told.notes.iter().find_map(|note| note.strip_prefix("returns ").map(str::to_string));
    Ok((outcome, returned))
}
