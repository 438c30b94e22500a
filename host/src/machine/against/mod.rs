//! Two guests that are given the same calls, of a module that is compared with another one.
//!
//! A program of such a module has the program of the other, and a machine of it has a machine of that. Each has its own memory,
//! system and limits, so nothing that one does reaches the other. A step is performed by the first with the chooser, and then by
//! the other with the very answers that the first was given; then what both did is compared. A snapshot holds both states.
//!
//! | file | what |
//! |---|---|
//! | `agree` | whether both can be given the same calls |
//! | `effects` | what of a step can be seen from outside |
//! | `compare` | whether it is the same |
//! | `portable` | both states in one record |

mod agree;
mod compare;
mod effects;
mod portable;

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use spelunk_instrumenter::EdgeMap;

use super::compile::engine;
use super::pages::Hashing;
use super::program::{Origin, Program};
use super::{Machine, Snapshot, Told};
use crate::choice::{Chooser, Stopped};
use crate::file::{Against, Given, Ignored};
use crate::outcome::{Failure, FailureKind, Halt, Outcome};
use crate::target::Target as _;
use crate::text::line;
use crate::trace::Action;
pub(super) use agree::Shared;
use compare::{Compared, are_alike, difference};
pub(super) use effects::{Effects, Number, Returned, Text};
pub(crate) use portable::leaves_of;

/// The other program, of one that is compared.
pub(super) struct Other {
    pub(super) program: Arc<Program>,
    /// The edges of both: those of the other stand behind the counters of the first.
    pub(super) edges: EdgeMap,
    ignored: Vec<Ignored>,
}

/// Edges of the other module have other names than the same ones in the first.
const EDGES_OF_OTHER: u32 = 0x5bd1_e995;

impl Program {
    /// The program of two modules.
    pub(super) fn pair(wasm: &[u8], against: Against, origin: Origin<'_>) -> Result<Program> {
        let conditions = origin.conditions;
        ensure!(
            conditions.environment.faults.is_empty(),
            "--faults would not strike the same calls of two modules, which may call their system differently; leave out \
             --faults, or --against"
        );
        let Against { wasm: other_wasm, ignored } = against;
        let other_wasm = with_values_of(wasm, other_wasm, &ignored)?;
        let other_context = "the module that the target is compared with cannot be explored";
        let Some(shared) =
            Shared::of([wasm, &other_wasm], &ignored, (conditions, &engine()?, origin.budget))?
        else {
            Program::load_one(wasm, origin, None)?;
            Program::load_one(&other_wasm, origin, None).context(other_context)?;
            bail!(
                "what the modules export is not known before they are compiled, and they cannot be compared"
            );
        };
        let imports = ignored.iter().filter_map(|ignored| match ignored {
            Ignored::Import(name) => Some(name.clone()),
            _ => None,
        });
        let imports: Arc<BTreeSet<String>> = Arc::new(imports.collect());
        let mut one = Program::load_one(wasm, origin, Some((&shared, &imports)))?;
        let other = Program::load_one(&other_wasm, origin, Some((&shared, &imports)));
        let mut other = other.context(other_context)?;
        share_world(&mut one, &mut other);
        let mut edges = one.instrumented.edges.clone();
        let functions = edges.functions.len() as u32;
        edges.functions.extend(other.instrumented.edges.functions.iter().cloned().map(|mut function| {
            function.name.insert_str(0, "against:");
            function
        }));
        edges.edges.extend(other.instrumented.edges.edges.iter().cloned().map(|mut edge| {
            (edge.function, edge.hash) = (edge.function + functions, edge.hash ^ EDGES_OF_OTHER);
            edge
        }));
        one.against = Some(Box::new(Other { program: Arc::new(other), edges, ignored }));
        Ok(one)
    }

    /// Where the counters of the other program begin among those of both.
    pub(super) fn counters(&self) -> u32 {
        let counters = &self.instrumented.layout.counters;
        counters.end - counters.start
    }
}

/// The other component, given the values that the first is given, but for rules that only one of both has.
fn with_values_of(wasm: &[u8], other: Vec<u8>, ignored: &[Ignored]) -> Result<Vec<u8>> {
    let (mut given, _) = Given::take_from(wasm)?;
    let (of_other, _) = Given::take_from(&other)?;
    if given == of_other {
        return Ok(other);
    }
    ensure!(
        of_other.0.is_empty(),
        "the two are given other values; give both the same with --signatures FILE, or remove the file beside one"
    );
    given.0.retain(|name, _| !ignored.contains(&Ignored::Rule(name.clone())));
    given.put_into(&other)
}

