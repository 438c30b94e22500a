//! Lock-free and blocking code: published algorithms hold in every interleaving, and the mistakes that are known of them are found.

use std::fmt::Write;

use spelunk::check::{Limit, Options, Schedules};
use spelunk::machine::on_guest_stack;
use spelunk::session::{Caching, JobResult, Keep};
use spelunk::{Config, Job, Session, Verdict};
use spelunk_tests::checks::{default_options, holds, program, run};
use spelunk_tests::{check_replays, steps_of};

const GUEST: &str = "tests/guests/sync";

const ALGORITHMS: [&str; 23] = [
    "peterson",
    "bakery",
    "ticket",
    "treiber",
    "queue",
    "async_mutex",
    "wakeup",
    "mutexes",
    "stack",
    "outside",
    "publish",
    "scope",
    "locks",
    "harness",
    "poll",
    "timeout",
    "once",
    "initialized",
    "handles",
    "ending",
    "moved",
    "stale",
    "failing",
];

/// Each of them holds with so many states.
#[test]
fn published_algorithms_hold() {
    let mut found = String::new();
    for name in ALGORITHMS {
        writeln!(found, "{name} {}", holds(GUEST, &[name]).states).unwrap();
    }
    let expected = "\
peterson 114
bakery 307
ticket 544
treiber 358
queue 294
async_mutex 212
wakeup 16
mutexes 166
stack 3
outside 98
publish 20
scope 288
locks 41
harness 44
poll 12
timeout 18
once 10
initialized 12
handles 95
ending 76
moved 29
stale 6
failing 9
";
    assert_eq!(found, expected);
}

/// The kind of each finding, what is claimed or said, and the steps of a shortest way there.
#[test]
fn their_mistakes_are_found() {
    let mut found = String::new();
    for name in ALGORITHMS {
        on_guest_stack(|| {
            let program = program(GUEST, &[name, "bug"]);
            let checked = run(&program, 2, &default_options(&program));
            assert_eq!(checked.limit, None, "{name}");
            for finding in &checked.findings {
                let steps = steps_of(&finding.trace);
                let failure = finding.failure.to_string();
                let what = failure.lines().next().unwrap_or_default();
                writeln!(found, "{name}, {steps} steps: {what}").unwrap();
                check_replays(&program, &finding.trace, &finding.failure);
            }
        });
    }
    let expected = "\
peterson, 9 steps: panic: assertion `left == right` failed: both are inside
bakery, 12 steps: panic: assertion `left == right` failed: two are inside
ticket, 22 steps: panic: assertion `left == right` failed: an addition was lost
ticket, 16 steps: liveness every thread ends: it never holds: the last 4 steps may be repeated for ever
treiber, 20 steps: panic: assertion `left == right` failed: two have node 1
queue, 14 steps: panic: assertion `left == right` failed: something else was received than was sent
async_mutex, 10 steps: deadlock: no thread can go on
wakeup, 8 steps: deadlock: no thread can go on
mutexes, 4 steps: panic: attempted to use a condition variable with two mutexes
stack, 0 steps: stack-overflow: the stack of a thread is full: keep large values elsewhere, such as in a `Box`, or nest fewer calls
outside, 7 steps: panic: assertion `left == right` failed: it was sent after that
publish, 3 steps: panic: assertion `left == right` failed: the value is not there yet
scope, 18 steps: deadlock: no thread can go on
locks, 22 steps: panic: assertion `left == right` failed: an addition was lost
harness, 3 steps: invariant one_is_inside: two are inside
poll, 10 steps: liveness every thread ends: it never holds: the last 8 steps may be repeated for ever
timeout, 7 steps: panic: the time was up before the mutex was free
once, 5 steps: panic: assertion `left == right` failed: it is not set yet
initialized, 4 steps: panic: it was built, and is not there
handles, 13 steps: panic: it has not ended yet
ending, 2 steps: panic: assertion `left == right` failed: the senders are gone
moved, 13 steps: panic: assertion `left == right` failed: another lock tells nothing
stale, 4 steps: deadlock: no thread can go on
failing, 5 steps: always there is memory: the condition does not hold
";
    assert_eq!(found, expected);
}

/// What a check under a bound comes to: the verdict, and what it left out.
fn bounded(features: &[&str], bound: Schedules) -> (Verdict, Option<Limit>) {
    bounded_with(features, bound, true)
}

/// As [`bounded`], with snapshots or without.
fn bounded_with(features: &[&str], bound: Schedules, uses_snapshots: bool) -> (Verdict, Option<Limit>) {
    let out = tempfile::tempdir().unwrap();
    let config = Config {
        job: Job::Check(Options { schedules: Some(bound), ..Options::default() }),
        guest_features: features.iter().map(|feature| feature.to_string()).collect(),
        out: out.path().to_path_buf(),
        keep: Keep::Findings,
        cache: Caching::Off,
        uses_snapshots,
        ..Config::check()
    };
    let target = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(GUEST);
    let summary = Session::open(target).unwrap().config(config).run(&mut ()).unwrap();
    let JobResult::Checked(checked) = summary.result else { panic!("it was not checked") };
    (summary.verdict, checked.limit.map(|(limit, _)| limit))
}

