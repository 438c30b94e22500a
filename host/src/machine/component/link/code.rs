//! Writes functions anew, with the indices of the linked module, and notes where each instruction was.

use wasm_encoder as we;
use wasm_encoder::reencode::{Reencode, utils};
use wasmparser::{FunctionBody, Operator};

use spelunk_instrumenter::Origins;
/// The indices that the items of an instance have in the linked module.
#[derive(Default)]
pub(super) struct Instance {
    pub(super) functions: Vec<u32>,
    pub(super) tables: Vec<u32>,
    pub(super) memories: Vec<u32>,
    pub(super) globals: Vec<u32>,
    pub(super) tags: Vec<u32>,
    /// The first of each.
    pub(super) types: u32,
    pub(super) data: u32,
    pub(super) elements: u32,
    pub(super) start: Option<u32>,
    /// Functions that code takes references of.
    pub(super) referenced: Vec<u32>,
}

type Encoded<T> = Result<T, we::reencode::Error<std::convert::Infallible>>;

impl Reencode for Instance {
    type Error = std::convert::Infallible;

    fn function_index(&mut self, index: u32) -> Encoded<u32> {
        Ok(self.functions[index as usize])
    }

    fn table_index(&mut self, index: u32) -> Encoded<u32> {
        Ok(self.tables[index as usize])
    }

    fn memory_index(&mut self, index: u32) -> Encoded<u32> {
        Ok(self.memories[index as usize])
    }

    fn global_index(&mut self, index: u32) -> Encoded<u32> {
        Ok(self.globals[index as usize])
    }

    fn tag_index(&mut self, index: u32) -> Encoded<u32> {
        Ok(self.tags[index as usize])
    }

    fn type_index(&mut self, index: u32) -> Encoded<u32> {
        Ok(index + self.types)
    }

    fn data_index(&mut self, index: u32) -> Encoded<u32> {
        Ok(index + self.data)
    }

    fn element_index(&mut self, index: u32) -> Encoded<u32> {
        Ok(index + self.elements)
    }

    fn instruction<'a>(&mut self, operator: Operator<'a>) -> Encoded<we::Instruction<'a>> {
        if let Operator::RefFunc { function_index } = operator {
            self.referenced.push(self.functions[function_index as usize]);
        }
        utils::instruction(self, operator)
    }
}

impl Instance {
    /// Adds a function to the code. What `origins` is told counts from the beginning of the content of the section without the number
    /// of functions, which stands before them; with it is where the module begins in the component.
    pub(super) fn add_body(
        &mut self,
        code: &mut we::CodeSection,
        body: &FunctionBody<'_>,
        origins: Option<(&mut Origins, u32)>,
    ) -> Encoded<()> {
        let mut function = self.new_function_with_parsed_locals(body)?;
        let mut reader = body.get_operators_reader()?;
        let mut places = Vec::new();
        while !reader.eof() {
            if origins.is_some() {
                places.push((function.byte_len() as u32, reader.original_position() as u32));
            }
            let instruction = self.parse_instruction(&mut reader)?;
            function.instruction(&instruction);
        }
        let before = code.byte_len() as u32;
        code.function(&function);
        if let Some((origins, module)) = origins {
            // The length of the function stands before it.
            let begin = code.byte_len() as u32 - function.byte_len() as u32;
            debug_assert!(begin > before);
            places.into_iter().for_each(|(at, from)| origins.push(begin + at, module + from));
        }
        Ok(())
    }
}
