//! Rewrites a function that may be left in the middle.
//!
//! In each sequence, what comes before a place where it may be left is put into a block, so that a branch out of it leads there:
//!
//! ```wat
//! a                        (block $1
//! (call $f)                  (block $0
//! b                            (br_table $0 $1 … (local.get $at)))     ;; not at first: $at is -1
//! (loop c (call $g))  =>       a)
//! d                          (call $f) b)
//!                          (loop … c (call $g))
//!                          d
//! ```
//!
//! At such a place the operand stack is empty, since a branch brings nothing along: what was on it is in locals, and put back
//! after the label. Those below the operands of the call are saved as locals are.

use super::frame::{Frame, zero};
use super::live::{Live, live};
use super::operands::Operands;
use super::reach::Reach;
use super::runtime::{Runtime, Word};
use super::{Shape, inner};
use crate::code::*;
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use walrus::ir::*;
use walrus::{FunctionId, LocalFunction, LocalId, Module, ModuleLocals, ModuleTypes, ValType};

/// Instructions that are added to all functions, at most.
const ADDED_MAX: usize = 8_000_000;

/// Rewrites the functions of a module.
pub(super) struct Split<'a> {
    reach: &'a Reach,
    operands: &'a Operands,
    runtime: &'a Runtime,
    /// Calls in functions before.
    sites: u32,
    added: usize,
}

impl<'a> Split<'a> {
    pub(super) fn new(reach: &'a Reach, operands: &'a Operands, runtime: &'a Runtime) -> Self {
        Self { reach, operands, runtime, sites: 0, added: 0 }
    }

    pub(super) fn function(
        &mut self,
        module: &mut Module,
        id: FunctionId,
        shape: &Shape,
        name: &str,
    ) -> Result<()> {
        let (types, locals) = (&module.types, &mut module.locals);
        let function = module.funcs.get_mut(id).kind.unwrap_local_mut();
        let results = types.results(function.ty()).to_vec();
        let (at, pointer) = (locals.add(ValType::I32), locals.add(ValType::I32));
        let live = live(function, shape);
        let unwind = sequence(function, None, Code::new());
        let code = Rewrite {
            reach: self.reach,
            operands: self.operands,
            runtime: self.runtime,
            shape,
            live,
            name,
            at,
            unwind,
            types,
            locals,
            function,
            pool: BTreeMap::new(),
            held: Vec::new(),
            sites: Vec::new(),
        };
        let (sites, local_types) = code.body()?;
        let saved: Vec<BTreeSet<LocalId>> = sites.iter().map(|site| site.saved.clone()).collect();
        let frame = Frame::of(&saved, &local_types);
        let references = results.iter().any(|ty| matches!(ty, ValType::Ref(_)));
        ensure!(!references, "{}", holds_reference(name));
        self.added += sites.len() * frame.slots();
        ensure!(
            self.added <= ADDED_MAX,
            "the functions up to `{name}` that may be left in the middle (they may reach `suspend`) have too many calls and \
             locals: more than {ADDED_MAX} of both together"
        );
        for (number, site) in sites.iter().enumerate() {
            let mut leave = Code::new();
            i32_const(&mut leave, number as u32);
            set(&mut leave, at);
            frame.forget(&mut leave, &site.saved);
            push(&mut leave, Br { block: unwind });
            function.block_mut(site.leave).instrs = leave;
        }
        let numbers = (self.sites, sites.len() as u32);
        self.sites += numbers.1;
        let entry = function.entry_block();
        let mut code = frame.read_back(function, self.runtime, (at, pointer), numbers);
        push(&mut code, Block { seq: unwind });
        code.append(&mut frame.write_down(function, self.runtime, (at, pointer), numbers.0));
        results.iter().for_each(|ty| zero(&mut code, *ty));
        function.block_mut(entry).instrs = code;
        Ok(())
    }
}

fn holds_reference(name: &str) -> String {
    format!(
        "`{name}` holds or returns a reference where it may be left in the middle (it may reach `suspend`), and references \
         cannot be written to memory"
    )
}

/// Nothing after it is reached.
fn is_end(instr: &Instr) -> bool {
    matches!(
        instr,
        Instr::Br(_)
            | Instr::BrTable(_)
            | Instr::Return(_)
            | Instr::Unreachable(_)
            | Instr::ReturnCall(_)
            | Instr::ReturnCallIndirect(_)
            | Instr::ReturnCallRef(_)
    )
}