/// A few preemptions or delays are enough for all of them. Where a bound leaves nothing out, what holds within it holds.
#[test]
fn mistakes_need_few_preemptions_or_delays() {
    let kinds: [fn(u32) -> Schedules; 2] = [Schedules::Preemptions, Schedules::Delays];
    let left_out = |bound| Some(Limit::Schedules(bound));
    for (name, needed) in [("treiber", [1, 1]), ("wakeup", [1, 2]), ("peterson", [2, 2])] {
        for (kind, needed) in kinds.into_iter().zip(needed) {
            let (less, enough) = (kind(needed - 1), kind(needed));
            assert_eq!(bounded(&[name, "bug"], less), (Verdict::Unknown, left_out(less)), "{name}");
            assert_eq!(bounded(&[name, "bug"], kind(9)), (Verdict::Found, left_out(enough)), "{name}");
        }
    }
    for kind in kinds {
        // The thread that reads need not be preempted where the stores are: it sees them late.
        assert_eq!(bounded(&["publish", "bug"], kind(9)), (Verdict::Found, left_out(kind(0))));
        assert_eq!(bounded(&["publish"], kind(2)), (Verdict::Unknown, left_out(kind(2))));
        assert_eq!(bounded(&["wakeup"], kind(99)), (Verdict::Passed, None));
        // A machine that is instantiated anew for each run keeps the bound.
        assert_eq!(bounded_with(&["publish"], kind(0), false), (Verdict::Unknown, left_out(kind(0))));
    }
}

/// The same mistakes as another explorer of threads sees them, with random schedules.
mod beside {
    use shuttle::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
    use shuttle::sync::{Arc, Condvar, Mutex};
    use shuttle::thread;

    /// Whether so many random schedules show it.
    fn is_found(f: fn()) -> bool {
        std::panic::catch_unwind(|| shuttle::check_random(f, 10_000)).is_err()
    }

    #[test]
    fn shuttle_finds_them_too() {
        assert!(is_found(aba));
        assert!(is_found(lost_wakeup));
        assert!(is_found(published_too_soon));
    }

    /// As `treiber`, with its mistake.
    fn aba() {
        let head = Arc::new(AtomicU32::new(0));
        let next: Arc<[AtomicU32; 3]> = Arc::new([1, 2, 3].map(AtomicU32::new));
        let owners: Arc<[AtomicU32; 3]> = Arc::new([0; 3].map(AtomicU32::new));
        let take = |head: &AtomicU32, next: &[AtomicU32; 3], owners: &[AtomicU32; 3]| {
            loop {
                let node = head.load(SeqCst);
                if node == 3 {
                    return None;
                }
                let after = next[node as usize].load(SeqCst);
                if head.compare_exchange(node, after, SeqCst, SeqCst).is_ok() {
                    assert_eq!(owners[node as usize].fetch_add(1, SeqCst), 0, "two have node {node}");
                    return Some(node);
                }
            }
        };
        let other = {
            let (head, next, owners) = (head.clone(), next.clone(), owners.clone());
            thread::spawn(move || {
                let first = take(&head, &next, &owners);
                take(&head, &next, &owners);
                let Some(first) = first else { return };
                owners[first as usize].fetch_sub(1, SeqCst);
                loop {
                    let top = head.load(SeqCst);
                    next[first as usize].store(top, SeqCst);
                    if head.compare_exchange(top, first, SeqCst, SeqCst).is_ok() {
                        return;
                    }
                }
            })
        };
        take(&head, &next, &owners);
        take(&head, &next, &owners);
        other.join().unwrap();
    }

    /// As `wakeup`, with its mistake.
    fn lost_wakeup() {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let waiter = {
            let pair = pair.clone();
            thread::spawn(move || {
                let is_ready = *pair.0.lock().unwrap();
                if !is_ready {
                    drop(pair.1.wait(pair.0.lock().unwrap()).unwrap());
                }
            })
        };
        *pair.0.lock().unwrap() = true;
        pair.1.notify_one();
        waiter.join().unwrap();
    }

    /// As `publish`, with its mistake.
    fn published_too_soon() {
        let published = Arc::new((AtomicU32::new(0), AtomicBool::new(false)));
        let reader = {
            let published = published.clone();
            thread::spawn(move || {
                while !published.1.load(SeqCst) {
                    thread::yield_now();
                }
                assert_eq!(published.0.load(SeqCst), 7, "the value is not there yet");
            })
        };
        published.1.store(true, SeqCst);
        published.0.store(7, SeqCst);
        reader.join().unwrap();
    }
}

/// What a module does wrong with its threads ends as a failure of its own.
mod wrong {
    use std::sync::Arc;

    use spelunk::machine::{Limits, Program, Selection, on_guest_stack};
    use spelunk_tests::checks::{default_options, run};

