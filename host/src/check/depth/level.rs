//! A path as a stack of levels, and its place in the tree.

use crate::check::sleep::{self, Rules};
use crate::choice::{Scripted, advance};
use crate::target::follows_preconditions;
use crate::trace::Action;

/// A state on the path, and which of its alternatives the path takes.
#[derive(Clone)]
pub(super) struct Level<S> {
    /// The state with the preconditions evaluated, which rules start from.
    pub(super) ready: Option<S>,
    /// The state before that, which faults are toggled in; saved where there are faults.
    pub(super) before: Option<S>,
    pub(super) actions: Vec<Action>,
    /// The alternative that the path takes, and the end of those that are this task's.
    pub(super) at: usize,
    pub(super) end: usize,
    /// The answers of this step; the first `fixed` are not this task's to change.
    pub(super) script: Vec<Scripted>,
    pub(super) fixed: usize,
    /// The step has not been performed with this script.
    pub(super) is_fresh: bool,
    /// Rules called and faults toggled up to this state.
    pub(super) depth: u32,
    /// The rules that sleep here, those before `at` included.
    pub(super) sleep: Rules,
}

impl<S> Level<S> {
    pub(super) fn action(&self) -> Action {
        self.actions[self.at]
    }

    /// Goes on to the next script, or to the next alternative; whether there is one.
    pub(super) fn advance(&mut self) -> bool {
        if advance(&mut self.script, self.fixed) {
            return true;
        }
        self.has_alternative() && {
            self.sleep |= bit(self.action());
            self.at += 1;
            self.script.clear();
            self.fixed = 0;
            true
        }
    }

    /// Bytes that it holds, about, without what is saved.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Level<S>>() + size_of_val(&*self.actions) + size_of_val(&*self.script)
    }

    pub(super) fn has_alternative(&self) -> bool {
        self.at + 1 < self.end
    }

    /// The state that its step starts from, where it is saved.
    pub(super) fn saved(&self) -> Option<&S> {
        self.saved_before(self.action())
    }

    /// The state that such a step would start from here, where it is saved.
    pub(super) fn saved_before(&self, action: Action) -> Option<&S> {
        if follows_preconditions(action) { self.ready.as_ref() } else { self.before.as_ref() }
    }
}

pub(super) fn bit(action: Action) -> Rules {
    match action {
        Action::Rule(rule) => sleep::bit(rule),
        _ => sleep::NONE,
    }
}

/// A place in the tree: for each level the alternative and the answers. Places compare as the tree is walked.
pub(super) type Place = Vec<u32>;

pub(super) fn place_of<S>(levels: &[Level<S>]) -> Place {
    let of_level = |level: &Level<S>| {
        std::iter::once(level.at as u32).chain(level.script.iter().map(|s| s.number)).collect::<Vec<_>>()
    };
    levels.iter().flat_map(of_level).collect()
}

/// The part of the tree that lies before a path, of 1.
pub(super) fn position<S>(levels: &[Level<S>]) -> f64 {
    let (mut before, mut weight) = (0.0, 1.0);
    let mut branch = |index: usize, count: f64| {
        weight /= count;
        before += weight * index as f64;
    };
    for level in levels {
        branch(level.at, level.actions.len() as f64);
        for scripted in &level.script {
            branch(scripted.number as usize, scripted.kind.alternatives().unwrap_or(1) as f64);
        }
    }
    before
}

impl<S: Clone> Level<S> {
    /// As a part of a path of which no alternative is left.
    pub(super) fn frozen(&self) -> Level<S> {
        let mut level = Level { ready: None, before: None, ..self.clone() };
        (level.end, level.fixed, level.is_fresh) = (level.at + 1, level.script.len(), false);
        level
    }
}
