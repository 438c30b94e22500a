//! Reads the control-flow graph of a function, in one pass over its code.
//!
//! A label's block comes into being when something first branches to it; so a `block` that nothing branches to
//! does not end the basic block it is in. The body of a `try_table` is a region: what calls or throws in it may
//! go to its dispatch, from there to its catch clauses, and on to the dispatch of the region around it.

use crate::blocks::may_stop;
use crate::cfg::{Block, BlockId, Cfg, ENTRY, EXIT, Edge, Loops, Part, Place, Site, arms, target};
use crate::code::offset_of;
use walrus::LocalFunction;
use walrus::ir::*;

/// Builds the graph of a function, of whose instructions `work` says what they take, and lists its parts if they are wanted. Linear
/// in its size, and not recursive: nesting costs no stack.
pub(crate) fn build(function: &LocalFunction, work: &dyn Fn(&Instr) -> u64, lists_parts: bool) -> Cfg {
    let mut builder = Builder::new(function, work);
    builder.lists_parts = lists_parts;
    builder.run();
    builder.cfg
}

struct Builder<'a> {
    function: &'a LocalFunction,
    work: &'a dyn Fn(&Instr) -> u64,
    cfg: Cfg,
    labels: Vec<Label>,
    /// By sequence index: its label.
    label_of: Vec<u32>,
    frames: Vec<Frame>,
    regions: Vec<Region>,
    /// The block being read; none after an unconditional branch.
    current: Option<BlockId>,
    lists_parts: bool,
    /// The block that the last part is of, if more may be added to it.
    part_of: Option<BlockId>,
}

struct Label {
    block: Option<BlockId>,
    /// Where `block` begins, once something branches to it.
    head: Option<Place>,
    is_loop: bool,
}

struct Frame {
    seq: InstrSeqId,
    next: u32,
    label: u32,
    kind: Kind,
}

enum Kind {
    Function,
    Block,
    Loop,
    Then { alternative: InstrSeqId, condition: BlockId, offset: u32 },
    Else,
    Try,
}

/// The body of a `try_table`: where its exceptions go.
struct Region {
    dispatch: BlockId,
    place: Place,
    offset: u32,
    /// The block that was last seen to throw.
    thrower: Option<BlockId>,
}

impl<'a> Builder<'a> {
    fn new(function: &'a LocalFunction, work: &'a dyn Fn(&Instr) -> u64) -> Self {
        let nowhere = || Block { head: None, offset: None, work: 0 };
        let loops = Loops::default();
        let cfg = Cfg { blocks: vec![nowhere(), nowhere()], edges: Vec::new(), loops, parts: Vec::new() };
        let (labels, label_of) = (Vec::new(), Vec::new());
        let (frames, regions) = (Vec::new(), Vec::new());
        let (lists_parts, part_of) = (false, None);
        Self { function, work, cfg, labels, label_of, frames, regions, current: None, lists_parts, part_of }
    }

    fn run(&mut self) {
        let entry = self.function.entry_block();
        let first = self.block(Some(Place { seq: entry, index: 0 }));
        let code = self.function.block(entry);
        let offset = offset_of(code.instrs.first().map_or(code.end, |first| first.1));
        self.edge(ENTRY, first, Site::Before(Place { seq: entry, index: 0 }), offset);
        self.current = Some(first);
        let label = self.label(Label { block: Some(EXIT), head: None, is_loop: false });
        self.enter(entry, label, Kind::Function);
        while let Some(frame) = self.frames.last_mut() {
            let place = Place { seq: frame.seq, index: frame.next };
            let code = &self.function.block(frame.seq).instrs;
            match (self.current, code.get(place.index as usize)) {
                (Some(current), Some((instr, location))) => {
                    frame.next += 1;
                    self.touch(current, *location);
                    self.list(current, place, *location, may_stop(instr));
                    self.cfg.blocks[current as usize].work += (self.work)(instr);
                    self.instr(current, instr, place, offset_of(*location));
                }
                _ => self.leave(place),
            }
        }
    }

    fn block(&mut self, head: Option<Place>) -> BlockId {
        self.cfg.blocks.push(Block { head, offset: None, work: 0 });
        self.cfg.blocks.len() as BlockId - 1
    }

    fn edge(&mut self, from: BlockId, to: BlockId, site: Site, offset: u32) {
        self.cfg.edges.push(Edge { from, to, site, offset, back: false });
    }

