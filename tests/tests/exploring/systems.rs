//! Shrinking shown on systems that the shrinker was not written against, and by exhaustive search what the minima are.

#[path = "../../guests/systems/src/accounts.rs"]
mod accounts;
#[path = "../../guests/systems/src/binding.rs"]
mod binding;
#[path = "../../guests/systems/src/frames.rs"]
mod frames;
#[path = "../../guests/systems/src/graph.rs"]
mod graph;
#[path = "../../guests/systems/src/items.rs"]
mod items;
#[path = "../../guests/systems/src/ring.rs"]
mod ring;
#[path = "../../guests/systems/src/timers.rs"]
mod timers;
#[path = "../../guests/systems/src/tree.rs"]
mod tree;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use spelunk::load::{Build, load};
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::search::{Explorer, Options};
use spelunk::shrink::shrink;
use spelunk::target::Target;
use spelunk::trace::Trace;
use spelunk_tests::{on_guest_stack, steps_of, story};

/// The systems, the minimum of each, and of 30 seeds how many end there. The order of steps that draw nothing is not part of
/// what is simpler, so of several steps all that counts is how many they are and what they draw.
const SYSTEMS: [(&str, &str, u32); 8] = [
    ("ring", "8 steps: 0 0 0 0 1", 30),
    ("accounts", "6 steps: 0 1 1 0 1 1", 15),
    ("tree", "6 steps: 0 1 2 3 4 2", 30),
    ("timers", "4 steps: 2 1 0 1", 30),
    ("frames", "frames=[Frame { tag: 0, payload: [125] }]", 30),
    ("graph", "graph=[[], [0], [0, 1]]", 30),
    ("binding", "expression=(let a = b in (let b = 1 in a))", 26),
    ("items", "items=[Number(1000000.0), Text(\",\")]", 30),
];

const SEEDS: u64 = 30;

/// What is left of a trace, as far as simplicity tells it from others.
fn left(machine: &mut Machine, trace: &Trace) -> String {
    if steps_of(trace) == 1 {
        let story = story(machine, trace);
        return story.split_once(' ').expect("the step has an argument").1.to_string();
    }
    let choices = trace.steps().iter().flat_map(|step| trace.choices(step));
    let values: Vec<String> = choices.map(|choice| choice.value.to_string()).collect();
    format!("{} steps: {}", steps_of(trace), values.join(" "))
}

/// What the seeds come to, each result with how often, and the executions that it took.
fn shrunk(program: &Arc<Program>, system: &str) -> (BTreeMap<String, u32>, u64) {
    let mut machine = Machine::new(program.clone()).unwrap();
    let rules = (0..).zip(machine.rules()).filter(|(_, rule)| rule.name.starts_with(system));
    let rules: Vec<u16> = rules.map(|(index, _)| index).collect();
    let (mut results, mut executions) = (BTreeMap::new(), 0);
    for seed in 1..=SEEDS {
        let options = Options { seed, rules: rules.clone(), ..Options::default() };
        let mut explorer = Explorer::new(&mut machine, options);
        explorer.explore(|progress| progress.findings == 0 && progress.runs < 100_000);
        let Some(finding) = explorer.findings().next().cloned() else { continue };
        let shrunk =
            shrink(&mut machine, &finding.trace, &finding.failure, &rules, 100_000, |_, _| true).unwrap();
        executions += shrunk.executions;
        *results.entry(left(&mut machine, &shrunk.trace)).or_default() += 1;
    }
    (results, executions)
}

#[test]
fn systems_are_shrunk_to_their_minima_or_as_far_as_is_known() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/systems");
    let wasm = load(&folder, &Build::default(), &mut |_, _| {}).unwrap();
    let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap());
    let rows = on_guest_stack(|| SYSTEMS.map(|(name, ..)| shrunk(&program, name)));
    println!("| system | found | minimal | executions |");
    println!("|---|---|---|---|");
    let mut wrong = Vec::new();
    for ((name, minimum, expected), (results, executions)) in SYSTEMS.iter().zip(&rows) {
        let found: u32 = results.values().sum();
        let minimal = results.get(*minimum).copied().unwrap_or(0);
        println!("| {name} | {found} | {minimal} | {:.1} |", *executions as f64 / f64::from(found.max(1)));
        for (text, count) in results.iter().filter(|(text, _)| text.as_str() != *minimum) {
            println!("      {count} x {text}");
        }
        if (u64::from(found), minimal) != (SEEDS, *expected) {
            wrong.push(name);
        }
    }
    assert_eq!(wrong, Vec::<&&str>::new());
}

