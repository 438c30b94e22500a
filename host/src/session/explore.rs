//! An exploration: it searches until it is over, and saves and tells what it finds.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::finding::FoundAfter;
use super::fleet::Link;
use super::input::Inputs;
use super::pace::Pace;
use super::saved::Saved;
use super::start::Started;
use super::status::{CalledRule, Status, called_rules, health};
use super::view::View;
use super::{Begin, Event, Finding, JobResult, Keep, Left, Summary, Verdict, Work};
use crate::budget::Over;
use crate::campaign::{Campaign, Settings};
use crate::coverage::FeatureKind;
use crate::disk;
use crate::file::Conditions;
use crate::machine::{Edges, Machine};
use crate::outcome::Found;
use crate::property::Property;
use crate::report;
use crate::search::energy::Strategy;
use crate::search::{Discovery, Explorer, Options, Planted, Progress, Symptom, Ways};
use crate::target::Target;

/// How often a campaign is saved; first after a tenth of that.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
/// Runs of an exploration that has no other bound.
const RUNS: u64 = 100_000;
/// An exploration is stalled where the last half of its runs saw no new edge, and these were so many or more.
const STALLED: u64 = 10_000;

/// What an exploration came to.
#[derive(Clone, Debug)]
pub struct Explored {
    /// What was counted, earlier sessions of the campaign included.
    pub progress: Progress,
    /// Edges in the module.
    pub edges: usize,
    /// Seconds of searching.
    pub seconds: f64,
    /// Seconds of shrinking, explaining and saving findings.
    pub seconds_telling: f64,
    /// What was to be seen and was not.
    pub unmet: Vec<Property>,
    /// What ended it.
    pub end: End,
    /// The run that saw the last new edge, where the search is stalled since.
    pub stalled_since: Option<u64>,
    /// What calling each rule came to.
    pub rules: Vec<CalledRule>,
    /// What is wrong with it.
    pub health: Vec<Symptom>,
    /// How likely it is that the next run goes through a new edge, where enough runs ended.
    pub discovery: Option<Discovery>,
    /// Whether the same command resumes it.
    pub is_kept: bool,
    /// It was to begin anew, and would again.
    pub is_fresh: bool,
    /// What was seen, by its kind.
    pub features: BTreeMap<FeatureKind, u64>,
    /// What runs came to, by the way in which they began.
    pub ways: Ways,
}

/// What ended an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As many findings as wanted.
    Findings,
    /// As many runs as wanted.
    Runs,
    /// The time.
    Time,
    /// The user.
    Interrupt,
    /// The campaign had come to its end before: as many runs or findings as wanted.
    Before,
    /// A failure did not happen again.
    Nondeterminism,
    /// Every run is the same.
    Constant,
}

/// Bytes that the steps which lead to checkpoints may hold, however little saved states may.
const HISTORY_BYTES_MIN: u64 = 32 << 20;
/// Bytes of findings after which an exploration stops.
const FOUND_BYTES_MAX: u64 = 64 << 20;

fn found_bytes(found: &Found) -> u64 {
    found.trace.bytes() + found.failure.message.len() as u64
}

/// An exploration under way.
pub(super) struct Search<'w, 's, 'm> {
    pub(super) work: &'w Work<'s>,
    settings: Settings,
    pub(super) explorer: Explorer<'m, Machine>,
    pub(super) campaign: Option<Campaign>,
    pub(super) link: Link,
    saved: Vec<Saved>,
    /// The index of the first of the explorer's findings that was not reported.
    next: usize,
    told: Vec<Finding>,
    /// Bytes that the findings hold.
    found_bytes: u64,
    pub(super) is_flaky: bool,
    runs_max: u64,
    telling: Duration,
}

