//! `spelunk explore --tui` in a terminal: what is seen there, and how it is left.

use std::path::Path;
use std::process::{Command, Stdio};

const EXPECTED: &str = "\
a frame was seen: True
keys came as they were pressed: True
the screen was taken and given back: 1 1
the cursor is shown: True
the terminal is as it was: True
reported below: True True
exit code: 130
";

/// Explores in a terminal of its own until that is ended by `action`; what is said of it.
fn ended_by(action: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("terminal-{action}"));
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    let guest = root.join("../tests/cli/guests/clean.wat");
    let output = Command::new("python3")
        .arg(root.join("tests/terminal.py"))
        .args([action, env!("CARGO_BIN_EXE_spelunk"), "explore"])
        .arg(guest)
        .args(["--tui", "--time", "50s", "--no-cache", "--out"])
        .arg(&folder)
        .current_dir(&folder)
        .env("TERM", "xterm-256color")
        .stdin(Stdio::null())
        .output()
        .expect("there is python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn q_stops_it_and_the_terminal_is_as_it_was() {
    assert_eq!(ended_by("q"), EXPECTED);
}

#[test]
fn so_does_control_c() {
    assert_eq!(ended_by("ctrl-c"), EXPECTED);
}

#[test]
fn so_does_a_signal() {
    assert_eq!(ended_by("term"), EXPECTED);
}

#[test]
fn a_terminal_may_become_tiny() {
    assert_eq!(ended_by("resize"), EXPECTED);
}
