//! Where an `unreachable` stands that a compiler made one instruction of with the branch that leads there: it traps at the branch, unless an
//! edge is counted in between.

use wasmparser::{FunctionBody, Operator};

/// The first bytes of such branches: `if` and `br_if`.
pub(super) const BRANCHES: [u8; 2] = [0x04, 0x0d];

/// The offset of the `unreachable` that the branch at an offset of a body leads to at once; the same offset where there is no such branch.
pub(super) fn unreachable_after(body: &FunctionBody<'_>, offset: usize) -> usize {
    find(body, offset).unwrap_or(offset)
}

fn find(body: &FunctionBody<'_>, offset: usize) -> Option<usize> {
    let mut operators = body.get_operators_reader().ok()?.into_iter_with_offsets().map_while(Result::ok);
    // Of the blocks around the branch, whether each is a loop.
    let mut around = Vec::new();
    let branch = operators.find(|(operator, at)| {
        if *at < offset {
            step(operator, &mut around);
        }
        *at >= offset
    });
    // So many blocks end before what a branch that is taken leads to.
    let (is_if, mut left) = match branch.filter(|(_, at)| *at == offset)?.0 {
        Operator::If { .. } => (true, 1),
        Operator::BrIf { relative_depth } => {
            let is_loop = around.iter().rev().nth(relative_depth as usize).copied().unwrap_or(true);
            (false, if is_loop { 0 } else { relative_depth as usize + 1 })
        }
        _ => return None,
    };
    let mut within = Vec::new();
    let (mut is_next, mut is_last) = (true, left == 0);
    for (operator, at) in operators {
        if is_next && matches!(operator, Operator::Unreachable) {
            return Some(at);
        }
        if is_next && is_last {
            return None;
        }
        is_next = is_if && within.is_empty() && matches!(operator, Operator::Else);
        if matches!(operator, Operator::End) && within.is_empty() {
            left -= 1;
            (is_next, is_last) = (left == 0, left == 0);
        } else {
            step(&operator, &mut within);
        }
    }
    None
}

fn step(operator: &Operator<'_>, blocks: &mut Vec<bool>) {
    match operator {
        Operator::Block { .. } | Operator::If { .. } | Operator::TryTable { .. } => blocks.push(false),
        Operator::Loop { .. } => blocks.push(true),
        Operator::End => drop(blocks.pop()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmparser::{Parser, Payload};

    /// The branch is the first of its kind, and what it leads to the `nth` `unreachable`, or nothing.
    #[track_caller]
    fn check(code: &str, nth: Option<usize>) {
        let wasm = wat::parse_str(format!("(module (func (param i32) {code}))")).unwrap();
        let body = Parser::new(0).parse_all(&wasm).map(Result::unwrap).find_map(|payload| match payload {
            Payload::CodeSectionEntry(body) => Some(body),
            _ => None,
        });
        let body = body.unwrap();
        let all: Vec<(Operator<'_>, usize)> =
            body.get_operators_reader().unwrap().into_iter_with_offsets().map(Result::unwrap).collect();
        let is_branch = |(operator, _): &&(Operator<'_>, usize)| {
            matches!(operator, Operator::If { .. } | Operator::BrIf { .. })
        };
        let branch = all.iter().find(is_branch).unwrap().1;
        let traps = all.iter().filter(|(operator, _)| matches!(operator, Operator::Unreachable));
        let traps: Vec<usize> = traps.map(|(_, at)| *at).collect();
        assert_eq!(unreachable_after(&body, branch), nth.map_or(branch, |nth| traps[nth]), "{code}");
        // Any other instruction is where it is.
        for (_, at) in all.iter().filter(|all| !is_branch(all)) {
            assert_eq!(unreachable_after(&body, *at), *at, "{code}");
        }
    }

    #[test]
    fn a_branch_leads_to_a_trap() {
        check("(if (local.get 0) (then unreachable))", Some(0));
        check("(if (local.get 0) (then nop) (else unreachable))", Some(0));
        check("(if (local.get 0) (then (block (loop)) return) (else unreachable)) unreachable", Some(0));
        check("(if (local.get 0) (then return)) unreachable", Some(0));
        check("(if (local.get 0) (then nop) (else nop)) nop unreachable", None);
        check("(br_if 0 (local.get 0)) unreachable", Some(0));
        check("(block (br_if 0 (local.get 0)) nop return) unreachable", Some(0));
        check("(block (block (br_if 1 (local.get 0)) nop (block) return) nop) unreachable", Some(0));
        check("(block (block (br_if 0 (local.get 0)) (br 1)) unreachable)", Some(0));
        check("(loop (br_if 0 (local.get 0)) nop) unreachable", None);
        check("(br_if 0 (local.get 0)) nop unreachable", None);
    }
}
