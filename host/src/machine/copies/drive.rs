//! All steps from a state that the guest copies, in one call.
//!
//! A small module of our own calls the functions of the guest in a loop, and asks the host before each step which it is. So a step costs
//! neither an entry into the guest for each function, nor what surrounds one, which take longer than most steps. What the guest says of the
//! state that it loads is compared there too. What does not go as usual is left to whoever performs steps one by one.

use std::sync::Arc;

use wasmtime::{Caller, Extern, Func, Instance, Store, TypedFunc};

use super::NOWHERE;
use super::copied::Numbers;
use super::inside::said_state;
use super::module::Functions;
use crate::choice::{Past, Scripted, advance, mix};
use crate::machine::Machine;
use crate::machine::host::{Host, Private};
use crate::target::{Successor, Successors};

/// Rules, and preconditions, that a guest may have to be driven: a word has a bit for each.
const RULES_MAX: usize = 64;
/// Steps that are performed from one state, at most.
const STEPS_MAX: usize = 1 << 12;
/// The bit of a step, beside its rule, that says that the state from which it starts is looked at.
pub(super) const LOOKS: i64 = 1 << 16;
/// Those that say of the state which the last step led to that invariants are evaluated there, and that it is kept.
pub(super) const IS_JUDGED: i64 = 1 << 17;
pub(super) const IS_KEPT: i64 = 1 << 18;
/// There is no further step.
const IS_END: i64 = i64::MIN;
/// States that are told from those that steps led to lately.
const KNOWN: usize = 1 << 13;
/// It is before each step from so many states, and later before the first and one of so many others. So are invariants evaluated in states that
/// are known.
const LOOKED_AT: u32 = 1 << 12;
const LOOKS_EVERY: u64 = 8;

/// Half of the budget of a call.
pub(super) fn half(steps: u64) -> i64 {
    (steps / 2).cast_signed()
}

/// The module, instantiated for a guest.
pub(super) struct Driver {
    steps: TypedFunc<(u32, u32, u32), ()>,
}

impl Driver {
    /// One for this guest, whose invariants are evaluated in each state, or else after each step; none where it has functions that are not called
    /// so.
    pub(super) fn of(machine: &mut Machine, by_state: bool) -> Option<Driver> {
        let Machine { program, store, calls, .. } = machine;
        let copies = calls.copies.as_ref()?;
        let private = store.data().guest.private?;
        let functions = Functions::of(calls, copies, (private, program.limits.steps()))?;
        if functions.rules.max(functions.preconditions) > RULES_MAX {
            return None;
        }
        let module = program.ours.drivers[usize::from(by_state)]
            .get_or_init(|| functions.module(&program.engine, by_state))
            .as_ref()?;
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
    /// What invariants do counts, or what they take may end a step, so they are to be evaluated after each.
    tells: bool,
    /// States that steps led to lately and in which all invariants hold, each in the place that its hash says; none is 0. Nothing where invariants
    /// are evaluated after each step.
    known: Vec<u64>,
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
    /// Of a guest whose preconditions guard these rules, of so many steps each; see [`Driver::of`].
    pub(super) fn new(numbers: Arc<Numbers>, guards: Arc<[u16]>, steps: u64, by_state: bool) -> Driven {
        let known = if by_state { vec![0; KNOWN] } else { Vec::new() };
        Driven { numbers, guards, steps, known, ..Driven::default() }
    }

    /// What an invariant did counts, it ended the step, or it might have.
    pub(super) fn tells(&mut self) {
        (self.tells, self.is_cut) = (true, true);
    }

    /// Begins anew to know states, since something else follows where steps led; whether invariants tell something.
    pub(super) fn forget_known(&mut self) -> bool {
        self.known.fill(0);
        std::mem::take(&mut self.tells)
    }

    /// Whether steps led to this state lately, as this one did.
    fn is_known(&mut self, state: u128) -> bool {
        let Some(known) = self.known.get_mut(state as usize % KNOWN) else { return false };
        let hash = (state >> 64) as u64;
        std::mem::replace(known, hash) == hash && hash != 0
    }

    /// What is done with the state that a step led to, of which the guest said this, and the number that it is to have. So much of the budget is
    /// left for invariants: where that is half of it they take no more, or it is told as they are evaluated.
    fn arrival(&mut self, state: u128, left: i64) -> i64 {
        let steps = self.found.steps.len() as u64;
        let by_state = !self.known.is_empty();
        if by_state && left < half(self.steps) {
            self.tells();
        }
        if self.is_known(state) {
            self.lent.push(NOWHERE);
            let is_judged = self.states <= LOOKED_AT || mix(state as u64, steps).is_multiple_of(LOOKS_EVERY);
            return if is_judged { IS_JUDGED } else { 0 };
        }
        let number = self.number();
        self.lent.push(number);
        i64::from(number) << 32 | IS_KEPT | if by_state { IS_JUDGED } else { 0 }
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

    /// The number that the state of the last step that came to its end is to have.
    pub(super) fn last_number(&self) -> Option<u32> {
        self.lent.last().copied()
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
        let is_usual = self.driven.is_in_step && self.end_step(None, left);
        self.driven.lent.push(NOWHERE);
        is_usual
    }

    /// The step came to its end, and the guest said so of its state; nothing of one that is rejected. Whether that is as usual: then it is to
    /// have a number.
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
        if !advance(&mut driven.script, 0) {
            driven.at += 1;
        }
        true
    }

    /// Begins the next step: its rule. Nothing where there is none.
    fn begin_step(&mut self) -> Option<u16> {
        let Host { step, driven, budget, .. } = self;
        let rule = *driven.found.rules.get(driven.at)?;
        if driven.is_cut || driven.found.steps.len() == STEPS_MAX || budget.over().is_some() {
            driven.is_cut = true;
            return None;
        }
        step.begin();
        step.state = None;
        step.chooser.begin_script(&driven.script, Past::First, driven.alternatives_max);
        driven.is_in_step = true;
        Some(rule)
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

/// The last step, if there was one, came to its end, with so much left of its budget, and the guest said so of its state. What is done with
/// that: [`IS_JUDGED`], [`IS_KEPT`], and above the number of the state. The next one: the rule, and [`LOOKS`]; or [`IS_END`].
fn next(mut caller: Caller<'_, Host>, says: i32, left: i64) -> i64 {
    let mut last = 0;
    if caller.data().driven.is_in_step {
        let state = said_state(&mut caller, false);
        let host = caller.data_mut();
        if host.end_step(Some((says, state)), left) {
            last = host.driven.arrival(state, left);
        }
    }
    let looks = if caller.data().driven.looks() { LOOKS } else { 0 };
    let Some(rule) = caller.data_mut().begin_step() else { return IS_END | last };
    last | looks | i64::from(rule)
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
