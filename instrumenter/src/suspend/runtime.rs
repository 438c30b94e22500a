//! `suspend` and `resume`, and what they keep in private memory while a step runs.
//!
//! ```text
//! resume(record):                              suspend():
//!   STATE = 2 if it was suspended else 0         if STATE == 2: STATE = 0; return
//!   (the stack pointer and the words below       if THREAD == 0: fail
//!    become those of the record)                 STATE = 1
//!   table[record.entry](record.argument, 0)
//!   record.frames, record.stack = …              a record, in memory 0: entry, argument,
//!   what is left over is wiped                   low end of its stack, stack pointer,
//!   (all is as it was)                           end of its frames
//!   return STATE == 1; STATE = 0
//! ```

use crate::code::*;
use crate::layout::Allocator;
use anyhow::{Context, Result, ensure};
use walrus::ir::*;
use walrus::{FunctionId, GlobalId, LocalFunction, LocalId, MemoryId, Module, TableId, TypeId, ValType};

/// The state while a thread is brought back to where it was.
pub(super) const REWINDING: u32 = 2;
const UNWINDING: u32 = 1;

/// LLVM keeps up to so many bytes below the stack pointer, in functions that call no other.
const RED_ZONE: u32 = 128;

/// What is kept in private memory, in words.
#[derive(Clone, Copy)]
pub(super) enum Word {
    /// 0, [`UNWINDING`] or [`REWINDING`].
    State,
    /// The record of the thread that runs, or 0.
    Thread,
    /// The low end of its stack.
    Low,
    /// The lowest that the stack pointer was.
    Lowest,
    /// Where what is written down ends.
    Frames,
    /// What went wrong.
    Problem,
}

/// See [`StateLayout::suspend`](crate::StateLayout::suspend).
pub(super) enum Problem {
    NoRoom = 1,
    OutsideOfThread = 2,
    Overwritten = 3,
}

/// Bytes of the words.
pub const SUSPEND_BYTES: u32 = 24;

/// Offsets in a record.
const ENTRY: u32 = 0;
const ARGUMENT: u32 = 4;
const LOW: u32 = 8;
const STACK: u32 = 12;
const FRAMES: u32 = 16;

pub(super) struct Runtime {
    private: Private,
    record: u32,
    memory: MemoryId,
    pointer: GlobalId,
}

impl Runtime {
    pub(super) fn new(module: &Module, private: Private, allocator: &mut Allocator) -> Result<Runtime> {
        let what = "a module with threads (it imports `suspend` or `resume`)";
        let memory = module.memories.iter().find(|memory| memory.id() != private.0);
        let memory = memory.with_context(|| format!("{what} needs a memory"))?;
        ensure!(!memory.memory64, "{what} needs a memory with 32-bit addresses");
        let pointer = crate::heap::stack_pointer(module).with_context(|| {
            format!("{what} needs a global called `__stack_pointer`; keep its names (do not strip it), or export it")
        })?;
        let global = module.globals.get(pointer);
        ensure!(
            global.mutable && global.ty == ValType::I32,
            "{what} needs `__stack_pointer` to be a mutable i32"
        );
        let record = allocator.take(SUSPEND_BYTES.into(), 8)?.start;
        Ok(Runtime { private, record, memory: memory.id(), pointer })
    }

    pub(super) fn record(&self) -> u32 {
        self.record
    }

    pub(super) fn memory(&self) -> MemoryId {
        self.memory
    }

    fn address(&self, word: Word) -> u32 {
        self.record + 4 * word as u32
    }

    pub(super) fn word(&self, code: &mut Code, word: Word) {
        self.private.load_at(code, Width::Word, self.address(word));
    }

    pub(super) fn set_word(&self, code: &mut Code, word: Word, value: impl FnOnce(&mut Code)) {
        i32_const(code, 0);
        value(code);
        self.private.store(code, Width::Word, self.address(word));
    }

    pub(super) fn stack_pointer(&self, code: &mut Code) {
        push(code, GlobalGet { global: self.pointer });
    }

    fn set_stack_pointer(&self, code: &mut Code, local: LocalId) {
        get(code, local);
        push(code, GlobalSet { global: self.pointer });
    }

    /// `condition --`; notes the problem and ends the step where it is not 0.
    pub(super) fn fail_if(&self, function: &mut LocalFunction, code: &mut Code, problem: Problem) {
        let mut then = Code::new();
        self.set_word(&mut then, Word::Problem, |code| i32_const(code, problem as u32));
        push(&mut then, Unreachable {});
        if_then(function, code, then);
    }

