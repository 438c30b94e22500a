//! Which lines an exploration reached, of each kind of guest: those that were marked by hand. `genhtml` reads what is written of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use spelunk::budget::Budget;
use spelunk::campaign::Campaign;
use spelunk::reached::Reached;
use spelunk::report::page::reached;
use spelunk::report::tools::lcov;
use spelunk::session::{Caching, Config, Place, Session};
use spelunk::symbols::source;
use spelunk_tests::tools;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

fn guest(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/lines").join(name)
}

/// A source compiled with debug information, and with further flags.
fn compiled(name: &str, flags: &[&str], folder: &Path) -> PathBuf {
    let to = folder.join(name).with_extension("wasm");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--target", "wasm32-unknown-unknown", "-g", "-Copt-level=0"]);
    rustc.args(["--crate-type", "cdylib", "-o"]).arg(&to).args(flags).arg(guest(name));
    let output = rustc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    to
}

/// What a session of so many runs reaches, without libraries.
fn explored(target: &Path, config: Config, runs: u64, folder: &Path) -> Reached {
    let config =
        Config { out: folder.join("out"), cache: Caching::Off, runs: Some(runs), findings_max: 0, ..config };
    let place = Place::of_both(target, config.against.as_deref(), &config.out);
    Session::open(target).unwrap().config(config).run(&mut ()).unwrap();
    let campaign = Campaign::open(place.folder()).unwrap().unwrap();
    let reached = reached(&campaign, None, &Budget::unlimited()).unwrap();
    assert_eq!((reached.walked.differing, reached.is_cut), (0, false));
    assert!(reached.walked.checkpoints > 0);
    reached
}

