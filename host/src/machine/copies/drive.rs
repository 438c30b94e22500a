//! All steps from a state that the guest copies, in one call.
//!
//! A small module of our own calls the functions of the guest in a loop, and asks the host before each step which it is. So a step costs
//! neither an entry into the guest for each function, nor what surrounds one, which take longer than most steps. What the guest says of the
//! state that it loads is compared there too. What does not go as usual is left to whoever performs steps one by one.

use std::fmt::Write as _;
use std::sync::Arc;

use wasmtime::{Caller, Engine, Extern, Func, Instance, Module, Store, TypedFunc};

use super::copied::Numbers;
use super::inside::{Inside, LOADS, MOVES, SAYS, STEPS, said_state};
use super::{CopyCalls, NOWHERE, READY};
use crate::choice::{Past, Scripted, advance, mix};
use crate::machine::calls::Call;
use crate::machine::host::{Host, Private};
use crate::machine::{Calls, Limits, Machine};
use crate::target::{Successor, Successors};

/// Rules, and preconditions, that a guest may have to be driven: a word has a bit for each.
const RULES_MAX: usize = 64;
/// Steps that are performed from one state, at most.
const STEPS_MAX: usize = 1 << 12;
/// The bit of a step, beside its rule, that says that the state from which it starts is looked at.
const LOOKS: i64 = 1 << 16;
/// It is before each step from so many states, and later before the first and one of so many others.
const LOOKED_AT: u32 = 1 << 12;
const LOOKS_EVERY: u64 = 8;

/// The module, instantiated for a guest.
pub(super) struct Driver {
    steps: TypedFunc<(u32, u32, u32), ()>,
}

impl Driver {
    /// One for this guest; none where it has functions that are not called so.
    pub(super) fn of(machine: &mut Machine) -> Option<Driver> {
        let Machine { program, store, calls, .. } = machine;
        let copies = calls.copies.as_ref()?;
        let private = store.data().guest.private?;
        let functions = Functions::of(calls, copies, (private, program.limits.steps()))?;
        if functions.rules.max(functions.preconditions) > RULES_MAX {
            return None;
        }
        let module = program.ours.driver.get_or_init(|| functions.module(&program.engine)).as_ref()?;
        let ours = [
            Func::wrap(&mut *store, guards),
            Func::wrap(&mut *store, next),
            Func::wrap(&mut *store, is_like),
        ];
        let all = ours.into_iter().chain(functions.all.iter().map(|(func, _)| *func)).map(Extern::from);
        let imports: Vec<Extern> = [private.memory.into()].into_iter().chain(all).collect();
        let instance = Instance::new(&mut *store, module, &imports).ok()?;
        Some(Driver { steps: instance.get_typed_func(&mut *store, "").ok()? })
    }

    /// Calls the guest until all steps from a state are performed or one does not return. `is_begun`, preconditions are not evaluated.
    pub(super) fn call(
        &self,
        store: &mut Store<Host>,
        (number, is_whole, is_begun): (u32, bool, bool),
    ) -> wasmtime::Result<()> {
        self.steps.call(store, (number, is_whole.into(), is_begun.into()))
    }
}

/// The functions of a guest, and whether each returns a number.
struct Functions {
    /// To load and to move a state, to say what it is, preconditions, rules, and invariants.
    all: Vec<(Func, bool)>,
    preconditions: usize,
    rules: usize,
    invariants: usize,
    /// Where the guest has the budgets of a call, how many steps that is, and what it says of its state.
    private: Private,
    inside: Inside,
    steps: u64,
}

impl Functions {
    fn of(calls: &Calls, copies: &CopyCalls, (private, steps): (Private, u64)) -> Option<Functions> {
        let function = |call: &Call| match call {
            Call::Plain(func) => Some((*func.func(), false)),
            Call::Checked(func) => Some((*func.func(), true)),
            _ => None,
        };
        let [load, moves] = copies.moving()?;
        let mut all = vec![(load, false), (moves, false), function(calls.state.as_ref()?)?];
        let preconditions = calls.preconditions.iter().map(|(_, call)| call);
        for call in preconditions.chain(&calls.rules).chain(&calls.invariants) {
            all.push(function(call)?);
        }
        let (preconditions, rules, invariants) =
            (calls.preconditions.len(), calls.rules.len(), calls.invariants.len());
        let inside = private.inside?;
        Some(Functions { all, preconditions, rules, invariants, private, inside, steps })
    }

