//! Lets a function stop in the middle, and go on from there later, so that a guest can have threads.
//!
//! The imports `spelunk.suspend` and `spelunk.resume` become functions of the module. `resume` calls what a record in memory 0
//! names, on a stack of its own. When that calls `suspend`, each function on the way writes down the locals that
//! still matter and where it was, and returns; so does `resume`. The next `resume` of that record calls the same
//! functions again: each reads back its locals and goes to where it was, until `suspend` returns.
//!
//! ```wat
//! (func $f (param $a i32)            (func $f (param $a i32)
//!                                      (local $at i32)
//!                                      (local.set $at (i32.const -1))
//!                                      (if (i32.eq STATE (i32.const 2)) (then  ;; read back
//!                                        $at, $a = … FRAMES …))
//!                                      (block $unwind
//!                                        (block $0
//!                                          (br_if $0 (i32.ge_s (local.get $at) (i32.const 0)))
//!   …                                      …)
//!   (call $g)                  =>        (local.set $at (i32.const -1))
//!                                        (call $g)
//!                                        (if STATE (then (local.set $at (i32.const 0)) (br $unwind)))
//!   (drop (local.get $a))                (drop (local.get $a))
//!                                        (return))
//!                                      FRAMES … = 0, $a                      ;; write down
//! )                                  )
//! ```
//!
//! Only functions from which `suspend` may be reached are changed. What is written down is in memory 0, below the stack of the
//! thread, so it belongs to the state as all memory does, and no frame is live between steps. What is left over there is wiped
//! when a thread stops: equal states are equal bytes.
//!
//! | file | what |
//! |---|---|
//! | `reach` | the functions that are changed |
//! | `operands`, `live` | what a call leaves on the operand stack, and which locals matter after it |
//! | `split`, `frame` | the code of such a function |
//! | `runtime` | `suspend`, `resume`, and the bounds of stacks |

mod frame;
mod live;
mod operands;
mod reach;
mod runtime;
mod split;

pub use runtime::SUSPEND_BYTES;

use crate::code::{Private, offset_of};
use crate::layout::Allocator;
use crate::names::FunctionName;
use anyhow::{Result, bail, ensure};
use operands::Operands;
use reach::Reach;
use runtime::Runtime;
use split::Split;
use std::collections::{BTreeSet, HashSet};
use walrus::ir::*;
use walrus::{FunctionId, ImportKind, LocalFunction, Module, ValType};

/// Blocks that nest deeper are refused: they are gone through by functions that call themselves.
const NESTING_MAX: usize = 1000;

/// Puts functions of the module in the place of `suspend` and `resume`. Gives back where in private memory their state is, if it
/// imports one of them.
///
/// # Errors
/// What the module does cannot be stopped in the middle.
pub(crate) fn replace(
    module: &mut Module,
    wasm: &[u8],
    private: Private,
    allocator: &mut Allocator,
    names: &[FunctionName],
) -> Result<Option<u32>> {
    let suspend = import(module, "suspend", &[], &[])?;
    let resume = import(module, "resume", &[ValType::I32], &[ValType::I32])?;
    if suspend.is_none() && resume.is_none() {
        return Ok(None);
    }
    refuse(module)?;
    let reach = Reach::of(module, suspend);
    let operands = Operands::of(wasm, module, &reach)?;
    let runtime = Runtime::new(module, private, allocator)?;
    let mut split = Split::new(&reach, &operands, &runtime);
    let functions: Vec<FunctionId> = module.funcs.iter_local().map(|(id, _)| id).collect();
    for id in functions.into_iter().filter(|id| reach.function(*id)) {
        let name = &names[id.index()].name;
        let shape = Shape::of(module.funcs.get(id).kind.unwrap_local(), &reach, name)?;
        split.function(module, id, &shape, name)?;
    }
    runtime.bound_stacks(module);
    runtime.add(module, suspend, resume)?;
    Ok(Some(runtime.record()))
}

