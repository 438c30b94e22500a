//! What goes to stderr: status lines as cargo's, and one live progress line. Nothing else writes there.

mod progress;
pub mod tui;

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::check;
use crate::outcome::FailureKind;
use crate::report::{counted, rules_text, tools};
use crate::search::{Progress, SymptomKind};
use crate::session::{Begin, End, Event, Fate, Finding, JobResult, Left, Observer, Saved, Summary};
use crate::story::Line;
use crate::text;
use crate::trace::Action;

use progress::{Recent, exploring, rounded};
use tui::{Picture, Screen, Stop};

/// Bytes of one text that are printed.
const TEXT_MAX: usize = 64 << 10;
/// Redraws a second of the live line.
const REDRAWS: u8 = 10;
/// Without a terminal a progress line is printed after 1, 2, 4, 8, … seconds, and at most this far apart.
const SPARSE_MAX: Duration = Duration::from_secs(60);

/// Colours of labels, as terminals number them.
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

/// How much is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loudness {
    /// Warnings and errors alone.
    Quiet,
    /// Status lines, and how far a job is.
    #[default]
    Usual,
    /// More of how far it is, and a line for each phase and finding.
    Verbose,
}

/// The terminal, or what stands for it.
pub struct Console {
    live: Option<ProgressBar>,
    /// What shows an exploration on the whole screen, and what is called where the user asks to stop there.
    screen: Option<Screen>,
    stop: Option<Stop>,
    target: String,
    colors: bool,
    loudness: Loudness,
    /// Whether a workflow of GitHub reads what is printed.
    annotates: bool,
    started: Instant,
    /// What was counted before that.
    before: Progress,
    recent: Recent,
    next_line: Duration,
}

