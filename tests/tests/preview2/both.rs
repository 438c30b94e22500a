//! One program, built for preview 1 and for preview 2: it says the same, and leaves the same files.

use std::path::Path;
use std::process::Command;

use spelunk::choice::Chooser;
use spelunk::file::Stdin;
use spelunk::outcome::Outcome;
use spelunk::story;
use spelunk::target::perform;
use spelunk::trace::{Action, Trace};
use spelunk_tests::on_guest_stack;

use super::{environment, image, load_in, shown};

/// The program, compiled by rustc for a target.
fn built(target: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("main.wasm");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--target", target, "-O"]).arg("-o").arg(&out);
    rustc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/both/main.rs"));
    let output = rustc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    image().put_into(&std::fs::read(out).unwrap()).unwrap()
}

/// What the program says, and how it ends.
fn said(target: &str) -> (Vec<String>, Outcome) {
    let mut environment = environment();
    environment.stdin = Some(Stdin::Bytes((*b"a line\nand more").into()));
    let program = load_in(&built(target), environment);
    on_guest_stack(|| {
        let mut machine = spelunk_tests::machine(&program);
        let mut trace = Trace::default();
        let action = (Action::Rule(0), 0);
        let outcome = perform(&mut machine, &mut Chooser::default(), action, [], &mut trace);
        let lines = story::tell(&mut machine, &trace).into_iter();
        (lines.flat_map(|line| line.told.notes).collect(), outcome)
    })
}

#[test]
fn it_says_the_same_built_for_preview_1_and_for_preview_2() {
    let [(first, first_end), (second, second_end)] = ["wasm32-wasip1", "wasm32-wasip2"].map(said);
    assert_eq!(first.len(), 146);
    for (one, other) in first.iter().zip(&second) {
        assert_eq!(one, other);
    }
    assert_eq!(first.len(), second.len());
    assert!(shown(first_end).starts_with("panic: the end"));
    assert!(shown(second_end).starts_with("panic: the end"));
}

/// As it ends, a program says whether all went well, and so does `run` as it returns.
#[test]
fn a_program_ends_with_a_status() {
    for (main, fails_on_exit, expected) in [
        ("", true, "Pass"),
        ("end(0)", true, "Pass"),
        ("end(9)", false, "Exit"),
        ("end(9)", true, "exit 1: the program ended with code 1"),
        (r#"eprintln!("no"); end(9)"#, true, "exit 1: the program ended with code 1: no"),
        (r#"panic!("no")"#, false, "panic: no"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (source, out) = (folder.path().join("main.rs"), folder.path().join("main.wasm"));
        std::fs::write(
            &source,
            format!("#[allow(unused_imports)] use std::process::{{exit as end}}; fn main() {{ {main} }}"),
        )
        .unwrap();
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "--target", "wasm32-wasip2", "-O"]).arg("-o").arg(&out);
        assert!(rustc.arg(&source).status().unwrap().success());
        let environment = spelunk::file::Environment { fails_on_exit: Some(fails_on_exit), ..environment() };
        let program = load_in(&std::fs::read(out).unwrap(), environment);
        let outcome = on_guest_stack(|| {
            let mut machine = spelunk_tests::machine(&program);
            perform(&mut machine, &mut Chooser::default(), (Action::Rule(0), 0), [], &mut Trace::default())
        });
        assert!(shown(outcome).starts_with(expected), "{main}");
    }
}
