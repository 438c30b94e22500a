//! Going through traces, in programs in other languages and by a client of the Debug Adapter Protocol.
//!
//! The client that adapters of VS Code are tested with goes through a trace: `session.js` drives it, and what it is told stands
//! in `session.txt`. `BLESS=1` writes that file.

mod variables;

use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use spelunk::debug::dap::{Launched, serve};
use spelunk::debug::{Debugger, Timeline};
use spelunk::machine::{Limits, Program, Selection};
use spelunk_tests::{explore, machine, program, seeded, shrunk, tools};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().canonicalize().unwrap()
}

/// The first finding of a program, at its start.
fn launched(program: &Arc<Program>) -> Launched {
    let mut searched = machine(program);
    let (found, _) = explore(&mut searched, seeded(1), 100_000);
    let trace = shrunk(&mut searched, &found.expect("there is a bug")).trace;
    let timeline = Timeline::new(machine(program), &trace, true, usize::MAX).unwrap();
    Launched { debugger: Debugger::new(timeline), roots: vec![root()] }
}

/// What the script prints of a session with such a program.
fn session(name: &str, packages: &Path, program: &Arc<Program>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/debug/session.js");
    let mut node = Command::new("node");
    node.arg(script).args([&port, name]).arg(root()).env("NODE_PATH", packages);
    let node = node.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let node = node.expect("npm comes with node");
    let (stream, _) = listener.accept().unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut launch = Some(launched(program));
    serve(&mut BufReader::new(stream), &mut |bytes| writer.write_all(bytes), &mut |asked| {
        assert_eq!((asked.program.as_deref(), asked.trace.as_deref()), (Some(name), Some("trace.json")));
        Ok(launch.take().expect("it launches once"))
    })
    .unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_client_goes_through_a_trace_forwards_and_back() {
    let Some(packages) = tools::npm_package("") else { return };
    let wat = root().join("tests/cli/guests/described.wat");
    let described = wat::parse_file(wat).unwrap();
    let described = Program::load(&described, Limits::default(), Selection::default()).unwrap();
    let found = session("bank", &packages, &program("bank", &[]))
        + "\n"
        + &session("described", &packages, &Arc::new(described));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/debug/session.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(file, found).unwrap();
        return;
    }
    assert_eq!(found, std::fs::read_to_string(file).unwrap(), "run again with BLESS=1 if this is right");
}
