//! What the guest says its state is.
//!
//! What a harness holds depends on all that can still matter of the state, and on nothing else. So the hash of that is kept beside the hash of
//! the state, and the guest is not asked again in a state that it was asked in lately. Any other guest is always asked: what it hands over may
//! be left over on its stack.

use super::Machine;
use super::copies::said_state;
use super::failure::Phase;
use super::host::Host;
use super::keyed;
use super::pages::Hashing;
use super::sections::StateSays;
use super::state::Aside;
use crate::outcome::{Failure, FailureKind, Halt, Outcome};

/// States of which it is kept what was said, each in the place that its hash says.
const KEPT: usize = 1 << 16;
/// Times that it is looked for before it is judged whether that pays: once in so many it must have been known. Where it was not, it is
/// not looked for as many times as often.
const TRIED: u64 = 4096;
const PAYS: u64 = 8;

/// What the guest said in states that it was in lately.
pub(super) struct Content {
    /// Hashes of the state, and of what was said of it, or 0 where that was that the memory is to be compared. A state of 0 is none.
    kept: Vec<(u128, u128)>,
    /// How often it was looked for since it was last judged whether that pays, and known, and not looked for.
    sought: u64,
    known: u64,
    passed: u64,
    /// Where the machine goes back to once the guest said it.
    unsaid: Aside,
}

impl Default for Content {
    fn default() -> Content {
        Content { kept: Vec::new(), sought: 0, known: 0, passed: 0, unsaid: Aside::nothing() }
    }
}

impl Content {
    /// Whether to look: where memory is seldom as it was, to hash it costs more than to ask the guest.
    fn pays(&mut self) -> bool {
        let is_judged = self.sought == TRIED;
        let pays = !is_judged || self.known * PAYS >= TRIED;
        self.passed += u64::from(!pays);
        if is_judged && (pays || self.passed == TRIED * PAYS) {
            (self.sought, self.known, self.passed) = (0, 0, 0);
        }
        pays
    }
}

impl Machine {
    pub(super) fn live_hash(&mut self, hashing: Hashing) -> Option<u128> {
        // What no snapshot holds may differ where all else is equal.
        let is_whole = self.program.obstacles().is_empty();
        is_whole.then(|| self.state.live_hash(&mut self.store, self.program.stack, hashing))
    }

    /// The hash of what the guest says its state is, as [`Machine::guest_state`].
    pub(super) fn said(&mut self) -> Result<Option<u128>, Halt> {
        let is_content = matches!(self.program.state_says, StateSays::Content { .. });
        let state = if is_content && self.content.pays() { self.live_hash(Hashing::Keyed) } else { None };
        let Some(state) = state.filter(|state| *state != 0) else {
            return self.enter(Err, Machine::guest_state);
        };
        if self.content.kept.is_empty() {
            self.content.kept = vec![(0, 0); KEPT];
        }
        let place = state as usize % KEPT;
        let (known, said) = self.content.kept[place];
        self.content.sought += 1;
        if known == state {
            self.content.known += 1;
            return Ok((said != 0).then_some(said));
        }
        let said = self.enter(Err, Machine::guest_state)?;
        self.content.kept[place] = (state, said.unwrap_or(0));
        Ok(said)
    }

    /// The hash of what the guest says its state is, of the faults and of whether it ran; the state stays as it is. `None` where the
    /// memory is to be compared after all.
    fn guest_state(&mut self) -> Result<Option<u128>, Halt> {
        self.state.set_aside(&mut self.store, &mut self.content.unsaid);
        let called = self.ask_state();
        self.state.put_back(&mut self.store, &self.content.unsaid);
        self.content.unsaid.forget();
        called
    }

    /// As [`Machine::said`], of a guest in which nothing but what it holds matters.
    pub(super) fn state_in_place(&mut self) -> Result<Option<u128>, Halt> {
        self.enter(Err, Machine::ask_state)
    }

    fn ask_state(&mut self) -> Result<Option<u128>, Halt> {
        self.state.begin(&self.program.limits);
        let step = &mut self.store.data_mut().step;
        step.may_choose = false;
        step.state = Some(keyed::Hasher::new());
        let call = self.calls.state.as_mut().expect("the caller found it");
        let called = call.call(&mut self.store).map_err(|error| self.failed(error, Phase::State));
        let with_system = matches!(self.program.state_says, StateSays::Content { .. });
        let said = Some(said_state(&mut self.store, with_system));
        match called {
            Ok(_) if self.program.budget.is_exhausted() => Err(Halt::Stopped),
            Ok(Some(0)) => Ok(None),
            Ok(_) => Ok(said),
            Err(Outcome::Fail(failure)) => Err(Halt::Fail(failure)),
            Err(Outcome::Stopped) => Err(Halt::Stopped),
            Err(_) => Err(Halt::Fail(Box::new(Failure {
                kind: FailureKind::Abi,
                subject: None,
                message: "it rejects the run, which only a step may".to_string(),
                place: None,
            }))),
        }
    }
}

