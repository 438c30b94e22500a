//! `spelunk check`.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde_json::json;
use spelunk::check::{self, Checked, Limit, Options, Progress, Trouble, TroubleKind};
use spelunk::choice::Kind;
use spelunk::file::{Hex, name_of};
use spelunk::machine::{Edges, Machine, Selection};
use spelunk::property::{Property, PropertyKind};
use spelunk::report::Verdict;
use spelunk::story;
use spelunk::target::Target;
use spelunk::trace::Action;

use super::found;
use super::saved::Saved;
use super::{Compiled, FOUND, Guest, GuestLimits, INTERRUPTED, NONDETERMINISM, Output, PASSED, UNKNOWN};

#[derive(Args)]
pub(super) struct Check {
    #[command(flatten)]
    guest: Guest,
    #[command(flatten)]
    compiled: Compiled,
    /// Depth-first (the first alternative first), or breadth-first (the fewest steps first). [default: dfs for a
    /// guest that exports `check`, else bfs]
    #[arg(long, value_enum)]
    order: Option<Order>,
    /// Rules called and faults toggled on a path, at most. Without a bound a check ends where every path does, or
    /// leads to states that were met before.
    #[arg(long)]
    steps: Option<u32>,
    /// Paths, at most.
    #[arg(long)]
    runs: Option<u64>,
    /// Time, at most, such as 90s or 5m.
    #[arg(long, value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    /// Memory for saved states, breadth-first; those beyond are reached again instead.
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    memory: usize,
    /// Threads. No result depends on how many. Depth-first there is one where states are compared, where paths are
    /// listed, and with --runs. [default: one for each core]
    #[arg(long)]
    workers: Option<NonZero<usize>>,
    /// Stop after this many different failures; 0 is never.
    #[arg(long, default_value_t = Options::default().findings_max)]
    max_findings: usize,
    /// Alternatives that a choice may have.
    #[arg(long, value_name = "N", default_value_t = Options::default().alternatives_max)]
    domain_max: u32,
    /// Explore a state again that was met before. States of a guest that exports `check` are never compared.
    #[arg(long)]
    no_prune: bool,
    /// Explore one of two orders of rules that the guest declares independent.
    #[arg(long)]
    reduce: bool,
    /// Print what each path noted, in the order of the visits.
    #[arg(long)]
    list: bool,
    /// Candidates that shrinking a finding may try, depth-first; 0 leaves findings as they are. Breadth-first the
    /// path to a finding is a shortest one already.
    #[arg(long, default_value_t = 100_000)]
    shrink_budget: u64,
    /// Replay every path from the start instead of restoring snapshots. Slower; the results are the same.
    #[arg(long)]
    no_snapshots: bool,
    #[command(flatten)]
    limits: GuestLimits,
    /// The folder that findings are saved in, below one named after the target.
    #[arg(long, default_value = ".spelunk")]
    out: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Order {
    Dfs,
    Bfs,
}

impl Check {
    pub(super) fn run(&self, output: &mut Output, interrupted: &AtomicBool) -> Result<u8> {
        ensure!(self.domain_max > 0, "--domain-max must be at least 1");
        self.time.into_iter().for_each(|time| super::budget().limit(time));
        let workers = self.workers.or_else(|| std::thread::available_parallelism().ok());
        let workers = workers.map_or(1, NonZero::get);
        // No edge counts in a check.
        let selection = Selection { edges: Edges::None, ..Selection::default() };
        // One more, which tells what the paths noted.
        let mut machines = self.guest.machines(
            workers + 1,
            (&self.limits).into(),
            selection,
            &self.compiled,
            &output.console,
        )?;
        if self.no_snapshots {
            for machine in &mut machines {
                machine.set_uses_snapshots(false)?;
            }
        }
        let options = self.options(&machines[0]);
        self.begin(&machines[0], &options, output)?;
        let folder = found::folder(&self.guest, &self.out);
        let saved = found::replay_saved(&mut machines[0], &folder, output)?;
        output.console.restart(0);
        let started = Instant::now();
        let checked = self.check(&mut machines, &options, output, interrupted, started)?;
        output.console.clear();
        let checked = match checked {
            Ok(checked) => checked,
            Err(trouble) => return self.trouble(&machines[0], &trouble, output),
        };
        self.end(&mut machines, &options, (&checked, saved), output, interrupted, started)
    }

