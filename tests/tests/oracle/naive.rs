//! The naive interpreter of a model, and searches that are plainly complete.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::model::{Cond, Expr, Model, Place, Stmt, Wrong};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct State {
    pub(super) cells: Vec<u32>,
    pub(super) faults: Vec<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Out {
    Pass(State),
    Reject,
    Fail(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Act {
    Setup,
    Rule(usize),
    Fault(usize),
    Teardown,
}

/// A step under some answers: what was asked and answered, and how it ended.
pub(super) type Result = (Vec<(u32, u32)>, Out);

/// What a search counted and found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Found {
    pub(super) runs: u64,
    pub(super) rejected: u64,
    pub(super) states: u64,
    pub(super) pruned: u64,
    pub(super) steps: u64,
    pub(super) choices: u64,
    pub(super) failures: BTreeSet<String>,
    /// The bound on steps kept something from being done.
    pub(super) is_bound: bool,
}

/// One execution of a step.
struct Run<'a> {
    model: &'a Model,
    state: State,
    given: &'a [u32],
    asked: Vec<(u32, u32)>,
    met: &'a mut BTreeSet<usize>,
}

/// Why a step ends early.
enum End {
    Reject,
    Fail(String),
}

impl Run<'_> {
    fn ask(&mut self, n: u32) -> u32 {
        let answer = self.given.get(self.asked.len()).copied().unwrap_or(0);
        self.asked.push((n, answer));
        answer
    }

    fn cond(&mut self, cond: &Cond) -> bool {
        match *cond {
            Cond::Below(cell, value) => self.state.cells[cell] < value,
            Cond::Is(cell, value) => self.state.cells[cell] == value,
            Cond::Fault(fault) => self.state.faults[fault],
            Cond::Flip => self.ask(2) == 1,
        }
    }

    fn expr(&mut self, expr: &Expr) -> std::result::Result<u32, End> {
        Ok(match *expr {
            Expr::Const(value) => value,
            Expr::Cell(cell) => self.state.cells[cell],
            Expr::Sum(cell, value) => self.state.cells[cell] + value,
            Expr::Index(n) => self.ask(n),
            // By distance from the simplest, 0: above before below.
            Expr::Integer(max) => match (max, self.ask(max + 2)) {
                (0, number) => [1, 0][number as usize],
                (_, number) => [1, 2, 0][number as usize],
            },
            Expr::Among(cell, site) => match self.state.cells[cell] {
                0 => return Err(End::Fail(format!("among{site}"))),
                n => self.ask(n),
            },
        })
    }

    fn body(&mut self, body: &[Stmt]) -> std::result::Result<(), End> {
        for stmt in body {
            match stmt {
                Stmt::Set(cell, expr) => {
                    let value = self.expr(expr)?;
                    self.state.cells[*cell] = value % self.model.cells[*cell].values;
                }
                Stmt::If(cond, body) => {
                    if self.cond(cond) {
                        self.body(body)?;
                    }
                }
                Stmt::Wrong(site, Wrong::Trap) => return Err(End::Fail(format!("trap{site}"))),
                Stmt::Wrong(site, _) => return Err(End::Fail(format!("s{site:03}"))),
                Stmt::Reject => return Err(End::Reject),
                Stmt::Grow => {
                    let size = self.model.cells.iter().position(|cell| cell.place == Place::Size);
                    if let Some(size) = size {
                        self.state.cells[size] = (self.state.cells[size] + 1).min(2);
                    }
                }
                Stmt::Sometimes(property, cond) => {
                    if self.cond(cond) {
                        self.met.insert(*property);
                    }
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, act: Act) -> std::result::Result<(), End> {
        match act {
            Act::Setup => self.body(self.model.setup.as_deref().unwrap_or_default())?,
            Act::Rule(rule) => self.body(&self.model.rules[rule].body)?,
            Act::Fault(fault) => {
                self.state.faults[fault] = !self.state.faults[fault];
                self.body(&self.model.faults[fault])?;
            }
            Act::Teardown => return self.body(self.model.teardown.as_deref().unwrap_or_default()),
        }
        for (index, invariant) in self.model.invariants.iter().enumerate() {
            if !self.cond(&invariant.holds) {
                return Err(End::Fail(format!("i{index}")));
            }
        }
        Ok(())
    }
}

/// A search of a model.
pub(super) struct Naive<'a> {
    pub(super) model: &'a Model,
    /// The properties that held in some step.
    pub(super) met: BTreeSet<usize>,
}

/// What may be called where the preconditions were evaluated, which may have written; or how one failed.
type Enabled = std::result::Result<(Vec<usize>, State), String>;

impl Naive<'_> {
    pub(super) fn start(&self) -> State {
        State {
            cells: self.model.cells.iter().map(|cell| cell.start).collect(),
            faults: vec![false; self.model.faults.len()],
        }
    }

    /// A step under all answers.
    pub(super) fn results(&mut self, state: &State, act: Act) -> Vec<Result> {
        let (mut results, mut given) = (Vec::new(), Vec::new());
        loop {
            let (model, state) = (self.model, state.clone());
            let mut run = Run { model, state, given: &given, asked: Vec::new(), met: &mut self.met };
            let out = run.step(act);
            let (mut asked, state) = (run.asked, run.state);
            let out = match out {
                Ok(()) => Out::Pass(state),
                Err(End::Reject) => Out::Reject,
                Err(End::Fail(key)) => Out::Fail(key),
            };
            results.push((asked.clone(), out));
            while asked.pop_if(|(n, answer)| *answer + 1 >= *n).is_some() {}
            let Some((_, last)) = asked.last_mut() else { return results };
            *last += 1;
            given = asked.into_iter().map(|(_, answer)| answer).collect();
        }
    }

    pub(super) fn enabled(&mut self, state: &State) -> Enabled {
        let (mut rules, mut met) = (Vec::new(), BTreeSet::new());
        let mut run =
            Run { model: self.model, state: state.clone(), given: &[], asked: Vec::new(), met: &mut met };
        for (index, rule) in self.model.rules.iter().enumerate() {
            let Some(guard) = &rule.guard else {
                rules.push(index);
                continue;
            };
            if let Some(cell) = guard.counts {
                run.state.cells[cell] = (run.state.cells[cell] + 1).min(self.model.cells[cell].values - 1);
            }
            if let Some((cond, site)) = &guard.fails
                && run.cond(cond)
            {
                return Err(format!("trap{site}"));
            }
            if run.cond(&guard.holds) {
                rules.push(index);
            }
        }
        Ok((rules, run.state))
    }

    /// Whether a run may end here although no rule may be called.
    pub(super) fn is_terminal(&self, state: &State) -> bool {
        self.model.terminal.as_ref().is_some_and(|cond| self.says(state, cond))
    }

    /// Whether a condition that draws nothing holds.
    pub(super) fn says(&self, state: &State, cond: &Cond) -> bool {
        let mut met = BTreeSet::new();
        let mut run =
            Run { model: self.model, state: state.clone(), given: &[], asked: Vec::new(), met: &mut met };
        run.cond(cond)
    }

    fn has_setup(&self) -> bool {
        self.model.setup.is_some() || !self.model.invariants.is_empty() || !self.model.live.is_empty()
    }

    /// Searches all states, each once, or all paths; `None` where that is too much.
    pub(super) fn search(&mut self, steps_max: Option<u32>, prunes: bool, most: u64) -> Option<Found> {
        let mut found = Found::default();
        let mut known = BTreeMap::new();
        let mut queue = VecDeque::new();
        if self.has_setup() {
            let results = self.results(&self.start(), Act::Setup);
            found.take(results, 0, prunes, &mut known, &mut queue);
        } else {
            found.arrive(self.start(), 0, prunes, &mut known, &mut queue);
        }
        while let Some((state, depth)) = queue.pop_front() {
            if found.states > most {
                return None;
            }
            let is_beyond = steps_max.is_some_and(|max| depth >= max);
            let has_faults = !self.model.faults.is_empty();
            let mut acts = Vec::new();
            let has_more = match self.enabled(&state) {
                Err(key) => {
                    found.runs += 1;
                    found.failures.insert(key);
                    has_faults
                }
                Ok((rules, ready)) if rules.is_empty() && !self.is_terminal(&ready) => {
                    found.runs += 1;
                    found.failures.insert("deadlock".to_string());
                    has_faults
                }
                Ok((rules, ready)) => {
                    let has_more = has_faults || !rules.is_empty();
                    if self.model.teardown.is_some() {
                        acts.push((ready.clone(), Act::Teardown));
                    } else if rules.is_empty() || (has_more && is_beyond) {
                        found.runs += 1;
                    }
                    if !is_beyond {
                        acts.extend(rules.iter().map(|rule| (ready.clone(), Act::Rule(*rule))));
                    }
                    has_more
                }
            };
            found.is_bound |= is_beyond && has_more;
            if !is_beyond {
                acts.extend((0..self.model.faults.len()).map(|fault| (state.clone(), Act::Fault(fault))));
            }
            for (from, act) in acts {
                let results = self.results(&from, act);
                if act == Act::Teardown {
                    found.ends(results);
                } else {
                    found.steps += results.len() as u64;
                    found.take(results, depth + 1, prunes, &mut known, &mut queue);
                }
            }
        }
        Some(found)
    }

    /// Whether two rules are independent in a state, in the strictest sense.
    fn commute_in(&mut self, state: &State, a: usize, b: usize) -> bool {
        let Ok((rules, ready)) = self.enabled(state) else { return true };
        let (first, second) = match (rules.contains(&a), rules.contains(&b)) {
            (false, false) => return true,
            (true, true) => {
                let (Some(one), Some(other)) = (self.both(&ready, a, b), self.both(&ready, b, a)) else {
                    return false;
                };
                return one.iter().all(|(answers, out)| {
                    let [of_a, of_b] = answers;
                    let swapped = [of_b.clone(), of_a.clone()];
                    other.iter().any(|(answers, other)| *answers == swapped && out == other)
                }) && one.len() == other.len();
            }
            (true, false) => (a, b),
            (false, true) => (b, a),
        };
        self.results(&ready, Act::Rule(first)).into_iter().all(|(_, out)| match out {
            Out::Pass(after) => self.enabled(&after).is_ok_and(|(rules, _)| !rules.contains(&second)),
            _ => true,
        })
    }

    /// What `a` and then `b` leads to where both pass alone; `None` where `a` changes how `b` goes.
    #[allow(clippy::type_complexity)]
    fn both(&mut self, ready: &State, a: usize, b: usize) -> Option<Vec<([Vec<(u32, u32)>; 2], Out)>> {
        let alone = self.results(ready, Act::Rule(b));
        let mut all = Vec::new();
        for (of_a, out) in self.results(ready, Act::Rule(a)) {
            let Out::Pass(after) = out else { continue };
            let (rules, after) = self.enabled(&after).ok()?;
            let results = self.results(&after, Act::Rule(b));
            if !rules.contains(&b) || results.len() != alone.len() {
                return None;
            }
            for ((of_b, out), (alone_b, alone)) in results.into_iter().zip(&alone) {
                let is_same = matches!(alone, Out::Pass(_)) || out == *alone;
                if of_b != *alone_b || !is_same {
                    return None;
                }
                if let Out::Pass(_) = alone {
                    all.push(([of_a.clone(), of_b], out));
                }
            }
        }
        Some(all)
    }

    /// The pairs of rules that are independent in all states that can be reached, and those that are not.
    pub(super) fn pairs(&mut self) -> [Vec<(usize, usize)>; 2] {
        let states = self.reachable();
        let rules = self.model.rules.len();
        let pairs = (0..rules).flat_map(|a| (a + 1..rules).map(move |b| (a, b)));
        let met = self.met.clone();
        let (yes, no) = pairs.partition(|(a, b)| states.iter().all(|state| self.commute_in(state, *a, *b)));
        self.met = met;
        [yes, no]
    }

    /// Whether states that differ in one cell only go on alike: what each step leads to is the same, but for that cell.
    pub(super) fn is_needless(&mut self, cell: usize) -> bool {
        let forget = |mut state: State| {
            state.cells[cell] = 0;
            state
        };
        let mut onward: BTreeMap<State, BTreeSet<(u8, Option<State>)>> = BTreeMap::new();
        for state in self.reachable() {
            let mut ways = BTreeSet::new();
            let faults = (0..self.model.faults.len()).map(|fault| (1, state.clone(), Act::Fault(fault)));
            let mut acts: Vec<(u8, State, Act)> = faults.collect();
            match self.enabled(&state) {
                Ok((rules, ready)) if rules.is_empty() && !self.is_terminal(&ready) => {
                    ways.insert((0, None));
                }
                Ok((rules, ready)) => {
                    acts.extend(rules.into_iter().map(|rule| (0, ready.clone(), Act::Rule(rule))));
                    let teardown = self.model.teardown.as_ref().map(|_| (2, ready, Act::Teardown));
                    acts.extend(teardown);
                }
                Err(_) => {
                    ways.insert((0, None));
                }
            }
            for (kind, from, act) in acts {
                for (_, out) in self.results(&from, act) {
                    match out {
                        Out::Pass(_) if act == Act::Teardown => drop(ways.insert((3, None))),
                        Out::Pass(state) => drop(ways.insert((kind, Some(forget(state))))),
                        Out::Reject => {}
                        Out::Fail(_) => drop(ways.insert((kind, None))),
                    }
                }
            }
            if *onward.entry(forget(state)).or_insert_with(|| ways.clone()) != ways {
                return false;
            }
        }
        true
    }

    fn reachable(&mut self) -> Vec<State> {
        let mut found = Found::default();
        let (mut known, mut queue) = (BTreeMap::new(), VecDeque::new());
        let start = self.start();
        if self.has_setup() {
            let results = self.results(&start, Act::Setup);
            found.take(results, 0, true, &mut known, &mut queue);
        } else {
            found.arrive(start, 0, true, &mut known, &mut queue);
        }
        while let Some((state, _)) = queue.pop_front() {
            let mut acts: Vec<(State, Act)> =
                (0..self.model.faults.len()).map(|fault| (state.clone(), Act::Fault(fault))).collect();
            if let Ok((rules, ready)) = self.enabled(&state) {
                acts.extend(rules.into_iter().map(|rule| (ready.clone(), Act::Rule(rule))));
            }
            for (from, act) in acts {
                let results = self.results(&from, act);
                found.take(results, 0, true, &mut known, &mut queue);
            }
        }
        known.into_keys().collect()
    }
}

