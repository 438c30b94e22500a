//! What a program is given that runs once from start to end: a drawn file, and drawn arguments.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use spelunk::choice::{Choice, Kind, Value};
use spelunk::file::{Conditions, Environment, Limits, Selection};
use spelunk::machine::Program;
use spelunk::search::{Explorer, Planted};
use spelunk::trace::{Action, Trace};
use spelunk_tests::{check_replays, explore, machine, on_guest_stack, seeded, shrunk, story};

/// The program, compiled by rustc.
fn wasm() -> &'static [u8] {
    static WASM: OnceLock<Vec<u8>> = OnceLock::new();
    WASM.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("main.wasm");
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "--target", "wasm32-wasip1", "-O"]).arg("-o").arg(&out);
        rustc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/inputs/main.rs"));
        let output = rustc.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read(out).unwrap()
    })
}

fn load(environment: Environment) -> anyhow::Result<Arc<Program>> {
    let conditions = Conditions { limits: Limits::default(), selection: Selection::default(), environment };
    Ok(Arc::new(Program::load_in(wasm(), conditions, None, &Default::default())?))
}

#[test]
fn a_file_and_arguments_are_drawn() {
    on_guest_stack(|| {
        let args = vec!["--in=@@".to_string()];
        let program = load(Environment { args, args_drawn_max: 2, ..Environment::default() }).unwrap();
        assert!(program.takes_input());
        let mut here = machine(&program);
        let mut explorer = Explorer::new(&mut here, seeded(1));
        let max = Limits::default().input_bytes_max;
        let value = Value::Bytes(Arc::from(*b"RIFF0000"));
        let mut seed = Trace::default();
        seed.push(Action::Rule(0), 0);
        seed.chose(&mut vec![Choice { kind: Kind::Bytes { min: 0, max }, value }], &mut Vec::new());
        assert!(matches!(explorer.plant(&seed, seeded(1).energies.start), Planted::Checkpoint));
        explorer.explore(|progress| progress.findings == 0 && progress.runs < 100_000);
        let found = explorer.findings().next().cloned().expect("there is a bug");
        assert_eq!(found.failure.message, "the length is 48");
        let shrunk = shrunk(&mut here, &found);
        check_replays(&program, &shrunk.trace, &shrunk.failure);
        assert_eq!(shrunk.failure.message, "the length is 4");
        let expected = r#"_start file=b"RIFF\x04\x00\x00\x00" argument=b"s""#;
        assert_eq!(story(&mut here, &shrunk.trace), expected);
    });
}

/// Without the option the bug is not reached, and nothing else is found.
#[test]
fn what_is_not_drawn_is_not_there() {
    on_guest_stack(|| {
        let args = vec!["--in=@@".to_string()];
        let program = load(Environment { args, ..Environment::default() }).unwrap();
        let (found, progress) = explore(&mut machine(&program), seeded(1), 3000);
        assert_eq!((found, progress.runs), (None, 3000));
    });
}

#[test]
fn too_many_arguments_are_refused() {
    let error = load(Environment { args_drawn_max: u32::MAX, ..Environment::default() }).err().unwrap();
    assert_eq!(error.to_string(), "--draw-args is at most 1000");
}