    fn options(&self, machine: &Machine) -> Options {
        let program = machine.program();
        let order = match self.order {
            Some(Order::Dfs) => check::Order::Depth,
            Some(Order::Bfs) => check::Order::Breadth,
            None if program.is_function() => check::Order::Depth,
            None => check::Order::Breadth,
        };
        Options {
            order,
            steps_max: self.steps,
            runs_max: self.runs,
            findings_max: self.max_findings,
            saved_bytes_max: self.memory.saturating_mul(1 << 20),
            alternatives_max: self.domain_max,
            // What no snapshot holds may differ where all else is equal.
            prunes: !self.no_prune && !program.is_function() && program.obstacles().is_empty(),
            reduces: self.reduce,
            lists: self.list,
        }
    }

    /// Says what is checked, and what hinders it.
    fn begin(&self, machine: &Machine, options: &Options, output: &mut Output) -> Result<()> {
        if let Some(obstacle) = machine.program().obstacles().first() {
            let inside = obstacle.function.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
            output.console.warning(&format!(
                "paths are replayed from the start, and states are not compared, since snapshots cannot hold this: \
                 {}{inside} at {:#x}",
                obstacle.what, obstacle.offset
            ));
        }
        let rules: Vec<&str> = machine.rules().iter().map(|rule| rule.name.as_str()).collect();
        let order = if options.order == check::Order::Depth { "dfs" } else { "bfs" };
        output.report.event(
            "begin",
            json!({
                "target": self.guest.target, "order": order, "steps": self.steps, "rules": rules,
                "faults": machine.faults(), "module": String::from(Hex(machine.program().hash())),
            }),
        )?;
        Ok(())
    }

    fn check(
        &self,
        machines: &mut [Machine],
        options: &Options,
        output: &mut Output,
        interrupted: &AtomicBool,
        started: Instant,
    ) -> Result<Result<Checked, Box<Trouble>>> {
        let (teller, machines) = machines.split_last_mut().expect("there is one to tell paths");
        let Output { console, report } = output;
        let console = Mutex::new((console, started));
        let is_unheard = AtomicBool::new(false);
        let goes_on = |progress: &Progress| {
            let now = Instant::now();
            if let Ok(mut console) = console.try_lock()
                && now - console.1 > Duration::from_millis(100)
            {
                console.1 = now;
                console.0.checking(progress, options.order);
            }
            if interrupted.load(Ordering::Relaxed) || is_unheard.load(Ordering::Relaxed) {
                return Some(Limit::Interrupt);
            }
            let is_over = self.time.is_some_and(|time| now - started >= time) || super::budget().is_over();
            is_over.then_some(Limit::Time)
        };
        let mut heard = Ok(());
        let checked = check::check(machines, options, &goes_on, &mut |trace, end| {
            if heard.is_ok() {
                heard = report.run(&story::notes(teller, trace), end);
                is_unheard.store(heard.is_err(), Ordering::Relaxed);
            }
        });
        heard?;
        Ok(checked)
    }

    /// Tells the findings and the verdict.
    fn end(
        &self,
        machines: &mut [Machine],
        options: &Options,
        (checked, mut saved): (&Checked, Vec<Saved>),
        output: &mut Output,
        interrupted: &AtomicBool,
        started: Instant,
    ) -> Result<u8> {
        let seconds = started.elapsed().as_secs_f64();
        let unmet = unmet(machines);
        let machine = &mut machines[0];
        let folder = found::folder(&self.guest, &self.out);
        let budget = (options.order == check::Order::Depth).then_some(self.shrink_budget);
        let mut is_flaky = false;
        for finding in &checked.findings {
            let place = (&self.guest, &*folder);
            is_flaky |= found::told(machine, finding, place, budget, output, interrupted)?.is_none();
        }
        output.console.clear();
        let is_complete = checked.limit.is_none();
        let is_unmet = is_complete && unmet.iter().any(|property| property.kind != PropertyKind::Always);
        // What was found again is told already.
        saved.retain(|saved| !checked.findings.iter().any(|finding| saved.fails_with(&finding.failure)));
        let still_fails = saved.iter().any(Saved::still_fails);
        let (name, exit) = if !checked.findings.is_empty() || is_unmet || still_fails {
            ("fails", FOUND)
        } else if is_complete {
            ("holds", PASSED)
        } else {
            ("unknown", UNKNOWN)
        };
        let exit = match checked.limit {
            _ if is_flaky => NONDETERMINISM,
            Some(Limit::Interrupt) => INTERRUPTED,
            _ => exit,
        };
        let compared = match machine.program().has_state() {
            true => "128-bit hash of what the guest says they are",
            false => "128-bit hash",
        };
        let verdict = Verdict {
            name,
            limit: checked.limit.map(|limit| (limit, self.limit_text(limit))),
            census: checked.census,
            findings: checked.findings.len(),
            unmet,
            saved: saved.iter().map(Saved::json).collect(),
            compared: options.prunes.then_some(compared),
        };
        found::tell_saved(&saved, &self.guest, output)?;
        output.report.verdict(&verdict, seconds, exit)?;
        Ok(exit)
    }