type Known = BTreeMap<State, ()>;
type Queue = VecDeque<(State, u32)>;

impl Found {
    fn ask(&mut self, results: &[Result]) {
        let mut before: &[(u32, u32)] = &[];
        for (asked, _) in results {
            let shared = asked.iter().zip(before).take_while(|(a, b)| a == b).count();
            // The first answer that differs is one more to a question that was counted.
            self.choices += (asked.len() - shared) as u64 - u64::from(!before.is_empty());
            before = asked;
        }
    }

    /// Steps that may go on.
    fn take(&mut self, results: Vec<Result>, depth: u32, prunes: bool, known: &mut Known, queue: &mut Queue) {
        self.ask(&results);
        for (_, out) in results {
            match out {
                Out::Pass(state) => self.arrive(state, depth, prunes, known, queue),
                out => self.end(out),
            }
        }
    }

    fn arrive(&mut self, state: State, depth: u32, prunes: bool, known: &mut Known, queue: &mut Queue) {
        if prunes && known.insert(state.clone(), ()).is_some() {
            self.pruned += 1;
        } else {
            self.states += 1;
            queue.push_back((state, depth));
        }
    }

    /// Steps that end a run.
    fn ends(&mut self, results: Vec<Result>) {
        self.ask(&results);
        results.into_iter().for_each(|(_, out)| self.end(out));
    }

    fn end(&mut self, out: Out) {
        self.runs += 1;
        match out {
            Out::Pass(_) => {}
            Out::Reject => self.rejected += 1,
            Out::Fail(key) => drop(self.failures.insert(key)),
        }
    }
}
