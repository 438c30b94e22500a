//! Data and elements, where they must be in place in an order of their own.
//!
//! All active segments of a module are in place before its start function runs. Of several instances one may start before the segments
//! of the next are in place. Then they become passive, and a start function of the linked module puts them there and starts the
//! instances in their order.

use wasm_encoder as we;
use wasm_encoder::Encode;
use wasm_encoder::reencode::{Reencode, utils};
use wasmparser::{DataKind, DataSectionReader, ElementItems, ElementKind, ElementSectionReader};

use super::code::Instance;

type Encoded<T> = Result<T, we::reencode::Error<std::convert::Infallible>>;

/// What a start function does.
#[derive(Default)]
pub(super) struct Starting {
    code: Vec<u8>,
}

impl Starting {
    fn push(&mut self, instruction: &we::Instruction<'_>) {
        instruction.encode(&mut self.code);
    }

    fn value(&mut self, instance: &mut Instance, value: wasmparser::ConstExpr<'_>) -> Encoded<()> {
        let mut operators = value.get_operators_reader();
        while !operators.is_end_then_eof() {
            let instruction = instance.parse_instruction(&mut operators)?;
            self.push(&instruction);
        }
        Ok(())
    }

    pub(super) fn call(&mut self, function: u32) {
        self.push(&we::Instruction::Call(function));
    }

    pub(super) fn function(&self) -> we::Function {
        let mut function = we::Function::new([]);
        function.raw(self.code.iter().copied());
        function.instructions().end();
        function
    }

    pub(super) fn add_elements(
        &mut self,
        instance: &mut Instance,
        elements: &mut we::ElementSection,
        section: ElementSectionReader<'_>,
    ) -> Encoded<()> {
        for element in section {
            let element = element?;
            let len = match &element.items {
                ElementItems::Functions(functions) => functions.count(),
                ElementItems::Expressions(_, expressions) => expressions.count(),
            };
            let items = utils::element_items(instance, element.items)?;
            let elem_index = elements.len();
            match element.kind {
                ElementKind::Declared => {
                    elements.declared(items);
                }
                ElementKind::Passive => {
                    elements.passive(items);
                }
                ElementKind::Active { table_index, offset_expr } => {
                    elements.passive(items);
                    self.value(instance, offset_expr)?;
                    let table = instance.tables[table_index.unwrap_or(0) as usize];
                    self.push(&we::Instruction::I32Const(0));
                    self.push(&we::Instruction::I32Const(len as i32));
                    self.push(&we::Instruction::TableInit { elem_index, table });
                    self.push(&we::Instruction::ElemDrop(elem_index));
                }
            }
        }
        Ok(())
    }

    pub(super) fn add_data(
        &mut self,
        instance: &mut Instance,
        data: &mut we::DataSection,
        section: DataSectionReader<'_>,
    ) -> Encoded<()> {
        for segment in section {
            let segment = segment?;
            let data_index = data.len();
            data.passive(segment.data.iter().copied());
            if let DataKind::Active { memory_index, offset_expr } = segment.kind {
                self.value(instance, offset_expr)?;
                let mem = instance.memories[memory_index as usize];
                self.push(&we::Instruction::I32Const(0));
                self.push(&we::Instruction::I32Const(segment.data.len() as i32));
                self.push(&we::Instruction::MemoryInit { mem, data_index });
                self.push(&we::Instruction::DataDrop(data_index));
            }
        }
        Ok(())
    }
}
