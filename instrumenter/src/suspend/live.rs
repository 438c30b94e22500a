//! Which locals still matter after a call that may suspend. What does not is not saved, so that it does not make equal
//! states differ.

use super::Shape;
use std::collections::{BTreeMap, HashMap};
use walrus::ir::*;
use walrus::{LocalFunction, LocalId};

/// By the offset of a call: the locals whose values are used after it.
pub(super) type Live = HashMap<u32, Vec<LocalId>>;

/// Passes over a function, at most: what loops need is known after as many as they nest, and one. A function that nests more
/// has all its locals saved.
const PASSES_MAX: usize = 64;

/// Finds what is live after each of the calls of `shape`.
pub(super) fn live(function: &LocalFunction, shape: &Shape) -> Live {
    let mut locals: Vec<LocalId> = Vec::new();
    let mut index = BTreeMap::new();
    crate::code::each_instr(function, |instr, _| {
        if let Instr::LocalGet(LocalGet { local }) = instr {
            index.entry(*local).or_insert_with(|| {
                locals.push(*local);
                locals.len() - 1
            });
        }
    });
    let words = locals.len().div_ceil(64);
    let walk = Walk { function, shape, index, words, labels: HashMap::new(), found: HashMap::new() };
    let found = walk.until_stable();
    let all = Set(vec![u64::MAX; words]);
    let of_call = |offset: &u32| {
        let set = found.as_ref().map_or(&all, |found| found.get(offset).unwrap_or(&all));
        let live = locals.iter().enumerate().filter(|(index, _)| set.contains(*index));
        (*offset, live.map(|(_, local)| *local).collect())
    };
    shape.calls.iter().map(of_call).collect()
}

#[derive(Clone, PartialEq)]
struct Set(Vec<u64>);

impl Set {
    fn contains(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    fn insert(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    fn remove(&mut self, index: usize) {
        self.0[index / 64] &= !(1 << (index % 64));
    }

    fn add(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }
}

/// Goes through a function from its end to its beginning.
struct Walk<'a> {
    function: &'a LocalFunction,
    shape: &'a Shape,
    index: BTreeMap<LocalId, usize>,
    words: usize,
    /// What is live where a branch to this label leads.
    labels: HashMap<InstrSeqId, Set>,
    found: HashMap<u32, Set>,
}

impl Walk<'_> {
    /// `None` if that takes too long.
    fn until_stable(mut self) -> Option<HashMap<u32, Set>> {
        for _ in 0..PASSES_MAX {
            let before = self.loops();
            let mut live = Set(vec![0; self.words]);
            self.labels.insert(self.function.entry_block(), live.clone());
            self.sequence(self.function.entry_block(), &mut live);
            if self.loops() == before {
                return Some(self.found);
            }
        }
        None
    }

    fn loops(&self) -> Vec<Option<Set>> {
        self.shape.loops.iter().map(|seq| self.labels.get(seq).cloned()).collect()
    }

    /// From what is live at the end of a sequence to what is at its beginning. How deep they nest is bounded.
    fn sequence(&mut self, seq: InstrSeqId, live: &mut Set) {
        let function = self.function;
        for (instr, location) in function.block(seq).instrs.iter().rev() {
            self.instr(instr, *location, live);
        }
    }

    fn instr(&mut self, instr: &Instr, location: InstrLocId, live: &mut Set) {
        match instr {
            Instr::LocalGet(LocalGet { local }) => live.insert(self.index[local]),
            Instr::LocalSet(LocalSet { local }) | Instr::LocalTee(LocalTee { local }) => {
                self.index.get(local).into_iter().for_each(|index| live.remove(*index));
            }
            Instr::Block(Block { seq }) => {
                self.labels.insert(*seq, live.clone());
                self.sequence(*seq, live);
            }
            Instr::Loop(Loop { seq }) => {
                let empty = || Set(vec![0; self.words]);
                self.labels.entry(*seq).or_insert_with(empty);
                self.sequence(*seq, live);
                self.labels.insert(*seq, live.clone());
            }
            Instr::IfElse(IfElse { consequent, alternative }) => {
                let mut other = live.clone();
                self.labels.insert(*consequent, live.clone());
                self.labels.insert(*alternative, live.clone());
                self.sequence(*consequent, live);
                self.sequence(*alternative, &mut other);
                live.add(&other);
            }
            Instr::Br(Br { block }) => *live = self.labels[block].clone(),
            Instr::BrTable(BrTable { blocks, default }) => {
                *live = self.labels[default].clone();
                blocks.iter().for_each(|block| live.add(&self.labels[block]));
            }
            Instr::BrIf(BrIf { block })
            | Instr::BrOnNull(BrOnNull { block })
            | Instr::BrOnNonNull(BrOnNonNull { block })
            | Instr::BrOnCast(BrOnCast { block, .. })
            | Instr::BrOnCastFail(BrOnCastFail { block, .. }) => live.add(&self.labels[block]),
            Instr::Return(_)
            | Instr::Unreachable(_)
            | Instr::ReturnCall(_)
            | Instr::ReturnCallIndirect(_)
            | Instr::ReturnCallRef(_) => live.clear(),
            Instr::Call(_) | Instr::CallIndirect(_) => {
                let offset = crate::code::offset_of(location);
                if self.shape.calls.contains(&offset) {
                    self.found.insert(offset, live.clone());
                }
            }
            _ => {}
        }
    }
}
