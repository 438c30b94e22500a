//! From a place in a linked module back to the two that it was made of.
//!
//! Debug information of a module counts in bytes of its code, all of which moved. So it stays in the modules as they came, and
//! who looks for a line asks here where in them a place was.

use super::Linked;
use crate::locate;
use crate::refuse;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use walrus::{FunctionId, Module};

/// Where the code of a linked module comes from. Nothing of it is relied on: it may have been forged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origins {
    /// By index: the part, such as 0 for the target and 1 for the harness, and the index there; none where linking added it.
    pub functions: Vec<Option<(u32, u32)>>,
    /// Offsets from the beginning of the code, in order, and what they were in the files of the parts, one behind the other. What follows
    /// one of them moved by as much as it did.
    pub offsets: Vec<(u32, u32)>,
    /// Where each part begins among these files.
    pub parts: Vec<u32>,
}

impl Origins {
    /// Notes where an instruction was, which follows those that were noted.
    pub fn push(&mut self, at: u32, from: u32) {
        let is_run = |last: &(u32, u32)| from.wrapping_sub(last.1) == at - last.0;
        if !self.offsets.last().is_some_and(is_run) {
            self.offsets.push((at, from));
        }
    }

    /// The part that a function comes from, its index there, and the offset in the file of an instruction, which in the linked
    /// module is counted from the beginning of the code.
    pub fn locate(&self, function: u32, offset: u32) -> Option<(usize, u32, u32)> {
        let (part, index) = (*self.functions.get(function as usize)?)?;
        let after = self.offsets.partition_point(|at| at.0 <= offset);
        let (linked, original) = *self.offsets[..after].last()?;
        let original = original.checked_add(offset - linked)?.checked_sub(*self.parts.get(part as usize)?)?;
        Some((part as usize, index, original))
    }
}

/// Writes the linked module. Functions are those of the target as far as `targets` goes; `harness` says which are its own, by
/// their indices there, whose code says that it comes from behind `length`.
pub(super) fn emit(
    module: &mut Module,
    targets: &[FunctionId],
    harness: &[(u32, FunctionId)],
    length: u32,
) -> Result<Linked> {
    let mut parts: BTreeMap<FunctionId, (u32, u32)> = BTreeMap::new();
    parts.extend(targets.iter().enumerate().map(|(index, id)| (*id, (0, index as u32))));
    parts.extend(harness.iter().map(|(index, id)| (*id, (1, *index))));
    let (wasm, heard) = locate::write(module);
    refuse::validate(&wasm, refuse::FEATURES)
        .context("the linked module is not valid; this is a fault of Spelunk's, please report it")?;
    let mut functions = vec![None; heard.indices.len()];
    for (id, emitted) in heard.functions.iter().zip(&heard.indices) {
        functions[*emitted as usize] = parts.get(id).copied();
    }
    let code = wasmparser::Parser::new(0).parse_all(&wasm).find_map(|payload| match payload {
        Ok(wasmparser::Payload::CodeSectionStart { range, .. }) => Some(range.start as u32),
        _ => None,
    });
    let code = code.unwrap_or_default();
    let map = heard.transform.instruction_map.iter();
    let mut moved: Vec<(u32, u32)> = map.map(|(from, at)| (*at as u32 - code, from.data())).collect();
    moved.sort_unstable();
    let mut origins = Origins { functions, offsets: Vec::new(), parts: vec![0, length] };
    moved.into_iter().for_each(|(at, from)| origins.push(at, from));
    Ok(Linked { wasm, origins })
}
