//! The code of a module, function by function: which instruction comes from which line, and where it branches.

use std::ops::Range;

use wasmparser::{BinaryReader, FunctionBody, Operator};

use super::rows::{Path, Rows};
use super::{Module, Symbols, library, names, path};

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceFile {
    /// A short path, which is the same in every checkout.
    pub shown: String,
    /// The path as the compiler had it.
    pub compiled: String,
    /// Whether it belongs to a library that comes with a language or with Spelunk.
    pub is_library: bool,
}

/// A function, and its instructions in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeFunction {
    /// Its index in the module.
    pub index: u32,
    /// Demangled, or `func[INDEX]` where it has no name.
    pub name: String,
    /// Whether its name is that of a library that comes with a language or with Spelunk.
    pub is_library: bool,
    /// Where its body begins in the file.
    pub start: u32,
    /// Its code.
    pub instructions: Vec<Instruction>,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instruction {
    /// In the file.
    pub offset: u32,
    /// What it does, as far as that matters here.
    pub kind: InstructionKind,
    /// What it comes from, where that is known.
    pub statement: Option<Statement>,
    /// Whether control that comes here is bound to end the run by `unreachable`: nothing branches before.
    pub ends: bool,
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionKind {
    /// It says where a block begins or ends.
    Mark,
    /// It goes one of several ways.
    Branch,
    /// Anything else.
    Plain,
}

/// Instructions that come from one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Names it.
    pub id: (u32, u32),
    /// The index of its file in [`Code::files`].
    pub file: u32,
    /// From 1.
    pub line: u32,
    /// Whether it is where a statement of the source begins.
    pub begins: bool,
}

/// The code of a module.
pub struct Code<'s> {
    symbols: &'s Symbols,
    /// Of each module that it is made of.
    rows: Vec<Rows>,
    /// By module, where its files are in `files`.
    files_of: Vec<Vec<u32>>,
    /// The source files.
    pub files: Vec<SourceFile>,
    /// Some debug information could not be read, or is too much to be read.
    pub is_cut: bool,
}

impl Symbols {
    /// The code, with all that debug information says of its lines.
    pub fn code(&self) -> Code<'_> {
        let rows: Vec<Rows> = match &self.parts {
            Some(parts) => parts.modules.iter().map(Symbols::rows).collect(),
            None => vec![self.rows()],
        };
        let mut all: Vec<Path> = rows.iter().flat_map(|rows| rows.files.iter().cloned()).collect();
        all.sort_unstable();
        all.dedup();
        let index = |path: &Path| all.binary_search(path).unwrap_or(0) as u32;
        let files_of = rows.iter().map(|rows| rows.files.iter().map(index).collect()).collect();
        let folders = self.folders();
        let source = |(compiled, folder): &Path| SourceFile {
            shown: path::shown(compiled, folder, &folders),
            compiled: path::normal(compiled),
            is_library: path::is_library(compiled),
        };
        let files = all.iter().map(source).collect();
        let is_cut = rows.iter().any(|rows| rows.is_cut);
        Code { symbols: self, rows, files_of, files, is_cut }
    }

    /// Whether a table of lines is there to be read.
    pub fn has_lines(&self) -> bool {
        let has = |symbols: &Symbols| {
            symbols.module().debug.iter().any(|(name, at)| name == ".debug_line" && !at.is_empty())
        };
        self.parts.as_ref().map_or_else(|| has(self), |parts| parts.modules.iter().any(has))
    }

    fn rows(&self) -> Rows {
        Rows::read(&self.wasm, self.module())
    }

    #[cfg(test)]
    pub(super) fn code_rows(&self) -> Rows {
        self.rows()
    }

    /// Whether it, or a part of it, was built of a harness.
    fn is_harness(&self) -> bool {
        let parts = self.parts.iter().flat_map(|parts| &parts.modules);
        self.module().is_harness || parts.map(Symbols::module).any(|module| module.is_harness)
    }

    /// What the name section calls a function, demangled.
    fn name_of(&self, function: u32) -> Option<String> {
        self.module().name(function).map(names::demangled)
    }
}

