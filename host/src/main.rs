//! The command line.

mod cli;

use std::process::ExitCode;

use clap::Parser;
use spelunk::console::Console;

fn main() -> ExitCode {
    let arguments = match cli::arguments() {
        Ok(arguments) => arguments,
        Err(error) => {
            Console::new(None).error(&error);
            return ExitCode::from(cli::COULD_NOT);
        }
    };
    let cli = cli::Cli::parse_from(arguments);
    // A guest may use more stack than a main thread has everywhere.
    let thread = std::thread::Builder::new().stack_size(spelunk::machine::THREAD_STACK_BYTES);
    let job = thread.spawn(move || cli.run()).expect("a thread can be started");
    ExitCode::from(job.join().unwrap_or(101))
}
