//! Trace files: a finding on disk. JSON, one step a line, so that two of them can be compared with `diff`.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::choice::{Choice, Kind, Value};
use crate::disk;
use crate::outcome::Failure;
use crate::target::{Rule, Target};
use crate::trace::{Action, Trace};

/// The largest step budget: the guest counts it down in a signed number.
pub const STEP_BUDGET_MAX: u32 = i32::MAX as u32;
/// The largest limit of a memory: what 32-bit addresses reach.
pub const MEMORY_BYTES_MAX: u64 = 1 << 32;
/// The format that this version writes and the newest it reads.
pub const VERSION: u32 = 1;

/// A trace as it stands in a file: rules and faults are named, so that it can be read into another build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// [`VERSION`].
    pub spelunk: u32,
    /// The module that the trace was recorded on: its hash, 32 hexadecimal digits.
    pub module: Hex,
    /// What the guest was allowed to use.
    pub limits: Limits,
    /// Which edges were counted, which decides in which iteration a hang is ended.
    pub selection: Selection,
    /// What it ended with; `None` where every step passes.
    pub failure: Option<Failure>,
    /// How far it was shrunk, where it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrinking: Option<Shrinking>,
    /// The steps.
    pub steps: Vec<StepLine>,
}

/// How far a trace was shrunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shrinking {
    /// Not yet, or not to the end.
    Pending,
    /// As far as the candidates went that it was allowed.
    Limited,
    /// No pass helps any more.
    Minimal,
}

/// See `machine::Limits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Loop iterations and calls in one step, in units of 256.
    pub step_budget: u32,
    /// Nested calls.
    pub depth_max: u32,
    /// Bytes that each memory may grow to.
    pub memory_bytes_max: u64,
    /// Imports that Spelunk does not provide return zero.
    pub stub_imports: bool,
    /// Bytes that a function which takes bytes is given, at most.
    #[serde(default = "input_bytes_max")]
    pub input_bytes_max: u32,
}

/// What it was before files said it.
fn input_bytes_max() -> u32 {
    4096
}

/// See `machine::Selection`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// How edges are numbered: `static` or `hashed`.
    pub edges: Edges,
    /// Globs of functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Globs of functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

/// How edges are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Edges {
    None,
    Static,
    Hashed,
}

/// A 128-bit number as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hex(pub u128);

impl From<Hex> for String {
    fn from(hex: Hex) -> String {
        format!("{:032x}", hex.0)
    }
}

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Hex, String> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = is_hex.then(|| u128::from_str_radix(&text, 16).ok()).flatten();
        value.map(Hex).ok_or_else(|| format!("`{text}` is not 32 hexadecimal digits"))
    }
}

/// One step in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepLine {
    /// `setup`, `teardown`, `rule NAME`, `fault NAME on` or `fault NAME off`.
    pub step: String,
    /// The step's own seed.
    pub seed: u64,
    /// Its choices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<ChoiceEntry>,
    /// The hash of the state after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Hex>,
}

/// One choice in a file, tagged by its kind. Floats are given by their bits, beside a form for the reader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum ChoiceEntry {
    Boolean { value: bool, probability: f64 },
    Index { value: u32, of: u32 },
    Integer { value: i64, min: i64, max: i64, simplest: i64 },
    Unsigned { value: u64, min: u64, max: u64, simplest: u64 },
    Float { value: FloatBits, min: FloatBits, max: FloatBits, nan: bool, infinite: bool },
    Bytes { value: String, min: u32, max: u32 },
}

/// A float that JSON may not be able to hold, as its 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FloatBits(u64);

impl From<FloatBits> for String {
    fn from(bits: FloatBits) -> String {
        format!("{:016x}", bits.0)
    }
}

impl TryFrom<String> for FloatBits {
    type Error = String;

    fn try_from(text: String) -> Result<FloatBits, String> {
        let bits = (text.len() == 16).then(|| u64::from_str_radix(&text, 16).ok()).flatten();
        bits.map(FloatBits).ok_or_else(|| format!("`{text}` is not the 16 hexadecimal digits of a float"))
    }
}