/// Lines that end in `// yes` were reached, and those that end in `// no` were not, but for these, of which it is the other way round.
#[track_caller]
fn check(reached: &Reached, name: &str, others: &[&str]) {
    let file = reached.files.iter().position(|file| file.source.shown.ends_with(name));
    let file = file.unwrap_or_else(|| panic!("{name} is not in {:?}", reached.files));
    let text = std::fs::read_to_string(guest(name)).unwrap();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (number, line) in (1..).zip(text.lines()) {
        let Some((code, mark)) = line.rsplit_once("// ").filter(|(_, mark)| ["yes", "no"].contains(mark))
        else {
            continue;
        };
        count += 1;
        let expected = (mark == "yes") != others.contains(&code.trim());
        let known = reached.lines_of(file).iter().find(|line| line.line == number);
        if known.map(|line| line.hits.any()) != Some(expected) {
            wrong.push(format!("{number}: {line} is {known:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 2, "{count}");
}

#[test]
fn of_a_module() {
    let folder = tempfile::tempdir().unwrap();
    let target = compiled("counter.rs", &[], folder.path());
    check(&explored(&target, Config::explore(), 200, folder.path()), "counter.rs", &[]);
}

#[test]
fn of_a_component() {
    let folder = tempfile::tempdir().unwrap();
    let mut module = std::fs::read(compiled("counter.rs", &[], folder.path())).unwrap();
    let mut resolve = Resolve::default();
    let text = "package test:lines; world lines { export add: func(number: u8) -> u32; }";
    let package = resolve.push_str("lines.wit", text).unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let component = ComponentEncoder::default().module(&module).unwrap().encode().unwrap();
    let target = folder.path().join("component.wasm");
    std::fs::write(&target, component).unwrap();
    check(&explored(&target, Config::explore(), 200, folder.path()), "counter.rs", &[]);
}

#[test]
fn of_a_target_and_its_harness() {
    let folder = tempfile::tempdir().unwrap();
    let target = compiled("counter.rs", &[], folder.path());
    let flags = ["--import-memory", "--global-base=33554432", "--export=__global_base"];
    let flags = flags.map(|flag| format!("-Clink-arg={flag}"));
    let flags = flags.each_ref().map(String::as_str);
    let harness = compiled("harness.rs", &flags, folder.path());
    let config = Config { link: Some(harness), ..Config::explore() };
    let reached = explored(&target, config, 200, folder.path());
    check(&reached, "harness.rs", &[]);
    // The harness calls it with small numbers alone.
    check(&reached, "counter.rs", &["return count;"]);
}

/// All of the rules was called, and what describes their arguments where a finding is told counts for nothing.
#[test]
fn of_a_harness() {
    let folder = tempfile::tempdir().unwrap();
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/bank");
    let reached = explored(&target, Config::explore(), 2000, folder.path());
    let file = reached.files.iter().position(|file| file.source.shown.ends_with("bank/src/lib.rs")).unwrap();
    let text = std::fs::read_to_string(target.join("src/lib.rs")).unwrap();
    let line_of =
        |code: &str| 1 + text.lines().position(|line| line.trim().starts_with(code)).unwrap() as u32;
    let rules = line_of("#[harness]")..line_of("fn conserved");
    let lines = reached.lines_of(file).iter().filter(|line| rules.contains(&line.line));
    let (hit, missed): (Vec<_>, Vec<_>) = lines.cloned().partition(|line| line.hits.any());
    assert!(hit.len() > 10, "{hit:?}");
    assert!(missed.is_empty(), "{missed:?}");
}

/// The lines of the target are told, and none of what it is compared with.
#[test]
fn of_two_versions() {
    let folder = tempfile::tempdir().unwrap();
    let target = compiled("counter.rs", &[], folder.path());
    let other = compiled("changed.rs", &[], folder.path());
    let config = Config { against: Some(other), ..Config::explore() };
    let reached = explored(&target, config, 200, folder.path());
    check(&reached, "counter.rs", &[]);
    let files: Vec<&str> = reached.files.iter().map(|file| &*file.source.shown).collect();
    assert!(!files.iter().any(|file| file.ends_with("changed.rs")), "{files:?}");
}

/// The reader comes before the value is there in some orders, and then yields.
#[test]
fn of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/sync");
    let config = Config {
        guest_features: vec!["publish".into()],
        guest_profile: Some("dev".into()),
        ..Config::explore()
    };
    let reached = explored(&target, config, 50, folder.path());
    let file = reached.files.iter().position(|file| file.source.shown.ends_with("src/publish.rs")).unwrap();
    let text = std::fs::read_to_string(target.join("src/publish.rs")).unwrap();
    let was_reached = |code: &str| {
        let numbers =
            (1..).zip(text.lines()).filter(|(_, line)| line.trim() == code).map(|(number, _)| number);
        let hits = |number| {
            reached.lines_of(file).iter().find(|line| line.line == number).map(|line| line.hits.any())
        };
        numbers.map(hits).collect::<Vec<_>>()
    };
    for code in [
        "let published = Arc::new(Published::default());",
        "while !published.is_set.load(Ordering::Acquire) {",
        "thread::yield_now();",
        "assert_eq!(published.value.load(Ordering::Relaxed), 7, \"the value is not there yet\");",
        "reader.join().unwrap();",
    ] {
        assert_eq!(was_reached(code), [Some(true)], "{code}");
    }
    // Of both orders, the right one alone.
    for code in
        ["published.is_set.store(true, Ordering::Release);", "published.value.store(7, Ordering::Relaxed);"]
    {
        let reached = was_reached(code);
        assert_eq!(
            reached.iter().filter(|reached| **reached == Some(true)).count(),
            1,
            "{code}: {reached:?}"
        );
    }
}

/// `genhtml`, of Debian's package `lcov`, reads what is written, and counts what we count.
#[test]
fn genhtml_reads_it() {
    if !Command::new("genhtml").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return tools::report("genhtml", "the package `lcov` has it");
    }
    let folder = tempfile::tempdir().unwrap();
    let target = compiled("counter.rs", &[], folder.path());
    let reached = explored(&target, Config::explore(), 200, folder.path());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests");
    let paths: Vec<String> = reached
        .files
        .iter()
        .map(|file| source(&file.source, &[&root]).unwrap().0.to_str().unwrap().to_string())
        .collect();
    let (file, pages) = (folder.path().join("lcov.info"), folder.path().join("html"));
    std::fs::write(&file, lcov(&reached, &paths)).unwrap();
    let mut genhtml = Command::new("genhtml");
    let output = genhtml.arg("--branch-coverage").arg(&file).arg("-o").arg(&pages).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    // `  lines......: 77.8% (7 of 9 lines)`
    let counts = |what: &str| {
        let line = said.lines().find(|line| line.trim_start().starts_with(what));
        let line = line.unwrap_or_else(|| panic!("{what} is not in\n{said}"));
        let words: Vec<&str> = line.split(['(', ' ']).collect();
        let at = words.iter().position(|word| *word == "of").unwrap();
        [words[at - 1], words[at + 1]].map(|word| word.parse::<usize>().unwrap())
    };
    let hit = reached.lines.iter().filter(|line| line.hits.any()).count();
    assert_eq!(counts("lines"), [hit, reached.lines.len()]);
    let entered = reached.functions.iter().filter(|function| function.hits.any()).count();
    assert_eq!(counts("functions"), [entered, reached.functions.len()]);
    let ways: Vec<bool> =
        reached.branches.iter().flat_map(|branch| &branch.ways).map(|way| way.any()).collect();
    assert_eq!(counts("branches"), [ways.iter().filter(|way| **way).count(), ways.len()]);
    let page = std::fs::read_dir(&pages).unwrap().count();
    assert!(page > 3, "{page}");
}
