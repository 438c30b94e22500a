//! A check that several processes share. One of them leads: it merges what the states of a round lead to, in their order, and keeps
//! what came of it at the server, a round at a time, so that another can lead from there on. All others look at parts of rounds for it.
//!
//! | key | what stands there |
//! |---|---|
//! | `header` | what is checked, how, and the key under which states are hashed |
//! | `l.ead` | who leads |
//! | `n.<number>` | what came of a round; it is written once, so that of two that think they lead only one goes on |
//! | `r.ound` | the round that is under way |
//! | `v.erdict` | what the check came to, once it is complete |

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};

use super::error::{Error, ErrorKind};
use super::{Event, Fleet, Work};
use crate::budget::{Budget, Over};
use crate::check::{
    self, Census, Checked, First, Helpers, Keeper, Keeping, Limit, News, Options, Part, Round, RuleCover,
    Soundness, Source, Trouble,
};
use crate::file::{self, Hex, Names as _, StepLine};
use crate::fleet::{
    Hub, Nats, NotReached, OnServer, Queue, Shared, WorkQueue, WorkerLine, is_alive, name_of, whole,
    worker_name, wrapped,
};
use crate::machine::{Machine, Program, adopt_seed};
use crate::outcome::{Failure, Found};
use crate::property::{Counts, PropertyKind};
use crate::store::pack::{packed, unpacked};
use crate::store::{Header, Store as _};

use super::pace::Pace;

/// Bytes of what was kept that are read at a time.
const READ_MAX: u64 = 16 << 20;
/// Who waits for a round looks this often, at first and later on.
const WAIT: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(20)];
/// Whether the one who leads is there is asked so often.
const LOOK: Duration = Duration::from_secs(3);
/// A server that does not answer is asked again after so long.
const AGAIN: Duration = Duration::from_secs(1);

/// What a check is begun with, beside the module.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Settings {
    check: Options,
    limits: file::Limits,
    selection: file::Selection,
    environment: file::Environment,
    /// The key under which states are hashed.
    key: Vec<u8>,
}

/// What a check came to.
#[derive(Default, Serialize, Deserialize)]
struct VerdictLine {
    census: Census,
    findings: Vec<FoundLine>,
    /// `steps`, `reduction` or `liveness`.
    limit: Option<String>,
    rules: Vec<RuleCover>,
    first: Vec<(PropertyKind, String, u32, Option<u32>)>,
    counts: Counts,
    /// There is none: a process ended with an error that says why.
    is_trouble: bool,
}

#[derive(Serialize, Deserialize)]
struct FoundLine {
    failure: Failure,
    run: u64,
    steps: Vec<StepLine>,
}

/// Where the processes of a check meet.
pub(super) struct Meeting<'b> {
    hub: Arc<OnServer>,
    queue: WorkQueue,
    worker: u64,
    budget: &'b Budget,
    /// Another process leads.
    is_deposed: AtomicBool,
    /// What was kept, by its number.
    state: Mutex<State>,
    /// What is wrong with the server, where that was told already.
    trouble: Mutex<Option<String>>,
    tell: &'b (dyn Fn(String) + Sync),
    /// How many rules and faults there are.
    sizes: (usize, usize),
}

/// See [`Taken::done`](crate::fleet::Taken::done).
type Lease = Box<dyn FnOnce(bool) -> Result<()> + Send>;

#[derive(Default)]
struct State {
    /// The revision up to which all was read.
    read: u64,
    /// What was read and not handed on, by its number.
    news: BTreeMap<u64, News>,
    /// How much was handed on, or kept by this process.
    kept: u64,
    /// Of what was handed on, whether the rest fits it.
    sound: Option<Soundness>,
    round: Option<Round>,
    /// No part of the round is left for this process.
    is_done: bool,
    /// What says of a part that it is done.
    leases: BTreeMap<u32, Lease>,
    is_over: bool,
    looked: Option<Instant>,
    waited: u32,
}

/// What stands at the server and cannot be read.
#[derive(Debug)]
struct Damaged(String);

impl Damaged {
    fn trouble() -> anyhow::Error {
        Damaged(
            "a process that took part ended with an error that says why there can be no verdict".to_string(),
        )
        .into()
    }
}

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "nobody can go on with the check at the server ({}): use another --campaign, and remove this one with `spelunk gc --nats \
             --remove`",
            self.0
        )
    }
}

