//! What is claimed of runs without end, judged naively: the states from which everything that is owed can be done again and again, as the
//! greatest fixed point, for each set of strongly fair steps that are done no more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::model::Claim;
use super::naive::{Act, Naive, Out, State};

/// Strongly fair kinds of steps, at most.
const STRONG_MAX: usize = 8;

/// A kind of step: a rule, and the answers of one that is fair in each way.
type Class = (usize, Vec<u32>);

/// The states of a model.
#[derive(Default)]
struct Graph {
    states: Vec<State>,
    numbers: BTreeMap<State, usize>,
    initial: BTreeSet<usize>,
    /// Of each state its steps: where to, none where the run ends, and of which class.
    steps: Vec<Vec<(Option<usize>, Option<Class>)>>,
    /// A run fails in the state itself.
    fails: BTreeSet<usize>,
}

impl Graph {
    fn number(&mut self, state: State) -> usize {
        let next = self.states.len();
        *self.numbers.entry(state).or_insert_with_key(|state| {
            self.states.push(state.clone());
            next
        })
    }
}

impl Naive<'_> {
    /// The claims that some fair run does not keep, by number; `None` where there are too many kinds of steps.
    pub(super) fn broken(&mut self) -> Option<BTreeSet<usize>> {
        let graph = self.graph();
        let classes: BTreeSet<&Class> =
            graph.steps.iter().flatten().filter_map(|(_, class)| class.as_ref()).collect();
        let strong = classes.iter().filter(|class| self.model.fair[class.0].is_strong).count();
        (strong <= STRONG_MAX)
            .then(|| (0..self.model.live.len()).filter(|claim| self.is_broken(&graph, *claim)).collect())
    }

    fn graph(&mut self) -> Graph {
        let mut graph = Graph::default();
        let start = self.start();
        for (_, out) in self.results(&start, Act::Setup) {
            if let Out::Pass(state) = out {
                let number = graph.number(state);
                graph.initial.insert(number);
            }
        }
        while graph.steps.len() < graph.states.len() {
            let state = graph.states[graph.steps.len()].clone();
            let mut acts: Vec<(State, Act)> =
                (0..self.model.faults.len()).map(|fault| (state.clone(), Act::Fault(fault))).collect();
            match self.enabled(&state) {
                Ok((rules, ready)) if rules.is_empty() && !self.is_terminal(&ready) => {
                    graph.fails.insert(graph.steps.len());
                }
                Ok((rules, ready)) => {
                    acts.extend(rules.into_iter().map(|rule| (ready.clone(), Act::Rule(rule))));
                }
                Err(_) => {
                    graph.fails.insert(graph.steps.len());
                }
            }
            let mut steps = Vec::new();
            for (from, act) in acts {
                for (answers, out) in self.results(&from, act) {
                    let class = match act {
                        Act::Rule(rule) if self.model.fair[rule].is_each => {
                            Some((rule, answers.into_iter().map(|(_, answer)| answer).collect()))
                        }
                        Act::Rule(rule) => Some((rule, Vec::new())),
                        _ => None,
                    };
                    match out {
                        Out::Pass(state) => steps.push((Some(graph.number(state)), class)),
                        Out::Fail(_) if class.is_some() => steps.push((None, class)),
                        _ => {}
                    }
                }
            }
            graph.steps.push(steps);
        }
        graph
    }

    fn is_broken(&mut self, graph: &Graph, claim: usize) -> bool {
        let live = self.model.live[claim].clone();
        let open: BTreeSet<usize> =
            (0..graph.states.len()).filter(|at| !self.says(&graph.states[*at], &live.to)).collect();
        let mut owed: BTreeSet<usize> = match live.claim {
            Claim::Eventually => graph.initial.intersection(&open).copied().collect(),
            Claim::AlwaysEventually => open.clone(),
            Claim::LeadsTo => {
                open.iter().copied().filter(|at| self.says(&graph.states[*at], &live.from)).collect()
            }
        };
        let mut queue: VecDeque<usize> = owed.iter().copied().collect();
        while let Some(at) = queue.pop_front() {
            for to in graph.steps[at].iter().filter_map(|(to, _)| *to) {
                if open.contains(&to) && owed.insert(to) {
                    queue.push_back(to);
                }
            }
        }
        let within: BTreeSet<usize> = owed.difference(&graph.fails).copied().collect();
        let enabled = |at: usize| -> BTreeSet<&Class> {
            let steps = graph.steps[at].iter().filter(|(to, _)| *to != Some(at));
            steps.filter_map(|(_, class)| class.as_ref()).collect()
        };
        let all: BTreeSet<&Class> = within.iter().flat_map(|at| enabled(*at)).collect();
        let is = |class: &Class| self.model.fair[class.0];
        let strong: Vec<&Class> = all.iter().copied().filter(|class| is(class).is_strong).collect();
        let weak: Vec<&Class> =
            all.iter().copied().filter(|class| !is(class).is_strong && !is(class).is_unfair).collect();
        (0..1_u32 << strong.len()).any(|done| {
            let is_done = |nth: usize| done >> nth & 1 == 1;
            let over = |at: &usize| {
                (0..strong.len()).filter(|nth| is_done(*nth)).any(|nth| enabled(*at).contains(strong[nth]))
            };
            let mut left: BTreeSet<usize> = within.iter().copied().filter(|at| !over(at)).collect();
            loop {
                let takes = |at: usize, class: &Class| {
                    let is_it = |(to, of): &(Option<usize>, Option<Class>)| {
                        of.as_ref() == Some(class) && to.is_some_and(|to| to != at && left.contains(&to))
                    };
                    graph.steps[at].iter().any(is_it)
                };
                let mut kept = left.clone();
                for class in &weak {
                    let goal = |at: usize| !enabled(at).contains(*class) || takes(at, class);
                    kept = kept.intersection(&reaching(graph, &left, &goal)).copied().collect();
                }
                for nth in (0..strong.len()).filter(|nth| !is_done(*nth)) {
                    let goal = |at: usize| takes(at, strong[nth]);
                    kept = kept.intersection(&reaching(graph, &left, &goal)).copied().collect();
                }
                if kept == left {
                    break;
                }
                left = kept;
            }
            !left.is_empty()
        })
    }
}

/// The states from which one of these can be reached within.
fn reaching(graph: &Graph, within: &BTreeSet<usize>, goal: &dyn Fn(usize) -> bool) -> BTreeSet<usize> {
    let mut reached: BTreeSet<usize> = within.iter().copied().filter(|at| goal(*at)).collect();
    loop {
        let leads =
            |at: &usize| graph.steps[*at].iter().any(|(to, _)| to.is_some_and(|to| reached.contains(&to)));
        let more: Vec<usize> = within.difference(&reached).copied().filter(leads).collect();
        if more.is_empty() {
            return reached;
        }
        reached.extend(more);
    }
}