    /// The failures of a module with this rule and these functions, the entry of threads the first in its table.
    fn check(entry: &str, rule: &str, expected: &str) {
        let text = format!(
            r#"(module
              (import "spelunk" "suspend" (func $suspend))
              (import "spelunk" "resume" (func $resume (param i32) (result i32)))
              (memory 1)
              (global $__stack_pointer (mut i32) (i32.const 65536))
              (type $entry (func (param i32 f32)))
              (table funcref (elem $entry))
              (data (i32.const 1024) "\00\00\00\00\3c\00\00\00\00\08\00\00\00\10\00\00\00\08\00\00")
              (func $entry (type $entry) {entry})
              (func (export "rule:run") {rule}))"#
        );
        let wasm = wat::parse_str(text).unwrap();
        on_guest_stack(|| {
            let program = Program::load(&wasm, Limits::default(), Selection::default()).unwrap();
            let program = Arc::new(program);
            let checked = run(&program, 1, &default_options(&program));
            let found: Vec<String> = checked.findings.iter().map(|found| found.failure.to_string()).collect();
            assert_eq!(found, [expected], "{entry} {rule}");
        });
    }

    const RESUME: &str = "(drop (call $resume (i32.const 1024)))";

    #[test]
    fn a_thread_is_needed_to_suspend() {
        let why = "abi: `suspend` was called outside of a thread: call it in what `resume` calls";
        check("", "(call $suspend)", why);
        check("", &format!("{RESUME} (call $suspend)"), why);
    }

    #[test]
    fn a_full_stack_is_a_failure() {
        let why = "stack-overflow: the stack of a thread is full: keep large values elsewhere, such as in a `Box`, or nest \
                   fewer calls";
        check("(global.set $__stack_pointer (i32.const 2050))", RESUME, why);
        // There is no room to write down where it is, in 61 calls.
        let nested = "(global.set $__stack_pointer (i32.const 2176))
            (if (local.get 0) (then (call $entry (i32.sub (local.get 0) (i32.const 1)) (local.get 1))))
            (call $suspend)";
        check(nested, RESUME, why);
    }

    #[test]
    fn what_was_overwritten_is_a_failure() {
        let why = "abi: what was written down of a thread that is suspended was overwritten, or its record is not one";
        let overwritten = |store: &str| format!("{RESUME} {store} {RESUME}");
        check("(call $suspend)", &overwritten("(i32.store (i32.const 2048) (i32.const 9))"), why);
        check("(call $suspend)", &overwritten("(i32.store (i32.const 1040) (i32.const 2049))"), why);
    }

    #[test]
    fn a_thread_that_resumes_itself_nests_too_deep() {
        check(RESUME, RESUME, "stack-overflow: calls nest deeper than 10000 (--depth-max), in entry+0x4");
    }

    /// Whether anybody wants to know what threads touch, or not.
    #[test]
    fn an_unknown_way_to_touch_something_is_a_failure() {
        let text = r#"(module
          (import "spelunk" "touches" (func $touches (param i32 i32 i32 i64)))
          (func (export "rule:run") (call $touches (i32.const 0) (i32.const 10) (i32.const 0) (i64.const 0))))"#;
        on_guest_stack(|| {
            let wasm = wat::parse_str(text).unwrap();
            let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap());
            let checked = run(&program, 1, &default_options(&program));
            let found: Vec<String> = checked.findings.iter().map(|found| found.failure.to_string()).collect();
            assert_eq!(found, ["abi: touches: there is no way 10 to touch something"]);
        });
    }

    /// A thread that suspends for ever comes back to a state that is known.
    #[test]
    fn equal_states_of_threads_are_equal_bytes() {
        let text = r#"(module
          (import "spelunk" "suspend" (func $suspend))
          (import "spelunk" "resume" (func $resume (param i32) (result i32)))
          (memory 1)
          (global $__stack_pointer (mut i32) (i32.const 65536))
          (type $entry (func (param i32 f32)))
          (table funcref (elem $entry))
          (data (i32.const 1024) "\00\00\00\00\3c\00\00\00\00\08\00\00\00\10\00\00\00\08\00\00")
          (func $entry (type $entry) (local $frame i32)
            (loop $again
              ;; A frame of 64 bytes, in which something is left.
              (local.set $frame (i32.sub (global.get $__stack_pointer) (i32.const 64)))
              (global.set $__stack_pointer (local.get $frame))
              (call $suspend)
              (i64.store (local.get $frame) (i64.const -1))
              (global.set $__stack_pointer (i32.add (local.get $frame) (i32.const 64)))
              (call $suspend)
              (br $again)))
          (func (export "rule:run") (drop (call $resume (i32.const 1024)))))"#;
        let wasm = wat::parse_str(text).unwrap();
        on_guest_stack(|| {
            let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap());
            let checked = run(&program, 1, &default_options(&program));
            assert_eq!((checked.census.states, checked.findings.len()), (3, 0));
        });
    }
}
