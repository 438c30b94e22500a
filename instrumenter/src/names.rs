//! What functions are called, in a way that stays the same from build to build.

use rustc_demangle::demangle;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use walrus::{ExportItem, FunctionKind, Module};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A function of the target; its place in [`EdgeMap::functions`](crate::EdgeMap::functions) is its index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionName {
    /// From the name section (demangled, without the hash rustc appends), else the name of an import or
    /// export, else `func[INDEX]`.
    pub name: String,
    /// Whether the module itself names it.
    pub is_named: bool,
    /// Whether its edges are counted.
    pub is_counted: bool,
}

/// The names of all functions, in order of index. Nothing is counted yet.
pub(crate) fn names(module: &Module) -> Vec<FunctionName> {
    let mut exported = BTreeMap::new();
    for export in module.exports.iter() {
        if let ExportItem::Function(id) = export.item {
            exported.entry(id).or_insert_with(|| export.name.clone());
        }
    }
    let name = |(index, function): (usize, &walrus::Function)| {
        let known = match (&function.name, &function.kind) {
            (Some(name), _) => Some(format!("{:#}", demangle(name))),
            (None, FunctionKind::Import(import)) => Some(module.imports.get(import.import).name.clone()),
            (None, _) => exported.get(&function.id()).cloned(),
        };
        FunctionName {
            is_named: known.is_some(),
            name: known.unwrap_or_else(|| format!("func[{index}]")),
            is_counted: false,
        }
    };
    module.funcs.iter().enumerate().map(name).collect()
}

/// For each function a number that stands for its name; functions of the same name are told apart by how
/// many of them come before.
pub(crate) fn identities(names: &[FunctionName]) -> Vec<u64> {
    let mut taken = BTreeSet::new();
    let mut next = BTreeMap::new();
    let identity = |name: &FunctionName| {
        let hash = xxh3_64(name.name.as_bytes());
        let ordinal: &mut u64 = next.entry(hash).or_default();
        loop {
            let identity = xxh3_64_with_seed(&hash.to_le_bytes(), *ordinal);
            *ordinal += 1;
            if taken.insert(identity) {
                return identity;
            }
        }
    };
    names.iter().map(identity).collect()
}

/// The hash of the n-th block of a function.
pub(crate) fn location(identity: u64, block: u32) -> u32 {
    xxh3_64_with_seed(&block.to_le_bytes(), identity) as u32
}
