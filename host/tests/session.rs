//! The library as another crate uses it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use spelunk::file::TraceFile;
use spelunk::session::{Caching, JobResult, Keep};
use spelunk::{Budget, Config, Event, Observer, Session, Verdict};

/// A folder of the test's own, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("session").join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn guest(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cli/guests").join(name)
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

fn config(out: &Path) -> Config {
    Config { out: out.to_path_buf(), cache: Caching::Off, ..Config::explore() }
}

/// Keeps what it is told, in short.
#[derive(Default)]
struct Log(Vec<String>);

impl Observer for Log {
    fn on(&mut self, event: Event<'_>) -> io::Result<()> {
        match event {
            Event::Finding(finding) => {
                let known = if finding.was_known { "known " } else { "" };
                self.0.push(format!("{known}finding {} of {} steps", finding.failure, finding.story.len()));
            }
            Event::Status { verb, .. } => self.0.push(verb.to_string()),
            Event::End(summary) => self.0.push(format!("{:?}", summary.verdict)),
            _ => {}
        }
        Ok(())
    }
}

/// What a user would write beside a harness: it fails with the story.
#[test]
fn the_harness_holds() {
    let config = Config { time: Some(Duration::from_secs(2)), ..config(&folder("holds")) };
    let session = Session::open(example("kv")).unwrap().config(config);
    let summary = session.run(&mut ()).unwrap();
    assert!(summary.findings.is_empty(), "{}", summary.findings[0]);
}

#[test]
fn a_finding_is_its_story() {
    let session = Session::open(guest("account.wat")).unwrap().config(config(&folder("story")));
    let summary = session.run(&mut ()).unwrap();
    assert_eq!((summary.verdict, summary.findings.len()), (Verdict::Found, 1));
    let story = summary.findings[0].to_string();
    let (story, command) = story.split_once("\n\nReproduce:  spelunk replay ").unwrap();
    assert_eq!(
        story,
        "FAIL  invariant fits: it does not hold   (shrunk: 11 → 2 steps)\n  \
         1  deposit  arg0=500000000\n  2  deposit  arg0=1000000000"
    );
    assert!(command.contains("account.wat"), "{command}");
    let JobResult::Explored(explored) = summary.result else { panic!("{:?}", summary.result) };
    assert_eq!(explored.progress.findings, 1);
}

/// A bug that an edit introduces may be met by the steps of the campaign before it: it is a finding as any other.
#[test]
fn a_bug_that_an_edit_introduces_is_shown() {
    let out = folder("edit");
    let explore = |guest_features: &[&str]| {
        let guest_features = guest_features.iter().map(ToString::to_string).collect();
        let mut config = Config { guest_features, runs: Some(20_000), ..config(&out) };
        if let spelunk::Job::Explore(settings) = &mut config.job {
            settings.seed = 5;
        }
        let mut log = Log::default();
        let summary = Session::open(example("kv")).unwrap().config(config).run(&mut log).unwrap();
        (summary, log.0)
    };
    let (summary, _) = explore(&[]);
    assert_eq!((summary.verdict, summary.findings.len()), (Verdict::Passed, 0));
    let (summary, log) = explore(&["bug"]);
    assert_eq!((summary.verdict, summary.findings.len()), (Verdict::Found, 1));
    let finding = &summary.findings[0];
    assert!(finding.trace.exists() && finding.is_minimal && !finding.was_known);
    assert!(
        log.contains(&"Rebuilt".to_string()) && log.iter().any(|line| line.starts_with("finding ")),
        "{log:?}"
    );
    // And again in full the next time.
    let (again, log) = explore(&["bug"]);
    assert_eq!(again.verdict, Verdict::Found);
    assert_eq!(
        again.findings[0].to_string().replace("   (found before)", ""),
        without_counts(&finding.to_string())
    );
    assert!(log.iter().any(|line| line.starts_with("known finding ")), "{log:?}");
}

/// A story without what is only known when it is told first.
fn without_counts(story: &str) -> String {
    let (first, rest) = story.split_once('\n').unwrap();
    format!("{}\n{rest}", first.split("   (shrunk").next().unwrap())
}