impl std::error::Error for Damaged {}

/// The error for a value that is none; that the server cannot be reached is another one.
fn damaged(error: anyhow::Error, key: &str) -> anyhow::Error {
    if error.is::<NotReached>() { error } else { Damaged(key.to_string()).into() }
}

/// What became of a check that is shared.
pub(super) type Walked = Result<Checked, Box<Trouble>>;

impl Work<'_> {
    /// Checks together with other processes.
    pub(super) fn check_together(
        &self,
        fleet: &Fleet,
        machines: &mut [Machine],
        options: &Options,
        counts: &mut Counts,
    ) -> Result<Walked> {
        if !options.can_be_kept() || options.draws {
            let text = "several machines check breadth-first only, and without --runs, --list, --graph, --preemptions or --delays";
            return Err(Error::new(ErrorKind::Config, anyhow!(text)).into());
        }
        let tell = |text| self.observer.warning(text);
        let meeting = self.meet(fleet, machines[0].program(), options, &tell)?;
        loop {
            let verdict = meeting.insist(|| meeting.verdict(machines[0].program()));
            if let Some(verdict) = verdict? {
                *counts = verdict.1;
                return Ok(Ok(verdict.0));
            }
            if let Some(over) = self.budget.over() {
                let limit = if over == Over::Time { Limit::Time } else { Limit::Interrupt };
                return Ok(Ok(meeting.unfinished(limit)));
            }
            if meeting.insist(|| meeting.leads())? {
                self.observer.status("Leading", "what others look at is merged here");
                let before = meeting.insist(|| meeting.all_kept())?;
                let keeping = Keeping { before, keeper: &meeting, helpers: Some(&meeting) };
                let walked = self.walk(machines, options, (Some(keeping), counts))?;
                if meeting.is_deposed.swap(false, Ordering::Relaxed) && !self.budget.is_over() {
                    self.observer.status("Following", "another process leads now");
                    *counts = machines[0].program().declared();
                    meeting.forget();
                    continue;
                }
                match &walked {
                    Ok(checked) if checked.limit.is_none_or(|limit| !limit.is_from_outside()) => {
                        let is_first = meeting.decide(checked, counts, machines[0].program())?;
                        if !is_first {
                            continue;
                        }
                    }
                    Err(_) => drop(meeting.give_up()),
                    Ok(_) => meeting.resign(),
                }
                return Ok(walked);
            }
            self.observer.status("Following", "another process leads");
            meeting.forget();
            let (_, helpers) = machines.split_last_mut().expect("there is one to tell paths");
            match self.help(helpers, options, &meeting)? {
                Ok(Some(Limit::Memory)) => {
                    return Ok(Ok(meeting.unfinished(Limit::Memory)));
                }
                Ok(_) => {}
                // States are compared within each process, so another may not see it.
                Err(trouble) => {
                    drop(meeting.give_up());
                    return Ok(Err(trouble));
                }
            }
        }
    }

    fn help(
        &self,
        machines: &mut [Machine],
        options: &Options,
        meeting: &Meeting<'_>,
    ) -> Result<Result<Option<Limit>, Box<Trouble>>> {
        let (pace, order) = (Pace::new(), options.order);
        let goes_on = |progress: &check::Progress| {
            if pace.is_due() {
                self.observer.try_on(Event::Checking { progress, order });
            }
            match self.budget.over() {
                Some(Over::Time) => Some(Limit::Time),
                Some(Over::Interrupt | Over::Exhausted) => Some(Limit::Interrupt),
                None => None,
            }
        };
        Ok(check::help(machines, options, &goes_on, meeting))
    }

    fn meet<'b>(
        &'b self,
        fleet: &Fleet,
        program: &Arc<Program>,
        options: &Options,
        tell: &'b (dyn Fn(String) + Sync),
    ) -> Result<Meeting<'b>> {
        let nats = Nats::connect(&fleet.server, self.budget)?;
        let name = fleet.campaign.clone();
        let name = name.unwrap_or_else(|| format!("{}-check", name_of(&self.guest.place.name())));
        let hub = match nats.open(&name)? {
            Some(hub) => hub,
            None => nats.make(&name, &fleet.server)?,
        };
        let hub = Arc::new(hub);
        let config = self.guest.config;
        // What no result depends on may differ.
        let settings = Settings {
            check: Options { saved_bytes_max: 0, met_bytes_max: 0, ..options.clone() },
            limits: config.limits,
            selection: config.selection.clone(),
            environment: config.environment.clone(),
            key: Vec::new(),
        };
        let mut shared = Shared::new(hub.clone(), 0);
        let header = match shared.header()? {
            Some(header) => header,
            None => {
                let mut key = vec![0; 32];
                getrandom::fill(&mut key).context("this machine has no random numbers")?;
                let begun = Settings { key, ..settings.clone() };
                let header = Header {
                    module: Hex(program.hash()),
                    target: self.guest.place.name(),
                    settings: serde_json::to_value(&begun)?,
                };
                match shared.begin(&header, self.wasm) {
                    Ok(()) => header,
                    // Another was faster, with a key of its own.
                    Err(error) => shared.header()?.ok_or(error)?,
                }
            }
        };
        let shown = hub.name();
        ensure!(
            header.module.0 == program.hash(),
            "the check {shown} is of another module, or another build of it: copy the module to all machines, or use another --campaign"
        );
        let begun: Settings = serde_json::from_value(header.settings)
            .with_context(|| format!("{shown} is no check: use another --campaign"))?;
        let key = <[u8; 32]>::try_from(&begun.key[..]).context("the key has another length")?;
        ensure!(
            Settings { key: Vec::new(), ..begun } == settings,
            "the check {shown} was begun with other flags: give the same, or use another --campaign"
        );
        ensure!(adopt_seed(key), "this process compares states under another key");
        let worker = getrandom::u64().context("this machine has no random numbers")?;
        let queue = hub.queue()?;
        let line = serde_json::to_vec(&WorkerLine::now())?;
        hub.keep_writing(&format!("w.{}", worker_name(worker)), line);
        self.observer.status("Joined", &format!("the check {name} at {}", nats.addresses()));
        Ok(Meeting {
            hub,
            queue,
            worker,
            budget: self.budget,
            is_deposed: AtomicBool::new(false),
            state: Mutex::default(),
            trouble: Mutex::default(),
            tell,
            sizes: (program.rules().len(), program.faults().len()),
        })
    }
}

