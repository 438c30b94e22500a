//! The graph of states, where the guest has properties of runs without end: it is kept while the check goes on, and judged once it ends.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::nodes::{NONE, Nodes, index_of};
use super::{Check, Limit};
use crate::check::liveness::{Edge, Graph, Lasso};
use crate::check::path::{self, is_step};
use crate::check::{End, Keeping, lock};
use crate::choice::{Scripted, Value};
use crate::outcome::{Failure, FailureKind};
use crate::target::{Fairness, Holds, Liveness, Target};
use crate::trace::{Action, Trace};

/// Bytes that judging takes for each state.
const JUDGED_BYTES: usize = 128;
/// Bytes that drawing takes for each state and each answer; for a step twice as many.
const DRAWN_BYTES: usize = 128;

/// A step from one state to another.
#[derive(Clone, Serialize, Deserialize)]
struct Arrow {
    to: u32,
    action: Action,
    way: Option<u64>,
    /// Where its answers begin; they end where those of the next begin.
    script: u32,
}

/// The states that were met, by node, and the steps between them.
#[derive(Default)]
pub(super) struct States {
    pub(super) holds: Vec<Holds>,
    /// Where the arrows of each state begin that was looked at.
    starts: Vec<u32>,
    /// Whether everything was tried in it.
    is_whole: Vec<bool>,
    arrows: Vec<Arrow>,
    /// Answers, with the index of what was asked.
    scripts: Vec<(u32, u32)>,
    /// States in which a run fails.
    failing: Vec<u32>,
    drawn: [usize; 5],
}

/// Where an arrow leads that leads to no state, since the run ends; and where the run fails.
pub(super) const END: u32 = NONE;
pub(super) const FAILURE: u32 = NONE - 1;

/// The states that a check met, and the steps between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// How many steps each state is from the start. The first is that before setup, where there is one.
    pub depths: Vec<u32>,
    /// Of the states that were looked at.
    pub steps: Vec<Step>,
    /// States in which a run fails without a further step, in order.
    pub failing: Vec<u32>,
}

/// A step between two states.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The state that it is performed in.
    pub from: u32,
    /// Where it leads.
    pub to: To,
    /// What it does.
    pub action: Action,
    /// What its choices were answered with.
    pub values: Vec<Value>,
}

/// Where a step leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// To this state.
    State(u32),
    /// The run ends.
    End,
    /// The run fails.
    Failure,
}

/// What was added to the graph since the last time.
#[derive(Serialize, Deserialize)]
pub(super) struct Drawn {
    holds: Vec<Holds>,
    starts: Vec<u32>,
    is_whole: Vec<bool>,
    arrows: Vec<Arrow>,
    scripts: Vec<(u32, u32)>,
    failing: Vec<u32>,
}

/// How much of a graph is known that somebody else kept.
pub(super) struct GraphSizes {
    holds: usize,
    starts: usize,
    arrows: usize,
    scripts: usize,
    /// Where the arrows of the last state begin, and the answers of the last arrow.
    last: (u32, u32),
}

impl GraphSizes {
    pub(super) fn new() -> GraphSizes {
        GraphSizes { holds: 1, starts: 0, arrows: 0, scripts: 0, last: (0, 0) }
    }
}

impl Drawn {
    /// Whether it can follow on what is known of a graph, with which it counts then. There are so many nodes and questions.
    pub(super) fn fits(
        &self,
        sizes: &mut GraphSizes,
        (nodes, kinds): (usize, usize),
        is_known: impl Fn(Action) -> bool,
    ) -> bool {
        sizes.holds += self.holds.len();
        sizes.starts += self.starts.len();
        sizes.arrows += self.arrows.len();
        sizes.scripts += self.scripts.len();
        // In order, and not beyond the end.
        let goes_on = |last: &mut u32, next: u32, end: usize| {
            let is_next = (*last..).contains(&next) && next as usize <= end;
            *last = next;
            is_next
        };
        let is_node = |node: u32| (node as usize) < nodes;
        sizes.holds == nodes
            && sizes.starts <= nodes
            && self.is_whole.len() == self.starts.len()
            && self.starts.iter().all(|start| goes_on(&mut sizes.last.0, *start, sizes.arrows))
            && self.arrows.iter().all(|arrow| {
                let leads_on = arrow.to == END || arrow.to == FAILURE || is_node(arrow.to);
                leads_on && is_known(arrow.action) && goes_on(&mut sizes.last.1, arrow.script, sizes.scripts)
            })
            && self.scripts.iter().all(|(kind, _)| (*kind as usize) < kinds)
            && self.failing.iter().all(|node| is_node(*node))
    }
}

