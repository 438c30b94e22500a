//! The command line.

mod cli;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use spelunk::console::Console;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    let arguments = match cli::arguments() {
        Ok(arguments) => arguments,
        Err(error) => {
            Console::new(None).error(&error);
            return ExitCode::from(cli::COULD_NOT);
        }
    };
    let cli = cli::Cli::parse_from(arguments);
    // The first Ctrl-C asks to finish and report, the second ends the program.
    let handler = ctrlc::set_handler(|| {
        cli::budget().interrupt();
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(cli::INTERRUPTED));
        }
    });
    handler.expect("no other handler is set");
    // A file that grows beyond a limit of this process is an error, not the end of it.
    spelunk::machine::ignore_file_size_signal();
    ExitCode::from(spelunk::machine::on_guest_stack(|| cli.run(&INTERRUPTED)))
}