impl Work<'_> {
    pub(super) fn explore(&self, mut machines: Vec<Machine>, settings: &Settings) -> Result<Summary> {
        let config = self.guest.config;
        let Conditions { limits, selection, environment } = config.conditions();
        let settings = &Settings { limits, selection, environment, ..settings.clone() };
        self.begin_exploring(&machines[0], settings)?;
        // What is wrong with them is said before an earlier campaign is put aside.
        let program = machines[0].program().clone();
        let seeds = (!config.seeds.is_empty()).then(|| Inputs::of(&program, &config.seeds, "--seeds"));
        let seeds = seeds.transpose()?;
        if let Some(path) = &config.report {
            write_report(path, "")?;
        }
        let options = Options {
            saved_bytes_max: if config.uses_snapshots { config.memory } else { 0 },
            history_bytes_max: (config.memory as u64 / 4).max(HISTORY_BYTES_MIN),
            ..settings.options(machines[0].program())?
        };
        let saved = self.replay_saved(&mut machines[0])?;
        let Started { explorer, mut campaign, reported } = self.start(&mut machines, settings, options)?;
        if let Some(campaign) = &mut campaign {
            campaign.set_bytes_max(config.store_max.unwrap_or(u64::MAX));
        }
        let runs_before = explorer.progress().runs;
        let found_bytes = explorer.findings().take(reported).map(found_bytes).sum();
        let mut search = Search {
            work: self,
            settings: settings.clone(),
            explorer,
            campaign,
            link: Link::default(),
            saved,
            next: reported,
            told: Vec::new(),
            found_bytes,
            is_flaky: false,
            runs_max: config.runs.unwrap_or(if config.time.is_none() { RUNS } else { u64::MAX }),
            telling: Duration::ZERO,
        };
        search.tell_earlier()?;
        if let Some(seeds) = &seeds {
            search.plant_seeds(seeds)?;
        }
        let before = search.explorer.progress();
        self.observer.on(Event::Searching { before: &before, left: search.left(before.runs) })?;
        let searching = Instant::now();
        let telling = search.telling;
        let ran = search.run(searching);
        if let Some(campaign) = search.campaign.as_ref().filter(|campaign| !campaign.is_shared()) {
            Status::withdraw(campaign.folder());
        }
        ran?;
        search.tell_met()?;
        search.tell_waiting(true)?;
        search.leave()?;
        let seconds = searching.elapsed().saturating_sub(search.telling - telling);
        search.summary(seconds, runs_before)
    }

    /// Tells what is explored, and what hinders it.
    fn begin_exploring(&self, machine: &Machine, settings: &Settings) -> Result<()> {
        self.warn_of_obstacles(machine.program(), "runs are replayed from the start");
        let edges = machine.program().edges().edges.len();
        self.observer.on(Event::Begin(&Begin {
            target: self.guest.target,
            module: machine.program().hash(),
            rules: machine.rules().iter().map(|rule| rule.name.as_str()).collect(),
            faults: machine.faults().iter().map(String::as_str).collect(),
            edges,
            seed: self.seed(),
            check: None,
        }))?;
        let is_counted = edges > 0 || machine.program().conditions().selection.edges == Edges::Hashed;
        if !is_counted && settings.strategy != Strategy::Random {
            let text = "no edge is counted, so nothing guides the search: see --include and --exclude";
            self.observer.warning(text.to_string());
        }
        Ok(())
    }
}