/// Has both programs begin with the same system, where one of them needs one, or both one that is the same.
fn share_world(one: &mut Program, other: &mut Program) {
    let systems = [&one.world.system, &other.world.system];
    let shared = match systems {
        [Some(one), Some(other)] if one.hash(Hashing::Portable) != other.hash(Hashing::Portable) => return,
        [one, other] => one.as_ref().or(other.as_ref()).cloned(),
    };
    (one.world.system, other.world.system) = (shared.clone(), shared);
}

/// The other guest, of one that is compared.
pub(super) struct Second {
    pub(super) machine: Machine,
    chooser: Chooser,
    enabled: Vec<u16>,
    /// In the last step it failed, and the first did not.
    fails_alone: bool,
}

impl Second {
    pub(super) fn of(program: &Arc<Program>) -> Result<Second> {
        let machine = Machine::new(program.clone());
        let machine = machine.context("of the module that the target is compared with")?;
        Ok(Second { machine, chooser: Chooser::default(), enabled: Vec::new(), fails_alone: false })
    }
}

impl Machine {
    /// Has the other guest do what this one did with the answers that the chooser gave; the outcome for both.
    pub(super) fn follow(&mut self, action: Action, chooser: &Chooser, outcome: Outcome) -> Outcome {
        let Some(mut second) = self.second.take() else { return outcome };
        let both = self.compare(&mut second, action, chooser, outcome);
        self.second = Some(second);
        both
    }

    fn compare(&self, second: &mut Second, action: Action, chooser: &Chooser, outcome: Outcome) -> Outcome {
        second.fails_alone = false;
        // What comes of a step that was stopped does not count.
        if outcome == Outcome::Stopped || chooser.stopped.is_some() {
            return outcome;
        }
        second.chooser.begin_echo(&chooser.choices);
        let followed = second.machine.step(action, &mut second.chooser);
        second.chooser.end();
        let outcomes = [&outcome, &followed];
        second.fails_alone =
            matches!(outcomes, [Outcome::Pass | Outcome::Exit | Outcome::Reject(_), Outcome::Fail(_)]);
        if let Some(stopped) = outcomes.into_iter().find(|outcome| is_by_host(outcome)) {
            return stopped.clone();
        }
        let beyond = second.chooser.stopped.map(|(_, why)| match why {
            Stopped::Differs(kind) | Stopped::Ended(kind) | Stopped::Unbounded(kind) => kind,
        });
        // One that failed did not come so far.
        let is_whole = beyond.is_some() || !matches!(followed, Outcome::Fail(_) | Outcome::Reject(_));
        let missing = chooser.choices.get(second.chooser.choices.len()).filter(|_| is_whole);
        let Some(other) = &self.program.against else { return outcome };
        let asked = [missing.map(|choice| choice.kind), beyond];
        let compared = Compared { action, outcomes, asked, ignored: &other.ignored };
        compared.outcome(self, &second.machine)
    }

    /// Which rules both guests may be given, where this one may be given `rules`.
    pub(super) fn enabled_in_both(
        &mut self,
        found: Result<(), Halt>,
        rules: &mut Vec<u16>,
    ) -> Result<(), Halt> {
        let Some(second) = &mut self.second else { return found };
        let mut enabled = std::mem::take(&mut second.enabled);
        let followed = second.machine.enabled(&mut enabled);
        let both = self.compare_enabled([&found, &followed], [rules, &enabled]);
        if let Some(second) = &mut self.second {
            second.enabled = enabled;
        }
        // Where both fail alike the run ends.
        if found.is_err() {
            rules.clear();
        }
        both
    }

