//! The target's memory ends where the harness begins.
//!
//! Allocators take the memory from the end of their variables on, or what they have grown it by, and some expect the two to
//! be one piece. So what the target is told of the size of the memory is that of its own part, which grows up to the harness:
//!
//! ```wat
//! (memory.size)      =>  (global.get $pages)
//! (memory.grow (n))  =>  (call $grow (n))
//! ```
//!
//! The memory grows by as much, so that whatever limits it or makes it fail does so here too.

use super::copy::Copies;
use super::place::Place;
use crate::code::{each_instr, sequences};
use anyhow::{Context, Result};
use walrus::ir::*;
use walrus::{
    ExportItem, FunctionId, GlobalId, GlobalKind, ImportKind, LocalFunction, MemoryId, Module, ValType,
};

/// What Emscripten's modules grow their memory by, to a number of bytes.
const RESIZE: &str = "emscripten_resize_heap";

/// Whether a module looks how large a memory is, or makes it larger.
pub(super) fn is_needed(module: &Module, memory: MemoryId) -> bool {
    let grows =
        |instr: &Instr| matches!(instr, Instr::MemoryGrow(MemoryGrow { memory: of }) if *of == memory);
    sizes(module, memory) || has(module, grows) || resize(module).is_some()
}

/// Whether a module looks how large a memory is.
pub(super) fn sizes(module: &Module, memory: MemoryId) -> bool {
    has(module, |instr| matches!(instr, Instr::MemorySize(MemorySize { memory: of }) if *of == memory))
}

fn has(module: &Module, is_one: impl Fn(&Instr) -> bool) -> bool {
    let has_one = |function: &LocalFunction| {
        let mut found = false;
        each_instr(function, |instr, _| found |= is_one(instr));
        found
    };
    module.funcs.iter_local().any(|(_, function)| has_one(function))
}

/// The import [`RESIZE`].
fn resize(module: &Module) -> Option<FunctionId> {
    module.imports.iter().find_map(|import| match import.kind {
        ImportKind::Function(id) if import.name == RESIZE => {
            let types = module.types.params_results(module.funcs.get(id).ty());
            (types == (&[ValType::I32], &[ValType::I32])).then_some(id)
        }
        _ => None,
    })
}

/// Gives the target the memory below the harness, and no more.
pub(super) fn confine(module: &mut Module, place: &Place) -> Result<()> {
    let is_sized = is_needed(module, place.memory);
    let memory = module.memories.get_mut(place.memory);
    let room = memory.maximum.map_or(place.room, |most| most.min(place.room));
    (memory.initial, memory.maximum) = (place.total, None);
    if !is_sized {
        return Ok(());
    }
    let functions: Vec<FunctionId> = module.funcs.iter_local().map(|(id, _)| id).collect();
    let (pages, grow, resized) = add(module, place, room)?;
    for id in functions {
        let function = module.funcs.get_mut(id).kind.unwrap_local_mut();
        for seq in sequences(function) {
            for (instr, _) in &mut function.block_mut(seq).instrs {
                match instr {
                    Instr::MemorySize(MemorySize { memory }) if *memory == place.memory => {
                        *instr = GlobalGet { global: pages }.into();
                    }
                    Instr::MemoryGrow(MemoryGrow { memory }) if *memory == place.memory => {
                        *instr = Call { func: grow }.into();
                    }
                    _ => {}
                }
            }
        }
    }
    if let Some(import) = resize(module) {
        module.replace_imported_func(import, |(body, args)| {
            body.local_get(args[0]).call(resized);
        })?;
    }
    Ok(())
}

/// Adds the size of the target's part, what makes it grow, and what does that for Emscripten.
fn add(module: &mut Module, place: &Place, room: u64) -> Result<(GlobalId, FunctionId, FunctionId)> {
    let text = format!(
        r#"(module
          (import "target" "memory" (memory 0))
          (global (export "pages") (mut i32) (i32.const {}))
          (func $grow (export "memory.grow") (param $by i32) (result i32)
            (if (i32.gt_u (local.get $by) (i32.sub (i32.const {room}) (global.get 0)))
              (then (return (i32.const -1))))
            (if (i32.eq (memory.grow (local.get $by)) (i32.const -1))
              (then (return (i32.const -1))))
            (global.get 0)
            (global.set 0 (i32.add (global.get 0) (local.get $by))))
          (func (export "{RESIZE}") (param $bytes i32) (result i32) (local $wanted i32)
            (local.set $wanted (i32.add
              (i32.shr_u (local.get $bytes) (i32.const 16))
              (i32.ne (i32.and (local.get $bytes) (i32.const 0xffff)) (i32.const 0))))
            (if (result i32) (i32.le_u (local.get $wanted) (global.get 0))
              (then (i32.const 1))
              (else (i32.ne
                (call $grow (i32.sub (local.get $wanted) (global.get 0)))
                (i32.const -1))))))"#,
        place.pages
    );
    let text = Module::from_buffer(&wat::parse_str(text)?)?;
    let mut copies = Copies::of(&text);
    for import in text.imports.iter() {
        if let ImportKind::Memory(memory) = import.kind {
            copies.memories.insert(memory, place.memory);
        }
    }
    let mut pages = None;
    for global in text.globals.iter() {
        let GlobalKind::Local(initial) = &global.kind else { continue };
        let added = module.globals.add_local(global.ty, global.mutable, false, initial.clone());
        copies.globals.insert(global.id(), added);
        pages = Some(added);
    }
    // A function stands before those that call it.
    for (id, function) in text.funcs.iter_local() {
        let copy = copies.function(module, function);
        copies.functions.insert(id, module.funcs.add_local(copy));
    }
    let function = |name: &str| {
        let export = text.exports.iter().find(|export| export.name == name)?;
        match export.item {
            ExportItem::Function(id) => copies.functions.get(&id).copied(),
            _ => None,
        }
    };
    let added = pages.zip(function("memory.grow")).zip(function(RESIZE));
    let ((pages, grow), resized) = added.context("what grows the memory is not there")?;
    module.funcs.get_mut(grow).name = Some("memory.grow".to_string());
    module.funcs.get_mut(resized).name = Some(RESIZE.to_string());
    Ok((pages, grow, resized))
}
