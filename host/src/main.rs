//! The command line.

mod cli;

use std::process::ExitCode;
use std::sync::Arc;

use spelunk::Budget;
use spelunk::console::tui::{self, Stop};
use spelunk::console::{Console, Loudness};

fn main() -> ExitCode {
    let cli = match cli::parsed() {
        Ok(cli) => cli,
        Err(error) => {
            Console::new(None, Loudness::Usual).error(&error);
            return ExitCode::from(cli::COULD_NOT);
        }
    };
    let budget = Budget::unlimited();
    // The first Ctrl-C asks to finish and report, the second ends the program.
    let interrupted = budget.clone();
    let stop: Stop = Arc::new(move || {
        if interrupted.interrupt() {
            tui::restore();
            std::process::exit(i32::from(cli::INTERRUPTED));
        }
    });
    let on_signal = stop.clone();
    let handler = ctrlc::set_handler(move || on_signal());
    handler.expect("no other handler is set");
    // A file that grows beyond a limit of this process is an error, not the end of it.
    spelunk::machine::ignore_file_size_signal();
    ExitCode::from(spelunk::machine::on_guest_stack(|| cli.run(&budget, stop)))
}
