//! What a function does with the stack pointer, as far as that can be told.
//!
//! ```wat
//! (local.set $f (i32.sub (global.get $__stack_pointer) (i32.const 32)))   ;; $f is 32 below
//! (global.set $__stack_pointer (local.get $f))                            ;; the pointer is 32 below
//! …
//! (global.set $__stack_pointer (i32.add (local.get $f) (i32.const 32)))   ;; the pointer is as it was
//! ```
//!
//! The values of locals are followed through the code, beside what each label is reached with, until nothing changes. A
//! function may be given another stack pointer than its caller has if it gives it back as it was, in every way out, and if
//! nobody else is told it: one that saves the stack pointer for others is none.

use super::pointer_values::{Env, Value};
use crate::bases::effect;
use crate::code::offset_of;
use std::collections::{BTreeMap, BTreeSet};
use walrus::ir::*;
use walrus::{GlobalId, LocalFunction, LocalId, MemoryId};

/// What a function does with the stack pointer.
#[derive(Default)]
pub(super) struct Usage {
    /// It reads the stack pointer.
    pub reads: bool,
    /// It has room on the stack.
    pub has_frame: bool,
    /// It gives the stack pointer back as it was.
    pub is_balanced: bool,
    /// It assigns the stack pointer.
    pub assigns: bool,
    /// It catches exceptions, which leave functions that do not give it back.
    pub catches: bool,
    /// Offsets in the file of loads and stores that do not go beyond its frame.
    pub inside: BTreeSet<u32>,
}

/// How often a function is looked through at most, and what that may take.
const PASSES_MAX: usize = 16;
const WORK_MAX: usize = 1 << 24;

impl Usage {
    /// Of a function in a module whose stack is in this memory.
    pub(super) fn of(
        function: &LocalFunction,
        seqs: &[InstrSeqId],
        pointer: GlobalId,
        memory: MemoryId,
    ) -> Usage {
        let mut usage = Usage::default();
        for (instr, _) in seqs.iter().flat_map(|seq| &function.block(*seq).instrs) {
            match instr {
                Instr::GlobalGet(GlobalGet { global }) if *global == pointer => usage.reads = true,
                Instr::GlobalSet(GlobalSet { global }) if *global == pointer => usage.assigns = true,
                Instr::TryTable(_) | Instr::Try(_) => usage.catches = true,
                _ => {}
            }
        }
        if !usage.reads {
            return usage;
        }
        let mut walk = Walk {
            function,
            pointer,
            memory,
            kept: kept(function, seqs, pointer),
            labels: BTreeMap::new(),
            loops: BTreeSet::new(),
            tries: Vec::new(),
            now: None,
            operands: Vec::new(),
            is_unclear: false,
            changed: false,
            calls: false,
            work: 0,
            usage,
        };
        for _ in 0..PASSES_MAX {
            walk.pass();
            if walk.is_unclear || !walk.changed {
                break;
            }
        }
        // Without an assignment the frame lies below the stack pointer, where that of a function that is called would be.
        let is_clear = !walk.is_unclear && !walk.changed && (walk.usage.assigns || !walk.calls);
        let mut usage = walk.usage;
        usage.is_balanced = is_clear;
        if !is_clear {
            usage.inside.clear();
        }
        usage
    }
}

/// Locals that are read shortly before the stack pointer is assigned: their values are kept from one block to the next.
fn kept(function: &LocalFunction, seqs: &[InstrSeqId], pointer: GlobalId) -> BTreeSet<LocalId> {
    let mut kept = BTreeSet::new();
    for seq in seqs {
        let mut read = Vec::new();
        for (instr, _) in &function.block(*seq).instrs {
            match instr {
                Instr::LocalGet(LocalGet { local }) => read.push(*local),
                Instr::GlobalSet(GlobalSet { global }) if *global == pointer => kept.extend(read.drain(..)),
                Instr::LocalSet(_) | Instr::LocalTee(_) => {}
                other if effect(other).is_none() => read.clear(),
                _ => {}
            }
        }
    }
    kept
}

