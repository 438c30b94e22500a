//! Marks what `memory.fill`, `memory.copy` and `memory.init` changed.

use crate::code::*;
use crate::marks::{Map, page};
use walrus::ir::*;
use walrus::{FunctionBuilder, FunctionId, LocalId, Module, ValType};

/// What a page of a long range pays.
const PAGE_STEPS: u32 = 64;

/// Adds the function that marks a range of a memory. Engines leave their own code for a `memory.fill`, so it
/// marks the first and the last page itself.
///
/// ```wat
/// (func (param $address i32) (param $length i32) (local $first i32) (local $last i32)
///   (if (local.get $length) (then
///     (local.set $first (i32.shr_u (local.get $address) (i32.const 12)))
///     (local.set $last (i32.shr_u
///       (i32.sub (i32.add (local.get $address) (local.get $length)) (i32.const 1)) (i32.const 12)))
///     (i32.store8 $p offset=MAP (local.get $first) (i32.const 1))
///     (i32.store8 $p offset=MAP (local.get $last) (i32.const 1))
///     (if (i32.gt_u (i32.sub (local.get $last) (local.get $first)) (i32.const 1)) (then
///       (memory.fill $p (i32.add (local.get $first) (i32.const MAP)) (i32.const 1)
///         (i32.sub (local.get $last) (local.get $first)))
///       PAY (i64.shl (i64.extend_i32_u (i32.sub (local.get $last) (local.get $first))) (i64.const 6)))))))
/// ```
///
/// A long range pays from the budget, 64 steps for a page: it is one instruction, and takes as long as many.
pub(crate) fn range_function(
    module: &mut Module,
    private: Private,
    Map { start, memory64, .. }: &Map,
    budget: Option<u32>,
    bits: u32,
    name: String,
) -> FunctionId {
    let (start, memory64) = (*start, *memory64);
    let ty = if memory64 { ValType::I64 } else { ValType::I32 };
    let [address, length] = [module.locals.add(ty), module.locals.add(ty)];
    let [first, last] = [module.locals.add(ValType::I32), module.locals.add(ValType::I32)];
    let mut builder = FunctionBuilder::new(&mut module.types, &[ty, ty], &[]);
    builder.name(name);
    let mut function = builder.local_func(vec![address, length]);
    let mut some = Code::new();
    get(&mut some, address);
    page(&mut some, memory64, 0, bits);
    set(&mut some, first);
    get(&mut some, address);
    get(&mut some, length);
    page_of_last(&mut some, memory64, bits);
    set(&mut some, last);
    for end in [first, last] {
        get(&mut some, end);
        i32_const(&mut some, 1);
        private.store(&mut some, Width::Byte, start);
    }
    get(&mut some, last);
    get(&mut some, first);
    binop(&mut some, BinaryOp::I32Sub);
    i32_const(&mut some, 1);
    binop(&mut some, BinaryOp::I32GtU);
    let mut many = fill(private, start, first, last);
    if let Some(budget) = budget {
        let scratch = module.locals.add(ValType::I64);
        private.pay(&mut function, &mut many, (budget, scratch), |code| {
            get(code, last);
            get(code, first);
            binop(code, BinaryOp::I32Sub);
            unop(code, UnaryOp::I64ExtendUI32);
            i64_const(code, PAGE_STEPS.trailing_zeros().into());
            binop(code, BinaryOp::I64Shl);
        });
    }
    if_then(&mut function, &mut some, many);
    let mut code = Code::new();
    get(&mut code, length);
    if memory64 {
        unop(&mut code, UnaryOp::I64Eqz);
        unop(&mut code, UnaryOp::I32Eqz);
    }
    if_then(&mut function, &mut code, some);
    let entry = function.entry_block();
    function.block_mut(entry).instrs = code;
    module.funcs.add_local(function)
}

/// `address length -- page`: the page of the last byte of a range that is not empty.
fn page_of_last(code: &mut Code, memory64: bool, bits: u32) {
    match memory64 {
        false => {
            binop(code, BinaryOp::I32Add);
            i32_const(code, 1);
            binop(code, BinaryOp::I32Sub);
        }
        true => {
            binop(code, BinaryOp::I64Add);
            i64_const(code, 1);
            binop(code, BinaryOp::I64Sub);
        }
    }
    page(code, memory64, 0, bits);
}

/// Marks the pages from `first` up to but not including `last`.
fn fill(private: Private, start: u32, first: LocalId, last: LocalId) -> Code {
    let mut code = Code::new();
    get(&mut code, first);
    i32_const(&mut code, start);
    binop(&mut code, BinaryOp::I32Add);
    i32_const(&mut code, 1);
    get(&mut code, last);
    get(&mut code, first);
    binop(&mut code, BinaryOp::I32Sub);
    push(&mut code, MemoryFill { memory: private.0 });
    code
}
