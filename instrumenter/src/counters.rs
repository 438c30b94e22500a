//! The code that stands on an edge.

use crate::code::*;
use crate::weave::{Action, Places, Weaver};
use walrus::ValType;
use walrus::ir::*;

/// Steps that are paid together, so that one byte that all share adds them up.
const TOGETHER: u32 = 256;
/// A counter of hits that reaches 256 goes on from here, so that it says "so many or more" from then on.
const MANY: u32 = 128;

/// Instructions that an action takes.
pub(crate) fn length(action: Action) -> usize {
    match action {
        Action::Count { steps: 0, .. } | Action::Enter { .. } => 3,
        Action::Count { .. } => 11,
        Action::Pay { .. } => 13,
        Action::Visit { .. } => 13,
    }
}

impl Weaver<'_, '_> {
    pub(crate) fn act(&mut self, code: &mut Code, action: Action) {
        match action {
            Action::Count { address, steps } => self.count(code, address, steps),
            Action::Pay { address, steps } => self.add_up(code, address, steps),
            Action::Visit { location } => self.visit(code, location),
            Action::Enter { address } => self.places.private.raise(code, address),
        }
    }

    /// Whether an edge was taken is all that is asked of most counters, so they are set and not counted: a
    /// count that wraps would read as untaken after 256 times.
    ///
    /// ```wat
    /// (i32.store8 $p offset=COUNTER (i32.const 0) (i32.const 1))
    /// ```
    ///
    /// One that pays counts its hits, and pays for 128 of them when it has 256, and each time that it has as many again.
    ///
    /// ```wat
    /// (i32.store8 $p offset=COUNTER (i32.const 0)
    ///   (local.tee $t (i32.add (i32.load8_u $p offset=COUNTER (i32.const 0)) (i32.const 1))))
    /// (if (i32.ge_u (local.get $t) (i32.const 256)) (then
    ///   (i32.store8 $p offset=COUNTER (i32.const 0) (i32.const 128))
    ///   PAY STEPS * 128))
    /// ```
    ///
    /// What takes so many steps at once that paying does not matter pays each time.
    fn count(&mut self, code: &mut Code, address: u32, steps: u32) {
        if steps == 0 || steps >= TOGETHER {
            self.places.private.raise(code, address);
            return if steps > 0 {
                self.pay(code, steps)
            };
        }
        let mut wrapped = Code::with_capacity(14);
        i32_const(&mut wrapped, 0);
        i32_const(&mut wrapped, MANY);
        self.places.private.store(&mut wrapped, Width::Byte, address);
        self.pay(&mut wrapped, steps * MANY);
        self.add(code, address, 1, wrapped);
    }

    /// Steps that no edge of its own counts are added up in a byte. Where they reach 256, those are paid, and the rest stays.
    fn add_up(&mut self, code: &mut Code, address: u32, steps: u32) {
        if steps >= TOGETHER {
            return self.pay(code, steps);
        }
        let mut wrapped = Code::with_capacity(11);
        self.pay(&mut wrapped, TOGETHER);
        self.add(code, address, steps, wrapped);
    }

    /// Adds to the byte at `address`, and does `wrapped` where the sum needs more than that.
    fn add(&mut self, code: &mut Code, address: u32, count: u32, wrapped: Code) {
        let private = self.places.private;
        let sum = self.scratch.local(self.locals, ValType::I32, 1);
        i32_const(code, 0);
        private.load_at(code, Width::Byte, address);
        i32_const(code, count);
        binop(code, BinaryOp::I32Add);
        tee(code, sum);
        private.store(code, Width::Byte, address);
        get(code, sum);
        i32_const(code, TOGETHER);
        binop(code, BinaryOp::I32GeU);
        if_then(self.function, code, wrapped);
    }

    fn pay(&mut self, code: &mut Code, steps: u32) {
        let scratch = self.scratch.local(self.locals, ValType::I64, 0);
        let Places { private, budget, .. } = self.places;
        private.pay(self.function, code, (budget, scratch), |code| i64_const(code, steps.into()));
    }

    /// ```wat
    /// (local.set $t (i32.xor (i32.load16_u $p offset=PREVIOUS (i32.const 0)) (i32.const HERE)))
    /// (i32.store8 $p offset=MAP (local.get $t)
    ///   (i32.add (i32.load8_u $p offset=MAP (local.get $t)) (i32.const 1)))
    /// (i32.store16 $p offset=PREVIOUS (i32.const 0) (i32.const HERE >> 1))
    /// ```
    fn visit(&mut self, code: &mut Code, here: u16) {
        let Places { private, map, previous, .. } = self.places;
        let edge = self.scratch.local(self.locals, ValType::I32, 1);
        private.load_at(code, Width::Half, previous);
        i32_const(code, here.into());
        binop(code, BinaryOp::I32Xor);
        tee(code, edge);
        get(code, edge);
        private.load(code, Width::Byte, map);
        i32_const(code, 1);
        binop(code, BinaryOp::I32Add);
        private.store(code, Width::Byte, map);
        i32_const(code, 0);
        i32_const(code, u32::from(here >> 1));
        private.store(code, Width::Half, previous);
    }

    pub(crate) fn undo(&mut self, code: &mut Code, action: Action) {
        let (address, count) = match action {
            Action::Count { address, .. } => (address, 1),
            Action::Pay { address, steps } if steps < TOGETHER => (address, steps),
            Action::Pay { .. } | Action::Visit { .. } | Action::Enter { .. } => return,
        };
        i32_const(code, 0);
        self.places.private.load_at(code, Width::Byte, address);
        i32_const(code, count);
        binop(code, BinaryOp::I32Sub);
        self.places.private.store(code, Width::Byte, address);
    }
}