impl From<&Choice> for ChoiceEntry {
    fn from(choice: &Choice) -> ChoiceEntry {
        let bits = |v: f64| FloatBits(v.to_bits());
        match (choice.kind, &choice.value) {
            (Kind::Boolean { probability }, Value::Boolean(value)) => {
                ChoiceEntry::Boolean { value: *value, probability }
            }
            (Kind::Index { n }, Value::Index(value)) => ChoiceEntry::Index { value: *value, of: n },
            (Kind::Integer { min, max, simplest }, Value::Integer(value)) => {
                ChoiceEntry::Integer { value: *value, min, max, simplest }
            }
            (Kind::Unsigned { min, max, simplest }, Value::Unsigned(value)) => {
                ChoiceEntry::Unsigned { value: *value, min, max, simplest }
            }
            (Kind::Float { min, max, nan, infinite }, Value::Float(value)) => {
                ChoiceEntry::Float { value: bits(*value), min: bits(min), max: bits(max), nan, infinite }
            }
            (Kind::Bytes { min, max }, Value::Bytes(value)) => {
                let mut hex = String::new();
                value.iter().for_each(|byte| write!(hex, "{byte:02x}").expect("writing to a string works"));
                ChoiceEntry::Bytes { value: hex, min, max }
            }
            (kind, value) => unreachable!("{value:?} answers {kind:?}"),
        }
    }
}

impl ChoiceEntry {
    fn to_choice(&self) -> Result<Choice> {
        let float = |bits: &FloatBits| f64::from_bits(bits.0);
        let (kind, value) = match self {
            ChoiceEntry::Boolean { value, probability } => {
                (Kind::Boolean { probability: *probability }, Value::Boolean(*value))
            }
            ChoiceEntry::Index { value, of } => (Kind::Index { n: *of }, Value::Index(*value)),
            ChoiceEntry::Integer { value, min, max, simplest } => {
                (Kind::Integer { min: *min, max: *max, simplest: *simplest }, Value::Integer(*value))
            }
            ChoiceEntry::Unsigned { value, min, max, simplest } => {
                (Kind::Unsigned { min: *min, max: *max, simplest: *simplest }, Value::Unsigned(*value))
            }
            ChoiceEntry::Float { value, min, max, nan, infinite } => {
                let kind = Kind::Float { min: float(min), max: float(max), nan: *nan, infinite: *infinite };
                (kind, Value::Float(float(value)))
            }
            ChoiceEntry::Bytes { value, min, max } => {
                (Kind::Bytes { min: *min, max: *max }, Value::Bytes(bytes_of(value)?))
            }
        };
        ensure!(kind.accepts(&value), "the answer {value} is not {kind}");
        Ok(Choice { kind, value })
    }
}

fn bytes_of(hex: &str) -> Result<Arc<[u8]>> {
    let digits: Option<Vec<u32>> = hex.chars().map(|c| c.to_digit(16)).collect();
    match digits {
        Some(digits) if digits.len() % 2 == 0 => {
            Ok(digits.chunks(2).map(|d| (d[0] << 4 | d[1]) as u8).collect())
        }
        _ => bail!("`{hex}` is not pairs of hexadecimal digits"),
    }
}

/// What steps are named after.
pub trait Names {
    /// The rules, in a fixed order.
    fn rules(&self) -> &[Rule];
    /// The names of the faults, in a fixed order.
    fn faults(&self) -> &[String];
    /// Whether a run starts with a setup step.
    fn has_setup(&self) -> bool;
    /// Whether that step calls nothing: see [`Target::implies_setup`].
    fn implies_setup(&self) -> bool;
    /// Whether a run ends with a teardown step.
    fn has_teardown(&self) -> bool;
}

impl<T: Target> Names for T {
    fn rules(&self) -> &[Rule] {
        Target::rules(self)
    }

    fn faults(&self) -> &[String] {
        Target::faults(self)
    }

    fn has_setup(&self) -> bool {
        Target::has_setup(self)
    }

    fn implies_setup(&self) -> bool {
        Target::implies_setup(self)
    }

    fn has_teardown(&self) -> bool {
        Target::has_teardown(self)
    }
}

