//! The code that stands on an edge.

use crate::code::*;
use crate::weave::{Action, Places, Weaver};
use walrus::ir::*;
use walrus::{LocalId, ValType};

/// Instructions that an action takes.
pub(crate) fn length(action: Action) -> usize {
    match action {
        Action::Count { pays: false, .. } => 3,
        Action::Count { pays: true, .. } => 11,
        Action::Visit { .. } => 13,
    }
}

impl Weaver<'_, '_> {
    pub(crate) fn act(&mut self, code: &mut Code, action: Action) {
        match action {
            Action::Count { address, pays } => self.count(code, address, pays),
            Action::Visit { location } => self.visit(code, location),
        }
    }

    /// Whether an edge was taken is all that is asked of most counters, so they are set and not counted: a
    /// count that wraps would read as untaken after 256 times.
    ///
    /// ```wat
    /// (i32.store8 $p offset=COUNTER (i32.const 0) (i32.const 1))
    /// ```
    ///
    /// One that pays counts, and begins again at 1.
    ///
    /// ```wat
    /// (i32.store8 $p offset=COUNTER (i32.const 0)
    ///   (local.tee $t (i32.add (i32.load8_u $p offset=COUNTER (i32.const 0)) (i32.const 1))))
    /// (if (i32.eq (local.get $t) (i32.const 256)) (then
    ///   (i32.store8 $p offset=COUNTER (i32.const 0) (i32.const 1))
    ///   PAY))
    /// ```
    fn count(&mut self, code: &mut Code, address: u32, pays: bool) {
        let private = self.places.private;
        if !pays {
            return private.raise(code, address);
        }
        let sum = self.scratch.local(self.locals, ValType::I32, 1);
        i32_const(code, 0);
        private.load_at(code, Width::Byte, address);
        i32_const(code, 1);
        binop(code, BinaryOp::I32Add);
        tee(code, sum);
        private.store(code, Width::Byte, address);
        get(code, sum);
        i32_const(code, 256);
        binop(code, BinaryOp::I32Eq);
        let mut wrapped = Code::with_capacity(15);
        private.raise(&mut wrapped, address);
        self.pay(&mut wrapped, sum);
        if_then(self.function, code, wrapped);
    }

    /// ```wat
    /// (i32.store $p offset=BUDGET (i32.const 0)
    ///   (local.tee $t (i32.sub (i32.load $p offset=BUDGET (i32.const 0)) (i32.const 1))))
    /// (if (i32.lt_s (local.get $t) (i32.const 0)) (then (unreachable)))
    /// ```
    fn pay(&mut self, code: &mut Code, scratch: LocalId) {
        let (private, budget) = (self.places.private, self.places.budget);
        i32_const(code, 0);
        private.load_at(code, Width::Word, budget);
        i32_const(code, 1);
        binop(code, BinaryOp::I32Sub);
        tee(code, scratch);
        private.store(code, Width::Word, budget);
        get(code, scratch);
        i32_const(code, 0);
        binop(code, BinaryOp::I32LtS);
        let mut trap = Code::with_capacity(1);
        push(&mut trap, Unreachable {});
        if_then(self.function, code, trap);
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
        if let Action::Count { address, .. } = action {
            i32_const(code, 0);
            self.places.private.load_at(code, Width::Byte, address);
            i32_const(code, 1);
            binop(code, BinaryOp::I32Sub);
            self.places.private.store(code, Width::Byte, address);
        }
    }
}
