//! Answers inside the guest what the host need not be called for, since nobody looks at what it would write down.
//!
//! A call of the host takes as long as a short rule. So the imports of [`FROM`] become functions of the module: `verbose` says no, spans are
//! only counted, and what `state` is given is kept in private memory, where the host reads it once the guest has said all. What does not
//! fit there, or is said at another time, is given to the host, which takes what stands there first.

use crate::code::*;
use crate::layout::{Allocator, InsideLayout};
use anyhow::Result;
use walrus::ir::*;
use walrus::{FunctionBuilder, FunctionId, FunctionKind, LocalFunction, LocalId, MemoryId, Module, ValType};

/// The module of the imports that are answered.
const FROM: &str = "spelunk";
/// Spans that a step may begin.
pub const SPANS_MAX: u32 = 200_000;
/// What the guest is called for where it is to say what its state is.
pub const SAYS: u32 = 2;
/// Bytes that a state may say without a call of the host.
const SAID_BYTES: u64 = 4096;
/// What stands before each part that is said: how long it is.
const PREFIX_BYTES: u32 = 8;

/// Takes the room in private memory.
pub(crate) fn room(allocator: &mut Allocator) -> Result<InsideLayout> {
    let words = allocator.take(16, 8)?;
    let [spans, said_len, phase] = [0, 8, 12].map(|at| words.start + at);
    let [said, aside] = [allocator.take(SAID_BYTES, 8)?, allocator.take(SAID_BYTES, 8)?];
    Ok(InsideLayout { words, spans, said_len, phase, said, aside })
}

/// Replaces the imports that have the types of the ABI.
pub(crate) fn replace(module: &mut Module, private: Private, layout: &InsideLayout) {
    use ValType::I32;
    let imports: Vec<FunctionId> = module.imports.iter().filter_map(of_ours).collect();
    for id in imports {
        let FunctionKind::Import(import) = &module.funcs.get(id).kind else { continue };
        let (ty, import) = (module.types.get(import.ty), module.imports.get(import.import));
        let function = match (import.name.as_str(), ty.params(), ty.results()) {
            ("verbose", [], [I32]) => local(module, [], &[I32], |_, _, code| i32_const(code, 0)),
            ("span_begin", [I32, I32], []) => local(module, [I32; 2], &[], |function, _, code| {
                begin_span(function, code, (private, layout))
            }),
            ("span_end", [I32], []) => {
                local(module, [I32], &[], |function, _, code| end_span(function, code, (private, layout)))
            }
            ("state", [I32, I32], []) => {
                let ty = ty.id();
                let Some(memory) = only_memory(module, private) else { continue };
                let (host, _) = module.add_import_func(FROM, "state", ty);
                let at = module.locals.add(I32);
                let say = Say { private, memory, layout, host, at };
                local(module, [I32; 2], &[], |function, args, code| say.write(function, args, code))
            }
            _ => continue,
        };
        let import = module.imports.get_imported_func(id).expect("it is imported").id();
        module.imports.delete(import);
        module.funcs.get_mut(id).kind = FunctionKind::Local(function);
    }
}

fn of_ours(import: &walrus::Import) -> Option<FunctionId> {
    match import.kind {
        walrus::ImportKind::Function(id) if import.module == FROM => Some(id),
        _ => None,
    }
}

/// The memory of the target, if it has one with addresses of 32 bits.
fn only_memory(module: &Module, private: Private) -> Option<MemoryId> {
    let mut memories = module.memories.iter().filter(|memory| memory.id() != private.0);
    let memory = memories.next().filter(|memory| !memory.memory64)?;
    memories.next().is_none().then(|| memory.id())
}

/// A function of the module.
fn local<const N: usize>(
    module: &mut Module,
    params: [ValType; N],
    results: &[ValType],
    write: impl FnOnce(&mut LocalFunction, [LocalId; N], &mut Code),
) -> LocalFunction {
    let args = params.map(|ty| module.locals.add(ty));
    let builder = FunctionBuilder::new(&mut module.types, &params, results);
    let (mut function, mut code) = (builder.local_func(args.to_vec()), Code::new());
    write(&mut function, args, &mut code);
    let entry = function.entry_block();
    function.block_mut(entry).instrs = code;
    function
}

