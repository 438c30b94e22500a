//! Two different bugs are two findings, also where both end in one helper; and shrinking does not slip from one to the other.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use spelunk::file::{Conditions, Environment, Limits, Selection};
use spelunk::machine::Program;
use spelunk::search::Explorer;
use spelunk_tests::tools::{self, Missing};
use spelunk_tests::{check_replays, machine, on_guest_stack, seeded, shrunk, story};

/// Compiles a guest of `guests/identity`.
fn compile(source: &str, out: &Path) -> Result<(), Missing> {
    let zig = |language: &str| -> Result<Command, Missing> {
        let mut zig = tools::zig()?;
        zig.args([language, "--target=wasm32-wasi", "-mexec-model=reactor", "-O2", "-g"]);
        Ok(zig)
    };
    let mut command = match source.rsplit_once('.').expect("it has an ending") {
        (_, "c") => zig("cc")?,
        (_, "cpp") => {
            let mut zig = zig("c++")?;
            zig.arg("-fno-exceptions");
            zig
        }
        (_, "zig") => {
            let mut zig = tools::zig()?;
            zig.args(["build-exe", "-target", "wasm32-freestanding", "-O", "ReleaseSafe"]);
            zig.args(["-fno-strip", "-fno-entry", "-rdynamic"]);
            zig
        }
        (_, "go") => {
            let mut go = tools::go()?;
            go.env("GOOS", "wasip1").env("GOARCH", "wasm").args(["build", "-trimpath", "-buildvcs=false"]);
            go.arg("-buildmode=c-shared");
            go
        }
        (_, "ts") => {
            let mut asc = tools::asc()?;
            asc.args(["--optimize", "--debug"]);
            asc
        }
        (name, _) => {
            let mut rustc = Command::new("rustc");
            let kind = if name == "main" { "bin" } else { "cdylib" };
            rustc.args(["--edition", "2024", "--crate-type", kind, "--target", "wasm32-wasip1"]);
            rustc.args(["-Copt-level=3", "-Cdebuginfo=line-tables-only"]);
            rustc
        }
    };
    match source.ends_with(".zig") {
        true => command.arg(format!("-femit-bin={}", out.display())),
        false => command.arg("-o").arg(out),
    };
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/identity").join(source));
    let output = command.output().expect("it can be run");
    assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The shortest stories of what is found, and where each fails.
fn check(source: &str, expected: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("guest.wasm");
    if let Err(missing) = compile(source, &out) {
        return missing.report();
    }
    on_guest_stack(|| {
        let environment = Environment { fails_on_exit: Some(true), ..Environment::default() };
        let conditions =
            Conditions { limits: Limits::default(), selection: Selection::default(), environment };
        let wasm = std::fs::read(&out).unwrap();
        let program = Program::load_in(&wasm, conditions, None, &Default::default());
        let program = Arc::new(program.unwrap_or_else(|error| panic!("{source}: {error:#}")));
        let mut here = machine(&program);
        let mut explorer = Explorer::new(&mut here, seeded(1));
        explorer.explore(|progress| progress.runs < 3000);
        let found: Vec<_> = explorer.findings().cloned().collect();
        let mut stories = BTreeMap::new();
        for finding in &found {
            let mut machine = machine(&program);
            let shrunk = shrunk(&mut machine, finding);
            assert!(shrunk.failure.is_same(&finding.failure));
            check_replays(&program, &shrunk.trace, &shrunk.failure);
            let place = shrunk.failure.place.unwrap_or_default();
            stories.insert(story(&mut machine, &shrunk.trace).replace('\n', ", "), place);
        }
        assert_eq!(found.len(), 2, "{source}: {found:#?}");
        let stories: Vec<(&str, &str)> =
            stories.iter().map(|(story, place)| (&**story, place.rsplit('/').next().unwrap())).collect();
        assert_eq!(stories, expected, "{source}");
    });
}

const ONE: &str = "one, one";
const TWO: &str = "two, two";

#[test]
fn c_aborts() {
    check("abort.c", &[(ONE, "abort.c:7:22"), (TWO, "abort.c:11:22")]);
}

#[test]
fn c_dies() {
    check("die.c", &[(ONE, "die.c:13:22"), (TWO, "die.c:17:22")]);
}

#[test]
fn c_asserts_in_a_helper() {
    check("assert.c", &[(ONE, "assert.c:13:22"), (TWO, "assert.c:17:22")]);
}

#[test]
fn cpp_dies() {
    check("die.cpp", &[(ONE, "die.cpp:26:33"), (TWO, "die.cpp:31:33")]);
}

#[test]
fn zig_panics_in_a_helper() {
    check("oops.zig", &[(ONE, "oops.zig:12:24"), (TWO, "oops.zig:17:24")]);
}

#[test]
fn go_panics_in_a_helper() {
    check("die.go", &[(ONE, "die.go:17"), (TWO, "die.go:25")]);
}

#[test]
fn assemblyscript_throws_in_a_helper() {
    check("die.ts", &[(ONE, "one"), (TWO, "two")]);
}

#[test]
fn rust_panics_in_a_helper() {
    check("die.rs", &[(ONE, "die.rs:23:9"), (TWO, "die.rs:30:9")]);
}

#[test]
fn rust_unwraps_in_a_helper() {
    check(
        "unwrap.rs",
        &[("one arg0=0, one arg0=0", "unwrap.rs:19:12"), ("two arg0=0, two arg0=0", "unwrap.rs:19:12")],
    );
}

#[test]
fn rust_returns_errors_from_main() {
    check("main.rs", &[("_start stdin=b\"\"", "_start"), ("_start stdin=b\"\\xc9\\x00\"", "_start")]);
}

#[test]
fn rust_returns_errors_from_a_rule() {
    check(
        "returned.rs",
        &[("add arg0=0, add arg0=-1", "returned.rs:26:18"), ("add arg0=0, add arg0=0", "returned.rs:26:18")],
    );
}

#[test]
fn rust_panics_in_the_standard_library() {
    check("expect.rs", &[("one", "expect.rs:16:45"), ("two", "expect.rs:21:46")]);
}
