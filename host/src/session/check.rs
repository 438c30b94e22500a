//! A check: every answer is tried, and the verdict told.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};

use super::error::{Error, ErrorKind};
use super::finding::{set_aside, steps_of, write_trace};
use super::kept::Kept;
use super::leftover::Leftover;
use super::no_verdict::begins_anew;
use super::pace::Pace;
use super::rounds::leaves_out_orders;
use super::together::Walked;
use super::{Begin, Event, JobResult, Keep, Saved, Summary, Told, Verdict, Work};
use crate::budget::Over;
use crate::check::{
    self, Census, Checked, End, First, Keeping, Limit, Options, Order, Picture, RuleCover, Trouble,
    TroubleKind,
};
use crate::disk;
use crate::file::{Shrinking, name_of};
use crate::machine::{Compares, Machine};
use crate::outcome::Failure;
use crate::property::{Counts, Property};
use crate::report;
use crate::story;
use crate::target::Target;
use crate::trace::Trace;

/// What a check came to.
#[derive(Clone, Debug)]
pub struct CheckedTarget {
    /// What was counted.
    pub census: Census,
    /// What bounded it, and how that is said.
    pub limit: Option<(Limit, String)>,
    /// Why it says nothing, where nothing could be done.
    pub warning: Option<&'static str>,
    /// Different failures that were found now.
    pub findings: usize,
    /// What was to be seen and was not.
    pub unmet: Vec<Property>,
    /// How states were compared, where they were.
    pub compared: Option<String>,
    /// Seconds of checking.
    pub seconds: f64,
    /// Whether the same command goes on where it ended.
    pub is_kept: bool,
    /// It was to begin anew, and would again.
    pub is_fresh: bool,
    /// Each rule by name, breadth-first.
    pub rules: Vec<(String, RuleCover)>,
    /// Exports that are not called, since signatures leave them out.
    pub left_out: Vec<String>,
    /// When each property was seen first, breadth-first.
    pub first: First,
    /// Whether all of that is to be told, and not only what was never called.
    pub shows_coverage: bool,
    /// What makes more states than there need be, where that was found.
    pub leftover: Option<Leftover>,
    /// What to do where it is not complete.
    pub hint: Option<&'static str>,
}

/// What was found is told while a check goes on for so long.
const SOON: Duration = Duration::from_secs(2);

