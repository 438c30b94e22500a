//! The text of the module that calls a guest which copies its states.

use std::fmt::Write as _;

use spelunk_instrumenter::SPANS_MAX;
use wasmtime::{Engine, Func, Module};

use super::drive::{IS_JUDGED, IS_KEPT, LOOKS, half};
use super::inside::{Inside, JUDGES, LOADS, MOVES, SAYS, STEPS};
use super::{CopyCalls, READY};
use crate::machine::calls::Call;
use crate::machine::host::Private;
use crate::machine::{Calls, Limits};

/// The functions of a guest, and whether each returns a number.
pub(super) struct Functions {
    /// To load and to move a state, to say what it is, preconditions, rules, and invariants.
    pub(super) all: Vec<(Func, bool)>,
    pub(super) preconditions: usize,
    pub(super) rules: usize,
    invariants: usize,
    /// Where the guest has the budgets of a call, how many steps that is, and what it says of its state.
    private: Private,
    inside: Inside,
    steps: u64,
}

impl Functions {
    pub(super) fn of(
        calls: &Calls,
        copies: &CopyCalls,
        (private, steps): (Private, u64),
    ) -> Option<Functions> {
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

    pub(super) fn module(&self, engine: &Engine, by_state: bool) -> Option<Module> {
        Module::new(engine, wat::parse_str(self.text(by_state)).ok()?).ok()
    }

    /// What gives the guest the budgets of a call, and what is left of that for steps.
    fn budgets(&self, steps: &str) -> (String, String) {
        let (mut refills, mut left) = (String::new(), "(i64.const 0)".to_string());
        if let Some(at) = self.private.budget {
            _ = write!(refills, "(i64.store (i32.const {at}) {steps})");
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
        let (loads, says, performs) = (self.phase(LOADS), self.says(), self.phase(STEPS));
        let steps = self.steps.max(Limits::default().steps());
        let (more, _) = self.budgets(&format!("(i64.const {steps})"));
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
            {performs} {refills} "
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

    /// Leaves nothing of the budget where half of the spans began that a step may have.
    fn many_spans(&self) -> String {
        let spans = self.inside.spans;
        format!(
            "(if (i32.gt_u (i32.load (i32.const {spans})) (i32.const {})) (then (local.set $left (i64.const 0))))",
            SPANS_MAX / 2
        )
    }

    /// Calls the invariants.
    fn write_invariants(&self, text: &mut String) {
        let first = 3 + self.preconditions + self.rules;
        for number in first..first + self.invariants {
            _ = match self.all[number].1 {
                true => write!(text, "(if (i32.eqz (call ${number})) (then unreachable))"),
                false => write!(text, "(call ${number})"),
            };
        }
    }

    /// Does with the state that the last step led to what `$next` says.
    fn write_arrival(&self, refills: &str, by_state: bool, text: &mut String) {
        if by_state && self.invariants > 0 {
            // From what the step left of its budgets, and its spans.
            let (refills, left) = self.budgets("(local.get $left)");
            let (judges, spans) = (self.phase(JUDGES), self.inside.spans);
            _ = write!(
                text,
                "(if (i32.and (i32.wrap_i64 (local.get $next)) (i32.const {IS_JUDGED})) (then
                    {refills} (i64.store (i32.const {spans}) (local.get $spans)) {judges}"
            );
            self.write_invariants(text);
            // After another step less may be left for as much.
            _ = write!(
                text,
                "(local.set $left {left}) {} (if (i64.lt_s (local.get $left) (i64.const {})) (then unreachable))))",
                self.many_spans(),
                half(self.steps)
            );
        }
        let moves = self.phase(MOVES);
        _ = write!(
            text,
            "(if (i32.and (i32.wrap_i64 (local.get $next)) (i32.const {IS_KEPT})) (then {refills} {moves}
                (call $1 (i32.and
                    (i32.wrap_i64 (i64.shr_u (local.get $next) (i64.const 32))) (i32.const 0x7fffffff)))))"
        );
    }

    /// The module as text. Its functions are $0 and so on, in the order of [`Functions::all`].
    fn text(&self, by_state: bool) -> String {
        let mut text = "(module (import \"\" \"\" (memory 0))
            (import \"\" \"\" (func $guards (param i64)))
            (import \"\" \"\" (func $next (param i32 i64) (result i64)))
            (import \"\" \"\" (func $is_like (param i32) (result i32)))"
            .to_string();
        text += &self.imports();
        text += &self.is_same();
        text += "(func (export \"\") (param $from i32) (param $is_whole i32) (param $is_begun i32)
            (local $off i64) (local $said i32) (local $held i32) (local $left i64) (local $next i64) (local $spans i64)
            (local.set $held (i32.const -1))";
        let (refills, left) = self.budgets(&format!("(i64.const {})", self.steps));
        let rules = 3 + self.preconditions;
        if self.preconditions > 0 {
            self.write_guards(&refills, &mut text);
        }
        text += "
            loop $steps
            (local.set $next (call $next (local.get $said) (local.get $left)))";
        self.write_arrival(&refills, by_state, &mut text);
        text += "(if (i64.lt_s (local.get $next) (i64.const 0)) (then return))";
        // What a copy shares with others, the step before may have changed.
        let looks = format!("(i32.and (i32.wrap_i64 (local.get $next)) (i32.const {LOOKS}))");
        text += &self.loads(&refills, &looks);
        text += "block $done ";
        self.write_rules(rules, &mut text);
        if !by_state {
            self.write_invariants(&mut text);
        }
        let (spans, many) = (self.inside.spans, self.many_spans());
        _ = write!(text, "(local.set $left {left}) (local.set $spans (i64.load (i32.const {spans}))) {many}");
        _ = write!(text, "{refills} {} br $steps end))", self.says());
        text
    }
}