    fn module(&self, engine: &Engine) -> Option<Module> {
        Module::new(engine, wat::parse_str(self.text()).ok()?).ok()
    }

    /// What gives the guest the budgets of a call, and what is left of that for steps.
    fn budgets(&self, steps: u64) -> (String, String) {
        let (mut refills, mut left) = (String::new(), "(i64.const 0)".to_string());
        if let Some(at) = self.private.budget {
            _ = write!(refills, "(i64.store (i32.const {at}) (i64.const {steps}))");
            left = format!("(i64.load (i32.const {at}))");
        }
        if let Some(at) = self.private.depth {
            _ = write!(refills, "(i32.store (i32.const {at}) (i32.const 0))");
        }
        // No span has begun as the guest is called.
        _ = write!(refills, "(i64.store (i32.const {}) (i64.const 0))", self.inside.spans);
        (refills, left)
    }

    fn imports(&self) -> String {
        let mut text = String::new();
        for (number, (_, returns)) in self.all.iter().enumerate() {
            let ty = match (number, returns) {
                (0, _) => "(param i32 i32)",
                (1, _) => "(param i32)",
                (_, true) => "(result i32)",
                _ => "",
            };
            _ = write!(text, "(import \"\" \"\" (func ${number} {ty}))");
        }
        text
    }

    /// Calls the rule that `$next` says, the first of which is this function, and goes to the end of `$done`.
    fn write_rules(&self, first: usize, text: &mut String) {
        (0..self.rules).rev().for_each(|rule| _ = write!(text, "block $rule{rule} "));
        *text += "local.get $next i32.wrap_i64 i32.const 0xffff i32.and br_table";
        (0..self.rules).for_each(|rule| _ = write!(text, " $rule{rule}"));
        // There is none beyond.
        *text += " $done";
        for rule in 0..self.rules {
            let drops = if self.all[first + rule].1 { "drop" } else { "" };
            _ = write!(text, " end call ${} {drops} br $done", first + rule);
        }
        *text += " end ";
    }

    /// Evaluates the preconditions in the state `$from`, unless that `$is_begun`. They may change it, so it is kept anew.
    fn write_guards(&self, refills: &str, text: &mut String) {
        *text += "(if (i32.eqz (local.get $is_begun)) (then ";
        *text += &self.loads(refills, "(i32.const 1)");
        for (number, function) in (3..).take(self.preconditions).enumerate() {
            let bit = 1u64 << number;
            let off = format!("(local.set $off (i64.or (local.get $off) (i64.const {bit})))");
            _ = match self.all[function].1 {
                true => write!(text, "(if (i32.eqz (call ${function})) (then {off}))"),
                false => write!(text, "(call ${function})"),
            };
        }
        let moves = self.phase(MOVES);
        _ = write!(text, "{moves} (call $1 (i32.const {READY})) (local.set $from (i32.const {READY}))");
        *text += "(local.set $held (i32.const -1)) (call $guards (local.get $off))))";
    }

    /// Has the guest say what its state is, of which `$says` is the end.
    fn says(&self) -> String {
        let Inside { said_len, .. } = self.inside;
        let call = if self.all[2].1 { "(call $2)" } else { "(call $2) (i32.const 1)" };
        format!(
            "(i32.store (i32.const {said_len}) (i32.const 0)) {} {call} local.set $said",
            self.phase(SAYS)
        )
    }

    fn phase(&self, phase: u32) -> String {
        format!("(i32.store (i32.const {}) (i32.const {phase}))", self.inside.phase)
    }