impl Work<'_> {
    pub(super) fn check(&self, mut machines: Vec<Machine>, options: &Options) -> Result<Summary> {
        let options = self.resolved(&machines[0], options);
        if options.draws && options.order == Order::Depth {
            let text = "--graph is drawn breadth-first: add --order bfs";
            return Err(Error::new(ErrorKind::Config, anyhow!(text)).into());
        }
        self.begin_checking(&machines[0], &options)?;
        let reduces = options.reduces && what_reduces(&machines[0]) != (false, false);
        let options = Options { reduces, ..options };
        // Before a state is hashed: what was kept, or is at a server, may be under another key.
        let fleet = self.guest.config.fleet.as_ref();
        let meeting = fleet.map(|fleet| self.meet(fleet, machines[0].program(), &options)).transpose()?;
        let is_whole = !leaves_out_orders(&machines[0], &options);
        let kept = if meeting.is_none() && is_whole { self.kept(&options) } else { None };
        let copies = kept.as_ref().map_or(options.copies, |kept| kept.copies);
        let options = Options { copies, ..options };
        let saved = self.replay_saved(&mut machines[0])?;
        self.observer.on(Event::Searching { before: &Default::default(), left: self.left(None) })?;
        let started = Instant::now();
        let mut counts = machines[0].program().declared();
        let walked = match &meeting {
            Some(meeting) => self.check_together(meeting, &mut machines, &options, &mut counts)?,
            None => {
                let keeping = kept_by(kept.as_ref())?;
                self.walk_in_rounds(&mut machines, &options, (keeping, &mut counts))?
            }
        };
        let (kept, walked) = match believed(walked, &mut machines, (&options, &counts)) {
            Err(trouble) if matches!(trouble.kind, TroubleKind::Copies | TroubleKind::Without(_)) => {
                // What it knows came of the copies.
                kept.iter().for_each(Kept::remove);
                drop(kept);
                self.without_copies(&mut machines, &options, &trouble, &mut counts)?
            }
            walked => (kept, walked),
        };
        let is_kept = match (&kept, &walked) {
            (Some(kept), Ok(checked)) if checked.limit.is_some_and(Limit::is_from_outside) => {
                self.is_kept(kept)
            }
            _ => false,
        };
        let summary = match walked {
            Ok(checked) => {
                let seconds = started.elapsed().as_secs_f64();
                let unmet =
                    counts.properties.iter().filter(|property| property.is_unmet()).cloned().collect();
                let said = (&checked, saved, unmet);
                let summary = self.verdict(&mut machines, &options, said, (seconds, is_kept))?;
                self.draw(&machines[0], checked.picture.as_ref())?;
                summary
            }
            Err(trouble) => self.trouble(&machines[0], &options, &trouble)?,
        };
        // Once all was told: until then it can be gone on with.
        if !is_kept {
            kept.iter().for_each(Kept::remove);
        }
        Ok(summary)
    }

    /// Checks anew, where the copies that the guest makes of its states do not serve.
    fn without_copies(
        &self,
        machines: &mut [Machine],
        options: &Options,
        trouble: &Trouble,
        counts: &mut Counts,
    ) -> Result<(Option<Kept>, Walked)> {
        self.tell_anew(&machines[0], trouble);
        let without = Options { copies: false, ..options.clone() };
        // Where copies are wrong, the next command is to begin with them again, and to say so.
        let kept = matches!(trouble.kind, TroubleKind::Without(_)).then(|| self.kept(&without)).flatten();
        *counts = machines[0].program().declared();
        let walked = self.walk_in_rounds(machines, &without, (kept_by(kept.as_ref())?, counts))?;
        Ok((kept, walked))
    }

    /// Says why the check begins anew without copies.
    fn tell_anew(&self, machine: &Machine, trouble: &Trouble) {
        match trouble.kind {
            TroubleKind::Without(why) => {
                self.observer.status("Checking", &format!("anew, and without copies of states, {why}"));
            }
            _ => self.observer.warning(begins_anew(machine, trouble)),
        }
    }

    /// Writes the graph of states, where it is wanted.
    fn draw(&self, machine: &Machine, picture: Option<&Picture>) -> Result<()> {
        let (Some(path), Some(picture)) = (&self.guest.config.graph, picture) else { return Ok(()) };
        let name = |action| name_of(machine, action);
        let text = match path.extension().is_some_and(|end| end == "dot") {
            true => report::graph::dot(picture, name),
            false => report::graph::json(picture, name),
        };
        write_graph(path, &text)
    }

    /// Whether all is kept that the check has come to, which ends before it is complete.
    fn is_kept(&self, kept: &Kept) -> bool {
        let trouble = kept.trouble();
        if let Some(trouble) = &trouble {
            self.observer.warning(format!("not all of the check is kept: {trouble}"));
        }
        trouble.is_none()
    }

    /// The options with what the guest and the session say.
    fn resolved(&self, machine: &Machine, options: &Options) -> Options {
        let (program, config) = (machine.program(), self.guest.config);
        Options {
            order: match config.order {
                Some(order) => order,
                None if program.is_function() => Order::Depth,
                None => Order::Breadth,
            },
            // What no snapshot holds may differ where all else is equal.
            prunes: options.prunes && !program.is_function() && program.obstacles().is_empty(),
            runs_max: config.runs,
            findings_max: config.findings(),
            saved_bytes_max: config.memory,
            met_bytes_max: config.memory,
            draws: config.graph.is_some(),
            ..options.clone()
        }
    }

    fn begin_checking(&self, machine: &Machine, options: &Options) -> Result<()> {
        // What cannot be written is said before hours of checking.
        if let Some(path) = &self.guest.config.graph {
            write_graph(path, "")?;
        }
        let idle = match what_reduces(machine) {
            (true, _) if !options.may_leave_out_orders() => {
                Some("no orders of threads depth-first, under a bound, or where states are not compared")
            }
            (false, false) => {
                Some("nothing: no rules are declared independent, and no threads say what they touch")
            }
            _ => None,
        };
        if let Some(what) = idle.filter(|_| options.reduces) {
            self.observer.warning(format!("--reduce leaves out {what}"));
        }
        let what_follows = "paths are replayed from the start, and states are not compared";
        self.warn_of_obstacles(machine.program(), what_follows);
        if options.prunes && machine.says_state() && !machine.uses_snapshots() {
            let text = "without snapshots nothing looks for what the harness leaves out of its state";
            self.observer.warning(text.to_string());
        }
        self.observer.on(Event::Begin(&Begin {
            target: self.guest.target,
            module: machine.program().hash(),
            rules: machine.rules().iter().map(|rule| rule.name.as_str()).collect(),
            faults: machine.faults().iter().map(String::as_str).collect(),
            edges: 0,
            seed: None,
            check: Some((options.order, options.steps_max)),
        }))
    }

    /// Walks the tree. The last machine reports what paths noted.
    pub(super) fn walk(
        &self,
        machines: &mut [Machine],
        options: &Options,
        keeping: (Option<Keeping<'_>>, &mut Counts),
    ) -> Result<Result<Checked, Box<Trouble>>> {
        let (teller, machines) = machines.split_last_mut().expect("there is one to tell paths");
        let (pace, is_unheard, order) = (Pace::new(), AtomicBool::new(false), options.order);
        let (early, soon) = (Early::default(), Pace::every(SOON));
        let goes_on = |progress: &check::Progress| {
            if soon.is_due() {
                early.tell(self.observer);
            }
            if pace.is_due() {
                self.observer.try_on(Event::Checking { progress, order });
            }
            match self.budget.over() {
                Some(Over::Time) => Some(Limit::Time),
                Some(Over::Interrupt | Over::Exhausted) => Some(Limit::Interrupt),
                None => is_unheard.load(Ordering::Relaxed).then_some(Limit::Interrupt),
            }
        };
        let heard = Mutex::new(Ok(()));
        let mut told = |trace: &Trace, end: &End| {
            if let (End::Failed(failure), false) = (end, options.lists) {
                early.found(self, teller, trace, failure);
            }
            if !options.lists {
                return;
            }
            let mut heard = heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if heard.is_ok() {
                let notes = story::notes(teller, trace, &|| self.budget.is_over());
                *heard = self.observer.on(Event::Path { notes: &notes, end });
                is_unheard.store(heard.is_err(), Ordering::Relaxed);
            }
        };
        let checked = check::check_keeping(machines, options, (&goes_on, &mut told), keeping);
        heard.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?;
        Ok(checked)
    }

    /// Tells the findings, and says what follows from them.
    fn verdict(
        &self,
        machines: &mut [Machine],
        options: &Options,
        (checked, mut saved, unmet): (&Checked, Vec<Saved>, Vec<Property>),
        (seconds, is_kept): (f64, bool),
    ) -> Result<Summary> {
        let machine = &mut machines[0];
        let is_shortest = options.order == Order::Breadth && checked.steps_left_out == 0;
        let (mut told, mut is_flaky) = (Vec::new(), false);
        for found in &checked.findings {
            match self.tell(machine, found, None, is_shortest)? {
                Some(finding) => told.push(finding),
                None => is_flaky = true,
            }
        }
        let has_judged = checked.limit.is_none() && !options.are_enough(checked.findings.len());
        for saved in saved.iter_mut().filter(|saved| saved.still_fails().is_some()) {
            let is_told = checked.findings.iter().any(|finding| saved.fails_with(&finding.failure));
            if !is_told && saved.is_loop() && (has_judged || !saved.is_of_this) {
                saved.fate = Saved::unfair(has_judged);
                self.observer.on(Event::Saved(saved))?;
            } else if !is_told {
                told.extend(self.tell_saved(machine, saved, 0)?);
            }
        }
        let is_unmet = unmet.iter().any(|property| property.kind.is_seen());
        let limit = limit_of(machine, options, checked, is_unmet);
        let is_unmet = limit.is_none() && is_unmet;
        let verdict = match limit {
            _ if is_flaky => Verdict::Nondeterministic,
            Some(Limit::Interrupt) => Verdict::Interrupted,
            _ if !told.is_empty() || !checked.findings.is_empty() || is_unmet => Verdict::Found,
            None => Verdict::Passed,
            Some(_) => Verdict::Unknown,
        };
        let names = machine.rules().iter().map(|rule| rule.name.clone());
        let result = JobResult::Checked(Box::new(CheckedTarget {
            census: checked.census,
            limit: limit.map(|limit| (limit, limit_text(limit, options))),
            warning: nothing_checked(machine, checked),
            findings: checked.findings.len(),
            unmet,
            compared: options.prunes.then(|| compared_by(machine, options, checked)),
            seconds,
            is_kept,
            is_fresh: self.guest.config.keep == Keep::Fresh,
            rules: names.zip(checked.rules.iter().copied()).collect(),
            left_out: machine.program().left_out().to_vec(),
            first: checked.first.clone(),
            shows_coverage: self.guest.config.coverage,
            leftover: self.leftover(machine, options, checked),
            hint: limit.and_then(|limit| hint(machine, options, limit)),
        }));
        Ok(Summary { verdict, findings: told, saved, result })
    }
}