    fn compare_enabled(&self, found: [&Result<(), Halt>; 2], enabled: [&Vec<u16>; 2]) -> Result<(), Halt> {
        let name = |rule: u16| line(&self.program.exports.rules[usize::from(rule)].name).into_owned();
        let failure = match found {
            [Err(Halt::Stopped), _] | [_, Err(Halt::Stopped)] => return Err(Halt::Stopped),
            [Ok(()), Ok(())] => {
                let [one, other] = enabled;
                let differs = |rule: &u16| one.contains(rule) != other.contains(rule);
                let Some(rule) = (0..self.program.exports.rules.len() as u16).find(differs) else {
                    return Ok(());
                };
                let [is, is_not] = ["may be called", "may not be called"];
                let (here, there) = if one.contains(&rule) { (is, is_not) } else { (is_not, is) };
                let place =
                    format!("whether {} may be called", self.program.exports.rules[usize::from(rule)].name);
                difference(place, format!("`{}` {here}, and against it {there}", name(rule)))
            }
            [Err(Halt::Fail(one)), Err(Halt::Fail(other))] => {
                if let Some(timeout) =
                    [one, other].into_iter().find(|failure| failure.kind == FailureKind::Timeout)
                {
                    return Err(Halt::Fail(timeout.clone()));
                }
                let ignored =
                    self.program.against.as_ref().map(|other| &other.ignored[..]).unwrap_or_default();
                if are_alike(one, other, ignored.contains(&Ignored::Messages)) {
                    return Ok(());
                }
                fails_in_precondition(one, format!("fails otherwise ({})", shown(other)))
            }
            [Err(Halt::Fail(one)), Ok(())] => fails_in_precondition(one, "none does".to_string()),
            [Ok(()), Err(Halt::Fail(other))] => {
                let place = other.place.clone().unwrap_or_else(|| "the preconditions".to_string());
                difference(
                    place,
                    format!("no precondition fails, and against it one does ({})", shown(other)),
                )
            }
        };
        Err(Halt::Fail(Box::new(failure)))
    }

    /// The snapshot with that of the other guest.
    pub(super) fn with_second(&mut self, mut snapshot: Snapshot) -> Snapshot {
        if let Some(second) = &mut self.second
            && let Some(saved) = Arc::get_mut(&mut snapshot.0)
        {
            saved.against = Some(second.machine.saved());
        }
        snapshot
    }

    /// A hash of this state and that of the other guest, where both are known.
    pub(super) fn hash_of_both(
        &mut self,
        hash: Option<u128>,
        hashing: Hashing,
        of_other: impl FnOnce(&mut Machine) -> Result<Option<u128>, Halt>,
    ) -> Result<Option<u128>, Halt> {
        let Some(second) = &mut self.second else { return Ok(hash) };
        let other = of_other(&mut second.machine)?;
        Ok(hash.zip(other).map(|(one, other)| super::saved::both([one, other], hashing)))
    }

    /// What both guests said in a step that is reported.
    pub(super) fn told_by_both(&mut self, action: Action, mut told: Told) -> Told {
        note_returned(self, action, &mut told);
        let Some(second) = &mut self.second else { return told };
        let mut other = second.machine.store.data_mut().step.take_told();
        note_returned(&second.machine, action, &mut other);
        if other.notes != told.notes {
            told.notes.extend(other.notes.iter().map(|note| format!("against: {note}")));
        }
        if second.fails_alone {
            told.stack = other.stack;
        }
        told
    }
}

/// What a rule returned, of one that does not say it itself.
fn note_returned(machine: &Machine, action: Action, told: &mut Told) {
    let Action::Rule(rule) = action else { return };
    let exports = &machine.program.exports;
    let is_signed = exports.plans.calls.contains_key(&exports.rule_exports[usize::from(rule)]);
    let returned = machine.store.data().step.effects.as_ref().and_then(|effects| effects.returned.as_ref());
    if let Some(returned) = returned.filter(|returned| !is_signed && **returned != Returned::Nothing) {
        told.notes.push(returned.to_string());
    }
}

fn fails_in_precondition(failure: &Failure, other: String) -> Failure {
    let place = failure.place.clone().unwrap_or_else(|| "the preconditions".to_string());
    difference(place, format!("a precondition fails ({}), and against it {other}", shown(failure)))
}

/// The first line of a failure.
fn shown(failure: &Failure) -> String {
    failure.to_string().lines().next().unwrap_or_default().to_string()
}

/// Whether an outcome depends on the host.
fn is_by_host(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Stopped => true,
        Outcome::Fail(failure) => failure.kind == FailureKind::Timeout,
        _ => false,
    }
}