impl States {
    /// Of a target that has a state before setup, which meets all properties: no run stays there.
    pub(super) fn new(has_setup: bool) -> States {
        let to = if has_setup { u64::MAX } else { 0 };
        States { holds: vec![Holds { from: 0, to }], drawn: [1, 0, 0, 0, 0], ..States::default() }
    }

    /// The arrows of a node follow, which comes after those before. Those between were not looked at, where the check was stopped.
    pub(super) fn begin(&mut self, node: u32, is_whole: bool, fails: bool) {
        if fails {
            self.failing.push(node);
        }
        self.starts.resize(node as usize + 1, self.arrows.len() as u32);
        self.is_whole.resize(node as usize, false);
        self.is_whole.push(is_whole);
    }

    /// A step leads from the state that was begun last to a node, to [`END`] or to [`FAILURE`].
    pub(super) fn add<S>(
        &mut self,
        nodes: &mut Nodes<S>,
        to: u32,
        (action, way): (Action, Option<u64>),
        script: &[Scripted],
    ) {
        assert!(self.arrows.len() < u32::MAX as usize, "there are fewer than 2^32 steps");
        self.arrows.push(Arrow { to, action, way, script: self.scripts.len() as u32 });
        for scripted in script {
            let kind = index_of(&mut nodes.kinds, scripted.kind);
            self.scripts.push((kind, scripted.number));
        }
    }

    /// What was added since the last time.
    pub(super) fn drawn(&mut self) -> Drawn {
        let now = self.lens();
        let [holds, starts, arrows, scripts, failing] = std::mem::replace(&mut self.drawn, now);
        Drawn {
            holds: self.holds[holds..].to_vec(),
            starts: self.starts[starts..].to_vec(),
            is_whole: self.is_whole[starts..].to_vec(),
            arrows: self.arrows[arrows..].to_vec(),
            scripts: self.scripts[scripts..].to_vec(),
            failing: self.failing[failing..].to_vec(),
        }
    }

    fn lens(&self) -> [usize; 5] {
        let States { holds, starts, arrows, scripts, failing, .. } = self;
        [holds.len(), starts.len(), arrows.len(), scripts.len(), failing.len()]
    }

    /// Takes over what another process added.
    pub(super) fn take_over(&mut self, drawn: Drawn) {
        self.holds.extend(drawn.holds);
        self.starts.extend(drawn.starts);
        self.is_whole.extend(drawn.is_whole);
        self.arrows.extend(drawn.arrows);
        self.scripts.extend(drawn.scripts);
        self.failing.extend(drawn.failing);
        self.drawn = self.lens();
    }

    /// Bytes that it holds, and about what judging it takes, and drawing it where it is drawn.
    pub(super) fn bytes(&self, is_drawn: bool) -> usize {
        let drawn = if is_drawn { DRAWN_BYTES } else { 0 };
        let state = size_of::<Holds>() + JUDGED_BYTES + drawn;
        let arrow = size_of::<Arrow>() + size_of::<Edge>() + 2 * drawn;
        let answer = size_of::<(u32, u32)>() + drawn;
        self.holds.len() * state + self.arrows.len() * arrow + self.scripts.len() * answer
    }

    fn script(&self, arrow: usize) -> &[(u32, u32)] {
        let end = self.arrows.get(arrow + 1).map_or(self.scripts.len(), |next| next.script as usize);
        &self.scripts[self.arrows[arrow].script as usize..end]
    }

    /// The arrows with what is fair of them, and the fairness of each class.
    fn edges<T: Target>(&self, target: &T) -> (Vec<Edge>, Vec<Fairness>) {
        let rules = target.rules().len() as u16;
        let mut classes: Vec<Fairness> = (0..rules).map(|rule| target.fairness(rule).0).collect();
        let mut ways: BTreeMap<(u16, u64), u32> = BTreeMap::new();
        let edge = |arrow: &Arrow| {
            let class = match (arrow.action, arrow.way) {
                (Action::Rule(rule), Some(way)) => Some(*ways.entry((rule, way)).or_insert_with(|| {
                    classes.push(target.fairness(rule).0);
                    classes.len() as u32 - 1
                })),
                (Action::Rule(rule), None) => Some(rule.into()),
                _ => None,
            };
            Edge { to: if arrow.to == FAILURE { END } else { arrow.to }, class }
        };
        let edges = self.arrows.iter().map(edge).collect();
        (edges, classes)
    }

