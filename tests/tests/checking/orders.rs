//! Orders of threads that make no difference are left out, and nothing is missed.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use spelunk::check::{self, Checked, Limit, Options, Progress};
use spelunk::load::{Build, load};
use spelunk::machine::{Edges, Limits, Program, Selection, on_guest_stack};
use spelunk::orders::{self, NeedsAll};
use spelunk::session::{Caching, Event, JobResult, Observer};
use spelunk::{Config, Job, Session, Verdict};
use spelunk_tests::check_replays;
use spelunk_tests::checks::{default_options, machines, program};

const GUEST: &str = "tests/guests/sync";
const MAGIC: &[u8] = b"a program of threads";

/// What a check comes to, and what the guest said in it.
#[derive(Debug, PartialEq)]
struct Seen {
    fails: bool,
    said: BTreeSet<String>,
}

fn seen(checked: &Checked, counts: &spelunk::property::Counts) -> Seen {
    let fails = !checked.findings.is_empty();
    // Where something fails, what else is seen is not compared.
    let said = counts.events.keys().filter(|_| !fails).cloned().collect();
    Seen { fails, said }
}

/// Larger programs are left to others.
fn is_enough(progress: &Progress) -> Option<Limit> {
    (progress.census.states > 20_000).then_some(Limit::Interrupt)
}

/// With all orders.
fn whole(program: &Arc<Program>) -> (Seen, Checked) {
    let mut counts = program.declared();
    let (go_on, see) = (&is_enough, &mut |_: &_, _: &_| ());
    let mut machines = machines(program, 1);
    let checked =
        check::check_keeping(&mut machines, &default_options(program), (go_on, see), (None, &mut counts));
    let checked = checked.unwrap();
    (seen(&checked, &counts), checked)
}

/// Without those that make no difference, or why all are needed.
fn reduced(program: &Arc<Program>, workers: usize) -> Result<(Seen, Checked, u64), NeedsAll> {
    reduced_with(program, workers, &default_options(program))
}

fn reduced_with(
    program: &Arc<Program>,
    workers: usize,
    options: &Options,
) -> Result<(Seen, Checked, u64), NeedsAll> {
    let mut counts = program.declared();
    let mut machines = machines(program, workers);
    let walked = orders::check::<Infallible>(&mut machines, |machines| {
        counts = program.declared();
        let (go_on, see) = (&|_: &_| None, &mut |_: &_, _: &_| ());
        let options = Options { leaves_out_orders: true, ..options.clone() };
        Ok(check::check_keeping(machines, &options, (go_on, see), (None, &mut counts)))
    });
    let (walked, rounds) = walked.unwrap()?;
    let checked = walked.unwrap();
    Ok((seen(&checked, &counts), checked, rounds))
}

/// A program of threads as bytes: see `tests/guests/sync/src/random.rs`.
fn code(rng: &mut SmallRng) -> Vec<u8> {
    let threads = rng.random_range(1..=3u8);
    let has = rng.random_range(0..16u8) | rng.random_range(0..=2u8) << 4;
    let mut code = vec![threads, has];
    for _ in 0..=threads {
        for _ in 0..rng.random_range(0..=if threads == 3 { 3 } else { 5 }) {
            code.extend([rng.random_range(1..=20u8), rng.random_range(1..=6u8), rng.random_range(1..=3u8)]);
        }
        code.push(0);
    }
    code
}

/// Programs that are written down in bytes.
struct Programs {
    wasm: Vec<u8>,
    /// Where the bytes are.
    at: usize,
}

impl Programs {
    fn new(features: &[&str]) -> Programs {
        let features: Vec<String> = features.iter().map(|feature| feature.to_string()).collect();
        let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(GUEST);
        let build = Build { features: &features, ..Build::default() };
        let wasm = load(&guest, &build, &mut |_, _| {}).unwrap();
        let at = wasm.windows(MAGIC.len()).position(|bytes| bytes == MAGIC).unwrap() + MAGIC.len();
        Programs { wasm, at }
    }

    fn program(&mut self, code: &[u8]) -> Arc<Program> {
        self.wasm[self.at..self.at + 200].fill(0);
        self.wasm[self.at..self.at + code.len()].copy_from_slice(code);
        let selection = Selection { edges: Edges::None, ..Selection::default() };
        Arc::new(Program::load(&self.wasm, Limits::default(), selection).unwrap())
    }
}

/// So many programs, each with all orders and with some left out. How many states there were in all.
fn compare(features: &[&str], programs: u64) -> [u64; 2] {
    let mut all = Programs::new(features);
    let mut states = [0; 2];
    for seed in 0..programs {
        let code = code(&mut SmallRng::seed_from_u64(seed));
        let program = all.program(&code);
        let (whole, of_whole) = whole(&program);
        if of_whole.limit.is_some() {
            continue;
        }
        let all = reduced(&program, 1 + seed as usize % 2);
        let Ok((reduced, of_reduced, _)) = all else { continue };
        assert_eq!(of_reduced.limit, None);
        assert_eq!(reduced, whole, "program {seed}: {code:?}");
        assert!(of_reduced.findings.is_empty() || !of_whole.findings.is_empty());
        for finding in &of_reduced.findings {
            check_replays(&program, &finding.trace, &finding.failure);
        }
        if !whole.fails {
            states[0] += of_whole.census.states;
            states[1] += of_reduced.census.states;
        }
    }
    states
}

#[test]
fn random_programs_read_the_same() {
    for features in [&["random"][..], &["random", "relaxed"]] {
        let [whole, reduced] = on_guest_stack(|| compare(features, 100));
        assert!(reduced * 4 < whole * 3, "{reduced} states of {whole}");
    }
}