impl Console {
    /// A console with or without colours; by default, where stderr is a terminal and `NO_COLOR` is not set.
    pub fn new(colors: Option<bool>, loudness: Loudness) -> Console {
        let is_terminal = std::io::stderr().is_terminal();
        let live = (is_terminal && loudness > Loudness::Quiet).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(REDRAWS));
            bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is valid"));
            bar
        });
        Console {
            live,
            screen: None,
            stop: None,
            target: String::new(),
            colors: has_colors(colors, is_terminal),
            loudness,
            annotates: std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true"),
            started: Instant::now(),
            before: Progress::default(),
            recent: Recent::default(),
            next_line: Duration::from_secs(1),
        }
    }

    /// Shows explorations on the whole screen from now on. `stop` is called where the user asks there to stop.
    ///
    /// # Errors
    /// There is no terminal.
    pub fn use_screen(&mut self, stop: Stop) -> anyhow::Result<()> {
        let why = "--tui draws on a terminal at stderr and reads keys at stdin, which are none here: -v says how far it is without";
        anyhow::ensure!(tui::has_terminal(), why);
        self.stop = Some(stop);
        Ok(())
    }

    /// Whether an exploration is on the whole screen now.
    pub fn has_screen(&self) -> bool {
        self.screen.is_some()
    }

    /// Gives the screen back, with what was said meanwhile.
    pub fn close(&mut self) {
        if let Some(screen) = self.screen.take() {
            screen.give_back().iter().for_each(|line| eprint_line(line));
        }
        self.clear();
    }

    /// Whether warnings and errors only are said.
    pub fn is_quiet(&self) -> bool {
        self.loudness == Loudness::Quiet
    }

    /// A line of the form `   Building bank`.
    pub fn status(&self, verb: &str, text: &str) {
        if self.is_quiet() {
            return;
        }
        self.line(&format!("{verb:>12}"), GREEN, " ", text);
    }

    /// `warning: …`
    pub fn warning(&self, text: &str) {
        self.line("warning", YELLOW, ": ", text);
    }

    /// `error: …`, with its causes.
    pub fn error(&self, error: &anyhow::Error) {
        self.line("error", RED, ": ", &format!("{error:#}"));
    }

    /// A line of our label and text, of which parts may come from the guest: what a terminal would not show as it is, is
    /// escaped, and further lines are indented, so that none looks like one of ours.
    fn line(&self, label: &str, color: &str, between: &str, text: &str) {
        let text = &*text::cut(text, TEXT_MAX);
        let colored = if self.colors { format!("\x1b[1;{color}m{label}\x1b[0m") } else { label.to_string() };
        let line = format!("{colored}{between}{}", text::block(text, "  "));
        match (&self.screen, &self.live) {
            (Some(screen), _) => screen.say(&format!("{label}{between}{text}"), line),
            (None, Some(bar)) => bar.suspend(|| eprint_line(&line)),
            (None, None) => eprint_line(&line),
        }
    }

    /// A status line for those who want to know more.
    fn detail(&self, verb: &str, text: &str) {
        if self.loudness == Loudness::Verbose {
            self.status(verb, text);
        }
    }

    /// The search begins: how much it may take.
    fn searching(&mut self, before: &Progress, left: &Left) -> io::Result<()> {
        self.restart(before);
        self.detail("Searching", &format!("for failures: {left}"));
        if let Some(stop) = &self.stop {
            self.clear();
            let (target, colors) = (self.target.clone(), self.colors);
            self.screen = Some(Screen::take(Picture { target, colors, ..Picture::default() }, stop.clone())?);
        }
        Ok(())
    }

    /// Says on the screen what is done beside the search.
    fn phase(&self, phase: &str) {
        if let Some(screen) = &self.screen {
            screen.change(|picture| picture.phase = phase.to_string());
        }
    }

    /// Starts to count time anew: what was done before is not part of the rates.
    fn restart(&mut self, before: &Progress) {
        self.before = *before;
        self.recent = Recent::default();
        self.started = Instant::now();
        self.next_line = Duration::from_secs(1);
    }

    /// Whether it is time to say how far a job is.
    fn is_due(&self) -> bool {
        self.loudness > Loudness::Quiet && (self.live.is_some() || self.started.elapsed() >= self.next_line)
    }

    /// Shows how far an exploration is.
    fn progress(&mut self, progress: &Progress, edges: usize, left: &Left) {
        let elapsed = self.started.elapsed();
        let new = self.recent.new_edges(elapsed, progress.edges);
        if let Some(screen) = &self.screen {
            let line = exploring((progress, &self.before), elapsed, edges, Some((new, left)));
            screen.change(|picture| picture.progress = line);
        } else if self.is_due() {
            let more = (self.loudness == Loudness::Verbose).then_some((new, left));
            self.show(&exploring((progress, &self.before), elapsed, edges, more));
        }
    }

    /// Shows how far a check is: with the states that wait, or with an estimate of what is left of the tree.
    fn checking(&mut self, progress: &check::Progress, order: check::Order) {
        if !self.is_due() {
            return;
        }
        let elapsed = self.started.elapsed();
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
        if self.screen.is_some() {
            self.phase(&format!("shrinking: {steps} steps left, {executions} candidates tried"));
        } else if self.is_due() {
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
            Fate::StillFails(failure) => match &saved.was {
                Some(was) => format!("{path} fails in another way now: {failure}; it was {was}"),
                None => format!("{path} still fails: {failure}"),
            },
            Fate::Fixed => format!("{path} passes now: it is fixed"),
            Fate::Stale(why) => format!("{path} is stale: {why}"),
            Fate::Elsewhere(why) => format!("{path} is left alone: {why}"),
            Fate::Unknown => format!("{path}: there was no time to replay it"),
        };
        self.status("Saved", &text);
    }

    /// What is explored, or checked.
    fn begin(&mut self, begin: &Begin<'_>) {
        let Begin { target, rules, faults, edges, seed, check, .. } = begin;
        self.target = target.display().to_string();
        let counts = [counted(rules.len() as u64, "rule"), counted(faults.len() as u64, "fault")].join(", ");
        let target = target.display();
        match (check, seed) {
            (Some(_), _) => self.detail("Checking", &format!("{target}: {counts}")),
            (None, seed) => self.detail(
                "Exploring",
                &format!(
                    "{target}: {counts}, {}, seed {}",
                    counted(*edges as u64, "edge"),
                    seed.unwrap_or(0)
                ),
            ),
        }
    }

    /// What became of a failure.
    fn finding(&self, finding: &Finding) {
        self.clear();
        self.phase("");
        if self.annotates {
            eprint_line(&tools::annotation(finding));
        }
        let is_step = |line: &&Line| matches!(line.action, Action::Rule(_) | Action::Fault(..));
        let steps = finding.story.iter().filter(is_step).count() as u64;
        let (before, trace) = (finding.steps_before, finding.trace.display());
        match steps < before as u64 {
            true => {
                self.detail("Shrunk", &format!("from {before} to {}, in {trace}", counted(steps, "step")))
            }
            false => self.detail("Kept", &format!("as it is, in {trace}")),
        }
    }

    /// What the user should know at the end.
    fn end(&mut self, summary: &Summary) {
        self.close();
        let JobResult::Explored(explored) = &summary.result else { return };
        if !explored.rules.is_empty() {
            let table = rules_text(&explored.rules);
            self.detail("Rules", &format!("and what calling them came to:\n{}", table.trim_start()));
        }
        // That nothing is counted was said in the beginning.
        let health = explored.health.iter().filter(|symptom| symptom.kind != SymptomKind::Uncounted);
        health.for_each(|symptom| self.warning(&symptom.text));
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
            Event::Searching { before, left } => self.searching(before, &left)?,
            Event::View(view) => {
                if let Some(screen) = &self.screen {
                    screen.change(|picture| picture.view = view.clone());
                }
            }
            Event::Exploring { progress, edges, left } => self.progress(progress, edges, &left),
            Event::Checking { progress, order } => self.checking(progress, order),
            Event::Shrinking { executions, steps } => self.shrinking(executions, steps),
            Event::Found { failure, run, steps } => {
                self.phase("a failure is run again, and shrunk");
                let run = if run > 0 { format!("in run {run}, ") } else { String::new() };
                self.detail("Found", &format!("{run}after {}: {failure}", counted(steps as u64, "step")));
            }
            Event::Finding(finding) => self.finding(finding),
            Event::Flaky { .. } => self.clear(),
            Event::End(summary) => self.end(summary),
            Event::Begin(begin) => self.begin(begin),
            Event::Resumed { .. } | Event::Rebuilt { .. } | Event::Seeded { .. } | Event::Path { .. } => {}
        }
        Ok(())
    }

    fn wants_views(&self) -> bool {
        self.screen.is_some()
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
