//! What goes to stderr: status lines as cargo's, and one live progress line. Nothing else writes there.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::check;
use crate::outcome::FailureKind;
use crate::report::tools;
use crate::search::Progress;
use crate::session::{End, Event, Fate, JobResult, Observer, Saved, Summary};
use crate::text;

/// Redraws a second of the live line.
const REDRAWS: u8 = 10;
/// Without a terminal a progress line is printed after 1, 2, 4, 8, … seconds, and at most this far apart.
const SPARSE_MAX: Duration = Duration::from_secs(60);

/// The terminal, or what stands for it.
pub struct Console {
    live: Option<ProgressBar>,
    colors: bool,
    /// Whether a workflow of GitHub reads what is printed.
    annotates: bool,
    started: Instant,
    /// Steps before that.
    steps: u64,
    next_line: Duration,
}

impl Console {
    /// A console with or without colours; by default, where stderr is a terminal and `NO_COLOR` is not set.
    pub fn new(colors: Option<bool>) -> Console {
        let is_terminal = std::io::stderr().is_terminal();
        let live = is_terminal.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(REDRAWS));
            bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is valid"));
            bar
        });
        Console {
            live,
            colors: has_colors(colors, is_terminal),
            annotates: std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true"),
            started: Instant::now(),
            steps: 0,
            next_line: Duration::from_secs(1),
        }
    }

    /// A line of the form `   Building bank`.
    pub fn status(&self, verb: &str, text: &str) {
        let verb = format!("{verb:>12}");
        let verb = if self.colors { format!("\x1b[1;32m{verb}\x1b[0m") } else { verb };
        self.line(&verb, " ", text);
    }

    /// `warning: …`
    pub fn warning(&self, text: &str) {
        let label = if self.colors { "\x1b[1;33mwarning\x1b[0m" } else { "warning" };
        self.line(label, ": ", text);
    }

    /// `error: …`, with its causes.
    pub fn error(&self, error: &anyhow::Error) {
        let label = if self.colors { "\x1b[1;31merror\x1b[0m" } else { "error" };
        self.line(label, ": ", &format!("{error:#}"));
    }

    /// A line of our label and text, of which parts may come from the guest: what a terminal would not show as it is, is
    /// escaped, and further lines are indented, so that none looks like one of ours.
    fn line(&self, label: &str, between: &str, text: &str) {
        let line = format!("{label}{between}{}", text::block(text, "  "));
        match &self.live {
            Some(bar) => bar.suspend(|| eprint_line(&line)),
            None => eprint_line(&line),
        }
    }

    /// Starts to count time anew: what was done before, so many steps, is not part of the rate.
    fn restart(&mut self, steps: u64) {
        self.steps = steps;
        self.started = Instant::now();
        self.next_line = Duration::from_secs(1);
    }

    /// Shows how far an exploration is.
    fn progress(&mut self, progress: &Progress, edges: usize) {
        let elapsed = self.started.elapsed();
        if self.live.is_none() && elapsed < self.next_line {
            return;
        }
        let rate = progress.steps.saturating_sub(self.steps) as f64 / elapsed.as_secs_f64().max(1e-9);
        self.show(&format!(
            "runs {}  steps {} ({}/s)  edges {}/{edges}  checkpoints {}  findings {}",
            progress.runs,
            progress.steps,
            rounded(rate),
            progress.edges,
            progress.checkpoints,
            progress.findings
        ));
    }

    /// Shows how far a check is: with the states that wait, or with an estimate of what is left of the tree.
    fn checking(&mut self, progress: &check::Progress, order: check::Order) {
        let elapsed = self.started.elapsed();
        if self.live.is_none() && elapsed < self.next_line {
            return;
        }
        let check::Progress { census, before, waiting, done } = progress;
        let rate = |count: u64, before| rounded((count - before) as f64 / elapsed.as_secs_f64().max(1e-9));
        let left = match order {
            check::Order::Breadth => format!("{waiting} waiting"),
            check::Order::Depth if *done > 0.0 => {
                format!("{:.1}% of about {} runs", 100.0 * done, rounded(census.runs as f64 / done))
            }
            check::Order::Depth => "0% of the tree".to_string(),
        };
        self.show(&format!(
            "runs {}  states {} ({}/s)  steps {} ({}/s)  choices {} ({}/s)  pruned {}  depth {}  {left}",
            census.runs,
            census.states,
            rate(census.states, before.states),
            census.steps,
            rate(census.steps, before.steps),
            census.choices,
            rate(census.choices, before.choices),
            census.pruned,
            census.depth,
        ));
    }

    /// Shows how far shrinking is.
    fn shrinking(&mut self, executions: u64, steps: usize) {
        if self.live.is_some() || self.started.elapsed() >= self.next_line {
            self.show(&format!("{steps} steps left, {executions} candidates tried"));
        }
    }

    fn show(&mut self, text: &str) {
        match &self.live {
            Some(bar) => bar.set_message(text.to_string()),
            None => {
                eprint_line(&format!("{:>12} {text}", "Progress"));
                let elapsed = self.started.elapsed();
                self.next_line = elapsed + elapsed.min(SPARSE_MAX);
            }
        }
        if let Some(bar) = &self.live {
            bar.tick();
        }
    }

    fn saved(&self, saved: &Saved) {
        let path = saved.path.display().to_string();
        let path = text::line(&path);
        let text = match &saved.fate {
            Fate::StillFails(failure) if failure.kind == FailureKind::Liveness => {
                format!("{path} leads to its loop again: {failure}")
            }
            Fate::StillFails(failure) => format!("{path} still fails: {failure}"),
            Fate::Fixed => format!("{path} passes now: it is fixed"),
            Fate::Stale(why) => format!("{path} is stale: {why}"),
            Fate::Unknown => format!("{path}: there was no time to replay it"),
        };
        self.status("Saved", &text);
    }

    /// What the user should know at the end.
    fn end(&self, summary: &Summary) {
        self.clear();
        let JobResult::Explored(explored) = &summary.result else { return };
        let progress = &explored.progress;
        if summary.findings.is_empty() && progress.runs > 0 {
            if progress.rejected == progress.runs {
                self.warning("the guest rejected every run: what it assumes never holds");
            } else if progress.rules == 0 {
                self.warning("no rule was ever called: no precondition holds after setup");
            }
        }
        if explored.end == End::Before {
            let text = "the campaign has as many runs or findings as it may: a larger --runs or --max-findings \
                        resumes it, --fresh begins anew";
            self.status("Complete", text);
        }
    }

    /// Removes the live line.
    pub fn clear(&self) {
        if let Some(bar) = &self.live {
            bar.set_message("");
            bar.finish_and_clear();
        }
    }
}