/// A sequence that is being looked through.
struct Open {
    seq: InstrSeqId,
    next: usize,
    role: Role,
}

enum Role {
    Block,
    Loop,
    Try,
    /// With what the other branch begins with.
    Then(InstrSeqId, Env),
    /// With what the other branch ended with.
    Else(Option<Env>),
}

struct Walk<'f> {
    function: &'f LocalFunction,
    pointer: GlobalId,
    memory: MemoryId,
    kept: BTreeSet<LocalId>,
    /// What is known where a label is reached: at the end of a block, and at the head of a loop.
    labels: BTreeMap<InstrSeqId, Env>,
    loops: BTreeSet<InstrSeqId>,
    /// The labels of the clauses of each `try_table` that is open.
    tries: Vec<Vec<InstrSeqId>>,
    /// What is known here; none where nobody comes.
    now: Option<Env>,
    operands: Vec<Value>,
    is_unclear: bool,
    /// The head of a loop was reached with less than was assumed.
    changed: bool,
    calls: bool,
    work: usize,
    usage: Usage,
}

impl Walk<'_> {
    fn pass(&mut self) {
        self.changed = false;
        self.usage.inside.clear();
        self.operands.clear();
        self.now = Some(Env::at_entry());
        let entry = self.function.entry_block();
        let mut open = vec![Open { seq: entry, next: 0, role: Role::Block }];
        while let Some(top) = open.last_mut() {
            if self.is_unclear {
                return;
            }
            let instrs = &self.function.block(top.seq).instrs;
            let Some((instr, location)) = instrs.get(top.next).filter(|_| self.now.is_some()) else {
                let ended = open.pop().expect("one is open");
                open.extend(self.end(ended, entry));
                continue;
            };
            top.next += 1;
            self.pay(1);
            open.extend(self.instr(instr, *location));
        }
    }

    fn pay(&mut self, work: usize) {
        self.work += work;
        self.is_unclear |= self.work > WORK_MAX;
    }

    /// Goes to the end of a sequence; what comes next, where that is the other branch.
    fn end(&mut self, Open { seq, role, .. }: Open, entry: InstrSeqId) -> Option<Open> {
        self.leaves_operands();
        if seq == entry {
            self.leaves();
            return None;
        }
        if let Role::Loop = role {
            return None;
        }
        if let Role::Try = role {
            self.tries.pop();
        }
        let branched = self.labels.remove(&seq);
        let ended = self.now.take();
        self.now = self.joined(ended, branched);
        match role {
            Role::Then(alternative, env) => {
                let role = Role::Else(self.now.replace(env));
                Some(Open { seq: alternative, next: 0, role })
            }
            Role::Else(other) => {
                let ended = self.now.take();
                self.now = self.joined(ended, other);
                None
            }
            _ => None,
        }
    }

    fn joined(&mut self, one: Option<Env>, other: Option<Env>) -> Option<Env> {
        match (one, other) {
            (Some(one), Some(other)) => {
                self.pay(one.size() + other.size());
                Some(one.joined(&other))
            }
            (one, other) => one.or(other),
        }
    }

    /// What is known here, of that which is kept.
    fn kept_now(&mut self) -> Option<Env> {
        let env = self.now.as_ref()?.filtered(&self.kept);
        let size = self.now.as_ref().map_or(0, Env::size);
        self.pay(size);
        Some(env)
    }

    /// A label may be reached with this.
    fn reaches(&mut self, label: InstrSeqId, env: Env) {
        if label == self.function.entry_block() {
            self.is_unclear |= env.pointer != Value::Entry;
            return;
        }
        self.pay(env.size());
        match self.labels.get_mut(&label) {
            Some(known) => {
                let joined = known.joined(&env);
                if joined != *known {
                    self.changed |= self.loops.contains(&label);
                    *known = joined;
                }
            }
            None => drop(self.labels.insert(label, env)),
        }
    }

    fn branches(&mut self, label: InstrSeqId) {
        if let Some(env) = self.kept_now() {
            self.reaches(label, env);
        }
    }

    /// An exception may be thrown here.
    fn may_throw(&mut self) {
        if self.tries.is_empty() {
            return;
        }
        let Some(mut env) = self.kept_now() else { return };
        env.pointer = Value::Unknown;
        for label in self.tries.concat() {
            self.reaches(label, env.clone());
        }
    }

    /// The function is left.
    fn leaves(&mut self) {
        if let Some(now) = self.now.take() {
            self.is_unclear |= now.pointer != Value::Entry;
        }
    }

    /// What lies on the stack of operands goes elsewhere.
    fn leaves_operands(&mut self) {
        for value in std::mem::take(&mut self.operands) {
            self.gives(value);
        }
    }

    /// A value goes elsewhere. Whoever saved the stack pointer may set it to that later.
    fn gives(&mut self, value: Value) {
        self.is_unclear |= matches!(value, Value::Entry | Value::MaybeEntry);
    }

    fn take(&mut self) -> Value {
        self.operands.pop().unwrap_or(Value::Unknown)
    }

    /// What an instruction does; the sequence that it opens.
    fn instr(&mut self, instr: &Instr, location: InstrLocId) -> Option<Open> {
        let opened = |seq, role| Some(Open { seq, next: 0, role });
        match instr {
            Instr::Block(Block { seq }) => {
                self.leaves_operands();
                return opened(*seq, Role::Block);
            }
            Instr::Loop(Loop { seq }) => {
                self.leaves_operands();
                self.loops.insert(*seq);
                self.branches(*seq);
                self.now = self.labels.get(seq).cloned();
                return opened(*seq, Role::Loop);
            }
            Instr::IfElse(IfElse { consequent, alternative }) => {
                self.leaves_operands();
                let env = self.kept_now().expect("somebody comes here");
                return opened(*consequent, Role::Then(*alternative, env));
            }
            Instr::TryTable(TryTable { seq, catches, .. }) => {
                self.leaves_operands();
                self.tries.push(catches.iter().map(label_of).collect());
                self.may_throw();
                return opened(*seq, Role::Try);
            }
            _ => {}
        }
        match effect(instr) {
            Some(effect) => self.plain(instr, effect, location),
            None if self.of_local(instr) => {}
            None => self.transfer(instr),
        }
        None
    }

    fn of_local(&mut self, instr: &Instr) -> bool {
        match instr {
            Instr::LocalGet(LocalGet { local }) => {
                let value = self.now.as_ref().map_or(Value::Unknown, |now| now.get(*local));
                self.operands.push(value);
            }
            Instr::LocalSet(LocalSet { local }) => {
                let value = self.take();
                self.assign(*local, value);
            }
            Instr::LocalTee(LocalTee { local }) => {
                let value = self.take();
                self.assign(*local, value);
                self.operands.push(value);
            }
            _ => return false,
        }
        true
    }

    fn assign(&mut self, local: LocalId, value: Value) {
        let Some(now) = &mut self.now else { return };
        let before = now.set(local, value);
        if before != value && (before.matters() || value.matters()) {
            self.may_throw();
        }
    }

    /// Something that is no block, takes so many operands, and goes on behind it.
    fn plain(&mut self, instr: &Instr, (pops, pushes): (usize, usize), location: InstrLocId) {
        match instr {
            Instr::Const(Const { value: ir_value }) => self.operands.push(match ir_value {
                walrus::ir::Value::I32(value) => Value::Constant(*value),
                _ => Value::Unknown,
            }),
            Instr::GlobalGet(GlobalGet { global }) if *global == self.pointer => {
                self.operands.push(self.now.as_ref().map_or(Value::Unknown, |now| now.pointer));
            }
            Instr::GlobalSet(GlobalSet { global }) if *global == self.pointer => {
                let value = self.take();
                self.is_unclear |= match value {
                    Value::Frame(offset) => offset > 0,
                    value => value == Value::MaybeEntry,
                };
                if let Some(now) = &mut self.now {
                    now.pointer = value.of_pointer();
                }
            }
            Instr::Drop(_) => drop(self.take()),
            Instr::Binop(Binop { op: op @ (BinaryOp::I32Add | BinaryOp::I32Sub) }) => {
                let (second, first) = (self.take(), self.take());
                let is_sum = matches!(op, BinaryOp::I32Add);
                let value = if is_sum { first.plus(second) } else { first.minus(second) };
                self.usage.has_frame |= first.is_entry() || second.is_entry();
                match value {
                    Some(value) => self.operands.push(value),
                    None => self.is_unclear = true,
                }
            }
            _ => {
                self.access(instr, location);
                for _ in 0..pops {
                    let value = self.take();
                    self.gives(value);
                }
                self.operands.extend(std::iter::repeat_n(Value::Unknown, pushes));
            }
        }
    }

    /// Notes a load or store that does not go beyond the frame.
    fn access(&mut self, instr: &Instr, location: InstrLocId) {
        let (memory, arg, bytes, at) = match instr {
            Instr::Load(Load { memory, kind, arg }) => (memory, arg, kind.width(), 1),
            Instr::Store(Store { memory, kind, arg }) => (memory, arg, kind.width(), 2),
            _ => return,
        };
        let Some(at) = self.operands.len().checked_sub(at) else { return };
        let end = arg.offset.saturating_add(bytes.into());
        if let Value::Frame(offset) = self.operands[at]
            && *memory == self.memory
            && i64::try_from(end).is_ok_and(|end| offset + end <= 0)
            && !location.is_default()
        {
            self.usage.inside.insert(offset_of(location));
        }
    }

    /// Something that may go elsewhere, or of which is not known what it takes.
    fn transfer(&mut self, instr: &Instr) {
        self.leaves_operands();
        match instr {
            Instr::Br(Br { block }) => {
                self.branches(*block);
                self.now = None;
            }
            Instr::BrIf(BrIf { block })
            | Instr::BrOnNull(BrOnNull { block })
            | Instr::BrOnNonNull(BrOnNonNull { block })
            | Instr::BrOnCast(BrOnCast { block, .. })
            | Instr::BrOnCastFail(BrOnCastFail { block, .. }) => self.branches(*block),
            Instr::BrTable(BrTable { blocks, default }) => {
                let labels: BTreeSet<InstrSeqId> = blocks.iter().copied().chain([*default]).collect();
                labels.into_iter().for_each(|label| self.branches(label));
                self.now = None;
            }
            Instr::Return(_) => self.leaves(),
            Instr::ReturnCall(_) | Instr::ReturnCallIndirect(_) | Instr::ReturnCallRef(_) => {
                self.calls = true;
                self.leaves();
            }
            Instr::Unreachable(_) | Instr::Throw(_) | Instr::ThrowRef(_) => self.now = None,
            Instr::Call(_) | Instr::CallIndirect(_) | Instr::CallRef(_) => {
                self.calls = true;
                if let Some(now) = &mut self.now {
                    now.pointer = Value::Unknown;
                }
            }
            Instr::Try(_) | Instr::Rethrow(_) => self.is_unclear = true,
            _ => {}
        }
    }
}

fn label_of(catch: &TryTableCatch) -> InstrSeqId {
    let (TryTableCatch::Catch { label, .. }
    | TryTableCatch::CatchRef { label, .. }
    | TryTableCatch::CatchAll { label }
    | TryTableCatch::CatchAllRef { label }) = catch;
    *label
}
