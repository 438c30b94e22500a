//! Locals that point into the frame of their function, whose accesses need no check.
//!
//! ```wat
//! (local.set $frame (i32.sub (global.get $__stack_pointer) (i32.const 32)))
//! (i32.load offset=12 (local.get $frame))
//! ```
//!
//! A local counts if it is assigned once, from the stack pointer and constants. Before that it is 0, where no block is.

use crate::code::sequences;
use std::collections::{BTreeMap, BTreeSet};
use walrus::ir::*;
use walrus::{GlobalId, LocalFunction, LocalId};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Frame,
    Constant,
    Unknown,
}

#[derive(Default)]
pub(super) struct Frames(BTreeSet<LocalId>);

impl Frames {
    pub(super) fn of(function: &LocalFunction, stack: Option<GlobalId>) -> Frames {
        let Some(stack) = stack else { return Frames::default() };
        let seqs = sequences(function);
        // A parameter has a value already.
        let mut assigned: BTreeMap<LocalId, u32> = function.args.iter().map(|arg| (*arg, 1)).collect();
        for seq in &seqs {
            for (instr, _) in &function.block(*seq).instrs {
                if let Instr::LocalSet(LocalSet { local }) | Instr::LocalTee(LocalTee { local }) = instr {
                    *assigned.entry(*local).or_default() += 1;
                }
            }
        }
        let mut origins = BTreeMap::new();
        for seq in &seqs {
            let mut stack_of_values = Vec::new();
            for (instr, _) in &function.block(*seq).instrs {
                pass(instr, stack, &assigned, &mut origins, &mut stack_of_values);
            }
        }
        Frames(origins.into_iter().filter(|at| at.1 == Origin::Frame).map(|at| at.0).collect())
    }

    pub(super) fn contains(&self, local: LocalId) -> bool {
        self.0.contains(&local)
    }
}

fn pass(
    instr: &Instr,
    stack: GlobalId,
    assigned: &BTreeMap<LocalId, u32>,
    origins: &mut BTreeMap<LocalId, Origin>,
    values: &mut Vec<Origin>,
) {
    use BinaryOp::{I32Add, I32Sub};
    let take = |values: &mut Vec<Origin>| values.pop().unwrap_or(Origin::Unknown);
    let mut assign = |local: &LocalId, origin| {
        if assigned[local] == 1 {
            origins.insert(*local, origin);
        }
    };
    match instr {
        Instr::GlobalGet(GlobalGet { global }) if *global == stack => values.push(Origin::Frame),
        Instr::Const(_) => values.push(Origin::Constant),
        Instr::LocalGet(LocalGet { local }) => {
            values.push(origins.get(local).copied().unwrap_or(Origin::Unknown));
        }
        Instr::LocalSet(LocalSet { local }) => assign(local, take(values)),
        Instr::LocalTee(LocalTee { local }) => {
            let origin = take(values);
            assign(local, origin);
            values.push(origin);
        }
        Instr::GlobalSet(_) => drop(take(values)),
        Instr::Binop(Binop { op }) => {
            let (second, first) = (take(values), take(values));
            values.push(match (op, first, second) {
                (I32Add | I32Sub, Origin::Constant, Origin::Constant) => Origin::Constant,
                (I32Add | I32Sub, Origin::Frame, Origin::Constant) => Origin::Frame,
                (I32Add, Origin::Constant, Origin::Frame) => Origin::Frame,
                _ => Origin::Unknown,
            });
        }
        // What is taken from an empty stack is unknown.
        _ => values.clear(),
    }
}