    fn label(&mut self, label: Label) -> u32 {
        self.labels.push(label);
        self.labels.len() as u32 - 1
    }

    /// A label whose block, if anything branches to it, begins after the instruction being read.
    fn label_here(&mut self) -> u32 {
        let head = self.frames.last().map(|frame| Place { seq: frame.seq, index: frame.next });
        self.label(Label { block: None, head, is_loop: false })
    }

    fn enter(&mut self, seq: InstrSeqId, label: u32, kind: Kind) {
        let index = seq.index();
        if self.label_of.len() <= index {
            self.label_of.resize(index + 1, u32::MAX);
        }
        self.label_of[index] = label;
        self.cfg.loops.set(seq, matches!(kind, Kind::Loop));
        self.frames.push(Frame { seq, next: 0, label, kind });
    }

    fn touch(&mut self, block: BlockId, location: InstrLocId) {
        let block = &mut self.cfg.blocks[block as usize];
        if block.offset.is_none() && !location.is_default() {
            block.offset = Some(location.data());
        }
    }

    /// Adds an instruction to the parts, which may end one.
    fn list(&mut self, block: BlockId, place: Place, location: InstrLocId, may_stop: bool) {
        if !self.lists_parts {
            return;
        }
        if self.part_of != Some(block) {
            self.cfg.parts.push(Part { head: place, offsets: None });
        }
        self.part_of = (!may_stop).then_some(block);
        if let (Some(part), false) = (self.cfg.parts.last_mut(), location.is_default()) {
            let offset = location.data();
            part.offsets = Some((part.offsets.map_or(offset, |(first, _)| first), offset));
        }
    }

    /// The block that a label stands for.
    fn target(&mut self, label: u32) -> BlockId {
        if let Some(block) = self.labels[label as usize].block {
            return block;
        }
        let block = self.block(self.labels[label as usize].head);
        self.labels[label as usize].block = Some(block);
        block
    }

    fn branch(&mut self, from: BlockId, seq: InstrSeqId, site: Site, offset: u32) {
        let label = self.label_of[seq.index()];
        let to = self.target(label);
        let back = self.labels[label as usize].is_loop;
        self.cfg.edges.push(Edge { from, to, site, offset, back });
    }

    fn instr(&mut self, current: BlockId, instr: &Instr, place: Place, offset: u32) {
        match instr {
            Instr::Block(walrus::ir::Block { seq }) => {
                let label = self.label_here();
                self.enter(*seq, label, Kind::Block);
            }
            Instr::Loop(body) => {
                let head = self.block(Some(Place { seq: body.seq, index: 0 }));
                self.edge(current, head, Site::Before(place), offset);
                let label = self.label(Label { block: Some(head), head: None, is_loop: true });
                self.current = Some(head);
                self.enter(body.seq, label, Kind::Loop);
            }
            Instr::IfElse(arms) => {
                let label = self.label_here();
                let kind = Kind::Then { alternative: arms.alternative, condition: current, offset };
                self.enter(arms.consequent, label, kind);
                self.arm(current, arms.consequent, offset);
            }
            Instr::TryTable(body) if !body.catches.is_empty() => self.enter_try(current, body, place, offset),
            Instr::TryTable(body) => {
                let label = self.label_here();
                self.enter(body.seq, label, Kind::Block);
            }
            Instr::Br(branch) => {
                self.branch(current, branch.block, Site::Before(place), offset);
                self.current = None;
            }
            Instr::BrIf(BrIf { block })
            | Instr::BrOnNull(BrOnNull { block })
            | Instr::BrOnNonNull(BrOnNonNull { block })
            | Instr::BrOnCast(BrOnCast { block, .. })
            | Instr::BrOnCastFail(BrOnCastFail { block, .. }) => {
                self.branch_or_not(current, *block, place, offset);
            }
            Instr::BrTable(table) => self.table(current, table, place, offset),
            Instr::Return(_)
            | Instr::ReturnCall(_)
            | Instr::ReturnCallIndirect(_)
            | Instr::ReturnCallRef(_) => {
                self.edge(current, EXIT, Site::Before(place), offset);
                self.current = None;
            }
            Instr::Unreachable(_) => {
                self.edge(current, EXIT, Site::Virtual, offset);
                self.current = None;
            }
            Instr::Throw(_) | Instr::ThrowRef(_) => {
                if !self.throws(current) {
                    self.edge(current, EXIT, Site::Virtual, offset);
                }
                self.current = None;
            }
            Instr::Call(_) | Instr::CallIndirect(_) | Instr::CallRef(_) => {
                self.throws(current);
            }
            _ => {}
        }
    }

