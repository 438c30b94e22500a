//! Whether code names a constant address of memory 0. Of each function body the constants on the operand stack are followed,
//! and those that a local was set to within a straight line of code.

use std::collections::HashMap;
use std::ops::Range;

use wasmparser::{
    FuncValidator, FuncValidatorAllocations, MemArg, Operator, Parser, Payload, ValidPayload, Validator,
    ValidatorResources, WasmFeatures,
};

/// Whether any load or store of `wasm` is at a constant address in `range`; `None` of a module that is not valid.
pub(super) fn are_in(wasm: &[u8], range: Range<u32>) -> Option<bool> {
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let mut allocations = FuncValidatorAllocations::default();
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload.ok()?;
        if let Payload::CustomSection(_) = payload {
            continue;
        }
        if let ValidPayload::Func(function, body) = validator.payload(&payload).ok()? {
            let mut function = function.into_validator(allocations);
            let mut reader = body.get_binary_reader();
            function.read_locals(&mut reader).ok()?;
            let mut operators = wasmparser::OperatorsReader::new(reader);
            let mut known = Known::default();
            while !operators.eof() {
                let (operator, offset) = operators.read_with_offset().ok()?;
                if known.is_in(&function, &operator, &range)? {
                    return Some(true);
                }
                function.op(offset, &operator).ok()?;
                known.settle(function.operand_stack_height());
            }
            allocations = function.into_allocations();
        }
    }
    Some(false)
}

/// What is known at a place in a function.
#[derive(Default)]
struct Known {
    /// The constant that each operand is.
    operands: Vec<Option<u32>>,
    /// The constants that locals are.
    locals: HashMap<u32, u32>,
}

impl Known {
    /// Follows an operator; whether it loads or stores at a constant address in `range`.
    fn is_in(
        &mut self,
        function: &FuncValidator<ValidatorResources>,
        operator: &Operator<'_>,
        range: &Range<u32>,
    ) -> Option<bool> {
        let (takes, gives) = operator.operator_arity(function)?;
        // In code that is never reached there may be fewer.
        let first = self.operands.len().saturating_sub(takes as usize);
        let taken = &self.operands[first..];
        let is_in = match operator {
            Operator::MemoryFill { mem: 0 } => is_span_in(taken, 0, range),
            Operator::MemoryInit { mem: 0, .. } => is_span_in(taken, 0, range),
            Operator::MemoryCopy { dst_mem, src_mem } => {
                (*dst_mem == 0 && is_span_in(taken, 0, range))
                    || (*src_mem == 0 && is_span_in(taken, 1, range))
            }
            _ => match (memarg(operator), taken.first()) {
                (Some(MemArg { offset, memory: 0, .. }), Some(Some(base))) => {
                    let at = u64::from(*base) + offset;
                    // No access is wider than 16 bytes.
                    at + 16 > range.start.into() && at < range.end.into() && !ends_before(operator, at, range)
                }
                _ => false,
            },
        };
        let value = match operator {
            Operator::I32Const { value } => Some(*value as u32),
            Operator::LocalGet { local_index } => self.locals.get(local_index).copied(),
            Operator::LocalTee { .. } => taken.first().copied().flatten(),
            _ => None,
        };
        match operator {
            Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                match taken.first().copied().flatten() {
                    Some(value) => self.locals.insert(*local_index, value),
                    None => self.locals.remove(local_index),
                };
            }
            Operator::Block { .. }
            | Operator::Loop { .. }
            | Operator::If { .. }
            | Operator::Else
            | Operator::End => self.locals.clear(),
            _ => {}
        }
        self.operands.truncate(first);
        self.operands.extend((0..gives).map(|_| value));
        Some(is_in)
    }

    /// Takes over how many operands there are: control flow may drop some, and gives values that are not known.
    fn settle(&mut self, height: u32) {
        self.operands.resize(height as usize, None);
    }
}

/// Whether a load or store at `at`, which begins before `range`, ends before it too.
fn ends_before(operator: &Operator<'_>, at: u64, range: &Range<u32>) -> bool {
    let Some(memarg) = memarg(operator) else { return false };
    // The greatest alignment is how wide the access is.
    at + (1 << memarg.max_align) <= range.start.into()
}

/// Whether the bytes from operand `index`, as many as operand 2 says, are in `range`, where the first is constant.
fn is_span_in(taken: &[Option<u32>], index: usize, range: &Range<u32>) -> bool {
    let Some(Some(start)) = taken.get(index).copied() else { return false };
    let len = taken.get(2).copied().flatten().unwrap_or(1).max(1);
    start < range.end && u64::from(start) + u64::from(len) > range.start.into()
}

/// What a load, a store or an atomic operator says of its address.
fn memarg(operator: &Operator<'_>) -> Option<MemArg> {
    macro_rules! pick {
        () => { None };
        (memarg $memarg:ident $($rest:ident)*) => { Some(*$memarg) };
        ($name:ident $value:ident $($rest:ident)*) => { pick!($($rest)*) };
    }
    macro_rules! of {
        ($(@$proposal:ident $op:ident $({ $($arg:ident: $ty:ty),* })? => $visit:ident ($($ann:tt)*))*) => {
            match operator {
                $(#[allow(unused_variables)] Operator::$op $({ $($arg),* })? => pick!($($($arg $arg)*)?),)*
                _ => None,
            }
        };
    }
    wasmparser::for_each_operator!(of)
}
