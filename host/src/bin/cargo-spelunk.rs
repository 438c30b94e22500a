//! `cargo spelunk …`: cargo runs the command of this name, which becomes the `spelunk` beside it.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// That of `spelunk`, where a job cannot be done.
const COULD_NOT: u8 = 2;

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Cargo says first which of its commands it runs.
    if args.first().is_some_and(|first| first == "spelunk") {
        args.remove(0);
    }
    let beside = std::env::current_exe().ok().map(|program| program.with_file_name("spelunk"));
    let program = beside.filter(|program| program.is_file()).unwrap_or_else(|| PathBuf::from("spelunk"));
    let mut command = Command::new(&program);
    if program.parent().is_some_and(is_searched) {
        // What it prints to reproduce a finding begins with this.
        command.arg0("spelunk");
    }
    let error = command.args(args).exec();
    let text = format!("error: cannot run `{}`: {error}; is it installed?\n", program.display());
    let _ = std::io::stderr().write_all(text.as_bytes());
    ExitCode::from(COULD_NOT)
}

/// Whether a shell finds commands in the folder.
fn is_searched(folder: &Path) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|other| other == folder))
}