/// Counts a span, and traps where there are too many.
fn begin_span(function: &mut LocalFunction, code: &mut Code, (private, layout): (Private, &InsideLayout)) {
    for word in [layout.spans, layout.spans + 4] {
        i32_const(code, 0);
        private.load_at(code, Width::Word, word);
        i32_const(code, 1);
        binop(code, BinaryOp::I32Add);
        private.store(code, Width::Word, word);
    }
    private.load_at(code, Width::Word, layout.spans);
    i32_const(code, SPANS_MAX);
    binop(code, BinaryOp::I32GtU);
    trap_if(function, code);
}

/// Traps where no span is open.
fn end_span(function: &mut LocalFunction, code: &mut Code, (private, layout): (Private, &InsideLayout)) {
    let open = layout.spans + 4;
    private.load_at(code, Width::Word, open);
    unop(code, UnaryOp::I32Eqz);
    trap_if(function, code);
    i32_const(code, 0);
    private.load_at(code, Width::Word, open);
    i32_const(code, 1);
    binop(code, BinaryOp::I32Sub);
    private.store(code, Width::Word, open);
}

fn trap_if(function: &mut LocalFunction, code: &mut Code) {
    let mut trap = Code::with_capacity(1);
    push(&mut trap, Unreachable {});
    if_then(function, code, trap);
}

/// Says a part of a state.
struct Say<'a> {
    private: Private,
    memory: MemoryId,
    layout: &'a InsideLayout,
    /// What is called where there is no room.
    host: FunctionId,
    /// Where the part ends.
    at: LocalId,
}

impl Say<'_> {
    /// ```wat
    /// (if (i32.or
    ///     (i64.gt_s (i64.extend_i32_u (local.get $len))
    ///       (i64.extend_i32_s (i32.sub (i32.const BYTES - 8) (i32.load $p offset=LEN (i32.const 0)))))
    ///     (i32.ne (i32.load $p offset=PHASE (i32.const 0)) (i32.const SAYS)))
    ///   (then (call $host (local.get $pointer) (local.get $len)) (return)))
    /// (local.set $at (i32.load $p offset=LEN (i32.const 0)))
    /// (i64.store $p offset=SAID (local.get $at) (i64.extend_i32_u (local.get $len)))
    /// (memory.copy $p $m (i32.add (local.get $at) (i32.const SAID + 8)) (local.get $pointer) (local.get $len))
    /// (i32.store $p offset=LEN (i32.const 0) (i32.add (i32.add (local.get $at) (i32.const 8)) (local.get $len)))
    /// ```
    /// What is left may be less than nothing, by up to 8, so both are compared in 64 bits.
    fn write(&self, function: &mut LocalFunction, [pointer, len]: [LocalId; 2], code: &mut Code) {
        let Say { private, layout, at, .. } = *self;
        let bytes = layout.said.end - layout.said.start;
        get(code, len);
        unop(code, UnaryOp::I64ExtendUI32);
        i32_const(code, bytes - PREFIX_BYTES);
        private.load_at(code, Width::Word, layout.said_len);
        binop(code, BinaryOp::I32Sub);
        unop(code, UnaryOp::I64ExtendSI32);
        binop(code, BinaryOp::I64GtS);
        private.load_at(code, Width::Word, layout.phase);
        i32_const(code, SAYS);
        binop(code, BinaryOp::I32Ne);
        binop(code, BinaryOp::I32Or);
        let mut calls = Code::new();
        get(&mut calls, pointer);
        get(&mut calls, len);
        push(&mut calls, Call { func: self.host });
        push(&mut calls, Return {});
        if_then(function, code, calls);
        private.load_at(code, Width::Word, layout.said_len);
        tee(code, at);
        get(code, len);
        unop(code, UnaryOp::I64ExtendUI32);
        private.store(code, Width::Long, layout.said.start);
        get(code, at);
        i32_const(code, layout.said.start + PREFIX_BYTES);
        binop(code, BinaryOp::I32Add);
        get(code, pointer);
        get(code, len);
        push(code, MemoryCopy { src: self.memory, dst: private.0 });
        i32_const(code, 0);
        get(code, at);
        i32_const(code, PREFIX_BYTES);
        binop(code, BinaryOp::I32Add);
        get(code, len);
        binop(code, BinaryOp::I32Add);
        private.store(code, Width::Word, layout.said_len);
    }
}