/// A call in which a function may be left.
struct Site {
    /// The locals that matter.
    saved: BTreeSet<LocalId>,
    /// What is done there to leave it.
    leave: InstrSeqId,
}

/// What a local is for. What a block is given is garbage where a function is brought back into it, so that must not be where
/// operands are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Operand,
    Parameter,
    Scratch,
}

/// Rewrites one function.
struct Rewrite<'a> {
    reach: &'a Reach,
    operands: &'a Operands,
    runtime: &'a Runtime,
    shape: &'a Shape,
    live: Live,
    name: &'a str,
    /// The call to go to, or -1.
    at: LocalId,
    unwind: InstrSeqId,
    types: &'a ModuleTypes,
    locals: &'a mut ModuleLocals,
    function: &'a mut LocalFunction,
    /// For operands: by how deep the block is, the use, the place on its stack, and the type.
    pool: BTreeMap<(usize, Use, usize, u8), LocalId>,
    /// For each block that it is in, the operands that lie below.
    held: Vec<Vec<LocalId>>,
    sites: Vec<Site>,
}

impl Rewrite<'_> {
    /// Moves the body into `unwind`, which is left at its end only to write things down.
    fn body(mut self) -> Result<(Vec<Site>, BTreeMap<LocalId, ValType>)> {
        let entry = self.function.entry_block();
        self.sequence(entry)?;
        let mut code = std::mem::take(&mut self.function.block_mut(entry).instrs);
        if !code.last().is_some_and(|(last, _)| is_end(last)) {
            push(&mut code, Return {});
        }
        self.function.block_mut(self.unwind).instrs = code;
        let saved = self.sites.iter().flat_map(|site| &site.saved);
        let types: BTreeMap<LocalId, ValType> =
            saved.map(|local| (*local, self.locals.get(*local).ty())).collect();
        let references = types.values().any(|ty| matches!(ty, ValType::Ref(_)));
        ensure!(!references, "{}", holds_reference(self.name));
        Ok((self.sites, types))
    }

    fn sequence(&mut self, seq: InstrSeqId) -> Result<()> {
        let instrs = std::mem::take(&mut self.function.block_mut(seq).instrs);
        let parameters = parameter_types(self.types, self.function.block(seq).ty);
        let places = instrs.iter().filter(|(instr, location)| self.shape.is_split(instr, *location)).count();
        let labels: Vec<InstrSeqId> =
            (0..places).map(|_| sequence(self.function, None, Code::new())).collect();
        let parameters: Vec<_> = parameters.into_iter().map(Some).collect();
        let parameters = self.spill_locals(&parameters, Use::Parameter)?;
        let first = self.sites.len();
        let mut leads = Vec::new();
        let mut code: Code = Code::new();
        parameters.iter().for_each(|local| get(&mut code, *local));
        let mut next = labels.iter();
        for (instr, location) in instrs {
            if !self.shape.is_split(&instr, location) {
                code.push((instr, location));
                continue;
            }
            let label = *next.next().context("a label for each place")?;
            let operands = self.operands.at(offset_of(location)).context("a place that is reached")?;
            let spilled = self.spill_locals(operands, Use::Operand)?;
            spilled.iter().rev().for_each(|local| set(&mut code, *local));
            self.function.block_mut(label).instrs = std::mem::take(&mut code);
            push(&mut code, Block { seq: label });
            let sites = self.sites.len();
            self.place(&mut code, (instr, location), &spilled)?;
            leads.resize(leads.len() + self.sites.len() - sites, label);
        }
        let dispatch = self.dispatch(first, &leads, &labels);
        self.function.block_mut(labels[0]).instrs.splice(0..0, dispatch);
        let mut begin = Code::new();
        parameters.iter().rev().for_each(|local| set(&mut begin, *local));
        begin.append(&mut code);
        self.function.block_mut(seq).instrs = begin;
        Ok(())
    }

    /// Goes to the place in which the call is that was not left yet, if there is one.
    fn dispatch(&mut self, first: usize, leads: &[InstrSeqId], labels: &[InstrSeqId]) -> Code {
        let mut code = Code::new();
        get(&mut code, self.at);
        if let [label] = labels {
            i32_const(&mut code, 0);
            binop(&mut code, BinaryOp::I32GeS);
            push(&mut code, BrIf { block: *label });
            return code;
        }
        let start = sequence(self.function, None, Code::new());
        i32_const(&mut code, first as u32);
        binop(&mut code, BinaryOp::I32Sub);
        push(&mut code, BrTable { blocks: leads.into(), default: start });
        self.function.block_mut(start).instrs = code;
        vec![(Block { seq: start }.into(), InstrLocId::default())]
    }

    /// Locals for what is on the operand stack.
    fn spill_locals(&mut self, types: &[Option<ValType>], purpose: Use) -> Result<Vec<LocalId>> {
        let depth = self.held.len();
        let mut spilled = Vec::with_capacity(types.len());
        for (place, ty) in types.iter().enumerate() {
            let ty = ty.with_context(|| holds_reference(self.name))?;
            ensure!(!matches!(ty, ValType::Ref(_)), "{}", holds_reference(self.name));
            let kind =
                [ValType::I32, ValType::I64, ValType::F32, ValType::F64].iter().position(|it| *it == ty);
            let key = (depth, purpose, place, kind.map_or(u8::MAX, |kind| kind as u8));
            let locals = &mut *self.locals;
            spilled.push(*self.pool.entry(key).or_insert_with(|| locals.add(ty)));
        }
        Ok(spilled)
    }

    /// What is at a place, after its label.
    fn place(
        &mut self,
        code: &mut Code,
        (instr, location): (Instr, InstrLocId),
        spilled: &[LocalId],
    ) -> Result<()> {
        let taken = self.taken(&instr);
        let below = spilled[..spilled.len() - taken].to_vec();
        if inner(&instr).is_empty() {
            return self.call(code, (instr, location), spilled, below);
        }
        let first = self.sites.len();
        self.held.push(below);
        let mut ends = Vec::new();
        for seq in inner(&instr) {
            if self.shape.split.contains(&seq) {
                self.sequence(seq)?;
            }
            ends.push(self.sites.len());
        }
        self.held.pop();
        spilled.iter().for_each(|local| get(code, *local));
        if matches!(instr, Instr::IfElse(_)) {
            self.condition(code, first, ends[0]);
        }
        code.push((instr, location));
        Ok(())
    }

    /// Which way to go where the call is in one of them: the first has those from `first` up to `end`.
    fn condition(&mut self, code: &mut Code, first: usize, end: usize) {
        // The condition, the way, whether there is one.
        get(code, self.at);
        i32_const(code, end as u32);
        binop(code, BinaryOp::I32LtS);
        let at = self.at;
        // Swapped: `select` takes the first if the last is not 0.
        let way = self.scratch(0);
        let condition = self.scratch(1);
        set(code, way);
        set(code, condition);
        get(code, way);
        get(code, condition);
        get(code, at);
        i32_const(code, first as u32);
        binop(code, BinaryOp::I32GeS);
        push(code, Select { ty: None });
    }

    fn scratch(&mut self, number: usize) -> LocalId {
        let locals = &mut *self.locals;
        *self.pool.entry((usize::MAX, Use::Scratch, number, 0)).or_insert_with(|| locals.add(ValType::I32))
    }

    fn call(
        &mut self,
        code: &mut Code,
        (instr, location): (Instr, InstrLocId),
        spilled: &[LocalId],
        below: Vec<LocalId>,
    ) -> Result<()> {
        let mut saved: BTreeSet<LocalId> = self.live[&offset_of(location)].iter().copied().collect();
        saved.extend(self.held.iter().flatten().chain(&below));
        if let Instr::CallIndirect(_) = instr {
            saved.extend(spilled.last());
        }
        i32_const(code, u32::MAX);
        set(code, self.at);
        spilled.iter().for_each(|local| get(code, *local));
        code.push((instr, location));
        self.runtime.word(code, Word::State);
        let leave = sequence(self.function, None, Code::new());
        let alternative = sequence(self.function, None, Code::new());
        push(code, IfElse { consequent: leave, alternative });
        self.sites.push(Site { saved, leave });
        Ok(())
    }

    /// How many operands an instruction takes.
    fn taken(&self, instr: &Instr) -> usize {
        match instr {
            Instr::Call(Call { func }) => self.types.params(self.reach.ty(*func)).len(),
            Instr::CallIndirect(CallIndirect { ty, .. }) => self.types.params(*ty).len() + 1,
            Instr::Block(Block { seq }) | Instr::Loop(Loop { seq }) => {
                parameter_types(self.types, self.function.block(*seq).ty).len()
            }
            Instr::IfElse(IfElse { consequent, .. }) => {
                parameter_types(self.types, self.function.block(*consequent).ty).len() + 1
            }
            other => unreachable!("{other:?} is no place"),
        }
    }
}