impl Drop for Meeting<'_> {
    /// This process is not there any more.
    fn drop(&mut self) {
        drop(self.hub.remove(&format!("w.{}", worker_name(self.worker))));
    }
}

impl Meeting<'_> {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn soundness(&self) -> Soundness {
        Soundness::new(self.sizes.0, self.sizes.1)
    }

    /// What was read is read again: it belongs to another walk.
    fn forget(&self) {
        *self.state() = State::default();
    }

    /// Whether this process leads, from now on or already: where nobody does, or whoever did is gone.
    fn leads(&self) -> Result<bool> {
        let own = worker_name(self.worker);
        let is_name = |name: &str| name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (leader, revision) = match self.hub.get("l.ead")? {
            Some(value) => (String::from_utf8_lossy(&value.bytes).into_owned(), value.revision),
            None => (String::new(), 0),
        };
        if leader == own {
            return Ok(true);
        }
        if is_name(&leader) && is_alive(&*self.hub, (&own, &leader))? {
            return Ok(false);
        }
        Ok(self.hub.replace("l.ead", own.as_bytes(), revision)?.is_some())
    }

    /// Another may lead.
    fn resign(&self) {
        drop(self.hub.remove("l.ead"));
    }

    /// All that was kept, in order.
    fn all_kept(&self) -> Result<Vec<News>> {
        self.forget();
        let mut sound = self.soundness();
        let mut all = Vec::new();
        loop {
            self.read()?;
            let mut state = self.state();
            let before = all.len();
            while let Some(news) = state.next_news() {
                if !sound.takes(&news) {
                    return Err(Damaged(format!("n.{}", all.len())).into());
                }
                all.push(news);
            }
            if all.len() == before {
                return Ok(all);
            }
        }
    }

    /// Reads what was written since.
    fn read(&self) -> Result<()> {
        let after = self.state().read;
        let changes = self.hub.changes(&["n", "r", "v"], after, READ_MAX)?;
        for (key, value) in changes.values {
            let bytes = whole(&*self.hub, &key, &value.bytes).map_err(|error| damaged(error, &key))?;
            let mut state = self.state();
            state.read = state.read.max(value.revision);
            match key.split_once('.') {
                Some(("n", number)) => {
                    let number = number.parse().map_err(|_| Damaged(key.clone()))?;
                    let news = postcard::from_bytes(&bytes).map_err(|_| Damaged(key.clone()))?;
                    state.news.insert(number, news);
                }
                Some(("r", _)) => {
                    state.round = postcard::from_bytes(&bytes).ok();
                    state.is_done = false;
                }
                Some(("v", _)) => state.is_over = true,
                _ => {}
            }
        }
        Ok(())
    }

    /// What the check came to, if it is complete.
    fn verdict(&self, program: &Program) -> Result<Option<(Checked, Counts)>> {
        let Some(value) = self.hub.get("v.erdict")? else { return Ok(None) };
        let bytes =
            whole(&*self.hub, "v.erdict", &value.bytes).map_err(|error| damaged(error, "v.erdict"))?;
        let line: VerdictLine =
            serde_json::from_slice(&bytes).map_err(|_| Damaged("v.erdict".to_string()))?;
        if line.is_trouble {
            return Err(Damaged::trouble());
        }
        let found = |line: FoundLine| {
            let trace = file::trace_of(program, &line.steps)?;
            Ok(Found { failure: line.failure, run: line.run, trace })
        };
        let limit = match line.limit.as_deref() {
            None => None,
            Some("steps") => Some(Limit::Steps),
            Some("reduction") => Some(Limit::Reduction),
            Some("liveness") => Some(Limit::Liveness),
            Some(other) => return Err(anyhow!("the verdict is bounded by `{other}`, which is no bound")),
        };
        let first: First =
            line.first.into_iter().map(|(kind, name, met, held)| ((kind, name), (met, held))).collect();
        let findings = line.findings.into_iter().map(found).collect::<Result<_>>()?;
        let checked =
            Checked { census: line.census, findings, limit, rules: line.rules, first, picture: None };
        Ok(Some((checked, line.counts)))
    }

    /// There is no verdict, since the guest is not as a check needs it.
    fn give_up(&self) -> Result<()> {
        let line = VerdictLine { is_trouble: true, ..VerdictLine::default() };
        let bytes = wrapped(&*self.hub, "v.erdict", &serde_json::to_vec(&line)?)?;
        self.hub.replace("v.erdict", &bytes, 0).map(drop)
    }

    /// The check is complete; whether nobody said before what it comes to.
    fn decide(&self, checked: &Checked, counts: &Counts, program: &Program) -> Result<bool> {
        let found = |found: &Found| FoundLine {
            failure: found.failure.clone(),
            run: found.run,
            steps: file::lines_of(program, &found.trace),
        };
        let first = checked.first.iter();
        let line = VerdictLine {
            census: checked.census,
            findings: checked.findings.iter().map(found).collect(),
            limit: checked.limit.map(|limit| limit.to_string()),
            rules: checked.rules.clone(),
            first: first.map(|((kind, name), (met, held))| (*kind, name.clone(), *met, *held)).collect(),
            counts: counts.clone(),
            is_trouble: false,
        };
        let bytes = wrapped(&*self.hub, "v.erdict", &serde_json::to_vec(&line)?)?;
        self.insist(|| Ok(self.hub.replace("v.erdict", &bytes, 0)?.is_some()))
    }

    /// Does what needs the server until that is done, or the budget is over.
    fn insist<T>(&self, mut act: impl FnMut() -> Result<T>) -> Result<T> {
        loop {
            match act() {
                Ok(done) => return Ok(done),
                Err(error) if self.budget.is_over() || error.is::<Damaged>() => return Err(error),
                Err(error) => {
                    self.tell_once(&error);
                    self.pause();
                }
            }
        }
    }

    /// Tells what is wrong with the server, unless the same was told last.
    fn tell_once(&self, error: &anyhow::Error) {
        let text = format!("{error:#}");
        let mut told = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if told.as_ref() != Some(&text) {
            (self.tell)(format!("{text}; it is tried again"));
            *told = Some(text);
        }
    }

    fn pause(&self) {
        let since = Instant::now();
        while since.elapsed() < AGAIN && !self.budget.is_over() {
            std::thread::sleep(WAIT[1]);
        }
    }

    /// What is known of a check that is not complete.
    fn unfinished(&self, limit: Limit) -> Checked {
        let rules = Vec::new();
        Checked {
            census: Census::default(),
            findings: Vec::new(),
            limit: Some(limit),
            rules,
            first: First::new(),
            picture: None,
        }
    }
}