    fn limit_text(&self, limit: Limit) -> String {
        match limit {
            Limit::Steps => {
                let steps = self.steps.unwrap_or_default();
                let plural = if steps == 1 { "" } else { "s" };
                format!("the bound of {steps} step{plural} was reached (--steps)")
            }
            Limit::Runs => "the bound on runs was reached (--runs)".to_string(),
            Limit::Time => "the time was up (--time)".to_string(),
            Limit::Interrupt => "it was interrupted".to_string(),
        }
    }

    /// Says why there is no verdict.
    fn trouble(&self, machine: &Machine, trouble: &Trouble, output: &mut Output) -> Result<u8> {
        let Trouble { trace, kind } = trouble;
        let action = trace.steps().last().map(|step| step.action);
        let name = match action {
            Some(Action::Rule(rule)) => machine.rules()[usize::from(rule)].name.clone(),
            Some(action) => name_of(machine, action),
            None => "the start".to_string(),
        };
        match kind {
            TroubleKind::Unbounded(choice, kind) => {
                bail!(self.unbounded(machine, action, &name, *choice, kind))
            }
            TroubleKind::State(failure) => {
                bail!("the export `state` failed after step {} ({name}): {failure}", trace.len())
            }
            TroubleKind::Stopped => unreachable!("a check that is stopped has a limit, not trouble"),
            TroubleKind::Nondeterminism(why) => {
                let step = trace.len();
                output.report.event("nondeterminism", json!({ "step": step, "name": name, "why": why }))?;
                output.report.text(&format!(
                    "The guest is not deterministic: step {step} ({name}) does not go as it did before: {why}"
                ))?;
                Ok(NONDETERMINISM)
            }
        }
    }

    fn unbounded(
        &self,
        machine: &Machine,
        action: Option<Action>,
        name: &str,
        choice: usize,
        kind: &Kind,
    ) -> String {
        let count = match kind.alternatives() {
            Some(count) => format!("{count} alternatives"),
            None => "more alternatives than can be counted".to_string(),
        };
        let params = match action {
            Some(Action::Rule(rule)) => machine.rules()[usize::from(rule)].params.len(),
            _ => 0,
        };
        let (what, help) = match choice < params {
            true => (
                format!("parameter {} of `{name}`", choice + 1),
                if machine.program().takes_input() {
                    "`spelunk explore` is for such a function; or export `check`, which draws what it needs"
                } else {
                    "give the rule no parameters, and have it draw from a range or choose among given values"
                },
            ),
            false => (
                format!("choice {} of `{name}`", choice + 1),
                "draw from a smaller range there, or choose among given values",
            ),
        };
        format!(
            "{what} asks for {kind}, which has {count}; a check tries all, and takes {} at most (--domain-max): {help}",
            self.domain_max
        )
    }
}

/// The properties that no machine saw.
fn unmet(machines: &[Machine]) -> Vec<Property> {
    let mut all: Vec<Property> = Vec::new();
    let mut index = BTreeMap::new();
    for property in machines.iter().flat_map(|machine| machine.properties().iter()) {
        let at = *index.entry((property.kind.to_string(), &property.name)).or_insert(all.len());
        match all.get_mut(at) {
            Some(known) => {
                known.reached += property.reached;
                known.held += property.held;
            }
            None => all.push(property.clone()),
        }
    }
    all.retain(Property::is_unmet);
    all
}
