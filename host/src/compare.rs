//! What a step compared with what.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;

/// A comparison in a step: its place in the code, and above that how often it was met there before.
pub type Place = u64;

/// Two things that a step compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compare {
    /// Integers of 4 or 8 bytes.
    Integers(u8, u64, u64),
    /// Floats of 4 or 8 bytes, by their bits.
    Floats(u8, u64, u64),
    /// Bytes that are equal if they are so to the end of both.
    Bytes(Vec<u8>, Vec<u8>),
    /// Bytes of which it is not known how many were compared.
    Prefixes(Vec<u8>, Vec<u8>),
    /// Bytes that are looked for.
    Part(Vec<u8>),
}

impl Compare {
    /// Whether both are the same.
    pub fn is_equal(&self) -> bool {
        match self {
            Compare::Integers(_, a, b) | Compare::Floats(_, a, b) => a == b,
            Compare::Bytes(a, b) => a == b,
            Compare::Prefixes(..) | Compare::Part(_) => false,
        }
    }
}

/// What was compared, each once, at the place where it was met first.
pub(crate) fn each_once<'c>(
    compares: impl IntoIterator<Item = &'c (Place, Compare)>,
) -> impl Iterator<Item = &'c (Place, Compare)> {
    let mut met = HashTable::<&Compare>::new();
    let mut is_first = move |compare: &'c Compare| {
        let hash = FxBuildHasher.hash_one(compare);
        let entry = met.entry(hash, |known| *known == compare, |known| FxBuildHasher.hash_one(known));
        let is_first = matches!(entry, Entry::Vacant(_));
        entry.insert(compare);
        is_first
    };
    compares.into_iter().filter(move |(_, compare)| is_first(compare))
}
