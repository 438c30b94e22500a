//! The command line.

mod cli;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    // A guest may use more stack than a main thread has everywhere.
    let thread = std::thread::Builder::new().stack_size(spelunk::machine::THREAD_STACK_BYTES);
    let job = thread.spawn(move || cli.run()).expect("a thread can be started");
    ExitCode::from(job.join().unwrap_or(101))
}