/// What threads have in common that no operation names counts too.
#[test]
fn what_no_operation_names_counts() {
    let mut found = String::new();
    on_guest_stack(|| {
        let mut all = Programs::new(&["random"]);
        for nth in 0..9 {
            let program = all.program(&[100 + nth]);
            assert!(whole(&program).0.fails, "{nth}");
            match reduced(&program, 2) {
                Ok((seen, ..)) => {
                    assert!(seen.fails, "{nth}");
                    writeln!(found, "{nth} fails").unwrap();
                }
                Err(why) => writeln!(found, "{nth} {why:?}").unwrap(),
            }
        }
    });
    let expected =
        "0 fails\n1 fails\n2 fails\n3 fails\n4 fails\n5 Depends\n6 Depends\n7 Rejects\n8 Depends\n";
    assert_eq!(found, expected);
}

/// A step that was made before what says that no order can be left out does not go again as it did.
#[test]
fn a_round_that_is_cut_short_is_no_trouble() {
    on_guest_stack(|| {
        let program = Programs::new(&["random"]).program(&[108]);
        let options = Options { saved_bytes_max: 0, ..default_options(&program) };
        assert_eq!(reduced_with(&program, 1, &options).err(), Some(NeedsAll::Depends));
    });
}

/// States with all orders, where there are not too many, and without those that make no difference.
fn counted(features: &[&str]) -> (Option<u64>, Result<[u64; 3], NeedsAll>) {
    on_guest_stack(|| {
        let program = program(GUEST, features);
        let (_, whole) = whole(&program);
        let all = [1, 2].map(|workers| {
            let (_, checked, rounds) = reduced(&program, workers)?;
            assert_eq!((checked.limit, checked.findings.len()), (None, 0));
            Ok([checked.census.states, checked.steps_left_out, rounds])
        });
        assert_eq!(all[0], all[1], "one worker and two");
        (whole.limit.is_none().then_some(whole.census.states), all[0])
    })
}

#[test]
fn what_nobody_else_touches_is_done_in_one_order() {
    assert_eq!(counted(&["counters"]), (Some(7385), Ok([41, 54, 2])));
    assert_eq!(counted(&["files"]), (Some(781), Ok([21, 30, 2])));
    assert_eq!(counted(&["files", "many"]), (None, Ok([270, 685, 3])));
    // All of them take both locks.
    assert_eq!(counted(&["locks"]), (Some(41), Ok([40, 3, 2])));
}

/// Threads that wait in loops.
#[test]
fn every_order_is_tried_where_threads_wait_in_loops() {
    for name in ["peterson", "bakery", "ticket", "poll", "publish"] {
        assert_eq!(counted(&[name]).1, Err(NeedsAll::Loops), "{name}");
    }
}

/// Nor where something else is called than threads that go on.
#[test]
fn every_order_is_tried_in_a_harness() {
    assert_eq!(counted(&["harness"]).1, Err(NeedsAll::NotTold));
}

#[test]
fn mistakes_are_found() {
    let mut found = String::new();
    for name in ["counters", "treiber", "queue", "async_mutex", "wakeup", "scope", "locks", "once", "ending"]
    {
        on_guest_stack(|| {
            let program = program(GUEST, &[name, "bug"]);
            let Ok((_, checked, _)) = reduced(&program, 2) else { return };
            for finding in &checked.findings {
                let failure = finding.failure.to_string();
                writeln!(found, "{name}: {}", failure.lines().next().unwrap_or_default()).unwrap();
                check_replays(&program, &finding.trace, &finding.failure);
            }
        });
    }
    let expected = "\
counters: panic: assertion `left == right` failed: an addition was lost
treiber: panic: assertion `left == right` failed: two have node 1
async_mutex: deadlock: no thread can go on
wakeup: deadlock: no thread can go on
scope: deadlock: no thread can go on
locks: panic: assertion `left == right` failed: an addition was lost
once: panic: assertion `left == right` failed: it is not set yet
ending: panic: assertion `left == right` failed: the senders are gone
";
    assert_eq!(found, expected);
}

/// Remembers what a session says.
#[derive(Default)]
struct Statuses(Vec<String>);

impl Observer for Statuses {
    fn on(&mut self, event: Event<'_>) -> std::io::Result<()> {
        if let Event::Status { verb: verb @ ("Left out" | "Checking"), text } = event {
            self.0.push(format!("{verb} {text}"));
        }
        Ok(())
    }
}

/// The verdict of a session, and what it says.
fn session(features: &[&str]) -> (Verdict, Option<Limit>, Vec<String>) {
    let out = tempfile::tempdir().unwrap();
    let config = Config {
        job: Job::Check(Options { reduces: true, ..Options::default() }),
        guest_features: features.iter().map(|feature| feature.to_string()).collect(),
        out: out.path().to_path_buf(),
        cache: Caching::Off,
        ..Config::check()
    };
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(GUEST);
    let mut statuses = Statuses::default();
    let summary = Session::open(target).unwrap().config(config).run(&mut statuses).unwrap();
    let JobResult::Checked(checked) = summary.result else { panic!("it was not checked") };
    (summary.verdict, checked.limit.map(|(limit, _)| limit), statuses.0)
}

#[test]
fn the_verdict_is_that_of_all_orders() {
    let all = "Checking every order of threads, since threads wait in loops";
    let some = "Left out 54 steps of threads, in 2 rounds: they have nothing in common with others";
    assert_eq!(session(&["counters"]), (Verdict::Passed, None, vec![some.to_string()]));
    assert_eq!(session(&["peterson"]), (Verdict::Passed, None, vec![all.to_string()]));
    assert_eq!(session(&["queue", "bug"]), (Verdict::Found, None, vec![all.to_string()]));
    // What must come is judged where all orders are tried.
    assert_eq!(session(&["ticket", "bug"]).0, Verdict::Found);
}