    /// Loads the state `$from`, and where it `looks` returns if the guest does not say the same of it as before, of which there are `$held` bytes
    /// aside.
    fn loads(&self, refills: &str, looks: &str) -> String {
        let Inside { said_len, said, phase, aside, .. } = self.inside;
        let (loads, says, steps) = (self.phase(LOADS), self.says(), self.phase(STEPS));
        let (more, _) = self.budgets(self.steps.max(Limits::default().steps()));
        format!(
            "{more} {loads} (call $0 (local.get $from) (local.get $is_whole)) (local.set $is_whole (i32.const 1))
            (if {looks} (then
                {refills} {says}
                (if (i32.eqz (call $is_same (local.get $said) (local.get $held))) (then
                    (if (i32.eqz (call $is_like (local.get $said))) (then return))
                    (local.set $held (i32.const -1))
                    (if (i32.eq (i32.load (i32.const {phase})) (i32.const {SAYS})) (then
                        (local.set $held (i32.load (i32.const {said_len})))
                        (memory.copy (i32.const {aside}) (i32.const {said}) (local.get $held))))))))
            {steps} {refills} "
        )
    }

    /// Whether the guest says what is aside, which has so many bytes, and the host was told nothing of that. The first 8 of those are the length
    /// of what follows, so that there are as many if there are any: the last word may overlap with the one before.
    fn is_same(&self) -> String {
        let Inside { said_len, said, phase, aside, .. } = self.inside;
        format!(
            "(func $is_same (param $said i32) (param $held i32) (result i32) (local $at i32)
            (if (i32.eqz (local.get $said)) (then (return (i32.const 0))))
            (if (i32.ne (local.get $held) (i32.load (i32.const {said_len}))) (then (return (i32.const 0))))
            (if (i32.ne (i32.const {SAYS}) (i32.load (i32.const {phase}))) (then (return (i32.const 0))))
            (if (i32.eqz (local.get $held)) (then (return (i32.const 1))))
            (local.set $held (i32.sub (local.get $held) (i32.const 8)))
            loop $words
            (if (i64.ne (i64.load offset={said} (local.get $at)) (i64.load offset={aside} (local.get $at)))
                (then (return (i32.const 0))))
            (if (i32.eq (local.get $at) (local.get $held)) (then (return (i32.const 1))))
            (local.set $at (i32.add (local.get $at) (i32.const 8)))
            (if (i32.gt_u (local.get $at) (local.get $held)) (then (local.set $at (local.get $held))))
            br $words end unreachable)"
        )
    }

    /// The module as text. Its functions are $0 and so on, in the order of [`Functions::all`].
    fn text(&self) -> String {
        let mut text = "(module (import \"\" \"\" (memory 0))
            (import \"\" \"\" (func $guards (param i64)))
            (import \"\" \"\" (func $next (param i32 i64) (result i64)))
            (import \"\" \"\" (func $is_like (param i32) (result i32)))"
            .to_string();
        text += &self.imports();
        text += &self.is_same();
        text += "(func (export \"\") (param $from i32) (param $is_whole i32) (param $is_begun i32)
            (local $off i64) (local $said i32) (local $held i32) (local $left i64) (local $next i64)
            (local.set $held (i32.const -1))";
        let (refills, left) = self.budgets(self.steps);
        let rules = 3 + self.preconditions;
        if self.preconditions > 0 {
            self.write_guards(&refills, &mut text);
        }
        text += "
            loop $steps
            (local.set $next (call $next (local.get $said) (local.get $left)))
            (if (i64.lt_s (local.get $next) (i64.const 0)) (then return))";
        // What a copy shares with others, the step before may have changed.
        let looks = format!("(i32.and (i32.wrap_i64 (local.get $next)) (i32.const {LOOKS}))");
        text += &self.loads(&refills, &looks);
        text += "block $done ";
        self.write_rules(rules, &mut text);
        let invariants = rules + self.rules;
        for number in invariants..invariants + self.invariants {
            _ = match self.all[number].1 {
                true => write!(text, "(if (i32.eqz (call ${number})) (then unreachable))"),
                false => write!(text, "(call ${number})"),
            };
        }
        _ = write!(text, "(local.set $left {left}) {refills} {} {}", self.says(), self.phase(MOVES));
        text += "(call $1 (i32.wrap_i64 (i64.shr_u (local.get $next) (i64.const 32)))) br $steps end))";
        text
    }
}

/// What is driven, and how far that is.
#[derive(Default)]
pub(crate) struct Driven {
    found: Successors,
    /// The rules that the preconditions guard.
    guards: Arc<[u16]>,
    /// Which of the rules that may be called is.
    at: usize,
    is_in_step: bool,
    /// There is more than may be performed.
    is_cut: bool,
    script: Vec<Scripted>,
    alternatives_max: u32,
    /// The budget of a call.
    steps: u64,
    numbers: Arc<Numbers>,
    /// Numbers that nobody has, and those of the states that the steps led to.
    spare: Vec<u32>,
    lent: Vec<u32>,
    /// What the guest said of each of those.
    said: Vec<Option<u128>>,
    /// What it said of the state from which all steps start, where that is known.
    from: Option<u128>,
    /// From here on there is no room for a copy.
    end: u32,
    /// From how many states steps were performed, and what tells this one from others.
    states: u32,
    of_state: u64,
}

impl Driven {
    /// Of a guest whose preconditions guard these rules, of so many steps each.
    pub(super) fn new(numbers: Arc<Numbers>, guards: Arc<[u16]>, steps: u64) -> Driven {
        Driven { numbers, guards, steps, ..Driven::default() }
    }

    /// Begins anew from another state, of which the guest said `from`. The states that steps led to are kept below the number `end`.
    pub(super) fn begin(&mut self, from: Option<u128>, rules: u16, (alternatives_max, end): (u32, u32)) {
        let lent = self.lent.drain(..).filter(|number| *number != NOWHERE);
        self.spare.extend(lent);
        self.found.rules.clear();
        self.found.rules.extend(0..rules);
        self.found.steps.clear();
        self.found.scripts.clear();
        self.script.clear();
        (self.at, self.is_in_step, self.is_cut) = (0, false, false);
        (self.alternatives_max, self.end, self.from) = (alternatives_max, end, from);
        (self.states, self.of_state) = (self.states.saturating_add(1), from.unwrap_or_default() as u64);
        self.said.clear();
    }

    /// Whether the state is looked at before the next step: it was when it was loaded first, if preconditions were evaluated there.
    fn looks(&self) -> bool {
        let steps = self.found.steps.len() as u64;
        let is_first = steps == 0 && self.guards.is_empty();
        is_first || self.states <= LOOKED_AT || mix(self.of_state, steps).is_multiple_of(LOOKS_EVERY)
    }

    /// The number of a state that a step led to, which is not to be used for others, and what the guest said of it.
    pub(super) fn keep(&mut self, number: usize) -> Option<(u32, Option<u128>)> {
        let lent = self.lent.get_mut(number)?;
        let said = *self.said.get(number)?;
        (*lent != NOWHERE).then(|| (std::mem::replace(lent, NOWHERE), said))
    }

    /// What was found, where that is all.
    pub(super) fn take(&mut self, found: &mut Successors) -> bool {
        let is_all = !self.is_cut && self.at == self.found.rules.len();
        if is_all {
            std::mem::swap(found, &mut self.found);
        }
        is_all
    }

    /// How many steps came to their ends.
    pub(super) fn performed(&self) -> usize {
        self.found.steps.len()
    }

    /// The number that the state of the step that is performed is to have.
    pub(super) fn in_step(&self) -> Option<u32> {
        self.lent.last().copied().filter(|_| self.is_in_step)
    }

    /// The number of the next step.
    fn number(&mut self) -> u32 {
        if self.end <= NOWHERE {
            return NOWHERE;
        }
        self.spare.pop().or_else(|| self.numbers.take(self.end)).unwrap_or(NOWHERE)
    }
}

impl Host {
    /// The step was rejected, of whose budget so much is left; whether that is as usual.
    pub(super) fn reject_step(&mut self, left: i64) -> bool {
        self.driven.in_step().is_some() && self.end_step(None, left)
    }

    /// The step came to its end, and the guest said so of its state; nothing of one that is rejected. Whether that is as usual.
    fn end_step(&mut self, said: Option<(i32, u128)>, left: i64) -> bool {
        let Host { step, driven, .. } = self;
        driven.is_in_step = false;
        step.chooser.end();
        let further =
            step.chooser.choices.get(driven.script.len()..).filter(|_| step.chooser.stopped.is_none());
        let (Some(further), false) = (further, said.is_some_and(|(says, _)| says == 0)) else {
            driven.is_cut = true;
            return false;
        };
        let asked = further.len();
        driven.script.extend(further.iter().map(|choice| Scripted { kind: choice.kind, number: 0 }));
        let state = said.map(|(_, state)| state);
        driven.found.steps.push(Successor {
            rule: driven.found.rules[driven.at],
            script: driven.script.len(),
            asked,
            state,
            work: driven.steps.saturating_sub(left.max(0) as u64),
            holds: step.holds,
            way: step.way,
        });
        driven.found.scripts.extend_from_slice(&driven.script);
        driven.said.push(state);
        if said.is_none()
            && let Some(last) = driven.lent.last_mut()
        {
            // Nothing was moved there.
            let number = std::mem::replace(last, NOWHERE);
            driven.spare.extend((number != NOWHERE).then_some(number));
        }
        if !advance(&mut driven.script, 0) {
            driven.at += 1;
        }
        true
    }

    /// Begins the next step: its rule, and the number that its state is to have. Nothing where there is none.
    fn begin_step(&mut self) -> Option<(u16, u32)> {
        let Host { step, driven, budget, .. } = self;
        let rule = *driven.found.rules.get(driven.at)?;
        if driven.is_cut || driven.found.steps.len() == STEPS_MAX || budget.over().is_some() {
            driven.is_cut = true;
            return None;
        }
        step.begin();
        step.state = None;
        step.chooser.begin_script(&driven.script, Past::First, driven.alternatives_max);
        let number = driven.number();
        driven.lent.push(number);
        driven.is_in_step = true;
        Some((rule, number))
    }
}

/// The guest's preconditions of these bits do not hold.
fn guards(mut caller: Caller<'_, Host>, off: u64) {
    let Driven { guards, found, from, .. } = &mut caller.data_mut().driven;
    if !guards.is_empty() {
        // They may have changed it.
        *from = None;
    }
    for (bit, rule) in guards.iter().enumerate() {
        if off >> bit & 1 == 1 {
            found.rules.retain(|enabled| enabled != rule);
        }
    }
}

/// The last step, if there was one, came to its end, with so much left of its budget, and the guest said so of its state. The next one: the
/// rule, [`LOOKS`], and above the number of its state; or below zero.
fn next(mut caller: Caller<'_, Host>, says: i32, left: i64) -> i64 {
    if caller.data().driven.is_in_step {
        let state = said_state(&mut caller, false);
        caller.data_mut().end_step(Some((says, state)), left);
    }
    let looks = if caller.data().driven.looks() { LOOKS } else { 0 };
    let Some((rule, number)) = caller.data_mut().begin_step() else { return -1 };
    i64::from(number) << 32 | looks | i64::from(rule)
}

/// The guest loaded the state from which all steps start, and said so of it. Whether it said the same when it was in that state, or loaded it
/// before: a copy need not hold all, nor by itself.
fn is_like(mut caller: Caller<'_, Host>, says: i32) -> i32 {
    let state = said_state(&mut caller, false);
    let driven = &mut caller.data_mut().driven;
    let is_like = says != 0 && driven.from.is_none_or(|from| from == state);
    driven.from = Some(state);
    driven.is_cut |= !is_like;
    is_like.into()
}

/// What is left of the budget of the step.
pub(super) fn left(store: &mut impl wasmtime::AsContextMut<Data = Host>) -> i64 {
    let mut store = store.as_context_mut();
    let Some(Private { memory, budget: Some(at), .. }) = store.data().guest.private else { return 0 };
    let bytes = &memory.data(&mut store)[at as usize..][..8];
    i64::from_le_bytes(*bytes.first_chunk().expect("eight bytes"))
}
