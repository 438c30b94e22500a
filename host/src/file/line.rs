//! The steps of a trace as they stand in a file, by the names of rules and faults.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::choice::{Choice, Kind, Value};
use crate::target::{Liveness, Rule, Target};
use crate::trace::{Action, Trace};

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
        let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = is_hex.then(|| u64::from_str_radix(&text, 16).ok()).flatten();
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

pub(super) fn bytes_of(hex: &str) -> Result<Arc<[u8]>> {
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
    /// The properties of runs without end, in a fixed order.
    fn liveness(&self) -> &[Liveness];
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

    fn liveness(&self) -> &[Liveness] {
        Target::liveness(self)
    }
}

/// The name of an action in files and reports.
pub fn name_of<N: Names>(target: &N, action: Action) -> String {
    match action {
        Action::Setup => "setup".to_string(),
        Action::Teardown => "teardown".to_string(),
        Action::Deadlock => "deadlock".to_string(),
        Action::Loop => "loop".to_string(),
        Action::Again(number) => format!("again {}", target.liveness()[usize::from(number)]),
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
    if let Some(property) = name.strip_prefix("again ") {
        let index = target.liveness().iter().position(|known| known.to_string() == property);
        return match index {
            Some(index) => Ok(Action::Again(index as u16)),
            None => bail!("the target has no property `{property}` of runs without end"),
        };
    }
    match name {
        "setup" if target.has_setup() => Ok(Action::Setup),
        "teardown" if target.has_teardown() => Ok(Action::Teardown),
        "deadlock" => Ok(Action::Deadlock),
        "loop" => Ok(Action::Loop),
        "setup" | "teardown" => bail!("the target has no {name}"),
        _ => bail!(
            "`{name}` is no step; there are `setup`, `teardown`, `deadlock`, `loop`, `again PROPERTY`, `rule NAME`, `fault NAME on` \
             and `… off`"
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
    let mut known: BTreeMap<&str, Action> = BTreeMap::new();
    for (index, line) in lines.iter().enumerate() {
        let at = || format!("step {} (`{}`)", index + 1, line.step);
        let action = match known.get(&*line.step) {
            Some(action) => *action,
            None => action_of(target, &line.step).with_context(at)?,
        };
        known.insert(&line.step, action);
        ensure!(
            action != Action::Setup || index == 0,
            "{}: setup is the first step of a run, and only that",
            at()
        );
        let is_last = index + 1 == lines.len();
        ensure!(!action.ends_run() || is_last, "{}: it is the last step of a run", at());
        let choices: Result<Vec<Choice>> = line.choices.iter().map(ChoiceEntry::to_choice).collect();
        trace.push(action, line.seed);
        trace.chose(&mut choices.with_context(at)?, &mut Vec::new());
        if let Some(Hex(state)) = line.state {
            trace.set_state(state);
        }
    }
    Ok(trace)
}
