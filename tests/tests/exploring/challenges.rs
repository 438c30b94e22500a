//! The public shrinking challenge: each row is found and shrunk, whatever the seed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spelunk::load::{Build, load};
use spelunk::machine::{Limits, Machine, Program, Selection, on_guest_stack};
use spelunk::search::{Explorer, Options};
use spelunk::shrink::shrink;
use spelunk::target::Target;

/// The challenges, the minimum of each as the guest prints it, and the mean executions of Hypothesis 6.170.
const CHALLENGES: [(&str, &str, u32); 13] = [
    ("bound5", "lists=[[], [], [], [-1], [-32768]]", 329),
    ("large_union_list", "lists=[[0, 1, -1, 2, -2]]", 186),
    ("reverse", "list=[0, 1]", 10),
    ("calculator", "expression=0 / (0 + 0)", 55),
    ("lengthlist", "list=[900]", 93),
    ("difference_zero", "pair=(10, 10)", 29),
    ("difference_small", "pair=(10, 6)", 39),
    ("difference_one", "pair=(10, 9)", 37),
    ("binheap", "heap=(0, None, (0, (0, None, None), (1, None, None)))", 100),
    ("coupling", "list=[1, 0]", 37),
    ("deletion", "input=([0, 0], 0)", 9),
    ("distinct", "list=[0, 1, -1]", 36),
    ("nestedlists", "lists=[[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]", 130),
];

/// What the seeds of one challenge came to.
struct Row {
    results: BTreeMap<String, u32>,
    executions: u64,
    slowest: Duration,
}

const SEEDS: u64 = 30;

fn row(program: &Arc<Program>, name: &str) -> Row {
    let mut machine = Machine::new(program.clone()).unwrap();
    let rule = machine.rules().iter().position(|rule| rule.name == name).unwrap() as u16;
    let mut row = Row { results: BTreeMap::new(), executions: 0, slowest: Duration::ZERO };
    for seed in 1..=SEEDS {
        let options = Options { seed, rules: vec![rule], ..Options::default() };
        let mut explorer = Explorer::new(&mut machine, options);
        explorer.explore(|progress| progress.findings == 0 && progress.runs < 100_000);
        let Some(finding) = explorer.findings().next().cloned() else { continue };
        let start = Instant::now();
        let shrunk =
            shrink(&mut machine, &finding.trace, &finding.failure, &[], 20_000, |_, _| true).unwrap();
        row.slowest = row.slowest.max(start.elapsed());
        row.executions += shrunk.executions;
        let story = spelunk::story::tell(&mut machine, &shrunk.trace);
        let args = story.iter().flat_map(|line| &line.told.args);
        let text: Vec<String> = args.map(|(name, value)| format!("{name}={value}")).collect();
        *row.results.entry(text.join("; ")).or_default() += 1;
    }
    row
}

#[test]
fn every_challenge_is_found_and_shrunk_to_its_minimum() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/challenges");
    let wasm = load(&folder, &Build::default(), &mut |_, _| {}).unwrap();
    let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap());
    let rows = on_guest_stack(|| CHALLENGES.map(|(name, ..)| row(&program, name)));
    println!("| challenge | found | minimal | executions | Hypothesis | slowest ms |");
    println!("|---|---|---|---|---|---|");
    let mut short = Vec::new();
    for ((name, minimum, hypothesis), row) in CHALLENGES.iter().zip(&rows) {
        let found: u32 = row.results.values().sum();
        let minimal = row.results.get(*minimum).copied().unwrap_or(0);
        let mean = row.executions as f64 / f64::from(found.max(1));
        let slowest = row.slowest.as_secs_f64() * 1e3;
        println!("| {name} | {found} | {minimal} | {mean:.1} | {hypothesis} | {slowest:.1} |");
        let mut others: Vec<_> = row.results.iter().filter(|(text, _)| text.as_str() != *minimum).collect();
        others.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        for (text, n) in others.iter().take(4) {
            println!("      {n} x {text}");
        }
        if u64::from(minimal) < SEEDS || mean > f64::from(*hypothesis) {
            short.push(name);
        }
    }
    assert!(
        short.is_empty(),
        "not always found and minimal, or in more executions than Hypothesis: {short:?}"
    );
}