/// A call, and what it draws.
type Drawn<C> = (C, Vec<u32>);

/// The least that failing runs of a system draw: those with the fewest steps, then choices, then the least values.
/// `calls` are what can be called in a state, each with what it draws; `step` says whether it fails.
fn least<S: Clone, C: Copy>(
    start: &S,
    steps: usize,
    calls: &dyn Fn(&S) -> Vec<Drawn<C>>,
    step: &dyn Fn(&mut S, C) -> bool,
) -> Option<Vec<u32>> {
    let runs = calls(start).into_iter().filter_map(|(call, drawn)| {
        let mut state = start.clone();
        let rest = match (step(&mut state, call), steps) {
            (fails, 1) => fails.then(Vec::new)?,
            // A run ends where it fails.
            (true, _) => return None,
            (false, _) => least(&state, steps - 1, calls, step)?,
        };
        Some([drawn, rest].concat())
    });
    runs.min_by_key(|values| (values.len(), values.clone()))
}

/// What draws least, as [`left`] says it.
fn check<S: Clone, C: Copy>(
    start: &S,
    calls: impl Fn(&S) -> Vec<Drawn<C>>,
    step: impl Fn(&mut S, C) -> bool,
    expected: &str,
) {
    let found = (1..).find_map(|steps| Some((steps, least(start, steps, &calls, &step)?)));
    let (steps, values) = found.expect("there is no end of steps");
    let values: Vec<String> = values.iter().map(u32::to_string).collect();
    assert_eq!(format!("{steps} steps: {}", values.join(" ")), expected);
    assert!(SYSTEMS.iter().any(|(_, minimum, _)| *minimum == expected));
}

#[test]
fn no_run_of_the_ring_is_simpler() {
    #[derive(Clone, Copy)]
    enum Call {
        Push(u8),
        Pop,
        Sum,
    }
    let push = |value| (Call::Push(value), vec![value.into()]);
    check(
        &(ring::Ring::default(), VecDeque::new()),
        |_| vec![push(0), push(1), push(2), (Call::Pop, vec![]), (Call::Sum, vec![])],
        |(ring, queue), call| match call {
            Call::Push(value) => {
                if ring.push(value) {
                    queue.push_back(value);
                }
                false
            }
            Call::Pop => ring.pop() != queue.pop_front(),
            Call::Sum => ring.sum() != queue.iter().map(|value| u32::from(*value)).sum::<u32>(),
        },
        "8 steps: 0 0 0 0 1",
    );
}

#[derive(Clone, Default)]
struct Books {
    accounts: accounts::Accounts,
    handles: Vec<accounts::Handle>,
    balances: BTreeMap<accounts::Handle, u64>,
}

#[derive(Clone, Copy)]
enum Teller {
    Open,
    Deposit(usize),
    Close(usize),
    Transfer(usize, usize),
}

impl Books {
    fn calls(&self) -> Vec<Drawn<Teller>> {
        let mut calls = vec![(Teller::Open, vec![])];
        for from in 0..self.handles.len() {
            calls.push((Teller::Deposit(from), vec![from as u32, 1]));
            calls.push((Teller::Close(from), vec![from as u32]));
            let to = 0..self.handles.len();
            calls.extend(to.map(|to| (Teller::Transfer(from, to), vec![from as u32, to as u32, 1])));
        }
        calls
    }