    /// The graph, as far as it was looked at.
    pub(super) fn picture<S>(&self, nodes: &Nodes<S>) -> Picture {
        let mut depths: Vec<u32> = vec![0];
        for node in (1..nodes.list.len() as u32).map(|node| nodes.node(node)) {
            depths.push(depths[node.parent as usize] + u32::from(is_step(node.action)));
        }
        let ends = self.starts.iter().skip(1).copied().chain([self.arrows.len() as u32]);
        let steps = (0..).zip(self.starts.iter().zip(ends)).flat_map(|(from, (start, end))| {
            (*start..end).map(move |at| {
                let Arrow { to, action, .. } = self.arrows[at as usize];
                let to = match to {
                    END => To::End,
                    FAILURE => To::Failure,
                    state => To::State(state),
                };
                let value = |&(kind, number): &(u32, u32)| nodes.kinds[kind as usize].nth(number.into());
                let values = self.script(at as usize).iter().map(value).collect();
                Step { from, to, action, values }
            })
        });
        Picture { steps: steps.collect(), failing: self.failing.clone(), depths }
    }

    fn push<S>(&self, nodes: &Nodes<S>, arrow: u32, trace: &mut Trace) {
        let scripted = |&(kind, number): &(u32, u32)| Scripted { kind: nodes.kinds[kind as usize], number };
        let script: Vec<Scripted> = self.script(arrow as usize).iter().map(scripted).collect();
        path::push(trace, self.arrows[arrow as usize].action, &script);
    }

    /// The steps to the loop, and once around it.
    fn trace<S>(&self, nodes: &Nodes<S>, lasso: &Lasso, number: u16) -> Trace {
        let mut trace = nodes.trace(lasso.from);
        lasso.stem.iter().for_each(|arrow| self.push(nodes, *arrow, &mut trace));
        trace.push(Action::Loop, 0);
        lasso.cycle.iter().for_each(|arrow| self.push(nodes, *arrow, &mut trace));
        trace.push(Action::Again(number), 0);
        trace
    }
}

impl<S: Clone> Check<'_, S> {
    /// Judges the properties of runs without end in what was met of the graph; or, where orders are left out, looks for a loop. Whether there is one.
    /// What was met is kept before that, which may be stopped.
    pub(super) fn judge<T: Target>(&mut self, target: &T, keeping: Option<&Keeping<'_>>) -> bool {
        if let Some(keeping) = keeping.filter(|keeping| keeping.helpers.is_none()) {
            self.keep(keeping);
        }
        let Some(mut states) = self.states.take() else { return false };
        let first = states.starts.len();
        let (edges, classes) = states.edges(target);
        states.starts.resize(states.holds.len() + 1, edges.len() as u32);
        states.is_whole.resize(states.holds.len(), false);
        let initial: Vec<u32> = match target.has_setup() {
            true => edges[..states.starts[first.min(1)] as usize].iter().map(|edge| edge.to).collect(),
            false => vec![0],
        };
        let graph = Graph {
            starts: &states.starts,
            edges: &edges,
            is_whole: &states.is_whole,
            holds: &states.holds,
            classes: &classes,
            initial: &initial,
        };
        let mut limit = None;
        let mut goes_on = || {
            limit = (self.shared.goes_on)(&lock(&self.shared.progress));
            limit.is_none()
        };
        if self.shared.options.leaves_out_orders {
            let has_loop = graph.has_loop(&mut goes_on);
            return has_loop.unwrap_or_else(|_| {
                self.limited(limit.unwrap_or(Limit::Interrupt));
                false
            });
        }
        // Where a linker puts them depends on the build.
        let mut claimed: Vec<(u16, &Liveness)> = (0..).zip(target.liveness()).collect();
        claimed.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
        for (number, property) in claimed {
            if self.findings.is_full(self.shared.options) {
                break;
            }
            match graph.unmet((property.kind, 1 << number), &mut goes_on) {
                Ok(Some(lasso)) => self.unmet(property, &lasso, states.trace(&self.nodes, &lasso, number)),
                Ok(None) => {}
                Err(_) => {
                    self.limited(limit.unwrap_or(Limit::Interrupt));
                    break;
                }
            }
        }
        false
    }

    fn unmet(&mut self, property: &Liveness, lasso: &Lasso, trace: Trace) {
        let failure = Failure::new(FailureKind::Liveness, property.kind.unmet_on_loop(lasso.cycle.len()));
        let failure = Failure { subject: Some(property.name.clone()), ..failure };
        (self.told)(&trace, &End::Failed(Box::new(failure.clone())));
        self.findings.add(&failure, self.census.runs, || trace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_that_were_not_looked_at_have_no_steps() {
        let (mut states, mut nodes) = (States::new(false), Nodes::<()>::new());
        for (node, to) in [(0, 1), (3, 4)] {
            states.begin(node, true, false);
            states.add(&mut nodes, to, (Action::Rule(0), None), &[]);
        }
        assert_eq!((states.starts, states.is_whole), (vec![0, 1, 1, 1], vec![true, false, false, true]));
    }
}