impl Code<'_> {
    /// The functions that are not imported, one by one, but those of `#[harness]` that no step of a run calls.
    pub fn functions(&self) -> impl Iterator<Item = CodeFunction> {
        let is_harness = self.symbols.is_harness();
        let functions = self.symbols.module().bodies().map(|(index, body)| self.function(index, body));
        functions.filter(move |function| !(is_harness && library::is_beside_steps(&function.name)))
    }

    fn function(&self, index: u32, body: Range<usize>) -> CodeFunction {
        let module = self.symbols.module();
        let bytes = self.symbols.wasm.get(body.clone()).unwrap_or_default();
        let mut instructions = Vec::new();
        let operators = FunctionBody::new(BinaryReader::new(bytes, body.start)).get_operators_reader();
        for (operator, offset) in
            operators.into_iter().flat_map(|reader| reader.into_iter_with_offsets()).map_while(Result::ok)
        {
            let kind = match operator {
                Operator::If { .. } | Operator::BrIf { .. } | Operator::BrTable { .. } => {
                    InstructionKind::Branch
                }
                Operator::Block { .. }
                | Operator::Loop { .. }
                | Operator::Else
                | Operator::End
                | Operator::Nop => InstructionKind::Mark,
                _ => InstructionKind::Plain,
            };
            let ends = matches!(operator, Operator::Unreachable);
            let statement = self.statement(module, index, offset);
            instructions.push(Instruction { offset: offset as u32, kind, statement, ends });
        }
        // The last `end` returns.
        if let Some(last) = instructions.last_mut() {
            last.kind = InstructionKind::Plain;
        }
        self.close(&mut instructions, bytes, body.start);
        let name = self.name(index, instructions.first().map_or(0, |first| first.offset));
        let is_library =
            library::is_library(&name, instructions.iter().all(|instr| instr.statement.is_none()));
        CodeFunction { index, name, is_library, start: body.start as u32, instructions }
    }

    /// Says of each instruction whether it leads to an `unreachable`, without any branch before.
    fn close(&self, instructions: &mut [Instruction], bytes: &[u8], start: usize) {
        for index in (0..instructions.len().saturating_sub(1)).rev() {
            let [this, next] = &instructions[index..index + 2] else { continue };
            let opcode = bytes.get((this.offset as usize).saturating_sub(start)).copied();
            let goes_on = this.kind != InstructionKind::Branch && opcode.is_some_and(goes_on);
            instructions[index].ends = this.ends || goes_on && next.ends;
        }
    }

    fn statement(&self, module: &Module, function: u32, offset: usize) -> Option<Statement> {
        let of_code = offset.checked_sub(module.code)? as u32;
        let (part, address) = match &self.symbols.parts {
            Some(parts) => {
                let (part, _, offset) = parts.origins.locate(function, of_code)?;
                (part, offset.checked_sub(parts.modules.get(part)?.module().code as u32)?)
            }
            None => (0, of_code),
        };
        let (index, row) = self.rows.get(part)?.at(address)?;
        let file = *self.files_of.get(part)?.get(row.file? as usize)?;
        Some(Statement { id: (part as u32, index as u32), file, line: row.line, begins: row.begins })
    }

    fn name(&self, function: u32, offset: u32) -> String {
        let unnamed = || format!("func[{function}]");
        if self.symbols.parts.is_none()
            && let Some(name) = self.symbols.name_of(function)
        {
            return name;
        }
        if let Some(parts) = &self.symbols.parts {
            let of_code = (offset as usize).saturating_sub(self.symbols.module().code) as u32;
            let Some((part, own, _)) = parts.origins.locate(function, of_code) else { return unnamed() };
            let name = parts.modules.get(part).and_then(|module| module.name_of(own));
            let prefix = if part == 0 { String::new() } else { format!("{} ", parts.prefix) };
            return name.unwrap_or_else(|| format!("{prefix}func[{own}]"));
        }
        // Debug information may say more than the section of names.
        self.symbols.frames(function, offset).last().map_or_else(unnamed, |frame| frame.function.clone())
    }
}

/// Whether what follows an instruction with this opcode is executed after it, if it does not trap: not after `else`, `br`, `return`
/// and tail calls, and not after `throw`.
fn goes_on(opcode: u8) -> bool {
    !matches!(opcode, 0x00 | 0x05 | 0x08 | 0x0a | 0x0c..=0x0f | 0x12 | 0x13 | 0x15 | 0xd5 | 0xd6)
}