    fn step(&mut self, call: Teller) -> bool {
        match call {
            Teller::Open => {
                self.handles.push(self.accounts.open());
                self.balances.insert(self.handles[self.handles.len() - 1], 0);
            }
            Teller::Deposit(to) => {
                self.accounts.deposit(self.handles[to], 1);
                self.balances.entry(self.handles[to]).and_modify(|balance| *balance += 1);
            }
            Teller::Close(handle) => {
                self.accounts.close(self.handles[handle]);
                self.balances.remove(&self.handles[handle]);
            }
            Teller::Transfer(from, to) => {
                let (from, to) = (self.handles[from], self.handles[to]);
                self.accounts.transfer(from, to, 1);
                if self.balances.contains_key(&to)
                    && self.balances.get(&from).is_some_and(|balance| *balance > 0)
                {
                    self.balances.entry(from).and_modify(|balance| *balance -= 1);
                    self.balances.entry(to).and_modify(|balance| *balance += 1);
                }
                return self.balances.iter().any(|(h, balance)| self.accounts.balance(*h) != Some(*balance));
            }
        }
        false
    }
}

#[test]
fn no_run_of_the_accounts_is_simpler() {
    check(&Books::default(), Books::calls, Books::step, "6 steps: 0 1 1 0 1 1");
}

#[test]
fn no_run_of_the_tree_is_simpler() {
    let calls = |_: &_| {
        let call = |key: u8| [((key, true), vec![key.into()]), ((key, false), vec![key.into()])];
        (0..=5).flat_map(call).collect()
    };
    check(
        &(tree::Tree::default(), BTreeSet::new()),
        calls,
        |(tree, keys), (key, is_inserted)| match is_inserted {
            true => {
                tree.insert(key);
                keys.insert(key);
                false
            }
            false => tree.contains(key) != keys.contains(&key),
        },
        "6 steps: 0 1 2 3 4 2",
    );
}

#[derive(Clone, Default)]
struct Clock {
    wheel: timers::Wheel,
    timers: Vec<(usize, usize, usize)>,
    added: usize,
    now: usize,
}

#[derive(Clone, Copy)]
enum Tick {
    Add(usize),
    Cancel(usize),
    Advance(usize),
}

impl Clock {
    fn calls(&self) -> Vec<Drawn<Tick>> {
        let add = (1..=20).map(|delay| (Tick::Add(delay), vec![delay as u32]));
        let cancel = (0..self.timers.len()).map(|place| (Tick::Cancel(place), vec![place as u32]));
        let advance = (1..=20).map(|ticks| (Tick::Advance(ticks), vec![ticks as u32]));
        add.chain(cancel).chain(advance).collect()
    }

    fn step(&mut self, call: Tick) -> bool {
        match call {
            Tick::Add(delay) => {
                self.wheel.add(self.added, delay);
                self.timers.push((self.added, delay, self.now));
                self.added += 1;
                false
            }
            Tick::Cancel(place) => {
                let (timer, delay, _) = self.timers.remove(place);
                self.wheel.cancel(timer, delay);
                false
            }
            Tick::Advance(ticks) => {
                self.now += ticks;
                let now = self.now;
                let is_due = |(_, delay, added): &mut (usize, usize, usize)| *added + *delay <= now;
                let expected: BTreeSet<usize> =
                    self.timers.extract_if(.., is_due).map(|(timer, ..)| timer).collect();
                BTreeSet::from_iter(self.wheel.advance(ticks)) != expected
            }
        }
    }
}

#[test]
fn no_run_of_the_timers_is_simpler() {
    check(&Clock::default(), Clock::calls, Clock::step, "4 steps: 2 1 0 1");
}

#[test]
fn no_frames_are_simpler() {
    let fails = |frames: &[(u8, &[u8])]| {
        let frames =
            frames.iter().map(|(tag, payload)| frames::Frame { tag: *tag, payload: payload.to_vec() });
        let frames: Vec<_> = frames.collect();
        frames::decode(&frames::encode(&frames)) != Some(frames)
    };
    // Fewer choices: no frame, or frames without a payload.
    assert!(!fails(&[]));
    for (first, second) in (0..=3).flat_map(|first| (0..=3).map(move |second| (first, second))) {
        assert!(!fails(&[(first, &[])]) && !fails(&[(first, &[]), (second, &[])]));
    }
    let failing: Vec<u8> = (0..=255).filter(|byte| fails(&[(0, &[*byte])])).collect();
    assert_eq!(failing, [125, 126]);
}

