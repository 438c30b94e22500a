//! Puts code on edges.
//!
//! Most edges have a place of their own in the structured code; the others are given one:
//!
//! ```wat
//! (br_if $l (c))        =>  (if (c) (then COUNT (br $l)))
//! (br_on_null $l (r))   =>  COUNT (br_on_null $l (r)) UNCOUNT
//! (br_table $l $m (i))  =>  (local.set $i (i)) (block $x (br_table $x $m (local.get $i))) COUNT (br $l)
//! (try_table (catch_all $l) …)  =>  (block $after (block $x (br $after (try_table (catch_all $x) …))) COUNT (br $l))
//! ```
//!
//! The type of a reference that `br_on_*` tests is not written in the code, so no local can hold it; counting
//! first and taking it back when the branch is not taken needs none. A `br_table` whose labels take operands
//! keeps its place; a second `br_table` before it only counts.

use crate::cfg::{Loops, Place, Site, arms, target};
use crate::code::*;
use crate::counters::length;
use crate::flow::catch_label;
use walrus::ir::*;
use walrus::{LocalFunction, LocalId, ModuleTypes, ValType};

/// Code to be put on an edge.
#[derive(Clone, Copy)]
pub(crate) struct Insert {
    pub site: Site,
    pub action: Action,
}

#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// Set the byte at `address`; if there are steps to pay, count there instead, and pay.
    Count { address: u32, steps: u32 },
    /// Add steps up in the byte at `address`, and pay.
    Pay { address: u32, steps: u32 },
    /// Count the transition from the previous location to this one, as AFL does.
    Visit { location: u16 },
    /// Set the byte at `address`, at the head of a block.
    Enter { address: u32 },
}

/// Where the code finds its state in private memory.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    pub private: Private,
    /// An `i64`; meaningful if any counter pays.
    pub budget: u32,
    /// 64 KiB of counters, and the previous location (two bytes); meaningful for [`Action::Visit`].
    pub map: u32,
    pub previous: u32,
}

pub(crate) struct Weaver<'a, 'l> {
    pub function: &'a mut LocalFunction,
    pub types: &'a ModuleTypes,
    pub locals: &'a NewLocals<'l>,
    pub loops: &'a Loops,
    pub places: Places,
    pub scratch: Scratch,
}

impl Weaver<'_, '_> {
    /// Puts all of `inserts`, which are in [`order`], where they belong.
    pub(crate) fn weave(&mut self, inserts: &[Insert]) {
        let seq_of = |insert: &Insert| place_of(insert.site).map(|(place, _)| place.seq);
        for group in inserts.chunk_by(|a, b| seq_of(a) == seq_of(b)) {
            if let Some(seq) = seq_of(&group[0]) {
                self.sequence(seq, group);
            }
        }
    }

    fn sequence(&mut self, seq: InstrSeqId, mut inserts: &[Insert]) {
        let old = std::mem::take(&mut self.function.block_mut(seq).instrs);
        let added: usize = inserts.iter().map(added).sum();
        let mut code = Code::with_capacity(old.len() + added);
        let mut old = old.into_iter();
        for index in 0.. {
            let here =
                inserts.iter().take_while(|i| place_of(i.site).is_some_and(|at| at.0.index == index)).count();
            let (now, later) = inserts.split_at(here);
            inserts = later;
            let befores = now.iter().take_while(|insert| matches!(insert.site, Site::Before(_))).count();
            for insert in &now[..befores] {
                self.act(&mut code, insert.action);
            }
            let Some(instr) = old.next() else { break };
            self.branch(&mut code, instr, &now[befores..]);
        }
        self.function.block_mut(seq).instrs = code;
    }

    /// Appends `instr`, with `inserts` on its ways out.
    fn branch(&mut self, code: &mut Code, instr: (Instr, InstrLocId), inserts: &[Insert]) {
        let Some(first) = inserts.first() else {
            code.push(instr);
            return;
        };
        let (instr, location) = instr;
        match instr {
            Instr::BrIf(BrIf { block }) => {
                let carried =
                    label_types(self.types, self.function, block, self.loops.has(block)).into_owned();
                let ty = block_type(self.types, &carried, &carried);
                let mut taken = Code::with_capacity(length(first.action) + 1);
                self.act(&mut taken, first.action);
                taken.push((Br { block }.into(), location));
                let consequent = sequence(self.function, ty, taken);
                let alternative = sequence(self.function, ty, Code::new());
                code.push((IfElse { consequent, alternative }.into(), location));
            }
            Instr::BrTable(table) => self.table(code, table, location, inserts),
            Instr::TryTable(body) => {
                let mut codes = Vec::new();
                for insert in inserts {
                    let mut caught = Code::new();
                    self.act(&mut caught, insert.action);
                    if let Site::Catch(_, clause) = insert.site {
                        codes.push((clause as usize, caught));
                    }
                }
                let wrapped = wrap_catches(self.function, self.types, self.loops, body, location, codes);
                code.push((wrapped, location));
            }
            other => {
                self.act(code, first.action);
                code.push((other, location));
                self.undo(code, first.action);
            }
        }
    }

