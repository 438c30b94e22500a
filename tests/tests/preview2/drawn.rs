//! A component that is a program is given a drawn file, drawn arguments and drawn standard input, as any program is.

use std::process::Command;

use spelunk::file::{Environment, Stdin};
use spelunk_tests::{first_story, on_guest_stack};

use super::load_in;

/// Fails where what it is given begins with `!`.
const PROGRAM: &str = r#"
    use std::io::Read;
    fn main() {
        let args: Vec<String> = std::env::args().collect();
        let given = |name: &str| args.iter().position(|arg| arg == name).map(|at| at + 1);
        if let Some(at) = given("--file") {
            let bytes = std::fs::read(&args[at]).unwrap();
            assert!(!bytes.starts_with(b"!"), "the file");
        } else if given("--stdin").is_some() {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).unwrap();
            assert!(!bytes.starts_with(b"!"), "standard input");
        } else if let Some(at) = given("--args") {
            assert!(args[at..].iter().all(|arg| !arg.starts_with('!')), "an argument");
        }
    }"#;

fn wasm() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (source, out) = (folder.path().join("main.rs"), folder.path().join("main.wasm"));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--target", "wasm32-wasip2", "-O"]).arg("-o").arg(&out).arg(&source);
    assert!(rustc.status().unwrap().success());
    std::fs::read(out).unwrap()
}

#[test]
fn what_a_program_is_given_is_drawn() {
    let wasm = wasm();
    let args = |args: &[&str]| args.iter().map(ToString::to_string).collect::<Vec<_>>();
    let empty = || Some(Stdin::Bytes(Vec::new().into()));
    for (environment, expected) in [
        (
            Environment { args: args(&["--file", "@@"]), ..Environment::default() },
            "panic: the file\nrun#run file=b\"!\"",
        ),
        (
            Environment { args: args(&["--stdin"]), stdin: Some(Stdin::Drawn), ..Environment::default() },
            "panic: standard input\nrun#run stdin=b\"!\"",
        ),
        // What a program reads is drawn, where nothing says what it is.
        (
            Environment { args: args(&["--stdin"]), ..Environment::default() },
            "panic: standard input\nrun#run stdin=b\"!\"",
        ),
        (
            Environment {
                args: args(&["--args"]),
                stdin: empty(),
                args_drawn_max: 2,
                ..Environment::default()
            },
            "panic: an argument\nrun#run argument=b\"!\"",
        ),
    ] {
        on_guest_stack(|| {
            let (failure, story) = first_story(&load_in(&wasm, environment), 1);
            assert_eq!(format!("{failure}\n{story}"), expected);
        });
    }
}
