//! A path as a stack of levels, and its place in the tree.

use crate::check::path;
use crate::check::sleep::{self, Rules};
use crate::choice::{Scripted, advance};
use crate::target::follows_preconditions;
use crate::trace::{Action, Trace};

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

/// What was last seen of a path.
#[derive(Default)]
pub(super) struct Seen {
    /// The part of the tree that lies before it, of 1.
    pub(super) position: f64,
    /// What it holds now is not more.
    pub(super) bytes: usize,
    /// Levels that might have been looked at since.
    unseen: usize,
}

/// Levels that are looked at each time, on average.
const SEEN: usize = 256;

impl Seen {
    pub(super) fn of<S>(levels: &[Level<S>]) -> Seen {
        Seen { position: position(levels), bytes: levels.iter().map(Level::bytes).sum(), unseen: 0 }
    }

    /// The path goes on by this level.
    pub(super) fn gains<S>(&mut self, level: &Level<S>) {
        self.bytes += level.bytes();
    }

    /// Looks at a path, but seldom where it is long, unless that `matters`: it would take longer than steps. Of one that is over the position stays.
    pub(super) fn look<S>(&mut self, levels: &[Level<S>], matters: bool) {
        self.unseen += SEEN;
        if matters || self.unseen >= levels.len() {
            let before = std::mem::replace(self, Seen::of(levels)).position;
            if levels.is_empty() {
                self.position = before;
            }
        }
    }
}

/// The part of the tree that lies before a path, of 1.
fn position<S>(levels: &[Level<S>]) -> f64 {
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

pub(super) fn trace_further(trace: &mut Trace, further: Option<Action>) {
    if let Some(action) = further {
        trace.push(action, 0);
    }
}

pub(super) fn trace_of<S>(levels: &[Level<S>]) -> Trace {
    let mut trace = Trace::default();
    for level in levels {
        path::push(&mut trace, level.action(), &level.script);
    }
    trace
}

impl<S: Clone> Level<S> {
    /// As a part of a path of which no alternative is left.
    pub(super) fn frozen(&self) -> Level<S> {
        let mut level = Level { ready: None, before: None, ..self.clone() };
        (level.end, level.fixed, level.is_fresh) = (level.at + 1, level.script.len(), false);
        level
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::{flip, run};
    use crate::check::{Limit, Options, Order};
    use crate::model::Model;
    use crate::outcome::Outcome;

    /// Answers of the last levels, where a long path is looked at seldom.
    #[test]
    fn what_a_long_path_gains_counts_at_once() {
        for long in (8000..8500).step_by(50) {
            let mut model = Model::new((0, long), &["next"], &[], |(at, long), _, chooser, _| {
                *at += 1;
                (0..if *at > *long { 2000 } else { 0 }).for_each(|_| _ = flip(chooser));
                Outcome::Pass
            });
            model.guard = |(at, _), _| *at < 16_000;
            let options = Options { order: Order::Depth, met_bytes_max: 4 << 20, ..Options::default() };
            let checked = run(model, &options);
            assert_eq!(checked.limit, Some(Limit::Memory));
            let depth = checked.census.depth;
            assert!((long..long + 70).contains(&depth), "{depth} after {long}");
        }
    }

    fn level(at: usize) -> Level<()> {
        Level {
            ready: None,
            before: None,
            actions: vec![Action::Rule(0), Action::Rule(1)],
            at,
            end: 2,
            script: Vec::new(),
            fixed: 0,
            is_fresh: false,
            depth: 0,
            sleep: sleep::NONE,
        }
    }

    #[test]
    fn a_long_path_is_seldom_looked_at() {
        let mut seen = Seen::of(&[level(0), level(1)]);
        assert_eq!(seen.position, 0.25);
        seen.look(&[level(1), level(0)], false);
        assert_eq!(seen.position, 0.5);
        let long: Vec<Level<()>> = (0..4 * SEEN).map(|_| level(0)).collect();
        (0..3).for_each(|_| seen.look(&long, false));
        assert_eq!(seen.position, 0.5);
        seen.look(&long, false);
        assert_eq!((seen.position, seen.bytes), (0.0, long.len() * long[0].bytes()));
        seen.look(&[level(1)], false);
        seen.look::<()>(&[], false);
        assert_eq!((seen.position, seen.bytes), (0.5, 0));
        seen.look(&long, true);
        assert_eq!(seen.position, 0.0);
    }
}