impl Host {
    /// The hash of what the guest said its state is, this after all that the host was told, and of what the host keeps of its state.
    pub(super) fn said_state(&mut self, said: &[u8], with_system: bool) -> u128 {
        let Host { step, guest, system, .. } = self;
        // In place: it is as long as most states.
        let (mut fresh, mut told) = (None, step.state.as_mut());
        let hasher = told.get_or_insert_with(|| fresh.insert(keyed::Hasher::new()));
        hasher.update(said);
        guest.faults.iter().for_each(|on| hasher.update(&[u8::from(*on)]));
        hasher.update(&[u8::from(guest.has_run)]);
        let mut pools = Vec::new();
        guest.pools.push_to(&mut pools);
        guest.handles.push_to(&mut pools);
        hasher.update(&pools);
        if let (Some(system), true) = (system, with_system) {
            hasher.update(&system.hash(Hashing::Keyed).to_le_bytes());
        }
        let hash = hasher.finish();
        step.state = None;
        hash
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Content, PAYS, TRIED};
    use crate::machine::{Limits, Machine, Program, Selection};
    use crate::target::Target;
    use crate::trace::Action;

    #[test]
    fn whether_it_pays_to_look_is_judged_again_and_again() {
        let mut content = Content::default();
        // How often it is looked for in so many states, where it is then known or not.
        let mut looked = |states: u64, is_known: bool| {
            let mut looks = 0;
            for _ in 0..states {
                if content.pays() {
                    (looks, content.sought) = (looks + 1, content.sought + 1);
                    content.known += u64::from(is_known);
                }
            }
            looks
        };
        assert_eq!(looked(TRIED * (1 + PAYS), false), TRIED);
        assert_eq!(looked(TRIED * 3, true), TRIED * 3);
        assert_eq!(looked(TRIED * (1 + PAYS), false), TRIED);
        assert_eq!(looked(TRIED, true), TRIED);
    }

    #[test]
    fn a_harness_is_asked_once_in_a_state() {
        // Initially, turned, and with something else in memory, turned or not.
        assert_eq!(asked(r#"(@custom "spelunk:state" "content Harness\n")"#), 4);
        // A guest that says itself what its state is may say more.
        assert_eq!(asked(""), 8);
    }

    /// How often a guest with this section is asked in eight states, of which four are others.
    fn asked(section: &str) -> u64 {
        let guest = r#"(module
          (import "spelunk" "event" (func $event (param i32 i32)))
          (import "spelunk" "state" (func $state (param i32 i32)))
          (memory 1) (data (i32.const 100) "asked")
          (func (export "state")
            (i32.store (i32.const 200) (i32.const 1))
            (call $event (i32.const 100) (i32.const 5))
            (call $state (i32.const 0) (i32.const 4)))
          (func (export "rule:turn") (i32.store (i32.const 0) (i32.xor (i32.load (i32.const 0)) (i32.const 1))))
          (func (export "rule:leave") (i32.store (i32.const 8) (i32.const 7)))"#;
        let wasm = wat::parse_str(format!("{guest} {section})")).unwrap();
        let program = Program::load(&wasm, Limits::default(), Selection::default());
        let mut machine = Machine::new(Arc::new(program.unwrap())).unwrap();
        machine.set_counts(true);
        let after = |machine: &mut Machine, rule: Option<u16>| {
            rule.iter().for_each(|rule| drop(machine.step(Action::Rule(*rule), &mut Default::default())));
            (machine.compared_state().unwrap().unwrap(), machine.live_state())
        };
        let steps = [None, None, Some(0), Some(0), Some(1), Some(0), Some(0), None];
        let states = steps.map(|rule| after(&mut machine, rule));
        // That something else lies in memory is another state, of which the same is said.
        let [is, was] = [states[0].0, states[2].0];
        assert_eq!(states.map(|(said, _)| said), [is, is, was, is, is, was, is, is]);
        assert_ne!(is, was);
        assert_ne!(states[3].1, states[4].1);
        machine.take_counts().unwrap().events["asked"]
    }
}
