//! What a step starts from: a state, and answers that are tried.

use super::nodes::NONE;
use crate::check::sleep::Rules;
use crate::choice::{Kind, Scripted};

/// A prefix of answers of one step. They are visited in the order in which they are added.
pub(super) struct Prefix {
    pub(super) parent: u32,
    pub(super) number: u32,
    /// The index of what is asked after it.
    pub(super) asks: u32,
}

impl Prefix {
    /// The answers that lead to one of these, whose questions are `kinds`.
    pub(super) fn script(all: &[Prefix], at: usize, kinds: &[Kind], script: &mut Vec<Scripted>) {
        script.clear();
        let mut prefix = &all[at];
        while prefix.parent != NONE {
            let parent = &all[prefix.parent as usize];
            script.push(Scripted { kind: kinds[parent.asks as usize], number: prefix.number });
            prefix = parent;
        }
        script.reverse();
    }
}

/// The state that steps start from.
pub(super) struct Start<S> {
    pub(super) node: u32,
    pub(super) before: Option<S>,
    /// The target keeps the state after the preconditions were evaluated.
    pub(super) is_marked: bool,
    /// The target is there, with the preconditions evaluated.
    pub(super) is_in_place: bool,
    /// The rules that sleep, those that were explored here included.
    pub(super) sleep: Rules,
}