/// Whatever ends a session while it shrinks, the next one goes on with that.
#[test]
fn shrinking_that_was_cut_off_is_resumed() {
    for keep in [Keep::Campaign, Keep::Findings] {
        let [whole, cut] = ["whole", "cut"].map(|name| folder(&format!("resumed-{name}-{keep:?}")));
        let explore = |out: &Path, budget: Budget, observer: &mut dyn Observer| {
            let config = Config { keep, guest_features: vec!["bug".to_string()], ..config(out) };
            let session = Session::open(example("kv")).unwrap().config(config).budget(budget);
            session.run(observer).unwrap()
        };
        let undisturbed = explore(&whole, Budget::unlimited(), &mut ());
        assert!(undisturbed.findings[0].is_minimal);
        let budget = Budget::unlimited();
        let first = explore(&cut, budget.clone(), &mut Interrupts { budget, after: 1 });
        assert_eq!(first.verdict, Verdict::Interrupted);
        assert!(!first.findings[0].is_minimal);
        // What is told is what is there.
        let saved = TraceFile::read(&first.findings[0].trace).unwrap();
        assert_eq!(saved.steps.len(), first.findings[0].story.len());
        let second = explore(&cut, Budget::unlimited(), &mut ());
        assert!(second.findings[0].is_minimal);
        let [expected, resumed] = [&undisturbed, &second]
            .map(|summary| std::fs::read_to_string(&summary.findings[0].trace).unwrap());
        assert_eq!(resumed, expected, "{keep:?}");
    }
}

/// Interrupts its session once so many reports of shrinking came.
struct Interrupts {
    budget: Budget,
    after: usize,
}

impl Observer for Interrupts {
    fn on(&mut self, event: Event<'_>) -> io::Result<()> {
        if let Event::Shrinking { .. } = event {
            self.after -= 1;
            if self.after == 0 {
                self.budget.interrupt();
            }
        }
        Ok(())
    }
}

#[test]
fn what_cannot_be_used_is_an_error_of_a_kind() {
    use spelunk::session::ErrorKind;
    let out = folder("errors");
    let kind =
        |target: &Path, config: Config| match Session::open(target).map(|s| s.config(config).run(&mut ())) {
            Ok(Ok(summary)) => panic!("{:?}", summary.verdict),
            Ok(Err(error)) | Err(error) => error.kind(),
        };
    assert_eq!(kind(Path::new("missing.wasm"), config(&out)), ErrorKind::Target);
    assert_eq!(kind(&guest("invalid.wat"), config(&out)), ErrorKind::Target);
    let mut wrong = config(&out);
    if let spelunk::Job::Explore(settings) = &mut wrong.job {
        settings.steps_per_run = 0;
    }
    assert_eq!(kind(&guest("clean.wat"), wrong), ErrorKind::Config);
    let check = Config { out: out.clone(), cache: Caching::Off, ..Config::check() };
    assert_eq!(kind(&guest("account.wat"), check), ErrorKind::Check);
    let file = out.join("file");
    std::fs::write(&file, "in the way").unwrap();
    assert_eq!(kind(&guest("clean.wat"), config(&file)), ErrorKind::Io);
}

/// A loop is a finding as long as it is fair: what a rule says of that is no part of the steps to it.
#[test]
fn a_loop_that_is_no_longer_fair_is_no_finding() {
    let folder = folder("loop");
    let target = folder.join("guest.wat");
    let checked = |fair: &str, config: Config| {
        let step = |name, from, to| {
            format!(
                r#"(func (export "precondition:{name}") (result i32) (i32.eq (global.get $at) (i32.const {from})))
                   (func (export "rule:{name}") (global.set $at (i32.const {to})))"#
            )
        };
        let steps = [step("go", 0, 1), step("back", 1, 0), step("leave", 1, 2), step("stay", 2, 2)].concat();
        let module = format!(
            r#"(module (import "spelunk" "eventually" (func $eventually (param i32 i32 i32)))
              (memory 1) (data (i32.const 0) "out") (global $at (mut i32) (i32.const 0))
              (@custom "spelunk:properties" "eventually out\n") (@custom "spelunk:fairness" "{fair}")
              {steps}
              (func (export "invariant:live")
                (call $eventually (i32.const 0) (i32.const 3) (i32.eq (global.get $at) (i32.const 2)))))"#
        );
        std::fs::write(&target, module).unwrap();
        let config = Config { out: folder.clone(), cache: Caching::Off, ..config };
        let summary = Session::open(target.clone()).unwrap().config(config).run(&mut ()).unwrap();
        (summary.verdict, summary.findings.len(), summary.saved.len())
    };
    assert_eq!(checked("", Config::check()), (Verdict::Found, 1, 0));
    assert_eq!(checked("", Config::check()), (Verdict::Found, 1, 1));
    assert_eq!(checked(r"strong leave\n", Config::check()), (Verdict::Passed, 0, 1));
    let explore = Config { runs: Some(10), ..Config::explore() };
    assert_eq!(checked(r"strong leave\n", explore), (Verdict::Passed, 0, 1));
    assert_eq!(checked("", Config::check()), (Verdict::Found, 1, 1));
}