    /// Branches on a condition; without it, goes on behind.
    fn branch_or_not(&mut self, current: BlockId, block: InstrSeqId, place: Place, offset: u32) {
        self.branch(current, block, Site::Taken(place), offset);
        let head = Place { index: place.index + 1, ..place };
        let next = self.block(Some(head));
        self.edge(current, next, Site::Before(head), offset);
        self.current = Some(next);
    }

    /// Begins an arm of an `if`.
    fn arm(&mut self, condition: BlockId, seq: InstrSeqId, offset: u32) {
        let place = Place { seq, index: 0 };
        let head = self.block(Some(place));
        self.edge(condition, head, Site::Before(place), offset);
        self.current = Some(head);
    }

    fn enter_try(&mut self, current: BlockId, body: &TryTable, place: Place, offset: u32) {
        let label = self.label_here();
        let head = self.block(Some(Place { seq: body.seq, index: 0 }));
        self.edge(current, head, Site::Before(place), offset);
        let dispatch = self.block(None);
        self.regions.push(Region { dispatch, place, offset, thrower: None });
        self.current = Some(head);
        self.enter(body.seq, label, Kind::Try);
    }

    fn table(&mut self, current: BlockId, table: &BrTable, place: Place, offset: u32) {
        let mut arms = arms(table);
        arms.sort_unstable();
        arms.dedup();
        for arm in arms {
            self.branch(current, target(table, arm), Site::Table(place, arm), offset);
        }
        self.current = None;
    }

    /// An exception may leave this block in mid-course; whether anything in the function may catch it.
    fn throws(&mut self, current: BlockId) -> bool {
        let Some(region) = self.regions.last_mut() else { return false };
        if region.thrower.replace(current) != Some(current) {
            let (dispatch, offset) = (region.dispatch, region.offset);
            self.edge(current, dispatch, Site::Virtual, offset);
        }
        true
    }

    /// Ends the innermost frame; `end` is where its code ends.
    fn leave(&mut self, end: Place) {
        let Some(frame) = self.frames.pop() else { return };
        let location = self.function.block(frame.seq).end;
        if let Some(current) = self.current {
            self.touch(current, location);
            self.list(current, end, location, false);
        }
        let offset = offset_of(location);
        match frame.kind {
            Kind::Loop => {}
            Kind::Block => {
                if self.labels[frame.label as usize].block.is_some() {
                    self.join(frame.label, end, offset);
                }
            }
            Kind::Function => {
                if let Some(current) = self.current {
                    self.edge(current, EXIT, Site::Before(end), offset);
                }
            }
            Kind::Else => self.join(frame.label, end, offset),
            Kind::Then { alternative, condition, offset: branch } => {
                self.join(frame.label, end, offset);
                self.enter(alternative, frame.label, Kind::Else);
                self.arm(condition, alternative, branch);
            }
            Kind::Try => {
                self.leave_try();
                self.join(frame.label, end, offset);
            }
        }
    }

    /// Control falls off the end of a frame, to its label.
    fn join(&mut self, label: u32, end: Place, offset: u32) {
        if let Some(current) = self.current {
            let to = self.target(label);
            self.edge(current, to, Site::Before(end), offset);
        }
        self.current = self.labels[label as usize].block;
    }

    fn leave_try(&mut self) {
        let Some(region) = self.regions.pop() else { return };
        if region.thrower.is_none() {
            return;
        }
        let Region { dispatch, place, offset, .. } = region;
        let Instr::TryTable(body) = &self.function.block(place.seq).instrs[place.index as usize].0 else {
            unreachable!("a region begins at its try_table")
        };
        for (index, catch) in body.catches.iter().enumerate() {
            self.branch(dispatch, catch_label(catch), Site::Catch(place, index as u32), offset);
        }
        if !self.throws(dispatch) {
            self.edge(dispatch, EXIT, Site::Virtual, offset);
        }
    }
}

pub(crate) fn catch_label(catch: &TryTableCatch) -> InstrSeqId {
    match catch {
        TryTableCatch::Catch { label, .. }
        | TryTableCatch::CatchRef { label, .. }
        | TryTableCatch::CatchAll { label }
        | TryTableCatch::CatchAllRef { label } => *label,
    }
}
