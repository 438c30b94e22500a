//! What is executed as one, and counters for it and for all edges.
//!
//! A block of the graph may end in its midst, where it traps or where a call does not return. So it is divided into parts, each of
//! which ends with such an instruction:
//!
//! ```wat
//! ENTER 0  (local.get 0) (i32.load)   ;; may trap
//! ENTER 1  (local.get 1) (call $f)    ;; may not return
//! ENTER 2  (drop)
//! ```

use crate::cfg::{Cfg, Place, Site};
use crate::edges::Block;
use crate::locate::is_silent;
use crate::placement::Placed;
use crate::weave::{Action, Insert};
use walrus::LocalFunction;
use walrus::ir::*;

/// Whether execution may not go on behind an instruction, or to where it branches. Some are named that always do.
pub(crate) fn may_stop(instr: &Instr) -> bool {
    match instr {
        Instr::Unop(Unop { op }) => matches!(
            op,
            UnaryOp::I32TruncSF32
                | UnaryOp::I32TruncUF32
                | UnaryOp::I32TruncSF64
                | UnaryOp::I32TruncUF64
                | UnaryOp::I64TruncSF32
                | UnaryOp::I64TruncUF32
                | UnaryOp::I64TruncSF64
                | UnaryOp::I64TruncUF64
        ),
        Instr::Block(_)
        | Instr::Loop(_)
        | Instr::TernOp(_)
        | Instr::MemorySize(_)
        | Instr::TableSize(_)
        | Instr::RefNull(_)
        | Instr::RefIsNull(_)
        | Instr::RefFunc(_) => false,
        _ => !is_silent(instr),
    }
}

/// All edges that code can be put on, of which those of `paying` pay for steps. What counts where a reference is tested takes that back
/// when it does not branch, and with it what was counted before; so those are left out.
pub(crate) fn all_edges(cfg: &Cfg, function: &LocalFunction, paying: &[Placed]) -> Vec<Placed> {
    let mut paying = paying.iter().filter(|placed| placed.steps > 0).copied().peekable();
    let mut all = Vec::new();
    for (edge, of_graph) in cfg.edges.iter().enumerate() {
        match paying.next_if(|placed| placed.edge == edge) {
            Some(placed) => all.push(placed),
            None if can_be_set(of_graph.site, function) => {
                all.push(Placed { edge, site: of_graph.site, steps: 0 });
            }
            None => {}
        }
    }
    all
}

fn can_be_set(site: Site, function: &LocalFunction) -> bool {
    let instr = |Place { seq, index }: Place| &function.block(seq).instrs[index as usize].0;
    match site {
        Site::Virtual => false,
        Site::Taken(place) => matches!(instr(place), Instr::BrIf(_)),
        Site::Before(_) | Site::Table(..) | Site::Catch(..) => true,
    }
}

/// Has each part of a function say that it was entered, but for those that are not of the original. Their counters are numbered from
/// 0 on.
pub(crate) fn enter(cfg: &Cfg, function: u32, inserts: &mut Vec<Insert>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for part in &cfg.parts {
        let Some((first, last)) = part.offsets else { continue };
        let action = Action::Enter { address: blocks.len() as u32 };
        inserts.push(Insert { site: Site::Before(part.head), action });
        blocks.push(Block { function, first, last });
    }
    blocks
}
