//! What paths control can take through a function.
//!
//! Control flow in WebAssembly is structured, and a branch back leads to where control has been, so one pass over the code
//! in its order finds what can be reached.

use std::ops::Range;

use wasmparser::{Catch, FunctionBody, Operator};

/// A block that control is in.
struct Block {
    is_loop: bool,
    /// Of an `if` that has had no `else` yet.
    may_be_passed: bool,
    start: State,
    /// At its end, by a branch or from an arm before this one.
    end: State,
}

/// How control can be at a point of the code.
#[derive(Clone, Copy, Default)]
struct State {
    /// It can.
    is_live: bool,
    /// It can, from an instruction inside of the code that is looked at.
    is_from_inside: bool,
}

impl State {
    fn join(&mut self, other: State) {
        self.is_live |= other.is_live;
        self.is_from_inside |= other.is_from_inside;
    }
}

/// Whether a path leaves the code at these offsets, sorted, other than by ending the run or throwing an exception; none
/// where the body cannot be read. `called` is told of every function that is called or referred to.
pub(super) fn leaves(
    body: &FunctionBody<'_>,
    code: &[Range<usize>],
    never_returning: &[bool],
    mut called: impl FnMut(u32),
) -> Option<bool> {
    let is_inside = |offset: usize| {
        let after = code.partition_point(|range| range.start <= offset);
        after > 0 && offset < code[after - 1].end
    };
    let start = State { is_live: true, is_from_inside: is_inside(body.range().start) };
    let mut flow = Flow { blocks: Vec::new(), at: start, leaves: false };
    flow.open(false, false);
    for operator in body.get_operators_reader().ok()?.into_iter_with_offsets() {
        let (operator, offset) = operator.ok()?;
        if let Operator::Call { function_index }
        | Operator::ReturnCall { function_index }
        | Operator::RefFunc { function_index } = operator
        {
            called(function_index);
        }
        flow.step(&operator, || is_inside(offset), never_returning);
    }
    Some(flow.leaves)
}

struct Flow {
    /// The function's own body first.
    blocks: Vec<Block>,
    at: State,
    leaves: bool,
}

impl Flow {
    fn step(&mut self, operator: &Operator<'_>, is_inside: impl Fn() -> bool, never_returning: &[bool]) {
        match operator {
            // These only give the code its structure.
            Operator::Block { .. } | Operator::Try { .. } => self.open(false, false),
            Operator::Loop { .. } => self.open(true, false),
            Operator::Else | Operator::Catch { .. } | Operator::CatchAll => self.next_arm(),
            Operator::End | Operator::Delegate { .. } => self.close(),
            _ if self.at.is_live => {
                let is_inside = is_inside();
                self.leaves |= self.at.is_from_inside && !is_inside;
                self.at.is_from_inside = is_inside;
                self.execute(operator, never_returning);
            }
            Operator::If { .. } | Operator::TryTable { .. } => self.open(false, false),
            _ => {}
        }
    }

    fn execute(&mut self, operator: &Operator<'_>, never_returning: &[bool]) {
        use Operator as O;
        match operator {
            O::If { .. } => self.open(false, true),
            O::TryTable { try_table } => {
                // An exception may come from anywhere inside; the labels count from outside.
                for catch in &try_table.catches {
                    let (Catch::One { label, .. }
                    | Catch::OneRef { label, .. }
                    | Catch::All { label }
                    | Catch::AllRef { label }) = *catch;
                    self.branch(label);
                }
                self.open(false, false);
            }
            O::Br { relative_depth } => {
                self.branch(*relative_depth);
                self.at = State::default();
            }
            O::BrTable { targets } => {
                let all = targets.targets().map_while(Result::ok).chain([targets.default()]);
                all.for_each(|depth| self.branch(depth));
                self.at = State::default();
            }
            O::BrIf { relative_depth }
            | O::BrOnNull { relative_depth }
            | O::BrOnNonNull { relative_depth }
            | O::BrOnCast { relative_depth, .. }
            | O::BrOnCastFail { relative_depth, .. }
            | O::BrOnCastDescEq { relative_depth, .. }
            | O::BrOnCastDescEqFail { relative_depth, .. } => self.branch(*relative_depth),
            O::Call { function_index } if is_in(never_returning, *function_index) => {
                self.at = State::default()
            }
            O::ReturnCall { function_index } if is_in(never_returning, *function_index) => {
                self.at = State::default()
            }
            O::Return | O::ReturnCall { .. } | O::ReturnCallIndirect { .. } | O::ReturnCallRef { .. } => {
                self.leave()
            }
            O::Unreachable | O::Throw { .. } | O::ThrowRef | O::Rethrow { .. } => self.at = State::default(),
            _ => {}
        }
    }

    fn open(&mut self, is_loop: bool, may_be_passed: bool) {
        self.blocks.push(Block { is_loop, may_be_passed, start: self.at, end: State::default() });
    }

    fn next_arm(&mut self) {
        if let Some(block) = self.blocks.last_mut() {
            block.end.join(self.at);
            block.may_be_passed = false;
            self.at = block.start;
        }
    }

    fn close(&mut self) {
        if let Some(block) = self.blocks.pop() {
            self.at.join(block.end);
            if block.may_be_passed {
                self.at.join(block.start);
            }
            if self.blocks.is_empty() {
                self.leave();
            }
        }
    }

    fn branch(&mut self, depth: u32) {
        let index = self.blocks.len().checked_sub(1 + depth as usize);
        if let Some(block) = index.and_then(|index| self.blocks.get_mut(index)) {
            match block.is_loop {
                // Whatever came to a loop from outside of the code may be outside itself.
                true => self.leaves |= self.at.is_from_inside && !block.start.is_from_inside,
                false => block.end.join(self.at),
            }
        }
    }

    fn leave(&mut self) {
        self.leaves |= self.at.is_from_inside;
        self.at = State::default();
    }
}

pub(super) fn is_in(never_returning: &[bool], function: u32) -> bool {
    never_returning.get(function as usize).copied().unwrap_or(false)
}