    /// Ends a step in which the stack of a thread has no more room, and notes how far it was used. Elsewhere than in a thread
    /// that is never so: `Lowest` is 0.
    ///
    /// ```wat
    /// (global.set $__stack_pointer (local.tee $t …))
    /// (if (i32.lt_u (local.get $t) LOWEST) (then
    ///   (LOWEST = $t)
    ///   (if (i32.lt_u (local.get $t) (i32.add LOW (i32.const RED_ZONE))) (then fail))))
    /// ```
    pub(super) fn bound_stacks(&self, module: &mut Module) {
        let locals = &mut module.locals;
        for (_, function) in module.funcs.iter_local_mut() {
            let mut scratch = None;
            for seq in sequences(function) {
                let sets = |instr: &Instr| matches!(instr, Instr::GlobalSet(GlobalSet { global }) if *global == self.pointer);
                if !function.block(seq).instrs.iter().any(|(instr, _)| sets(instr)) {
                    continue;
                }
                let local = *scratch.get_or_insert_with(|| locals.add(ValType::I32));
                let mut code = Code::new();
                for (instr, location) in std::mem::take(&mut function.block_mut(seq).instrs) {
                    let is_set = sets(&instr);
                    if is_set {
                        tee(&mut code, local);
                    }
                    code.push((instr, location));
                    if is_set {
                        self.bound(function, &mut code, local);
                    }
                }
                function.block_mut(seq).instrs = code;
            }
        }
    }

    fn bound(&self, function: &mut LocalFunction, code: &mut Code, local: LocalId) {
        let mut lower = Code::new();
        self.set_word(&mut lower, Word::Lowest, |code| get(code, local));
        get(&mut lower, local);
        self.word(&mut lower, Word::Low);
        i32_const(&mut lower, RED_ZONE);
        binop(&mut lower, BinaryOp::I32Add);
        binop(&mut lower, BinaryOp::I32LtU);
        self.fail_if(function, &mut lower, Problem::NoRoom);
        get(code, local);
        self.word(code, Word::Lowest);
        binop(code, BinaryOp::I32LtU);
        if_then(function, code, lower);
    }

    /// Puts the functions in the place of the imports.
    pub(super) fn add(
        &self,
        module: &mut Module,
        suspend: Option<FunctionId>,
        resume: Option<FunctionId>,
    ) -> Result<()> {
        if let Some(id) = suspend {
            module.replace_imported_func(id, |_| ())?;
            self.suspend(module.funcs.get_mut(id).kind.unwrap_local_mut());
        }
        if let Some(id) = resume {
            let table = module.tables.iter().find(|table| table.element_ty == walrus::RefType::FUNCREF);
            let table = table.context("a module that imports `resume` needs a table of functions")?;
            ensure!(!table.table64, "a module that imports `resume` needs a table with 32-bit indices");
            let table = table.id();
            let ty = module.types.add(&[ValType::I32, ValType::F32], &[]);
            module.replace_imported_func(id, |_| ())?;
            let locals: Vec<LocalId> = (0..LOCALS).map(|_| module.locals.add(ValType::I32)).collect();
            let function = module.funcs.get_mut(id).kind.unwrap_local_mut();
            Resume { runtime: self, record: function.args[0], locals: &locals, entry: (table, ty) }
                .write(function);
        }
        Ok(())
    }

    fn suspend(&self, function: &mut LocalFunction) {
        let mut back = Code::new();
        self.set_word(&mut back, Word::State, |code| i32_const(code, 0));
        push(&mut back, Return {});
        let mut code = Code::new();
        self.word(&mut code, Word::State);
        i32_const(&mut code, REWINDING);
        binop(&mut code, BinaryOp::I32Eq);
        if_then(function, &mut code, back);
        self.word(&mut code, Word::Thread);
        unop(&mut code, UnaryOp::I32Eqz);
        self.fail_if(function, &mut code, Problem::OutsideOfThread);
        self.set_word(&mut code, Word::State, |code| i32_const(code, UNWINDING));
        function.block_mut(function.entry_block()).instrs = code;
    }

    fn load(&self, code: &mut Code, record: LocalId, offset: u32) {
        get(code, record);
        let kind = LoadKind::I32 { atomic: false };
        push(code, Load { memory: self.memory, kind, arg: MemArg { align: 1, offset: offset.into() } });
    }

    fn store(&self, code: &mut Code, record: LocalId, offset: u32, value: impl FnOnce(&mut Code)) {
        get(code, record);
        value(code);
        let kind = StoreKind::I32 { atomic: false };
        push(code, Store { memory: self.memory, kind, arg: MemArg { align: 1, offset: offset.into() } });
    }
}