/// The name of an action in files and reports.
pub fn name_of<N: Names>(target: &N, action: Action) -> String {
    match action {
        Action::Setup => "setup".to_string(),
        Action::Teardown => "teardown".to_string(),
        Action::Rule(rule) => format!("rule {}", target.rules()[usize::from(rule)].name),
        Action::Fault(fault, on) => {
            format!("fault {} {}", target.faults()[usize::from(fault)], if on { "on" } else { "off" })
        }
    }
}

/// The action that a file names.
fn action_of<N: Names>(target: &N, name: &str) -> Result<Action> {
    if let Some(rule) = name.strip_prefix("rule ") {
        let index = target.rules().iter().position(|known| known.name == rule);
        return match index {
            Some(index) => Ok(Action::Rule(index as u16)),
            None => bail!("the target has no rule `{rule}`"),
        };
    }
    if let Some(rest) = name.strip_prefix("fault ") {
        let (fault, on) = match rest.rsplit_once(' ') {
            Some((fault, "on")) => (fault, true),
            Some((fault, "off")) => (fault, false),
            _ => bail!("`{name}` does not say whether the fault goes on or off"),
        };
        let index = target.faults().iter().position(|known| known == fault);
        return match index {
            Some(index) => Ok(Action::Fault(index as u16, on)),
            None => bail!("the target has no fault `{fault}`"),
        };
    }
    match name {
        "setup" if target.has_setup() => Ok(Action::Setup),
        "teardown" if target.has_teardown() => Ok(Action::Teardown),
        "setup" | "teardown" => bail!("the target has no {name}"),
        _ => bail!(
            "`{name}` is no step; there are `setup`, `teardown`, `rule NAME`, `fault NAME on` and `… off`"
        ),
    }
}

/// The lines of a trace.
pub fn lines_of<N: Names>(target: &N, trace: &Trace) -> Vec<StepLine> {
    let line = |step: &crate::trace::Step| StepLine {
        step: name_of(target, step.action),
        seed: step.seed,
        choices: trace.choices(step).iter().map(ChoiceEntry::from).collect(),
        state: step.state.map(Hex),
    };
    trace.steps().iter().map(line).collect()
}

/// The trace that these lines are, all of a run's from its start.
pub(crate) fn trace_of<N: Names>(target: &N, lines: &[StepLine]) -> Result<Trace> {
    let first = lines.first().map_or("setup", |line| &line.step);
    if !target.has_setup() || first == "setup" {
        return part_of(target, lines);
    }
    ensure!(target.implies_setup(), "step 1 (`{first}`): setup is the first step of a run, and only that");
    // It was saved when a run of a guest without the export `setup` began with its first rule.
    let mut trace = Trace::default();
    trace.push(Action::Setup, 0);
    let part = part_of(target, lines)?;
    trace.extend(&part, part.len());
    Ok(trace)
}

/// The part of a trace that these lines are. It need not begin where the run does.
pub(crate) fn part_of<N: Names>(target: &N, lines: &[StepLine]) -> Result<Trace> {
    let mut trace = Trace::default();
    for (index, line) in lines.iter().enumerate() {
        let at = || format!("step {} (`{}`)", index + 1, line.step);
        let action = action_of(target, &line.step).with_context(at)?;
        ensure!(
            action != Action::Setup || index == 0,
            "{}: setup is the first step of a run, and only that",
            at()
        );
        let is_last = index + 1 == lines.len();
        ensure!(action != Action::Teardown || is_last, "{}: teardown is the last step of a run", at());
        let choices: Result<Vec<Choice>> = line.choices.iter().map(ChoiceEntry::to_choice).collect();
        trace.push(action, line.seed);
        trace.chose(&mut choices.with_context(at)?, &mut Vec::new());
        if let Some(Hex(state)) = line.state {
            trace.set_state(state);
        }
    }
    Ok(trace)
}

impl TraceFile {
    /// The trace, for this target.
    ///
    /// # Errors
    /// A rule or fault that the target does not have; an answer that its own question does not allow; setup
    /// or teardown in the wrong place.
    pub fn trace<N: Names>(&self, target: &N) -> Result<Trace> {
        trace_of(target, &self.steps)
    }

