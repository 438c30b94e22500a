//! Where the host finds a module's state.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// All state of an instrumented module, and how to reach it. Ranges and offsets are in private memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateLayout {
    /// Export name of private memory; none if nothing needs one.
    pub private: Option<String>,
    /// One byte for each edge of the `EdgeMap` ([`Static`](crate::Edges::Static)), and then for each of its blocks
    /// ([`Blocks`](crate::Edges::Blocks)), or the 65,536 bytes of the
    /// map ([`Hashed`](crate::Edges::Hashed)). Begins at a multiple of 64, and nothing else stands before the
    /// next multiple of 64 after its end.
    pub counters: Range<u32>,
    /// In a large module a byte for each `entered_functions` functions that have edges of their own, in their order; 1
    /// if one of them was entered, so that its `counters` need to be looked at. Empty in others.
    pub entered: Range<u32>,
    /// Functions for which a byte of `entered` stands.
    pub entered_functions: u32,
    /// Bytes that are no edges but must be cleared with them. Ends where `counters` begins.
    pub resets: Range<u32>,
    /// An `i64`: what remains of the budget, in steps. To be set before each call; negative after a trap says that it
    /// was spent. It starts at [`Options::budget_initial`](crate::Options::budget_initial), which is what a start
    /// function has.
    pub budget: Option<u32>,
    /// An `i32`: how deep calls are nested in functions that can call themselves. To be set to 0 before each
    /// call; more than [`Options::depth_max`](crate::Options::depth_max) after a trap says that it was exceeded.
    pub depth: Option<u32>,
    /// A byte for each segment that may be dropped, 1 if it was.
    pub dropped: Range<u32>,
    /// A byte for each of `tables`, 1 if it was written to.
    pub table_marks: Range<u32>,
    /// Bytes to be cleared before a step whose comparisons are to be reported; see [`Options::compares`](crate::Options::compares).
    pub compares: Range<u32>,
    /// What finds errors of the heap and of the stack, where it was asked for. Its shadow is the last of `memories`.
    pub sanitizer: Option<SanitizerLayout>,
    /// [`SUSPEND_BYTES`](crate::SUSPEND_BYTES), to be set to 0 before each call, if the module has threads. After a trap the last
    /// of these words is not 0 if it is theirs: 1 there is no room on the stack of one, 2 `suspend` was called outside of one,
    /// 3 what was written down of one was overwritten.
    pub suspend: Option<u32>,
    /// What is answered inside the module, where it was asked for.
    pub inside: Option<InsideLayout>,
    /// Every memory of the target, in order of index, imported ones too.
    pub memories: Vec<MemoryLayout>,
    /// Every mutable global that can hold different values, imported ones too.
    pub globals: Vec<GlobalLayout>,
    /// Every table of function references that the module writes to.
    pub tables: Vec<TableLayout>,
    /// Export name of a table with each function that a reference in `globals` and `tables` can stand for;
    /// there if one of them holds references.
    pub functions: Option<String>,
    /// State that cannot be saved and restored; if there is none, all of it can.
    pub obstacles: Vec<Obstacle>,
}

/// Where a module keeps what it does not tell the host; see [`Options::inside`](crate::Options::inside).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsideLayout {
    /// The following `i32`, to be set to 0 before each call.
    pub words: Range<u32>,
    /// Spans that began, and then how many of them are open.
    pub spans: u32,
    /// How many bytes of `said` the guest said of its state. Each part stands behind its length, an `i64`.
    pub said_len: u32,
    /// [`SAYS`](crate::SAYS) while the guest is to say its state, so that what it says is kept. Otherwise the host is told.
    pub phase: u32,
    pub said: Range<u32>,
    /// As long as `said`, and not used by the module: it is for whoever calls it.
    pub aside: Range<u32>,
}

/// What finds errors of the heap and of the stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SanitizerLayout {
    /// Four `i32`, to be set to 0 before each call. After a trap the first is not 0 if an error was found: 1 a read, 2 a write,
    /// 3 a block that was freed again, 4 what is no block was freed, 5 the zone beyond a frame was overwritten. Then follow the
    /// address and the length; for 5 it is 1 more than the index of the function, or 0.
    pub record: u32,
    /// Export name of a memory with a bit for each byte of the first memory, 1 where nothing may be accessed.
    pub shadow: String,
    /// The functions that have frames on the stack, where that is sanitized.
    pub frames: Option<FramesLayout>,
}

/// Functions that have frames on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramesLayout {
    /// So many have a zone beyond their frame that nothing may access.
    pub with_zone: u32,
    /// So many others use the stack pointer and are left as they are: what they do with it is not understood.
    pub left_alone: u32,
}

/// A memory of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLayout {
    /// Its reserved export name.
    pub export: String,
    /// One byte for each page of [`Options::page_bytes`](crate::Options::page_bytes) bytes, not 0 if a write
    /// began in it; the write may extend to the first 15 bytes of the next page. Empty without
    /// [`Options::dirty`](crate::Options::dirty).
    pub dirty: Range<u32>,
    pub memory64: bool,
    /// Size at first, in WebAssembly pages of 64 KiB.
    pub pages_min: u64,
    /// The largest size it may grow to, where one is declared or [`Options::memory_bytes_max`]
    /// (crate::Options::memory_bytes_max) sets one.
    pub pages_max: Option<u64>,
}

/// A mutable global of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalLayout {
    /// Its reserved export name.
    pub export: String,
    /// Its index in the target.
    pub index: u32,
    pub kind: ValueKind,
}

/// What a global holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValueKind {
    I32,
    I64,
    F32,
    F64,
    V128,
    /// A reference to a function.
    Function,
}

/// A table of the target that it writes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableLayout {
    /// Its reserved export name.
    pub export: String,
    /// Its index in the target.
    pub index: u32,
    pub table64: bool,
}

/// State that cannot be saved and restored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Obstacle {
    /// The operator or item: `table.grow`, `externref global`.
    pub what: String,
    /// The name of the function it is in.
    pub function: Option<String>,
    /// Its offset in the original file.
    pub offset: u32,
}

/// Hands out private memory from its start.
#[derive(Default)]
pub(crate) struct Allocator {
    next: u64,
}

/// What private memory may hold at most; a dirty map of 4 GiB in pages of 512 bytes is 8 MiB.
const PRIVATE_MAX: u64 = 1 << 30;

impl Allocator {
    pub(crate) fn take(&mut self, bytes: u64, align: u64) -> Result<Range<u32>> {
        let start = self.next.next_multiple_of(align);
        self.next = start + bytes;
        ensure!(
            self.next <= PRIVATE_MAX,
            "the instrumentation would need more than {PRIVATE_MAX} bytes of memory; \
             lower `memory_bytes_max` or raise `page_bytes`"
        );
        Ok(start as u32..self.next as u32)
    }

    /// What was handed out, in WebAssembly pages.
    pub(crate) fn pages(&self) -> u64 {
        self.next.div_ceil(65536)
    }
}
