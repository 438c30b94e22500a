//! What functions are called, in a way that stays the same from build to build.

use rustc_demangle::demangle;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
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
            exported.entry(id).or_insert(&export.name);
        }
    }
    let name = |(index, function): (usize, &walrus::Function)| {
        let known = match (&function.name, &function.kind) {
            (Some(name), _) => Some(demangled(name)),
            (None, FunctionKind::Import(import)) => Some(cut(&module.imports.get(import.import).name)),
            (None, _) => exported.get(&function.id()).map(|name| cut(name)),
        };
        FunctionName {
            is_named: known.is_some(),
            name: known.unwrap_or_else(|| format!("func[{index}]")),
            is_counted: false,
        }
    };
    module.funcs.iter().enumerate().map(name).collect()
}

/// Bytes of a name that are kept. A short one may stand for a long one, which repeats its parts.
const NAME_MAX: usize = 4096;

/// The name as it was written; as it is where that would be too long.
fn demangled(name: &str) -> String {
    let mut text = Bounded(String::new());
    match write!(text, "{:#}", demangle(name)) {
        Ok(()) => text.0,
        Err(_) => cut(name),
    }
}

/// The beginning of a name.
fn cut(name: &str) -> String {
    name[..name.floor_char_boundary(NAME_MAX)].to_string()
}

/// A text of so many bytes at most.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > NAME_MAX {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn base_62(number: usize) -> String {
        let digit = |digit: usize| {
            char::from(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[digit])
        };
        let high = if number >= 62 { base_62(number / 62) } else { String::new() };
        format!("{high}{}", digit(number % 62))
    }

    #[test]
    fn a_short_name_does_not_become_a_long_one() {
        assert_eq!(
            demangled("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        // Each argument is a pair of the one before, to which a reference is enough.
        let (mut doubling, mut at) = ("IC1aTllE".to_string(), 4);
        for _ in 0..20 {
            let next = doubling.len();
            let back = format!("B{}_", base_62(at - 1));
            doubling.push_str(&format!("T{back}{back}E"));
            at = next;
        }
        let doubling = format!("_R{doubling}E");
        assert!(format!("{:#}", demangle(&doubling)).len() > 900_000);
        assert_eq!(demangled(&doubling), doubling);
        assert_eq!(demangled(&"x".repeat(10_000)).len(), NAME_MAX);
        assert_eq!(cut(&"ä".repeat(3000)).len(), NAME_MAX);
    }
}
