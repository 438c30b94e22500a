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

use walrus::ir::InstrSeqId;

pub(crate) type BlockId = u32;
pub(crate) const ENTRY: BlockId = 0;
pub(crate) const EXIT: BlockId = 1;

pub(crate) struct Cfg {
    pub blocks: Vec<Block>,
    pub edges: Vec<Edge>,
    pub loops: Loops,
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
    /// Between the `br_table` there and one of its targets.
    Table(Place, InstrSeqId),
    /// Between the `try_table` there and the label of its n-th catch clause.
    Catch(Place, u32),
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