#[test]
fn no_graph_is_simpler() {
    /// Up to three lists, each of up to three of `nodes` nodes.
    fn lists(nodes: usize) -> Vec<Vec<usize>> {
        let mut lists = vec![Vec::new()];
        for len in 0..3 {
            let longer = lists.iter().filter(|list| list.len() == len).cloned().collect::<Vec<_>>();
            lists.extend(longer.iter().flat_map(|list| (0..nodes).map(|node| [&list[..], &[node]].concat())));
        }
        lists
    }
    let fails = |graph: &Vec<Vec<usize>>| graph::has_cycle(graph) != graph::really_has_cycle(graph);
    let two = lists(2);
    let graphs = two.iter().flat_map(|a| two.iter().map(|b| vec![a.clone(), b.clone()]));
    assert_eq!(graphs.filter(fails).count(), 0);
    let three = lists(3);
    let three = &three;
    let triples =
        three.iter().flat_map(|a| three.iter().flat_map(move |b| three.iter().map(move |c| [a, b, c])));
    let graphs = triples.map(|lists| lists.map(Clone::clone).to_vec()).filter(fails);
    let edges = |graph: &Vec<Vec<usize>>| graph.iter().map(Vec::len).sum::<usize>();
    let least = graphs.min_by_key(|graph| (edges(graph), graph.clone()));
    assert_eq!(least, Some(vec![vec![], vec![0], vec![0, 1]]));
}

#[test]
fn no_expression_is_simpler() {
    use binding::Expression::{self, Let, Name, Number, Sum};
    /// All expressions of so many parts.
    fn of(parts: usize) -> Vec<Expression> {
        if parts == 1 {
            return vec![Number(0), Number(1), Name('a'), Name('b'), Name('c')];
        }
        let pairs = (1..parts - 1).flat_map(|left| {
            let rights = of(parts - 1 - left);
            of(left)
                .into_iter()
                .flat_map(move |left| rights.clone().into_iter().map(move |r| (left.clone(), r)))
        });
        let wholes = pairs.flat_map(|(left, right)| {
            let (left, right) = (Box::new(left), Box::new(right));
            let bindings = ['a', 'b', 'c'].map(|name| Let(name, left.clone(), right.clone()));
            bindings.into_iter().chain([Sum(left, right)]).collect::<Vec<_>>()
        });
        wholes.collect()
    }
    let fails = |e: &Expression| e.inlined().value(&mut Vec::new()) != e.value(&mut Vec::new());
    assert_eq!((1..5).map(|parts| of(parts).iter().filter(|e| fails(e)).count()).collect::<Vec<_>>(), [0; 4]);
    let failing: Vec<String> = of(5).iter().filter(|e| fails(e)).map(|e| format!("{e:?}")).collect();
    // Two names that differ, of three.
    assert_eq!(failing.len(), 6);
    assert!(failing.contains(&"(let a = b in (let b = 1 in a))".to_string()));
}

#[test]
fn no_items_are_simpler() {
    use items::Item::{self, Number, Text};
    let numbers = [0.0, 1.0, 2.0, 999_999.0, 1_000_000.0, 1_000_001.0].map(Number);
    let texts = ["", "a", "b", "c", ",", "0", " "].map(|text| Text(text.into()));
    let all: Vec<Item> = numbers.into_iter().chain(texts).collect();
    let fails = |items: &Vec<Item>| items::decode(&items::encode(items)).as_ref() != Some(items);
    assert_eq!(all.iter().filter(|item| fails(&vec![(*item).clone()])).count(), 0);
    let pairs = all.iter().flat_map(|a| all.iter().map(|b| vec![a.clone(), b.clone()]));
    let text = || Text(",".into());
    let expected = [[Number(1_000_000.0), text()], [Number(1_000_001.0), text()]];
    assert_eq!(pairs.filter(fails).collect::<Vec<_>>(), expected);
}