    fn table(&mut self, code: &mut Code, mut table: BrTable, location: InstrLocId, inserts: &[Insert]) {
        let index = self.scratch.local(self.locals, ValType::I32, 0);
        let counted: Vec<(u32, Action)> = inserts
            .iter()
            .filter_map(|insert| match insert.site {
                Site::Table(_, arm) => Some((arm, insert.action)),
                _ => None,
            })
            .collect();
        let default = table.default;
        if label_types(self.types, self.function, default, self.loops.has(default)).is_empty() {
            set(code, index);
            let chain = self.chain(&counted, &mut table, index, None);
            code.extend(chain);
            return;
        }
        tee(code, index);
        let done = sequence(self.function, None, Code::new());
        let mut counting = table.clone();
        let chain = self.chain(&counted, &mut counting, index, Some(done));
        self.function.block_mut(done).instrs = chain;
        push(code, Block { seq: done });
        code.push((table.into(), location));
    }

    /// A `br_table` on `index` inside of one block for each of the arms that are `counted`, after which it is counted and control
    /// goes where the arm leads, or to `done` if there is one.
    fn chain(
        &mut self,
        counted: &[(u32, Action)],
        table: &mut BrTable,
        index: LocalId,
        done: Option<InstrSeqId>,
    ) -> Code {
        let blocks: Vec<InstrSeqId> =
            counted.iter().map(|_| sequence(self.function, None, Code::new())).collect();
        let targets: Vec<InstrSeqId> = counted.iter().map(|(arm, _)| target(table, *arm)).collect();
        let arms = arms(table);
        for (target, arm) in table.blocks.iter_mut().chain([&mut table.default]).zip(arms) {
            match counted.binary_search_by_key(&arm, |(arm, _)| *arm) {
                Ok(found) => *target = blocks[found],
                Err(_) => *target = done.unwrap_or(*target),
            }
        }
        let mut code = Code::new();
        get(&mut code, index);
        push(&mut code, table.clone());
        for (block, (target, (_, action))) in blocks.into_iter().zip(targets.into_iter().zip(counted)) {
            self.function.block_mut(block).instrs = code;
            code = Code::new();
            push(&mut code, Block { seq: block });
            self.act(&mut code, *action);
            push(&mut code, Br { block: done.unwrap_or(target) });
        }
        code
    }
}

/// Sorts inserts as [`Weaver::weave`] takes them.
pub(crate) fn order(inserts: &mut [Insert]) {
    inserts.sort_by_key(|insert| {
        place_of(insert.site).map(|(place, order)| (place.seq.index(), place.index, order))
    });
}

/// Makes the types of the blocks exist that [`Weaver::weave`] needs for these inserts.
pub(crate) fn declare(types: &mut ModuleTypes, function: &LocalFunction, loops: &Loops, inserts: &[Insert]) {
    for insert in inserts {
        let (Site::Taken(place) | Site::Catch(place, _)) = insert.site else { continue };
        match (&function.block(place.seq).instrs[place.index as usize].0, insert.site) {
            (&Instr::BrIf(BrIf { block }), _) => {
                let carried = label_types(types, function, block, loops.has(block)).into_owned();
                InstrSeqType::new(types, &carried, &carried);
            }
            (Instr::TryTable(body), Site::Catch(_, clause)) => {
                declare_wrapper(types, function, loops, body, clause as usize);
            }
            _ => {}
        }
    }
}

/// Makes the type of the block exist that [`wrap_catches`] puts around a catch clause.
pub(crate) fn declare_wrapper(
    types: &mut ModuleTypes,
    function: &LocalFunction,
    loops: &Loops,
    body: &TryTable,
    clause: usize,
) {
    let parameters = parameter_types(types, function.block(body.seq).ty);
    let label = catch_label(&body.catches[clause]);
    let carried = label_types(types, function, label, loops.has(label)).into_owned();
    InstrSeqType::new(types, &parameters, &carried);
}

/// Instructions that a sequence gains, about.
fn added(insert: &Insert) -> usize {
    match insert.site {
        Site::Before(_) => length(insert.action),
        _ => 1,
    }
}

fn place_of(site: Site) -> Option<(Place, u32)> {
    match site {
        Site::Virtual => None,
        Site::Before(place) => Some((place, 0)),
        Site::Taken(place) => Some((place, 1)),
        Site::Table(place, arm) => Some((place, 1 + arm)),
        Site::Catch(place, clause) => Some((place, 1 + clause)),
    }
}

/// A block that does what `body` does, and runs `codes[i].1` when its catch clause `codes[i].0` catches.
pub(crate) fn wrap_catches(
    function: &mut LocalFunction,
    types: &ModuleTypes,
    loops: &Loops,
    mut body: TryTable,
    location: InstrLocId,
    codes: Vec<(usize, Code)>,
) -> Instr {
    let ty = function.block(body.seq).ty;
    let parameters = parameter_types(types, ty);
    let after = sequence(function, ty, Code::new());
    let mut wrappers = Vec::new();
    for (clause, caught) in codes {
        let (TryTableCatch::Catch { label, .. }
        | TryTableCatch::CatchRef { label, .. }
        | TryTableCatch::CatchAll { label }
        | TryTableCatch::CatchAllRef { label }) = &mut body.catches[clause];
        let carried = label_types(types, function, *label, loops.has(*label)).into_owned();
        let ty = block_type(types, &parameters, &carried);
        let wrapper = sequence(function, ty, Code::new());
        wrappers.push((wrapper, std::mem::replace(label, wrapper), caught));
    }
    let mut code = vec![(body.into(), location)];
    push(&mut code, Br { block: after });
    for (wrapper, label, caught) in wrappers {
        function.block_mut(wrapper).instrs = code;
        code = Code::new();
        push(&mut code, Block { seq: wrapper });
        code.extend(caught);
        push(&mut code, Br { block: label });
    }
    function.block_mut(after).instrs = code;
    Block { seq: after }.into()
}