impl Search<'_, '_, '_> {
    /// Tells what earlier sessions found and still fails. A finding of the campaign whose trace was not saved, or not
    /// shrunk, since that session ended too early, is shrunk and saved now.
    fn tell_earlier(&mut self) -> Result<()> {
        let began = Instant::now();
        let known: Vec<_> = self.explorer.findings().take(self.next).cloned().collect();
        for found in &known {
            let path = self.work.guest.place.trace(&found.failure);
            // Under another name where that was not to be had.
            let is_it = |saved: &&Saved| saved.path == path || saved.fails_with(&found.failure);
            let saved = self.saved.iter().find(is_it);
            if saved.is_none_or(|saved| saved.is_pending() || saved.is_damaged()) && !self.is_flaky {
                // As far as it was shrunk.
                let shrunk = saved.filter(|saved| saved.is_pending() && saved.fails_with(&found.failure));
                let shrunk = shrunk.and_then(|saved| Some((saved.still_fails()?, &saved.trace)));
                let (failure, trace) = shrunk.unwrap_or((&found.failure, &found.trace));
                let found = Found { failure: failure.clone(), trace: trace.clone(), run: found.run };
                self.tell_or_wait(&found, |search| {
                    search.told(|work, machine| work.tell(machine, &found, None, false))
                })?;
            } else {
                self.hand_over(&found.failure);
            }
        }
        let saved = std::mem::take(&mut self.saved);
        for saved in &saved {
            let is_told = self.told.iter().any(|told| saved.fails_with(&told.failure));
            if saved.still_fails().is_some() && !is_told && !self.is_flaky {
                let run =
                    known.iter().find(|found| saved.fails_with(&found.failure)).map_or(0, |found| found.run);
                self.told(|work, machine| work.tell_saved(machine, saved, run))?;
            }
        }
        self.saved = saved;
        self.telling += began.elapsed();
        Ok(())
    }

    /// Executes files as inputs, and shortens those that reach new edges, which are kept. What fails is reported.
    fn plant_seeds(&mut self, seeds: &Inputs) -> Result<()> {
        let (began, work) = (Instant::now(), self.work);
        let program = self.explorer.target().program().clone();
        let (mut inputs, mut kept, mut cut) = (0, 0, 0);
        for path in &seeds.files {
            if work.budget.is_over() || self.has_enough() || self.is_flaky {
                break;
            }
            let (bytes, is_cut) = seeds.read(path)?;
            match self.explorer.plant_input(&seeds.trace(&bytes)) {
                Planted::Checkpoint => kept += 1,
                Planted::Stopped | Planted::Torn => break,
                Planted::Found => self.tell_new(began)?,
                Planted::Known | Planted::FoundBefore | Planted::Stale(_) => {}
            }
            cut += u64::from(is_cut);
            inputs += 1;
        }
        if cut > 0 {
            let max = program.limits().input_bytes_max;
            work.observer.warning(format!("{} cut to --input-max {max}", report::counted(cut, "seed")));
        }
        let left = seeds.files.len() - inputs;
        let mut text =
            format!("{}, of which {kept} reached new edges", report::counted(inputs as u64, "input"));
        if left > 0 {
            let why = match work.budget.is_over() {
                true => "there was no more time",
                false if self.is_flaky => "a failure did not happen again",
                false => "there are enough findings",
            };
            text += &format!("; {left} left, since {why}");
        }
        work.observer.status("Seeded", &text);
        work.observer.on(Event::Seeded { inputs, kept, left })?;
        if inputs == 0 && left > 0 && work.budget.is_over() {
            bail!("there was no time for any of the seeds");
        }
        Ok(())
    }

    /// Keeps what was reported, if anything was.
    pub(super) fn keep_told(&mut self, finding: Option<Finding>) {
        self.told.extend(finding);
    }

    /// Keeps what was reported; where nothing was, the failure did not happen again.
    pub(super) fn told(
        &mut self,
        tell: impl FnOnce(&Work<'_>, &mut Machine) -> Result<Option<Finding>>,
    ) -> Result<()> {
        match tell(self.work, self.explorer.target())? {
            Some(finding) => self.told.push(finding),
            None => self.is_flaky = true,
        }
        Ok(())
    }

    fn run(&mut self, started: Instant) -> Result<()> {
        let edges = self.explorer.target().program().edges().edges.len();
        let pace = Pace::new();
        let is_viewed = self.work.observer.wants_views();
        self.save(started)?;
        loop {
            self.tell_new(started)?;
            let progress = self.explorer.progress();
            let is_done = self.is_flaky || self.has_enough() || self.explorer.knowledge().is_constant();
            if is_done || self.is_over(progress.runs) || self.explorer.is_torn() {
                return Ok(());
            }
            if is_viewed {
                let left = self.left(progress.runs);
                let program = self.explorer.target().program().clone();
                let of = (&*program, &self.settings);
                let view = View::of(self.explorer.knowledge(), of, (left, self.is_flaky));
                self.work.observer.on(Event::View(&view))?;
            }
            let to_save = Pace::every(SAVE_INTERVAL.min(started.elapsed().max(SAVE_INTERVAL / 10)));
            let (found, runs_max) = (self.next, self.runs_max);
            // The first says whether a function draws anything.
            let is_first = progress.runs == 0 && self.explorer.target().is_function();
            let most = if is_first { runs_max.min(1) } else { runs_max };
            let is_interrupted = self.campaign.is_some() || is_viewed;
            let (work, budget, observer) = (self.work, self.work.budget, self.work.observer);
            self.explorer.explore(|progress| {
                if pace.is_due() {
                    let left = left(work, runs_max, progress.runs);
                    observer.try_on(Event::Exploring { progress, edges, left });
                }
                let is_over = progress.runs >= most || budget.is_over();
                progress.findings == found && !is_over && !(is_interrupted && to_save.is_due())
            });
            self.save(started)?;
        }
    }

    /// Saves the campaign. Where that fails, what was found is reported all the same.
    fn save(&mut self, started: Instant) -> Result<()> {
        let Some(campaign) = &mut self.campaign else { return Ok(()) };
        if self.explorer.is_torn() {
            return Ok(());
        }
        if campaign.is_shared() {
            self.exchange()?;
            return self.tell_waiting(false);
        }
        let program = self.explorer.target().program().clone();
        let saved = campaign.save(self.explorer.knowledge(), &program);
        Status::publish(campaign, self.explorer.knowledge(), &program);
        if saved.is_err() {
            self.tell_new(started)?;
        }
        saved
    }

    /// Reports what was found and not reported yet.
    fn tell_new(&mut self, started: Instant) -> Result<()> {
        loop {
            let found = self.explorer.findings().nth(self.next).cloned();
            let Some(found) = found else { return Ok(()) };
            self.next += 1;
            self.found_bytes += found_bytes(&found);
            self.found(&found, started)?;
        }
    }

    /// Reports a finding of this session, unless an earlier one reported it.
    fn found(&mut self, found: &Found, started: Instant) -> Result<()> {
        if let Some(told) = self.told.iter_mut().find(|told| told.failure.is_same(&found.failure)) {
            told.run = found.run;
            let text = format!("{} in run {}; it is reported above", found.failure, found.run);
            self.work.observer.status("Found again", &text);
            return Ok(());
        }
        let began = Instant::now();
        let after = FoundAfter {
            steps: self.explorer.progress().steps,
            seconds: began.duration_since(started).saturating_sub(self.telling).as_secs_f64(),
        };
        self.tell_or_wait(found, |search| {
            search.told(|work, machine| work.tell(machine, found, Some(after), false))
        })?;
        self.telling += began.elapsed();
        Ok(())
    }

    /// Reports what was met while something else was shrunk, and was not found since.
    fn tell_met(&mut self) -> Result<()> {
        let folder = self.work.guest.place.findings();
        if !folder.exists() || self.campaign.as_ref().is_some_and(Campaign::is_shared) {
            return Ok(());
        }
        let began = Instant::now();
        for path in disk::files(&folder, Some("json"))? {
            let is_known = |known: &Path| known == path;
            let is_told = self.told.iter().any(|told| is_known(&told.trace))
                || self.saved.iter().any(|saved| is_known(&saved.path));
            if is_told || self.is_flaky || self.has_enough() || self.work.budget.is_over() {
                continue;
            }
            let saved = Saved::at(self.explorer.target(), path);
            let is_told = self.told.iter().any(|told| saved.fails_with(&told.failure));
            if saved.is_pending() && !is_told {
                self.told(|work, machine| work.tell_saved(machine, &saved, 0))?;
            }
        }
        self.telling += began.elapsed();
        Ok(())
    }

    fn has_enough(&self) -> bool {
        self.next - self.link.uncounted() >= self.work.guest.config.findings()
            || self.found_bytes >= FOUND_BYTES_MAX
    }

    /// What is left after so many runs.
    fn left(&self, runs: u64) -> Left {
        left(self.work, self.runs_max, runs)
    }

    fn is_over(&self, runs: u64) -> bool {
        runs >= self.runs_max || self.work.budget.is_over()
    }

    fn end(&self, runs_before: u64) -> End {
        let progress = self.explorer.progress();
        let is_complete = runs_before > 0 && progress.runs == runs_before;
        match self.work.budget.over() {
            _ if self.is_flaky => End::Nondeterminism,
            Some(Over::Interrupt) => End::Interrupt,
            _ if is_complete && (self.has_enough() || progress.runs >= self.runs_max) => End::Before,
            _ if self.has_enough() => End::Findings,
            _ if self.explorer.knowledge().is_constant() => End::Constant,
            _ if progress.runs >= self.runs_max => End::Runs,
            _ => End::Time,
        }
    }

    fn summary(mut self, seconds: Duration, runs_before: u64) -> Result<Summary> {
        let config = self.work.guest.config;
        if let Some(path) = &config.report {
            let text = report::coverage(&mut self.explorer, &self.told, self.work.seed());
            write_report(path, &text)?;
        }
        let progress = self.explorer.progress();
        let end = self.end(runs_before);
        let verdict = match end {
            End::Nondeterminism => Verdict::Nondeterministic,
            End::Interrupt => Verdict::Interrupted,
            _ if self.told.is_empty() && progress.findings == self.link.uncounted() => Verdict::Passed,
            _ => Verdict::Found,
        };
        if end == End::Time && progress.runs == runs_before {
            let text = "no run ended before the time was up, which begins before the module is compiled: give it more --time";
            self.work.observer.warning(text.to_string());
        }
        let last_new = self.explorer.knowledge().last_new_edge();
        let barren = progress.runs - last_new.min(progress.runs);
        let program = self.explorer.target().program().clone();
        let edges = program.edges().edges.len();
        let is_partial = (progress.edges as usize) < edges;
        let explored = Explored {
            progress,
            edges,
            seconds: seconds.as_secs_f64(),
            seconds_telling: self.telling.as_secs_f64(),
            unmet: self.explorer.counts().properties.iter().filter(|p| p.is_unmet()).cloned().collect(),
            end,
            stalled_since: (is_partial && barren >= STALLED && barren > last_new).then_some(last_new),
            rules: called_rules(self.explorer.knowledge(), &program),
            health: health(self.explorer.knowledge(), &program, &self.settings, self.is_flaky),
            discovery: self.explorer.knowledge().discovery(),
            is_kept: self.campaign.is_some(),
            is_fresh: self.work.guest.config.keep == Keep::Fresh,
            features: self.explorer.knowledge().features_by_kind(),
            ways: self.explorer.knowledge().tally.ways,
        };
        let result = JobResult::Explored(Box::new(explored));
        Ok(Summary { verdict, findings: self.told, saved: self.saved, result })
    }
}

/// What is left after so many runs, of which `runs_max` is any number where there is no bound.
fn left(work: &Work<'_>, runs_max: u64, runs: u64) -> Left {
    work.left((runs_max < u64::MAX).then(|| runs_max.saturating_sub(runs)))
}

fn write_report(path: &Path, text: &str) -> Result<()> {
    let written = disk::write_named(path, text.as_bytes());
    written.with_context(|| format!("cannot write the report `{}`", path.display()))
}