/// Locals of `resume`.
const LOCALS: usize = 8;
/// What is put back at its end.
const KEPT: [Word; 4] = [Word::Thread, Word::Low, Word::Lowest, Word::Frames];

/// Writes `resume`.
struct Resume<'a> {
    runtime: &'a Runtime,
    record: LocalId,
    locals: &'a [LocalId],
    entry: (TableId, TypeId),
}

impl Resume<'_> {
    fn write(&self, function: &mut LocalFunction) {
        let (runtime, record) = (self.runtime, self.record);
        let [_, _, _, _, own, was, suspended, from] = *self.locals else { unreachable!("there are so many") };
        let mut code = Code::new();
        self.enter(&mut code, own, was);
        runtime.load(&mut code, record, ARGUMENT);
        push(&mut code, Const { value: Value::F32(0.0) });
        runtime.load(&mut code, record, ENTRY);
        let (table, ty) = self.entry;
        push(&mut code, CallIndirect { ty, table });
        runtime.word(&mut code, Word::State);
        tee(&mut code, suspended);
        i32_const(&mut code, REWINDING);
        binop(&mut code, BinaryOp::I32Eq);
        runtime.fail_if(function, &mut code, Problem::Overwritten);
        runtime.set_word(&mut code, Word::State, |code| i32_const(code, 0));
        // Of a thread that has ended nothing is written down.
        runtime.word(&mut code, Word::Frames);
        runtime.word(&mut code, Word::Low);
        get(&mut code, suspended);
        push(&mut code, Select { ty: None });
        set(&mut code, from);
        runtime.store(&mut code, record, FRAMES, |code| get(code, from));
        runtime.store(&mut code, record, STACK, |code| runtime.stack_pointer(code));
        self.wipe(function, &mut code, from, |code| get(code, was));
        let after = |code: &mut Code| runtime.stack_pointer(code);
        self.wipe_below(function, &mut code, (from, was), after);
        for (word, local) in KEPT.iter().zip(self.locals) {
            runtime.set_word(&mut code, *word, |code| get(code, *local));
        }
        runtime.set_stack_pointer(&mut code, own);
        get(&mut code, suspended);
        function.block_mut(function.entry_block()).instrs = code;
    }

    /// What belongs to the caller is kept, and all becomes that of the thread.
    fn enter(&self, code: &mut Code, own: LocalId, was: LocalId) {
        let (runtime, record) = (self.runtime, self.record);
        for (word, local) in KEPT.iter().zip(self.locals) {
            runtime.word(code, *word);
            set(code, *local);
        }
        runtime.stack_pointer(code);
        set(code, own);
        runtime.set_word(code, Word::Thread, |code| get(code, record));
        runtime.set_word(code, Word::Low, |code| runtime.load(code, record, LOW));
        runtime.set_word(code, Word::Lowest, |code| runtime.load(code, record, STACK));
        runtime.load(code, record, FRAMES);
        set(code, was);
        runtime.set_word(code, Word::Frames, |code| get(code, was));
        // What is written down says that it was suspended.
        runtime.set_word(code, Word::State, |code| {
            get(code, was);
            runtime.word(code, Word::Low);
            binop(code, BinaryOp::I32Ne);
            i32_const(code, 1);
            binop(code, BinaryOp::I32Shl);
        });
        runtime.load(code, record, STACK);
        push(code, GlobalSet { global: runtime.pointer });
    }

    /// Wipes what was written down before, from the local `from` on.
    fn wipe(&self, function: &mut LocalFunction, code: &mut Code, from: LocalId, to: impl Fn(&mut Code)) {
        let mut fill = Code::new();
        get(&mut fill, from);
        i32_const(&mut fill, 0);
        to(&mut fill);
        get(&mut fill, from);
        binop(&mut fill, BinaryOp::I32Sub);
        push(&mut fill, MemoryFill { memory: self.runtime.memory });
        get(code, from);
        to(code);
        binop(code, BinaryOp::I32LtU);
        if_then(function, code, fill);
    }

    /// Wipes what functions have left below the stack pointer, down to what is written down.
    fn wipe_below(
        &self,
        function: &mut LocalFunction,
        code: &mut Code,
        (from, lowest): (LocalId, LocalId),
        to: impl Fn(&mut Code),
    ) {
        // The stack is bounded with room for the red zone, so this is not below 0.
        self.runtime.word(code, Word::Lowest);
        i32_const(code, RED_ZONE);
        binop(code, BinaryOp::I32Sub);
        tee(code, lowest);
        get(code, from);
        get(code, lowest);
        get(code, from);
        binop(code, BinaryOp::I32GtU);
        push(code, Select { ty: None });
        set(code, lowest);
        self.wipe(function, code, lowest, to);
    }
}