impl Observer for Console {
    fn on(&mut self, event: Event<'_>) -> io::Result<()> {
        match event {
            Event::Status { verb, text } => self.status(verb, text),
            Event::CheckResumed { states, depth } => {
                self.status("Resumed", &format!("the check at {states} states, {depth} steps deep"));
            }
            Event::Warning(text) => self.warning(text),
            Event::Saved(saved) => self.saved(saved),
            Event::Searching { steps } => self.restart(steps),
            Event::Exploring { progress, edges } => self.progress(progress, edges),
            Event::Checking { progress, order } => self.checking(progress, order),
            Event::Shrinking { executions, steps } => self.shrinking(executions, steps),
            Event::Finding(finding) => {
                self.clear();
                if self.annotates {
                    eprint_line(&tools::annotation(finding));
                }
            }
            Event::Flaky { .. } => self.clear(),
            Event::End(summary) => self.end(summary),
            Event::Begin(_)
            | Event::Resumed { .. }
            | Event::Rebuilt { .. }
            | Event::Seeded { .. }
            | Event::Path { .. } => {}
        }
        Ok(())
    }
}

/// Whether a stream is coloured: as asked for, or where it is a terminal and `NO_COLOR` is not set.
pub fn has_colors(asked: Option<bool>, is_terminal: bool) -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    asked.unwrap_or(is_terminal && !no_color)
}

/// A closed stderr is no reason to stop.
fn eprint_line(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// `1.2M`, `34k`, `567`.
fn rounded(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.1}M", v / 1e6),
        v if v >= 1e4 => format!("{:.0}k", v / 1e3),
        v => format!("{v:.0}"),
    }
}
