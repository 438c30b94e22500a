//! What the steps of a campaign reached: line for line what compilers' own coverage says of the same inputs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use spelunk::budget::Budget;
use spelunk::file::Conditions;
use spelunk::machine::{Edges, Limits, Machine, Program, Selection};
use spelunk::outcome::{Failure, FailureKind, Found};
use spelunk::reached::{Reached, annotated, reach};
use spelunk::report::tools::lcov;
use spelunk::search::History;
use spelunk::session::Inputs;
use spelunk_tests::tools::{c_compiler, gcc, llvm_tool, written};

/// By line, whether it was reached.
type Lines = BTreeMap<u32, bool>;

fn guest(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/reached").join(name)
}

/// A machine of the build in which every block counts.
fn machine(wasm: &[u8]) -> Machine {
    let selection = Selection { edges: Edges::Blocks, ..Selection::default() };
    let conditions = Conditions { limits: Limits::default(), selection, environment: Default::default() };
    Machine::new(Arc::new(Program::load_in(wasm, conditions, None, &Budget::unlimited()).unwrap())).unwrap()
}

/// What a fuzz target reaches with inputs that pass, each a checkpoint, and with one that fails.
fn reached(wasm: &[u8], passing: &[&str], failing: &str) -> Reached {
    let mut machine = machine(wasm);
    let inputs = Inputs::of(machine.program(), &[], "what is executed").unwrap();
    let start = Arc::new(History::start());
    let checkpoint = |(id, input): (u64, &&str)| {
        (id, Arc::new(History::new(id, Some(start.clone()), inputs.trace(input.as_bytes()))))
    };
    let checkpoints: Vec<_> = (1..).zip(passing).map(checkpoint).collect();
    let failure = Failure { kind: FailureKind::Trap, subject: None, message: String::new(), place: None };
    let finding = Arc::new(Found { failure, run: 1, trace: inputs.trace(failing.as_bytes()) });
    let reached = reach(&mut machine, (&checkpoints, &[finding]), &Budget::unlimited()).unwrap();
    assert_eq!((reached.walked.checkpoints, reached.walked.findings), (passing.len() as u64, 1));
    assert_eq!((reached.walked.differing, reached.is_cut), (0, false));
    reached
}

fn lines(reached: &Reached, name: &str) -> Lines {
    let file = reached.files.iter().position(|file| file.source.shown.ends_with(name)).unwrap();
    reached.lines_of(file).iter().map(|line| (line.line, line.hits.any())).collect()
}

/// Lines that both say are there agree, and what one alone has is one of these texts or begins with it, of so many lines each.
#[track_caller]
fn check(
    source: &str,
    ours: &Lines,
    theirs: &Lines,
    ours_alone: &[&str],
    theirs_alone: &[&str],
    both: usize,
) {
    let text = std::fs::read_to_string(guest(source)).unwrap();
    let texts: Vec<&str> = text.lines().map(str::trim).collect();
    let text = |line: &u32| texts[*line as usize - 1];
    let alone = |some: &Lines, others: &Lines| -> Vec<String> {
        let lines = some.keys().filter(|line| !others.contains_key(line));
        lines.map(|line| format!("{line}: {}", text(line))).collect()
    };
    let unknown = |lines: Vec<String>, allowed: &[&str]| -> Vec<String> {
        let is_allowed = |line: &String| {
            let text = line.split_once(": ").unwrap().1;
            allowed.iter().any(|allowed| text == *allowed || allowed.len() > 3 && text.starts_with(allowed))
        };
        lines.into_iter().filter(|line| !is_allowed(line)).collect()
    };
    assert_eq!(unknown(alone(ours, theirs), ours_alone), [""; 0]);
    assert_eq!(unknown(alone(theirs, ours), theirs_alone), [""; 0]);
    let differing: Vec<String> = ours
        .iter()
        .filter(|(line, hit)| theirs.get(line).is_some_and(|theirs| theirs != *hit))
        .map(|(line, hit)| format!("{line}, which we say was reached: {hit}: {}", text(line)))
        .collect();
    assert_eq!(differing, [""; 0]);
    assert_eq!(ours.keys().filter(|line| theirs.contains_key(line)).count(), both);
}

