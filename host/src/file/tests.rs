use super::*;
use crate::choice::{Choice, Kind, Value};
use crate::model::Model;
use crate::outcome::{FailureKind, Outcome};
use crate::trace::Action;

fn model() -> Model<u32> {
    let mut model = Model::new(0, &["open", "close"], &["disk full"], |_, _, _, _| Outcome::Pass);
    model.has_setup = true;
    model
}

fn example() -> (TraceFile, Trace) {
    let mut trace = Trace::default();
    let float = Kind::Float { min: f64::NEG_INFINITY, max: f64::INFINITY, nan: true, infinite: true };
    let mut choices = vec![
        Choice { kind: Kind::Boolean { probability: 0.5 }, value: Value::Boolean(true) },
        Choice { kind: Kind::Index { n: 3 }, value: Value::Index(2) },
        Choice { kind: Kind::Integer { min: -1, max: i64::MAX, simplest: 0 }, value: Value::Integer(-1) },
        Choice {
            kind: Kind::Unsigned { min: 0, max: u64::MAX, simplest: 0 },
            value: Value::Unsigned(u64::MAX),
        },
        Choice { kind: float, value: Value::Float(f64::NAN) },
        Choice { kind: float, value: Value::Float(-0.0) },
        Choice { kind: Kind::Bytes { min: 0, max: 4 }, value: Value::Bytes([0, 255].into()) },
    ];
    trace.push(Action::Setup, 1);
    trace.push(Action::Rule(0), u64::MAX);
    trace.chose(&mut choices, &mut Vec::new());
    trace.set_state(7);
    trace.push(Action::Fault(0, true), 3);
    let failure = Failure {
        kind: FailureKind::Trap,
        subject: None,
        message: "unreachable".into(),
        place: Some("f+0x1".into()),
    };
    let limits = Limits {
        step_budget: 1,
        depth_max: 2,
        memory_bytes_max: 3,
        stub_imports: StubImports::Drawn,
        input_bytes_max: 4,
    };
    let steps = lines_of(&model(), &trace);
    let selection = Selection { edges: Edges::Static, include: vec!["a*".into()], ..Selection::default() };
    let failure = Some(failure);
    let shrinking = Some(Shrinking::Limited);
    let environment = Environment::default();
    let module = Hex(9);
    let built = BuildFlags { features: vec!["a".into()], ..BuildFlags::default() };
    let file = TraceFile {
        spelunk: VERSION,
        module,
        limits,
        selection,
        environment,
        built,
        failure,
        shrinking,
        steps,
    };
    (file, trace)
}

#[test]
fn what_is_written_is_read_back() {
    let (file, trace) = example();
    let parsed = TraceFile::parse(file.text().as_bytes()).unwrap();
    assert_eq!(parsed, file);
    assert_eq!(parsed.trace(&model()).unwrap(), trace);
    assert_eq!(file.text().lines().count(), 14);
}

fn check(change: impl Fn(&mut TraceFile), expected: &str) {
    let (mut file, _) = example();
    change(&mut file);
    let error =
        TraceFile::parse(file.text().as_bytes()).and_then(|file| file.trace(&model()).map(drop)).unwrap_err();
    assert_eq!(format!("{error:#}"), expected);
}

#[test]
fn what_does_not_fit_is_named() {
    check(
        |file| file.spelunk = 2,
        "it has version 2 of the format, and this Spelunk reads up to 1: use a newer Spelunk",
    );
    check(|file| file.limits.step_budget = 0, "its step budget is 0, and must be in 1..=2147483647");
    check(
        |file| file.limits.memory_bytes_max = 1 << 40,
        "it lets memories grow to 1099511627776 bytes, and 4294967296 are the most",
    );
    check(
        |file| file.steps[1].step = "rule opened".into(),
        "step 2 (`rule opened`): the target has no rule `opened`",
    );
    check(
        |file| file.steps[2].step = "fault disk full".into(),
        "step 3 (`fault disk full`): `fault disk full` does not say whether the fault goes on or off",
    );
    check(
        |file| file.steps.swap(0, 1),
        "step 1 (`rule open`): setup is the first step of a run, and only that",
    );
    check(
        |file| file.steps[1].choices[1] = ChoiceEntry::Index { value: 3, of: 3 },
        "step 2 (`rule open`): the answer 3 is not an index below 3",
    );
    check(
        |file| file.steps[1].choices[0] = ChoiceEntry::Bytes { value: "0é".into(), min: 0, max: 9 },
        "step 2 (`rule open`): `0é` is not pairs of hexadecimal digits",
    );
}

/// Whatever stands in a file, reading it gives a trace or an error.
#[test]
fn mutated_files_are_read_or_refused() {
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};
    let (file, _) = example();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for _ in 0..100_000 {
        let mut text = file.text().into_bytes();
        for _ in 0..rng.random_range(1..4) {
            let at = rng.random_range(0..text.len());
            match rng.random_range(0..3) {
                0 => text[at] = rng.random(),
                1 if text.len() > 1 => drop(text.remove(at)),
                _ => text.truncate(at.max(1)),
            }
        }
        if let Ok(parsed) = TraceFile::parse(&text) {
            let _ = parsed.trace(&model());
        }
    }
}
