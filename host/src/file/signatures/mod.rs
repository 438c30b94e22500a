//! How to call the exports of a module that knows nothing of Spelunk. What a user writes down beside the module travels in it,
//! as its files do.

mod check;
mod given;
mod parse;
mod table;

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};

use super::section;
pub use given::Given;
pub use parse::Described;
pub(crate) use table::nearest;

/// The custom section that holds them.
const SECTION: &str = "spelunk:signatures";
/// Bytes of that section, and of a file that describes a module.
pub(crate) const BYTES_MAX: u64 = 1 << 20;

/// What the exports of a module mean and take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signatures {
    /// Every exported function of numbers is a rule, and not only those of `rules`.
    pub are_all_rules: bool,
    /// Exports that are called as rules, in order.
    pub rules: Vec<String>,
    /// Exports that are not called.
    pub except: Vec<String>,
    /// Exports that are called at the start of a run, in this order.
    pub setup: Vec<String>,
    /// Exports that are called at its end, in this order.
    pub teardown: Vec<String>,
    /// Exports that are called after each step, in this order.
    pub invariants: Vec<String>,
    /// Where arguments are put.
    pub allocator: Allocator,
    /// Sets of handles, by their names.
    pub pools: BTreeMap<String, Pool>,
    /// What exports take and return.
    pub exports: BTreeMap<String, Signature>,
}

/// Where arguments are put that are passed by their addresses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Allocator {
    /// Where one of the allocators says whose exports are commonly called so; or else in a region of the host's.
    #[default]
    Found,
    /// In memory that the host adds to that of the module.
    Region,
    /// On the heap, by these exports.
    Heap {
        /// Takes a size, and perhaps an alignment; returns an address.
        allocate: String,
        /// Takes an address, and perhaps the size and the alignment.
        free: Option<String>,
    },
    /// On the stack, by these exports.
    Stack {
        /// Takes a size; returns an address.
        allocate: String,
        /// Returns where the stack is.
        save: String,
        /// Sets where the stack is.
        restore: String,
    },
}

/// A set of handles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// A rule that adds to it is not called where it holds so many. `None` is as many as there may be.
    pub max: Option<u32>,
    /// Which numbers are no handles.
    pub null: Null,
}

/// Which numbers are no handles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Null {
    #[default]
    ZeroOrNegative,
    Zero,
    Negative,
    Nothing,
}

impl Null {
    /// Whether this number is no handle.
    pub fn is(self, number: i64) -> bool {
        match self {
            Null::ZeroOrNegative => number <= 0,
            Null::Zero => number == 0,
            Null::Negative => number < 0,
            Null::Nothing => false,
        }
    }
}

/// What an export takes and returns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signature {
    /// In order. Without, each is drawn by its type.
    pub params: Option<Vec<Param>>,
    /// What the result is.
    pub returns: Returns,
    /// The result says that the call did not do what it is for: no handle is added or taken.
    pub error_when: Option<When>,
    /// The result is a failure.
    pub fails_when: Option<When>,
}

/// What a result is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Returns {
    /// A number.
    #[default]
    Number,
    /// The address of text that ends in a zero byte, or 0.
    Text,
    /// A handle, which is added to this pool.
    Handle(String),
}

/// Which results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum When {
    Zero,
    Nonzero,
    Negative,
}

impl When {
    /// Whether this is such a result.
    pub fn is(self, result: i64) -> bool {
        match self {
            When::Zero => result == 0,
            When::Nonzero => result != 0,
            When::Negative => result < 0,
        }
    }
}

/// A parameter, of one value of WebAssembly or of two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// Its name in reports.
    pub name: String,
    /// What is passed.
    pub what: What,
}