fn write_graph(path: &Path, text: &str) -> Result<()> {
    let written = disk::write_named(path, text.as_bytes());
    written.with_context(|| format!("cannot write the graph `{}`", path.display()))
}

/// What is known of a check that is kept, and what keeps it.
fn kept_by(kept: Option<&Kept>) -> Result<Option<Keeping<'_>>> {
    let Some(keeper) = kept else { return Ok(None) };
    Ok(Some(Keeping { before: Box::new(keeper.before()?), keeper, helpers: None }))
}

/// What kept a check from being complete, in which something was not seen that was to be.
fn limit_of(machine: &Machine, options: &Options, checked: &Checked, is_unmet: bool) -> Option<Limit> {
    let is_reduced = options.reduces && machine.program().has_independent_rules();
    checked.limit.or((is_unmet && is_reduced).then_some(Limit::Reduction))
}

/// Why nothing was checked, where that is so.
fn nothing_checked(machine: &Machine, checked: &Checked) -> Option<&'static str> {
    let why = checked.vacuity(machine.has_teardown())?;
    Some(if machine.says_what_threads_touch() { NO_OPERATION } else { why })
}

/// Why a check is made without copies that was made with them.
const HIDDEN: &str = "since something was not seen, which copies may hide";

/// What a check came to; trouble where something was not seen, and the guest copied its states, of which others may show it: a copy of a
/// list has no room to spare.
fn believed(
    walked: Result<Checked, Box<Trouble>>,
    machines: &mut [Machine],
    (options, counts): (&Options, &Counts),
) -> Result<Checked, Box<Trouble>> {
    let checked = walked?;
    let is_unseen = checked.limit.is_none() && counts.properties.iter().any(|property| property.is_unmet());
    let may_copy = options.order == Order::Breadth && options.may_copy();
    let copies = is_unseen && may_copy && machines[0].begin_copies();
    machines[0].end_copies();
    match copies {
        true => Err(Box::new(Trouble { trace: Trace::default(), kind: TroubleKind::Without(HIDDEN) })),
        false => Ok(checked),
    }
}