impl State {
    /// What was kept next, if it was read.
    fn next_news(&mut self) -> Option<News> {
        let news = self.news.remove(&self.kept)?;
        self.kept += 1;
        Some(news)
    }
}

impl Keeper for Meeting<'_> {
    fn is_due(&self) -> bool {
        false
    }

    fn keep(&self, news: &News) {
        let number = self.state().kept;
        let key = format!("n.{number}");
        let kept = postcard::to_stdvec(news).map_err(Into::into).and_then(|bytes| {
            self.insist(|| {
                let bytes = wrapped(&*self.hub, &key, &bytes)?;
                self.hub.replace(&key, &bytes, 0)
            })
        });
        match kept {
            Ok(Some(_)) => self.state().kept += 1,
            // Another process leads, or the server is away and there is no more time.
            Ok(None) | Err(_) => self.is_deposed.store(true, Ordering::Relaxed),
        }
    }

    fn is_lost(&self) -> bool {
        self.is_deposed.load(Ordering::Relaxed)
    }
}

impl Helpers for Meeting<'_> {
    fn offer(&self, round: &Round) {
        // Without others the round is looked at here.
        let offered = || -> Result<()> {
            let bytes = wrapped(&*self.hub, "r.ound", &postcard::to_stdvec(round)?)?;
            let work = (0..round.parts()).rev().map(|part| postcard::to_stdvec(&(round.kept, part)));
            self.queue.post(&work.collect::<Result<Vec<_>, _>>()?)?;
            self.hub.put("r.ound", &bytes).map(drop)
        };
        // A round of one part is done before another process knows of it.
        if round.parts() > 1 {
            drop(offered());
        }
    }

    fn parts(&self) -> Vec<Part> {
        let received = self.queue.received().into_iter();
        received.filter_map(|bytes| postcard::from_bytes(&unpacked(&bytes).ok()?).ok()).collect()
    }
}

