//! The command line.

mod cli;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use spelunk::Budget;
use spelunk::console::tui::{self, Stop};
use spelunk::console::{Console, Loudness};

/// Signals so near to each other are one: `timeout` sends its own to the process, and to its group.
const SAME_SIGNAL: Duration = Duration::from_millis(250);

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
    let first = OnceLock::new();
    let stop: Stop = Arc::new(move || {
        let is_same = first.get_or_init(Instant::now).elapsed() < SAME_SIGNAL;
        if interrupted.interrupt() && !is_same {
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