/// Why nothing was checked of threads.
const NO_OPERATION: &str = "no thread came to an operation of `spelunk_guest::sync` (does it use `std::sync`?), so nothing was checked";

/// What to do about threads where a check is not complete.
fn hint(machine: &Machine, options: &Options, limit: Limit) -> Option<&'static str> {
    let with = Options { reduces: true, ..options.clone() };
    if !limit.is_from_outside() || !leaves_out_orders(machine, &with) {
        return None;
    }
    Some(match options.reduces {
        true => "with --reduce the same command begins anew",
        false => "--reduce leaves out orders of threads that make no difference",
    })
}

/// Of what orders may be left out: of threads, and of rules.
fn what_reduces(machine: &Machine) -> (bool, bool) {
    (machine.says_what_threads_touch(), machine.program().has_independent_rules())
}

/// How states are compared, and what is believed beside that.
fn compared_by(machine: &Machine, options: &Options, checked: &Checked) -> String {
    let by = match machine.program().compares() {
        Compares::Memory => "128-bit hash".to_string(),
        Compares::Content(name) => format!("128-bit hash of what `{name}` holds"),
        Compares::Declared => "128-bit hash of what the guest says they are".to_string(),
    };
    match options.reduces && machine.program().has_independent_rules() {
        true => by + ", rules taken to be independent as declared",
        false if checked.steps_left_out > 0 => {
            let steps = report::counted(checked.steps_left_out, "step");
            format!("{by}, without {steps} of threads that have nothing in common with others")
        }
        false => by,
    }
}