/// Writes inputs to files, the one that fails last.
fn files(folder: &Path, passing: &[&str], failing: &str) -> Vec<PathBuf> {
    let write = |(at, input): (usize, &&str)| {
        let path = folder.join(format!("input-{at}"));
        std::fs::write(&path, input).unwrap();
        path
    };
    passing.iter().chain([&failing]).enumerate().map(write).collect()
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// No input has a number above 99, or a depth above 3, which are reached by others.
const PASSING: [&str; 4] = ["a1", "12 by", "_,b", "z"];

#[test]
fn c_as_gcov_says() {
    let Some(mut zig) = c_compiler() else { return };
    let source = guest("parse.c");
    zig.args(["-O0", "-g", "-fno-sanitize=undefined", "-Wl,--export=LLVMFuzzerTestOneInput"]).arg(&source);
    let wasm = written(&mut zig);
    let Some(mut gcc) = gcc() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(gcc
        .current_dir(folder)
        .args(["-O0", "--coverage", "-o", "native"])
        .args([&source, &guest("native.c")]));
    for (passing, failing, both) in [(&PASSING[..], "a zzz 100", 46), (&["aaaa a a a", "100"], "zzz", 46)] {
        let notes = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        notes.filter(|path| path.extension().is_some_and(|name| name == "gcda")).for_each(|path| {
            std::fs::remove_file(path).unwrap();
        });
        run(Command::new(folder.join("native")).current_dir(folder).args(files(folder, passing, failing)));
        let printed = run(Command::new("gcov").current_dir(folder).args(["-t", "native-parse.gcda"]));
        let theirs: Lines = printed
            .lines()
            .filter_map(|line| {
                let mut parts = line.split(':').map(str::trim);
                let (count, number) = (parts.next()?, parts.next()?.parse().ok()?);
                (count != "-" && number > 0).then(|| (number, !count.starts_with(['#', '='])))
            })
            .collect();
        let ours = lines(&reached(&wasm, passing, failing), "parse.c");
        assert!(ours.values().any(|hit| !hit) && ours.values().filter(|hit| **hit).count() > 30);
        check("parse.c", &ours, &theirs, &["}"], &["}", "case ", "default:"], both);
    }
}

#[test]
fn rust_as_llvm_cov_says() {
    let (Some(mut profdata), Some(mut cov)) = (llvm_tool("llvm-profdata"), llvm_tool("llvm-cov")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rustc = |flags: &[&str], source: &str| {
        let mut rustc = Command::new("rustc");
        run(rustc
            .current_dir(folder)
            .args(["--edition", "2024", "-Copt-level=0"])
            .args(flags)
            .arg(guest(source)));
    };
    rustc(&["--target", "wasm32-unknown-unknown", "-g", "--crate-type", "cdylib", "-oguest.wasm"], "fuzz.rs");
    rustc(&["-Cinstrument-coverage", "-onative"], "native.rs");
    // How often a function returned early LLVM reckons from how often it was entered, which is wrong after a panic. So one input returns
    // early.
    let (passing, failing) = ([&PASSING[..], &["100"]].concat(), "zz");
    let mut native = Command::new(folder.join("native"));
    run(native.env("LLVM_PROFILE_FILE", "raw").current_dir(folder).args(files(folder, &passing, failing)));
    run(profdata.current_dir(folder).args(["merge", "raw", "-o", "merged"]));
    let printed =
        run(cov.current_dir(folder).args(["export", "--format=lcov", "--instr-profile=merged", "native"]));
    let of_file = |text: &str| -> Lines {
        let records = text.split("end_of_record");
        let record = records.into_iter().find(|record| record.contains("parse.rs\n")).unwrap();
        let lines = record.lines().filter_map(|line| line.strip_prefix("DA:"));
        lines
            .map(|line| line.split_once(',').unwrap())
            .map(|(line, hits)| (line.parse().unwrap(), hits != "0"))
            .collect()
    };
    let reached =
        reached(&std::fs::read(folder.join("guest.wasm")).unwrap(), &passing, failing).without_libraries();
    let paths: Vec<String> = reached.files.iter().map(|file| file.source.compiled.clone()).collect();
    let ours = of_file(&lcov(&reached, &paths));
    assert_eq!(ours, lines(&reached, "parse.rs"));
    check(
        "parse.rs",
        &ours,
        &of_file(&printed),
        &["#[derive(PartialEq)]"],
        &["}", "_ => {}", "continue;"],
        55,
    );
    check_functions(&reached);
}

fn check_functions(reached: &Reached) {
    // A function that was compiled for two types is one.
    let largest: Vec<_> =
        reached.functions.iter().filter(|function| function.name.contains("largest")).collect();
    assert_eq!(largest.len(), 1, "{largest:#?}");
    assert_eq!(largest[0].indices.len(), 2);
    let never = reached.functions.iter().find(|function| function.name == "never").unwrap();
    assert!(!never.hits.any());
    // It is what a page shows of it.
    let at = reached.functions.iter().position(|function| function.name == "never").unwrap();
    let pages = annotated(reached, &[at].into(), &[&guest("")]);
    let shown: Vec<_> =
        pages[0].lines.iter().map(|line| (&*line.text, line.hits.map(|hits| hits.count))).collect();
    let expected =
        [("extern \"C\" fn never(x: i32) -> i32 {", Some(0)), ("    x + 1", Some(0)), ("}", Some(0))];
    assert_eq!((pages.len(), shown), (1, expected.to_vec()));
}

#[test]
fn what_follows_a_trap_or_a_call_that_does_not_return_is_not_reached() {
    let wasm = wat::parse_str(
        r#"(module
             (memory (export "memory") 1)
             (func $die unreachable)
             (func (export "malloc") (param i32) (result i32) (i32.const 1024))
             (func (export "LLVMFuzzerTestOneInput") (param i32 i32) (result i32)
               (if (i32.eq (local.get 1) (i32.const 2)) (then
                 (drop (i32.load8_u (i32.const 8)))
                 (call $die)
                 (drop (i32.const 1))))
               (drop (i32.div_u (i32.const 8) (local.get 1)))
               (i32.const 0)))"#,
    )
    .unwrap();
    let missed = |passing: &[&str], failing: &str| {
        let reached = reached(&wasm, passing, failing);
        let function =
            reached.functions.iter().find(|function| function.name == "LLVMFuzzerTestOneInput").unwrap();
        let missed =
            function.blocks.iter().filter(|block| !block.hits.any()).map(|block| block.offset).collect();
        machine(&wasm).program().symbols().instruction_texts(&missed).into_values().collect::<Vec<_>>()
    };
    // Behind the call, and behind it where no input is of another length.
    assert_eq!(missed(&["a"], "ab"), ["i32.const 1"]);
    assert_eq!(missed(&[], "ab"), ["i32.const 1", "i32.const 8", "drop"]);
    // The division is by zero.
    assert_eq!(missed(&[], ""), ["i32.const 8", "drop", "i32.const 1", "drop"]);
}
