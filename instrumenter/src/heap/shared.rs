//! Whether a part of the allocator stands elsewhere too.
//!
//! A compiler may inline `free` into a function that calls it. That copy would look for the allocator's data before a block,
//! where the header of ours is, so an error would be found where none is. It gives itself away: it reads the data of the
//! allocator, at addresses that are constants, which nobody else has any business with.

use crate::bases::{Bases, Value};
use crate::code::{each_instr, sequences};
use crate::names::FunctionName;
use std::collections::{BTreeMap, BTreeSet};
use walrus::ir::*;
use walrus::{FunctionId, LocalFunction, MemoryId, Module};

/// How the names of functions begin that may use the data of the SDK's allocator: they say what fails, and what is copied.
const OF_ALLOCATOR: [&str; 2] = ["spelunk_guest::memory::", "spelunk_guest::abi::allocator::"];

/// A function outside of the allocator that uses data of it, and the address of the data. Data of the allocator is what it
/// both reads and writes: `errno`, for one, it only writes.
pub(super) fn outside<'n>(
    module: &Module,
    names: &'n [FunctionName],
    inside: &BTreeSet<FunctionId>,
) -> Option<(&'n str, u64)> {
    // Others are the instrumenter's own.
    let memory = module.memories.iter().next()?.id();
    let mut used: BTreeMap<u64, [bool; 2]> = BTreeMap::new();
    for (_, function) in module.funcs.iter_local().filter(|(id, _)| inside.contains(id)) {
        each_constant(function, memory, |address, is_write| {
            used.entry(address).or_default()[usize::from(is_write)] = true;
        });
    }
    used.retain(|_, ways| *ways == [true, true]);
    let mut found = None;
    let is_of_allocator = |name: &str| OF_ALLOCATOR.iter().any(|beginning| name.starts_with(beginning));
    let may_not = |id: FunctionId| !inside.contains(&id) && !is_of_allocator(&names[id.index()].name);
    for (id, function) in module.funcs.iter_local().filter(|(id, _)| may_not(*id)) {
        each_constant(function, memory, |address, _| {
            if found.is_none() && used.contains_key(&address) {
                found = Some((names[id.index()].name.as_str(), address));
            }
        });
    }
    found
}

/// A function outside of the allocator that calls a part of Rust's, past the functions that are replaced: those were
/// inlined there.
pub(super) fn caller<'n>(
    module: &Module,
    names: &'n [FunctionName],
    inside: &BTreeSet<FunctionId>,
) -> Option<&'n str> {
    let is_part = |id: FunctionId| {
        let name = &names[id.index()].name;
        name.starts_with("dlmalloc::") || name.starts_with("<dlmalloc::")
    };
    let mut found = None;
    for (id, function) in module.funcs.iter_local().filter(|(id, _)| !inside.contains(id) && !is_part(*id)) {
        each_instr(function, |instr, _| {
            if let Instr::Call(Call { func }) | Instr::ReturnCall(ReturnCall { func }) = instr
                && found.is_none()
                && is_part(*func)
            {
                found = Some(names[id.index()].name.as_str());
            }
        });
    }
    found
}

/// Calls `f` with each address of a load or store in this memory that is a constant, and whether it is a store.
fn each_constant(function: &LocalFunction, of: MemoryId, mut f: impl FnMut(u64, bool)) {
    for seq in sequences(function) {
        let mut bases = Bases::default();
        for (instr, _) in &function.block(seq).instrs {
            let used = match instr {
                Instr::Load(Load { arg, memory, .. }) if *memory == of => {
                    Some((bases.below(0), arg.offset, false))
                }
                Instr::Store(Store { arg, memory, .. }) if *memory == of => {
                    Some((bases.below(1), arg.offset, true))
                }
                _ => None,
            };
            if let Some((Value::Constant(base), offset, is_write)) = used {
                f(u64::from(base) + offset, is_write);
            }
            bases.pass(instr);
        }
    }
}