/// What is passed for a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum What {
    /// A number that is drawn by its type.
    Any,
    /// An integer in this range.
    Integer(i64, i64),
    /// A float in this range.
    Float(f64, f64),
    /// 0 or 1.
    Boolean,
    /// Always this integer.
    Constant(i64),
    /// One of these.
    OneOf(Vec<Named>),
    /// The bits of some of these.
    Flags(Vec<Named>),
    /// The address of bytes, and then how many they are, unless another parameter is that.
    Buffer(Buffer),
    /// How many bytes that parameter has, by its place.
    LengthOf(u32),
    /// The address of so many zero bytes, which the export writes to.
    Out(u32),
    /// The address of a handle that the export writes, which is added to this pool. Handles of 8 bytes, or else of 4.
    OutHandle(String, bool),
    /// A handle from this pool; whether the export takes it away.
    Handle(String, bool),
}

/// A number, and perhaps its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Named {
    /// As it is reported.
    pub name: Option<String>,
    /// The number.
    pub value: i64,
}

/// Bytes that are passed by their address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// What is drawn.
    pub content: Content,
    /// A zero byte follows, which no length counts; and none follows the address.
    pub ends_in_zero: bool,
    /// The export keeps the address: the bytes stay where they are.
    pub is_kept: bool,
}

/// What is drawn for bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// So many bytes, at least and at most.
    Bytes(u32, u32),
    /// So many of these, at least and at most, one after the other. The first is the simplest.
    Text(Vec<String>, u32, u32),
    /// One of these texts.
    Texts(Vec<String>),
    /// One of these.
    Values(Vec<Vec<u8>>),
}

impl Signatures {
    /// The module with these signatures, in place of those that it has.
    ///
    /// # Errors
    /// Signatures that contradict themselves, or that are too many.
    pub fn put_into(&self, wasm: &[u8]) -> Result<Vec<u8>> {
        self.check()?;
        let held = postcard::to_allocvec(self).context("signatures are lists")?;
        ensure!(held.len() as u64 <= BYTES_MAX, "the signatures have more than {} KiB", BYTES_MAX >> 10);
        Ok(section::put(wasm, SECTION, &held))
    }

    /// The signatures of a module, and the module without them.
    ///
    /// # Errors
    /// A section that [`Signatures::put_into`] did not make.
    pub fn take_from(wasm: &[u8]) -> Result<(Option<Signatures>, Cow<'_, [u8]>)> {
        let Some(held) = section::held(wasm, SECTION)? else { return Ok((None, wasm.into())) };
        let of_section = || format!("the section `{SECTION}` cannot be used");
        let signatures = Signatures::decode(held).with_context(of_section)?;
        Ok((Some(signatures), section::without(wasm, SECTION)))
    }

    fn decode(held: &[u8]) -> Result<Signatures> {
        ensure!(held.len() as u64 <= BYTES_MAX, "it has more than {} KiB", BYTES_MAX >> 10);
        let signatures: Signatures = postcard::from_bytes(held).map_err(|error| anyhow!("{error}"))?;
        // One meaning has one encoding, so that a module is named by what it is.
        let again = postcard::to_allocvec(&signatures).context("signatures are lists")?;
        ensure!(again == held, "it is not encoded as Spelunk does");
        signatures.check()?;
        Ok(signatures)
    }

    /// The exports that they name.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let roles = [&self.rules, &self.except, &self.setup, &self.teardown, &self.invariants];
        let allocator: Vec<&String> = match &self.allocator {
            Allocator::Found | Allocator::Region => Vec::new(),
            Allocator::Heap { allocate, free } => std::iter::once(allocate).chain(free).collect(),
            Allocator::Stack { allocate, save, restore } => vec![allocate, save, restore],
        };
        let names = roles.into_iter().flatten().chain(self.exports.keys()).chain(allocator);
        names.map(String::as_str)
    }

    /// Whether a parameter is followed by its length.
    pub(crate) fn is_followed(params: &[Param], index: usize) -> bool {
        let Some(Param { what: What::Buffer(buffer), .. }) = params.get(index) else { return false };
        !buffer.ends_in_zero
            && !params.iter().any(|param| matches!(param.what, What::LengthOf(of) if of as usize == index))
    }
}

#[cfg(test)]
mod tests;