impl Source for Meeting<'_> {
    fn next(&self) -> Option<(Vec<News>, Option<Round>)> {
        loop {
            if self.budget.is_over() {
                return None;
            }
            if let Err(error) = self.read() {
                // What is damaged is told by whoever leads then.
                if error.is::<Damaged>() {
                    return None;
                }
                self.tell_once(&error);
                self.pause();
                continue;
            }
            let mut state = self.state();
            if state.is_over {
                return None;
            }
            let mut news = Vec::new();
            while let Some(next) = state.next_news() {
                let sound = state.sound.get_or_insert_with(|| self.soundness());
                if !sound.takes(&next) {
                    return None;
                }
                news.push(next);
            }
            let kept = state.kept;
            let round = state.round.clone().filter(|round| round.kept == kept && !state.is_done);
            if !news.is_empty() || round.is_some() {
                state.waited = 0;
                return Some((news, round));
            }
            state.waited += 1;
            let wait = WAIT[usize::from(state.waited > 100)];
            let is_due = state.looked.is_none_or(|looked| looked.elapsed() >= LOOK);
            if is_due {
                state.looked = Some(Instant::now());
            }
            drop(state);
            // Whoever led may be gone.
            if is_due && self.leads().unwrap_or(false) {
                return None;
            }
            std::thread::sleep(wait);
        }
    }

    fn take(&self, round: &Round) -> Option<u32> {
        loop {
            let taken = self.queue.take().ok().flatten();
            let task = taken.as_ref().and_then(|taken| postcard::from_bytes::<(u64, u32)>(&taken.bytes).ok());
            let (Some(taken), Some((kept, part))) = (taken, task) else {
                self.state().is_done = true;
                return None;
            };
            if kept == round.kept {
                self.state().leases.insert(part, taken.done);
                return Some(part);
            }
            // What is of a round that is over is done; what is of the next is for those who know of it.
            drop((taken.done)(kept < round.kept));
            if kept > round.kept {
                return None;
            }
        }
    }

    fn give(&self, part: &Part) {
        if let Ok(bytes) = postcard::to_stdvec(part) {
            // Where it is lost, whoever leads looks at it.
            drop(self.queue.send(packed(&bytes)));
        }
        let done = self.state().leases.remove(&part.number);
        drop(done.map(|done| done(true)));
    }
}
