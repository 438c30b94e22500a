//! A function's control-flow graph, read off walrus' structured code.
//!
//! Blocks 0 and 1 are not code: [`ENTRY`] is before the function, [`EXIT`] after it. Control may also pass in
//! ways that no code can be put on: a trap, an exception that leaves a call. Those are *virtual* edges; they
//! are there so that what flows into a block also flows out.
//!
//! ```wat
//! (func (param i32)          ;; ENTRY -> 2
//!   (block $b                ;; 2
//!     (br_if $b (local.get 0)) ;; 2 -> 4 taken, 2 -> 3 not
//!     (call $f))             ;; 3 -> 4
//! )                          ;; 4 -> EXIT
//! ```
//!
//! Code that no path reaches is left out, and so gets no counters.

use std::collections::BTreeMap;
use walrus::ir::{BrTable, InstrSeqId};

pub(crate) type BlockId = u32;
pub(crate) const ENTRY: BlockId = 0;
pub(crate) const EXIT: BlockId = 1;

pub(crate) struct Cfg {
    pub blocks: Vec<Block>,
    pub edges: Vec<Edge>,
    pub loops: Loops,
    /// What is executed as one, in the order of the code, where that was asked for.
    pub parts: Vec<Part>,
}

/// A part of a block: its instructions up to one that may not go on to the next.
pub(crate) struct Part {
    pub head: Place,
    /// Offsets of the first and the last instruction in the original file; none where all of them were added.
    pub offsets: Option<(u32, u32)>,
}

/// Which sequences are the bodies of loops, by index.
#[derive(Default)]
pub(crate) struct Loops(Vec<bool>);

pub(crate) struct Block {
    /// Where the block's code begins; none for [`ENTRY`], [`EXIT`] and dispatch of exceptions.
    pub head: Option<Place>,
    /// Offset of its first instruction in the original file.
    pub offset: Option<u32>,
    /// What its instructions take; see [`work`](crate::work).
    pub work: u64,
}

/// Before instruction `index` of sequence `seq`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub seq: InstrSeqId,
    pub index: u32,
}

pub(crate) struct Edge {
    pub from: BlockId,
    pub to: BlockId,
    pub site: Site,
    /// Offset of the instruction that transfers control, in the original file.
    pub offset: u32,
    /// It goes to the head of a loop that it is in.
    pub back: bool,
}

/// Where code stands that runs when an edge is taken, and only then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Site {
    /// Nowhere.
    Virtual,
    /// At a place that only this edge passes.
    Before(Place),
    /// On the taken side of the conditional branch there.
    Taken(Place),
    /// Between the `br_table` there and where one of its [`arms`] leads.
    Table(Place, u32),
    /// Between the `try_table` there and the label of its n-th catch clause.
    Catch(Place, u32),
}

/// A `br_table` with more indices that do not lead where its default does has one arm for each target.
const ARMS_MAX: usize = 256;

/// For each index of a `br_table`, and then for its default, the arm that it belongs to, named by the first index that does. Indices are
/// told apart even where they lead to one place, as compilers of native code do with the cases of a `switch`: a table of
/// classes of characters leads to few places, and what was seen is the class.
pub(crate) fn arms(table: &BrTable) -> Vec<u32> {
    let BrTable { blocks, default } = table;
    let own = blocks.iter().filter(|block| *block != default).count();
    let mut first = BTreeMap::from([(*default, blocks.len())]);
    let arm = |(index, target)| match *first.entry(target).or_insert(index) {
        first if first == blocks.len() || own > ARMS_MAX => first as u32,
        _ => index as u32,
    };
    blocks.iter().chain([default]).copied().enumerate().map(arm).collect()
}

/// Where an arm of a `br_table` leads.
pub(crate) fn target(table: &BrTable, arm: u32) -> InstrSeqId {
    table.blocks.get(arm as usize).copied().unwrap_or(table.default)
}

impl Loops {
    pub(crate) fn set(&mut self, seq: InstrSeqId, is_loop: bool) {
        let index = seq.index();
        if self.0.len() <= index {
            self.0.resize(index + 1, false);
        }
        self.0[index] = is_loop;
    }

    pub(crate) fn has(&self, seq: InstrSeqId) -> bool {
        self.0.get(seq.index()).copied().unwrap_or(false)
    }
}
