//! `spelunk debug`.

use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Arg, Args};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use serde_json::json;
use spelunk::budget::Budget;
use spelunk::console::Console;
use spelunk::debug::{Command, Debugger, Expression, Timeline, dap, split};
use spelunk::file::TraceFile;
use spelunk::replay::Replayed;
use spelunk::session::describe;

use super::{Compiled, FOUND, Guest, NONDETERMINISM, Output, PASSED};

#[derive(Args)]
pub(super) struct Debug {
    #[command(flatten)]
    guest: Guest,
    #[command(flatten)]
    compiled: Compiled,
    /// The saved trace.
    #[arg(index = 2, required_unless_present = "dap")]
    trace: Option<PathBuf>,
    /// Do these commands, which `;` separates, and end. Without it they are read from stdin; `help` lists them.
    #[arg(short, long, value_name = "COMMANDS", conflicts_with = "dap")]
    command: Vec<String>,
    /// Print the first step after which an expression holds, and exit with 1; with 0 where there is none.
    #[arg(long, value_name = "EXPR", conflicts_with_all = ["dap", "command"])]
    bisect: Option<String>,
    /// Speak the Debug Adapter Protocol on stdin and stdout. The editor names the target and the trace, unless they are given.
    #[arg(long)]
    dap: bool,
    /// Keep no states: to go back, replay from the start. Nothing else changes.
    #[arg(long)]
    no_snapshots: bool,
    /// MiB that the states may take which are kept; others are replayed from the ones before.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "Limits")]
    memory: u64,
}

/// An editor names the target when it launches it.
pub(super) fn without_target(target: Arg) -> Arg {
    target.index(1).required(false).required_unless_present("dap").default_value_if("dap", "true", ".")
}

impl Debug {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        if self.dap {
            return self.serve(output, budget);
        }
        let trace = self.trace.as_ref().context("the trace is missing")?;
        let mut debugger = Debugger::new(self.timeline(&self.guest, trace, &output.console, budget)?);
        let is_diverged = matches!(debugger.timeline().end(), Replayed::Diverged { .. });
        let otherwise = if is_diverged { NONDETERMINISM } else { PASSED };
        if let Some(expression) = &self.bisect {
            return self.first(&mut debugger, expression, output, otherwise);
        }
        let introduction = debugger.introduction();
        output.report.event("debug", &introduction.json)?;
        output.report.text(&introduction.text)?;
        if !self.command.is_empty() {
            for line in &self.command {
                if self.line(line, &mut debugger, output)? {
                    break;
                }
            }
        } else if io::stdin().is_terminal() && !output.report.is_json() {
            self.prompt(&mut debugger, output, budget)?;
        } else {
            for line in io::stdin().lock().lines() {
                if self.line(&line.context("cannot read commands from stdin")?, &mut debugger, output)? {
                    break;
                }
            }
        }
        Ok(otherwise)
    }

    /// The states of a trace on a target.
    fn timeline(&self, guest: &Guest, path: &Path, console: &Console, budget: &Budget) -> Result<Timeline> {
        let file = TraceFile::read(path)?;
        let (mut machine, _) = guest.machine(&file, &self.compiled, console, budget)?;
        let is_same_build = machine.program().hash() == file.module.0;
        if !is_same_build {
            console.warning(
                "the trace was recorded on another build of this target; its steps are replayed, and states are \
                 not compared",
            );
        }
        let trace = file.trace(&machine).with_context(|| guest.misfit(path, is_same_build))?;
        if self.no_snapshots {
            machine.set_uses_snapshots(false)?;
        }
        let room = usize::try_from(self.memory.saturating_mul(1 << 20)).unwrap_or(usize::MAX);
        let timeline = Timeline::new(machine, &trace, is_same_build, room)?;
        match timeline.end() {
            Replayed::Diverged { .. } => {
                let why = describe(timeline.machine(), &trace, timeline.end());
                console.warning(&format!("the run differs from the recorded one: {why}"));
            }
            Replayed::Passed if file.failure.is_some() => {
                console.warning("it did not reproduce: all steps pass");
            }
            _ => {}
        }
        Ok(timeline)
    }

    /// Does the commands of a line; whether one of them was to end.
    fn line(&self, line: &str, debugger: &mut Debugger, output: &mut Output) -> Result<bool> {
        for text in split(line) {
            let done = Command::parse(text)
                .and_then(|command| command.map(|command| debugger.execute(&command)).transpose());
            let mut answer = match done {
                Ok(None) => continue,
                Ok(Some(answer)) => answer,
                Err(error) => {
                    let data = json!({ "command": text.trim(), "at": debugger.position(), "error": format!("{error:#}") });
                    output.report.event("debug", data)?;
                    return Err(error);
                }
            };
            answer.json["command"] = text.trim().into();
            output.report.event("debug", &answer.json)?;
            if answer.is_last {
                return Ok(true);
            }
            output.report.text(&answer.text)?;
        }
        Ok(false)
    }

    fn prompt(&self, debugger: &mut Debugger, output: &mut Output, budget: &Budget) -> Result<()> {
        let mut editor =
            DefaultEditor::new().context("the terminal cannot be used; pass commands with -c")?;
        output.report.text("`help` lists commands.")?;
        loop {
            let line = match editor.readline("(spelunk) ") {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => bail!("cannot read a command: {error}"),
            };
            // What cannot be added to the history is done all the same.
            let _ = editor.add_history_entry(&line);
            match self.line(&line, debugger, output) {
                Ok(false) => {}
                Ok(true) => return Ok(()),
                Err(error) if budget.is_over() => return Err(error),
                Err(error) => output.console.error(&error),
            }
        }
    }

    fn first(&self, debugger: &mut Debugger, text: &str, output: &mut Output, otherwise: u8) -> Result<u8> {
        let expression = Expression::parse(text)?;
        let found = debugger.bisect(&expression)?;
        let mut answer = debugger.execute(&Command::Bisect(expression))?;
        answer.json["command"] = format!("bisect {text}").into();
        output.report.event("debug", &answer.json)?;
        output.report.text(&answer.text)?;
        Ok(if found.is_some() { FOUND } else { otherwise })
    }

    fn serve(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let Output { console, report, .. } = output;
        let mut launch = |launch: &dap::Launch| {
            let guest = match &launch.program {
                Some(program) => self.guest.at(program.into()),
                None => self.guest.clone(),
            };
            let trace = launch.trace.as_ref().map(PathBuf::from).or_else(|| self.trace.clone());
            let trace = trace.context("`launch` names no `trace`")?;
            let timeline = self.timeline(&guest, &trace, console, budget)?;
            let mut roots = vec![PathBuf::from(".")];
            roots.extend(guest.target.is_dir().then(|| guest.target.clone()));
            Ok(dap::Launched { debugger: Debugger::new(timeline), roots })
        };
        dap::serve(&mut io::stdin().lock(), &mut |bytes| report.raw(bytes), &mut launch)?;
        Ok(PASSED)
    }
}