    /// Whether it was recorded on this very module, with these limits and this selection: then its states compare.
    pub fn is_of(&self, module: u128, limits: &Limits, selection: &Selection) -> bool {
        self.module.0 == module && self.limits == *limits && self.selection == *selection
    }

    /// Reads a file.
    ///
    /// # Errors
    /// A file that cannot be read, that is not a trace, or that a newer version wrote.
    pub fn read(path: &Path) -> Result<TraceFile> {
        let text = disk::read(path).with_context(|| format!("cannot read the trace `{}`", path.display()))?;
        TraceFile::parse(&text).with_context(|| {
            format!(
                "`{}` is not a trace that can be read (explorations save them below .spelunk/TARGET/findings)",
                path.display()
            )
        })
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// Text that is not a trace of a version up to [`VERSION`].
    pub fn parse(text: &[u8]) -> Result<TraceFile> {
        #[derive(Deserialize)]
        struct Header {
            spelunk: u32,
        }
        // The version first: a newer file may have fields that this version does not know.
        let Header { spelunk } = serde_json::from_slice(text)?;
        if spelunk == 0 || spelunk > VERSION {
            bail!(
                "it has version {spelunk} of the format, and this Spelunk reads up to {VERSION}: use a newer Spelunk"
            );
        }
        let file: TraceFile = serde_json::from_slice(text)?;
        let Limits { step_budget, memory_bytes_max, .. } = file.limits;
        ensure!(
            (1..=STEP_BUDGET_MAX).contains(&step_budget),
            "its step budget is {step_budget}, and must be in 1..={STEP_BUDGET_MAX}"
        );
        ensure!(
            memory_bytes_max <= MEMORY_BYTES_MAX,
            "it lets memories grow to {memory_bytes_max} bytes, and {MEMORY_BYTES_MAX} are the most"
        );
        Ok(file)
    }

    /// The text of the file: one line a step.
    pub fn text(&self) -> String {
        let mut text = String::from("{\n");
        let _ = writeln!(text, "  \"spelunk\": {},", self.spelunk);
        let _ = writeln!(text, "  \"module\": {},", json(&self.module));
        let _ = writeln!(text, "  \"limits\": {},", json(&self.limits));
        let _ = writeln!(text, "  \"selection\": {},", json(&self.selection));
        let _ = writeln!(text, "  \"failure\": {},", json(&self.failure));
        if let Some(shrinking) = self.shrinking {
            let _ = writeln!(text, "  \"shrinking\": {},", json(&shrinking));
        }
        let lines: Vec<String> = self.steps.iter().map(|step| format!("    {}", json(step))).collect();
        let _ = writeln!(text, "  \"steps\": [\n{}\n  ]\n}}", lines.join(",\n"));
        text
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn write(&self, path: &Path) -> Result<()> {
        let written = disk::write(path, self.text().as_bytes());
        written.with_context(|| format!("cannot write the trace `{}`", path.display()))
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a trace has no map with keys that are not strings")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::outcome::{FailureKind, Outcome};

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
            stub_imports: false,
            input_bytes_max: 4,
        };
        let steps = lines_of(&model(), &trace);
        let selection = Selection { edges: Edges::Static, include: vec!["a*".into()], exclude: Vec::new() };
        let failure = Some(failure);
        let shrinking = Some(Shrinking::Limited);
        (TraceFile { spelunk: VERSION, module: Hex(9), limits, selection, failure, shrinking, steps }, trace)
    }

    #[test]
    fn what_is_written_is_read_back() {
        let (file, trace) = example();
        let parsed = TraceFile::parse(file.text().as_bytes()).unwrap();
        assert_eq!(parsed, file);
        assert_eq!(parsed.trace(&model()).unwrap(), trace);
        assert_eq!(file.text().lines().count(), 13);
    }

    fn check(change: impl Fn(&mut TraceFile), expected: &str) {
        let (mut file, _) = example();
        change(&mut file);
        let error = TraceFile::parse(file.text().as_bytes())
            .and_then(|file| file.trace(&model()).map(drop))
            .unwrap_err();
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
}
