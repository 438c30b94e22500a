//! Bounds the depth of calls, in functions that can call themselves.
//!
//! ```wat
//! (func $f (result i32)          (func $f (result i32)
//!                                  (local.set $saved DEPTH)
//!                                  (DEPTH = $saved + 1)
//!                                  (if (i32.gt_u DEPTH MAX) (then (unreachable)))
//!   …                =>            (block $body (result i32) … with every way out to $body …)
//! )                                (DEPTH = $saved))
//! ```
//!
//! A tail call restores the depth before it leaves. An exception leaves frames without that; so whoever
//! catches one sets the depth back to its own, whether it can call itself or not.

use crate::cfg::Loops;
use crate::code::*;
use crate::weave::{declare_wrapper, wrap_catches};
use walrus::ir::*;
use walrus::{LocalFunction, LocalId, ModuleTypes, ValType};

/// What all functions of a module share.
#[derive(Clone, Copy)]
pub(crate) struct Depth {
    pub private: Private,
    pub address: u32,
    pub max: u32,
}

impl Depth {
    /// Makes the type of the block exist that [`bound`](Self::bound) puts around the code of a function that can
    /// call itself.
    pub(crate) fn declare(types: &mut ModuleTypes, function: &LocalFunction) {
        let results = types.results(function.ty()).to_vec();
        InstrSeqType::new(types, &[], &results);
    }

    /// Adds the bound to a function that can call itself, or that catches.
    pub(crate) fn bound(
        self,
        function: &mut LocalFunction,
        types: &ModuleTypes,
        saved: LocalId,
        locals: &NewLocals<'_>,
        recursive: bool,
    ) {
        let mut code = Code::new();
        if recursive {
            let deeper = locals.add(ValType::I32);
            self.enter(function, &mut code, saved, deeper);
            let mut leave = Code::new();
            self.assign(&mut leave, saved, 0);
            code.push(body(function, types, &leave));
            code.append(&mut leave);
        } else {
            self.private.load_at(&mut code, Width::Word, self.address);
            set(&mut code, saved);
            code.append(&mut function.block_mut(function.entry_block()).instrs);
        }
        function.block_mut(function.entry_block()).instrs = code;
    }

    fn enter(self, function: &mut LocalFunction, code: &mut Code, saved: LocalId, deeper: LocalId) {
        i32_const(code, 0);
        self.private.load_at(code, Width::Word, self.address);
        tee(code, saved);
        i32_const(code, 1);
        binop(code, BinaryOp::I32Add);
        tee(code, deeper);
        self.private.store(code, Width::Word, self.address);
        get(code, deeper);
        i32_const(code, self.max);
        binop(code, BinaryOp::I32GtU);
        let mut trap = Code::new();
        push(&mut trap, Unreachable {});
        if_then(function, code, trap);
    }

    /// `DEPTH = local + add`
    fn assign(self, code: &mut Code, local: LocalId, add: u32) {
        i32_const(code, 0);
        get(code, local);
        if add != 0 {
            i32_const(code, add);
            binop(code, BinaryOp::I32Add);
        }
        self.private.store(code, Width::Word, self.address);
    }

    /// Has a function that catches set the depth back where it does.
    pub(crate) fn restore_where_caught(
        self,
        function: &mut LocalFunction,
        types: &mut ModuleTypes,
        saved: LocalId,
        recursive: bool,
    ) {
        let mut loops = Loops::default();
        each_instr(function, |instr, _| {
            if let Instr::Loop(body) = instr {
                loops.set(body.seq, true);
            }
        });
        for seq in sequences(function) {
            for index in 0..function.block(seq).instrs.len() {
                let (Instr::TryTable(body), location) = &function.block(seq).instrs[index] else { continue };
                let (body, location) = (body.clone(), *location);
                let mut restore = Code::new();
                self.assign(&mut restore, saved, u32::from(recursive));
                let codes = (0..body.catches.len()).map(|clause| (clause, restore.clone())).collect();
                for clause in 0..body.catches.len() {
                    declare_wrapper(types, function, &loops, &body, clause);
                }
                let wrapped = wrap_catches(function, types, &loops, body, location, codes);
                function.block_mut(seq).instrs[index] = (wrapped, location);
            }
        }
    }
}

/// Moves the code of a function into a block, out of which all ways lead to its end, but for tail calls: those come after `leave`.
/// The type of the block was [declared](Depth::declare).
pub(crate) fn body(function: &mut LocalFunction, types: &ModuleTypes, leave: &Code) -> (Instr, InstrLocId) {
    let entry = function.entry_block();
    let ty = block_type(types, &[], types.results(function.ty()));
    let code = std::mem::take(&mut function.block_mut(entry).instrs);
    let body = sequence(function, ty, code);
    function.block_mut(body).end = function.block(entry).end;
    let mut retarget = Retarget { from: entry, to: body, tail_calls: false };
    dfs_pre_order_mut(&mut retarget, function, body);
    if retarget.tail_calls {
        dfs_pre_order_mut(&mut BeforeTailCalls(leave.clone()), function, body);
    }
    (Block { seq: body }.into(), InstrLocId::default())
}

/// Puts code ahead of each tail call.
struct BeforeTailCalls(Code);

impl VisitorMut for BeforeTailCalls {
    fn start_instr_seq_mut(&mut self, seq: &mut InstrSeq) {
        if seq.instrs.last().is_some_and(|last| is_tail_call(&last.0)) {
            let at = seq.instrs.len() - 1;
            seq.instrs.splice(at..at, self.0.iter().cloned());
        }
    }
}

/// Nothing that is reached follows one; walrus keeps nothing else after it.
fn is_tail_call(instr: &Instr) -> bool {
    matches!(instr, Instr::ReturnCall(_) | Instr::ReturnCallIndirect(_) | Instr::ReturnCallRef(_))
}

/// Turns branches to one label, and returns, into branches to another.
struct Retarget {
    from: InstrSeqId,
    to: InstrSeqId,
    /// Whether there are tail calls.
    tail_calls: bool,
}

impl Retarget {
    fn label(&self, label: &mut InstrSeqId) {
        if *label == self.from {
            *label = self.to;
        }
    }
}

impl VisitorMut for Retarget {
    fn visit_instr_mut(&mut self, instr: &mut Instr, _: &mut InstrLocId) {
        match instr {
            Instr::Br(Br { block })
            | Instr::BrIf(BrIf { block })
            | Instr::BrOnNull(BrOnNull { block })
            | Instr::BrOnNonNull(BrOnNonNull { block })
            | Instr::BrOnCast(BrOnCast { block, .. })
            | Instr::BrOnCastFail(BrOnCastFail { block, .. }) => self.label(block),
            Instr::BrTable(table) => {
                table.blocks.iter_mut().chain([&mut table.default]).for_each(|block| self.label(block));
            }
            Instr::TryTable(body) => {
                for catch in &mut body.catches {
                    let (TryTableCatch::Catch { label, .. }
                    | TryTableCatch::CatchRef { label, .. }
                    | TryTableCatch::CatchAll { label }
                    | TryTableCatch::CatchAllRef { label }) = catch;
                    self.label(label);
                }
            }
            Instr::Return(_) => *instr = Br { block: self.to }.into(),
            other => self.tail_calls |= is_tail_call(other),
        }
    }
}
