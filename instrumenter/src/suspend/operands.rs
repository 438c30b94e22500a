//! What lies on the operand stack where a function may be left. walrus does not say, so the original is validated once more.

use super::reach::Reach;
use crate::refuse::FEATURES;
use anyhow::Result;
use std::collections::HashMap;
use walrus::{Module, ValType};
use wasmparser::{FuncToValidate, FuncValidator, FuncValidatorAllocations, FunctionBody, Operator};
use wasmparser::{Parser, ValidPayload, Validator, ValidatorResources};

/// By the offset of a call, or of what begins a block: the operands of the block that it is in, the lowest first, with those
/// that it takes itself. `None` stands for a reference.
#[derive(Default)]
pub(super) struct Operands(HashMap<u32, Vec<Option<ValType>>>);

impl Operands {
    /// Those of all functions that may be left.
    pub(super) fn of(wasm: &[u8], module: &Module, reach: &Reach) -> Result<Operands> {
        let mut wanted = vec![false; module.funcs.iter().count()];
        module.funcs.iter_local().for_each(|(id, _)| wanted[id.index()] = reach.function(id));
        let mut operands = Operands::default();
        let mut validator = Validator::new_with_features(FEATURES);
        let mut parser = Parser::new(0);
        parser.set_features(FEATURES);
        for payload in parser.parse_all(wasm) {
            if let ValidPayload::Func(function, body) = validator.payload(&payload?)?
                && wanted[function.index as usize]
            {
                operands.read(function, &body)?;
            }
        }
        Ok(operands)
    }

    fn read(&mut self, function: FuncToValidate<ValidatorResources>, body: &FunctionBody<'_>) -> Result<()> {
        let mut validator = function.into_validator(FuncValidatorAllocations::default());
        validator.read_locals(&mut body.get_binary_reader())?;
        let mut reader = body.get_operators_reader()?;
        while !reader.eof() {
            let offset = reader.original_position();
            let operator = reader.read()?;
            if is_of_interest(&operator)
                && let Some(types) = operands(&validator)
            {
                self.0.insert(offset as u32, types);
            }
            validator.op(offset, &operator)?;
        }
        Ok(())
    }

    /// The operands at an offset; none where the place is never reached.
    pub(super) fn at(&self, offset: u32) -> Option<&[Option<ValType>]> {
        self.0.get(&offset).map(Vec::as_slice)
    }
}

fn is_of_interest(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::Call { .. }
            | Operator::CallIndirect { .. }
            | Operator::CallRef { .. }
            | Operator::Block { .. }
            | Operator::Loop { .. }
            | Operator::If { .. }
    )
}

/// The operands of the innermost block; none where it is not reached.
fn operands(validator: &FuncValidator<ValidatorResources>) -> Option<Vec<Option<ValType>>> {
    let frame = validator.get_control_frame(0).filter(|frame| !frame.unreachable)?;
    let height = validator.operand_stack_height() as usize - frame.height;
    let types =
        (0..height).rev().map(|depth| validator.get_operand_type(depth).flatten().and_then(value_type));
    Some(types.collect())
}

fn value_type(ty: wasmparser::ValType) -> Option<ValType> {
    Some(match ty {
        wasmparser::ValType::I32 => ValType::I32,
        wasmparser::ValType::I64 => ValType::I64,
        wasmparser::ValType::F32 => ValType::F32,
        wasmparser::ValType::F64 => ValType::F64,
        wasmparser::ValType::V128 => ValType::V128,
        wasmparser::ValType::Ref(_) => return None,
    })
}