/// What was found by a check that goes on. It is saved at once, so that it is not lost whatever happens, and told in one line where the
/// check goes on for long.
#[derive(Default)]
struct Early {
    known: Mutex<Vec<Failure>>,
    untold: Mutex<Vec<String>>,
}

impl Early {
    fn found(&self, work: &Work<'_>, machine: &mut Machine, trace: &Trace, failure: &Failure) {
        let mut known = lock(&self.known);
        if known.iter().any(|known| known.is_same(failure)) {
            return;
        }
        known.push(failure.clone());
        let path = work.guest.place.trace(failure);
        let pending = (Some(failure), Some(Shrinking::Pending));
        let saved = work.guest.place.make().and_then(|()| set_aside(machine, &path));
        let saved = saved.and_then(|()| write_trace(machine, trace, pending, &path));
        let steps = report::counted(steps_of(trace) as u64, "step");
        let text = match saved {
            Ok(()) => format!("{failure} after {steps}, saved in {}; the check goes on", path.display()),
            // What cannot be saved is an error once it is told.
            Err(_) => format!("{failure} after {steps}; the check goes on"),
        };
        lock(&self.untold).push(text);
    }

    fn tell(&self, observer: &Told<'_>) {
        for text in lock(&self.untold).drain(..) {
            observer.status("Found", &text);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn limit_text(limit: Limit, options: &Options) -> String {
    match limit {
        Limit::Steps => {
            let Some(steps) = options.steps_max else {
                return "a component returned as many resources of one type as a run may have".to_string();
            };
            let plural = if steps == 1 { "" } else { "s" };
            format!("the bound of {steps} step{plural} was reached (--steps)")
        }
        Limit::Runs => "the bound on runs was reached (--runs)".to_string(),
        Limit::Time => "the time was up (--time)".to_string(),
        Limit::Memory => "the states took up the memory (--memory)".to_string(),
        Limit::Interrupt => "it was interrupted".to_string(),
        Limit::Liveness => {
            "what must come at last is judged only breadth-first, with states compared and without --reduce"
                .to_string()
        }
        Limit::Schedules(bound) => {
            let (max, name) = (bound.max(), bound.name());
            let counted = if max == 1 { name.trim_end_matches('s') } else { name };
            format!("runs with more than {max} {counted} were left out (--{name})")
        }
        Limit::Reduction => {
            "of independent rules one order was left out, which may show what was not seen (--reduce)"
                .to_string()
        }
    }
}