/// The function that a module imports from us by this name.
fn import(
    module: &Module,
    name: &str,
    params: &[ValType],
    results: &[ValType],
) -> Result<Option<FunctionId>> {
    let mut found = None;
    for import in module.imports.iter().filter(|import| import.module == "spelunk" && import.name == name) {
        let ImportKind::Function(id) = import.kind else {
            bail!("`{name}` from `spelunk` is a function");
        };
        let ty = module.types.get(module.funcs.get(id).ty());
        ensure!(
            ty.params() == params && ty.results() == results,
            "the module imports `{name}` from `spelunk` as {:?} -> {:?}; it is {params:?} -> {results:?}",
            ty.params(),
            ty.results()
        );
        ensure!(found.is_none(), "the module imports `{name}` from `spelunk` twice; import it once");
        found = Some(id);
    }
    Ok(found)
}

/// Refuses what a thread cannot be stopped in.
fn refuse(module: &Module) -> Result<()> {
    ensure!(
        module.tags.iter().next().is_none(),
        "a module with threads (it imports `suspend` or `resume`) cannot use exceptions; build it so that a panic aborts"
    );
    for import in module.imports.iter().filter(|import| matches!(import.kind, ImportKind::Function(_))) {
        let known = ["spelunk", "spelunk:zero", "spelunk:drawn", "wasi_snapshot_preview1"];
        ensure!(
            known.contains(&import.module.as_str()),
            "a module with threads (it imports `suspend` or `resume`) may import functions from `spelunk` and \
             `wasi_snapshot_preview1` alone, since others may call it back; it imports `{}` from `{}`",
            import.name,
            import.module
        );
    }
    Ok(())
}

/// What is in a function that may be left.
struct Shape {
    /// The offsets of the calls in which it may be.
    calls: BTreeSet<u32>,
    loops: Vec<InstrSeqId>,
    /// The sequences that such calls are in.
    split: HashSet<InstrSeqId>,
}

impl Shape {
    fn of(function: &LocalFunction, reach: &Reach, name: &str) -> Result<Shape> {
        let mut shape = Shape { calls: BTreeSet::new(), loops: Vec::new(), split: HashSet::new() };
        shape.sequence(function, function.entry_block(), reach, (name, 0))?;
        Ok(shape)
    }

    /// Whether a call is in this sequence.
    fn sequence(
        &mut self,
        function: &LocalFunction,
        seq: InstrSeqId,
        reach: &Reach,
        (name, depth): (&str, usize),
    ) -> Result<bool> {
        ensure!(
            depth <= NESTING_MAX,
            "`{name}` may be left in the middle (it may reach `suspend`), and its blocks nest deeper than {NESTING_MAX}"
        );
        let mut is_split = false;
        for (instr, location) in &function.block(seq).instrs {
            if reach.call(instr) {
                is_splittable(instr, name)?;
                self.calls.insert(offset_of(*location));
                is_split = true;
            }
            if let Instr::Loop(Loop { seq }) = instr {
                self.loops.push(*seq);
            }
            for inner in inner(instr) {
                is_split |= self.sequence(function, inner, reach, (name, depth + 1))?;
            }
        }
        if is_split {
            self.split.insert(seq);
        }
        Ok(is_split)
    }

    /// Whether a function may be left in this instruction.
    fn is_split(&self, instr: &Instr, location: InstrLocId) -> bool {
        let is_call = matches!(instr, Instr::Call(_) | Instr::CallIndirect(_));
        is_call && self.calls.contains(&offset_of(location))
            || inner(instr).into_iter().any(|seq| self.split.contains(&seq))
    }
}

fn is_splittable(instr: &Instr, name: &str) -> Result<()> {
    let what = match instr {
        Instr::Call(_) | Instr::CallIndirect(_) => return Ok(()),
        Instr::CallRef(_) => "calls through a reference",
        _ => "makes a tail call",
    };
    bail!(
        "`{name}` {what}, and may be left in the middle there (it may reach `suspend`); build the module without that"
    )
}

/// The sequences that an instruction holds.
fn inner(instr: &Instr) -> Vec<InstrSeqId> {
    match instr {
        Instr::Block(Block { seq }) | Instr::Loop(Loop { seq }) => vec![*seq],
        Instr::IfElse(IfElse { consequent, alternative }) => vec![*consequent, *alternative],
        _ => Vec::new(),
    }
}
