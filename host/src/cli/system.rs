//! What a guest finds around it: folders, arguments, variables, standard input.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use clap::Args;
use spelunk::disk;
use spelunk::file::{Environment, HostFault, Stdin};

/// Bytes of standard input: a trace records them.
const STDIN_MAX: u64 = 4 << 20;

#[derive(Args)]
pub(super) struct System {
    /// A variable of the guest's environment.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable, help_heading = "System")]
    env: Vec<String>,
    /// The file that the guest reads as standard input. [default: drawn for a program, and else empty]
    #[arg(long, value_name = "FILE", conflicts_with = "draw_stdin", help_heading = "System")]
    stdin: Option<PathBuf>,
    /// Draw standard input, at most --input-max bytes.
    #[arg(long, help_heading = "System")]
    draw_stdin: bool,
    /// Faults that may strike the guest's calls to its system while a rule runs: fs, memory, clock, random, crash, or single ones
    /// such as eio.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = faults, help_heading = "System")]
    faults: Vec<Faults>,
    /// Call this export once in a run, and no other.
    #[arg(long, value_name = "NAME", help_heading = "System")]
    entry: Option<String>,
    /// Whether it is a failure that the guest exits with a code other than 0. [default: false for a program, and else true]
    #[arg(long, value_name = "BOOL", help_heading = "System")]
    fail_on_exit: Option<bool>,
    /// A state in which no rule may be called is no failure. Where only some are final, the export terminal says which
    #[arg(long, help_heading = "System")]
    allow_deadlock: bool,
    /// A function of a component, of which it is a failure that it returns an error.
    #[arg(long, value_name = "NAME", help_heading = "System")]
    error_is_failure: Vec<String>,
    /// Up to so many arguments are drawn, after those that are given; of a program, which is called by _start, or by
    /// wasi:cli/run where it is a component.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "System")]
    draw_args: u32,
    /// Arguments of the guest. Of a program, `@@` in one stands for the path of a file that is drawn.
    #[arg(last = true)]
    args: Vec<String>,
}

impl System {
    /// What the guest is given.
    ///
    /// # Errors
    /// The file of standard input cannot be read.
    pub(super) fn environment(&self, files_bytes_max: u64) -> Result<Environment> {
        let read = |path: &PathBuf| {
            let bytes = disk::read_at_most(path, STDIN_MAX);
            bytes.with_context(|| format!("cannot read `{}`, which --stdin names", path.display()))
        };
        let stdin = match &self.stdin {
            Some(path) => Some(Stdin::Bytes(Arc::from(read(path)?))),
            None => self.draw_stdin.then_some(Stdin::Drawn),
        };
        let names: Vec<&str> =
            self.env.iter().filter_map(|variable| Some(variable.split_once('=')?.0)).collect();
        for (at, name) in names.iter().enumerate() {
            ensure!(!names[..at].contains(name), "--env names the variable `{name}` twice: give it once");
        }
        Ok(Environment {
            args: self.args.clone(),
            args_drawn_max: self.draw_args,
            vars: self.env.clone(),
            files_bytes_max,
            stdin,
            faults: self
                .faults
                .iter()
                .flat_map(|Faults(named)| named.clone())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
            entry: self.entry.clone(),
            fails_on_exit: self.fail_on_exit,
            allows_deadlock: self.allow_deadlock,
            errors_that_fail: self
                .error_is_failure
                .iter()
                .cloned()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
        })
    }
}

/// The faults that a name stands for.
#[derive(Clone)]
struct Faults(Vec<HostFault>);

fn faults(name: &str) -> Result<Faults, String> {
    HostFault::named(name).map(Faults)
}

fn variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() && !text.contains('\0') => Ok(text.to_string()),
        _ => Err("it must be NAME=VALUE".to_string()),
    }
}
