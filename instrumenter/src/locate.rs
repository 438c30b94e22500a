//! From an offset in the instrumented file back to the original.
//!
//! walrus orders functions by size, so both indices and offsets change. It hands its own record of that to
//! custom sections as it writes them; a section that we add, and cut off again, keeps a copy.

use crate::names::FunctionName;
use rayon::slice::ParallelSliceMut;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use walrus::ir::{BinaryOp, Binop, Instr, InstrLocId, InstrSeqId};
use walrus::{CodeTransform, CustomSection, FunctionId, IdsToIndices, LocalFunction, Module};

/// Where the code of the instrumented module comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeMap {
    /// By emitted index: the original index, none for functions that instrumenting added.
    functions: Vec<Option<u32>>,
    /// By original index: its name, where the module gives one.
    names: Vec<Option<String>>,
    /// By emitted index: where the function's code begins and ends.
    bodies: Vec<(u32, u32)>,
    /// Emitted and original offset of each original instruction that can trap, call or branch, in order.
    offsets: Vec<(u32, u32)>,
}

/// A place in the original module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// Index of the function.
    pub function: u32,
    /// Its demangled name, where the module gives one.
    pub name: Option<String>,
    /// Offset of the instruction in the file.
    pub offset: u32,
}

impl CodeMap {
    /// Where the instruction at an offset of the instrumented file, in the function of that index there, comes
    /// from; for added code, and for instructions that can neither trap nor call nor branch, the one before
    /// that can. None for added functions and imports, and
    /// where the two do not belong together.
    pub fn locate(&self, function_index_in_emitted: u32, offset_in_emitted: u32) -> Option<Location> {
        let index = function_index_in_emitted as usize;
        let function = (*self.functions.get(index)?)?;
        let (start, end) = *self.bodies.get(index)?;
        if !(start..end).contains(&offset_in_emitted) {
            return None;
        }
        let of_function = |at: &&(u32, u32)| (start..end).contains(&at.0);
        let after = self.offsets.partition_point(|at| at.0 <= offset_in_emitted);
        let before = self.offsets[..after].last().filter(of_function);
        let (_, offset) = *before.or_else(|| self.offsets.get(after).filter(of_function))?;
        let name = self.names.get(function as usize)?.clone();
        Some(Location { function, name, offset })
    }

    /// The original index of a function of the instrumented module; none for added ones.
    pub fn function(&self, function_index_in_emitted: u32) -> Option<u32> {
        *self.functions.get(function_index_in_emitted as usize)?
    }
}

/// The custom section that eavesdrops.
#[derive(Clone, Debug)]
struct Tap(Arc<Mutex<Heard>>);

#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// All functions, and their indices as they were written.
    pub(crate) functions: Vec<FunctionId>,
    pub(crate) indices: Vec<u32>,
    pub(crate) transform: CodeTransform,
}

const TAP: &str = "__spelunk:tap";
/// Its section: id, size, name length, name.
const TAP_BYTES: usize = 3 + TAP.len();

impl CustomSection for Tap {
    fn name(&self) -> &str {
        TAP
    }

    fn data(&self, indices: &IdsToIndices) -> Cow<'_, [u8]> {
        if let Ok(mut heard) = self.0.lock() {
            heard.indices = heard.functions.iter().map(|&id| indices.get_func_index(id)).collect();
        }
        Cow::Borrowed(&[])
    }

    fn apply_code_transform(&mut self, transform: &CodeTransform) {
        if let Ok(mut heard) = self.0.lock() {
            heard.transform.instruction_map = transform.instruction_map.clone();
            heard.transform.function_ranges = transform.function_ranges.clone();
        }
    }
}

/// Forgets where an instruction comes from if it can neither trap nor call nor branch: no one asks for it, and
/// walrus keeps a tree of those that are left.
pub(crate) fn forget(function: &mut LocalFunction, seqs: &[InstrSeqId]) {
    for &seq in seqs {
        for (instr, location) in &mut function.block_mut(seq).instrs {
            if is_silent(instr) {
                *location = InstrLocId::default();
            }
        }
    }
}

/// Whether an instruction is one of those that can neither trap nor call nor branch.
pub(crate) fn is_silent(instr: &Instr) -> bool {
    match instr {
        Instr::Binop(Binop { op }) => !matches!(
            op,
            BinaryOp::I32DivS
                | BinaryOp::I32DivU
                | BinaryOp::I32RemS
                | BinaryOp::I32RemU
                | BinaryOp::I64DivS
                | BinaryOp::I64DivU
                | BinaryOp::I64RemS
                | BinaryOp::I64RemU
        ),
        Instr::LocalGet(_)
        | Instr::LocalSet(_)
        | Instr::LocalTee(_)
        | Instr::GlobalGet(_)
        | Instr::GlobalSet(_)
        | Instr::Const(_)
        | Instr::Drop(_)
        | Instr::Select(_) => true,
        _ => false,
    }
}

/// Writes a module, whose first functions are those that `names` lists.
pub(crate) fn emit(module: &mut Module, names: &[FunctionName]) -> (Vec<u8>, CodeMap) {
    let (wasm, heard) = write(module);
    (wasm, code_map(heard, names))
}

/// Writes a module, and says where things went.
pub(crate) fn write(module: &mut Module) -> (Vec<u8>, Heard) {
    let functions = module.funcs.iter().map(|function| function.id()).collect();
    let tap = Tap(Arc::new(Mutex::new(Heard { functions, ..Heard::default() })));
    module.customs.add(tap.clone());
    let mut wasm = module.emit_wasm();
    wasm.truncate(wasm.len() - TAP_BYTES);
    let heard = tap.0.lock().map(|mut heard| std::mem::take(&mut *heard)).unwrap_or_default();
    (wasm, heard)
}

fn code_map(heard: Heard, names: &[FunctionName]) -> CodeMap {
    let mut functions = vec![None; heard.indices.len()];
    let mut bodies = vec![(0, 0); heard.indices.len()];
    for (original, &emitted) in heard.indices.iter().enumerate() {
        functions[emitted as usize] = (original < names.len()).then_some(original as u32);
    }
    for (id, range) in &heard.transform.function_ranges {
        bodies[heard.indices[id.index()] as usize] = (range.start as u32, range.end as u32);
    }
    let offset = |(original, emitted): &(walrus::InstrLocId, usize)| (*emitted as u32, original.data());
    let mut offsets: Vec<(u32, u32)> = heard.transform.instruction_map.iter().map(offset).collect();
    offsets.par_sort_unstable();
    let names = names.iter().map(|name| name.is_named.then(|| name.name.clone())).collect();
    CodeMap { functions, names, bodies, offsets }
}
