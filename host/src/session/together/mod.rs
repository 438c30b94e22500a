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

mod meeting;

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
use meeting::Meeting;

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

/// What stands at the server and cannot be read.
#[derive(Clone, Debug)]
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
            "nobody can go on with the check at the server (`{}` there is damaged): use another --campaign, and remove this one with \
             `spelunk gc --remove` and its --nats and --campaign",
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
pub(super) use crate::check::Walked;

impl Work<'_> {
    /// Checks together with other processes.
    pub(super) fn check_together(
        &self,
        meeting: &Meeting<'_>,
        machines: &mut [Machine],
        options: &Options,
        counts: &mut Counts,
    ) -> Result<Walked> {
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
                match self.lead(meeting, machines, options, counts)? {
                    Some(walked) => return Ok(walked),
                    None => continue,
                }
            }
            self.observer.status("Following", "another process leads");
            meeting.forget();
            let (_, helpers) = machines.split_last_mut().expect("there is one to tell paths");
            let helped = self.help(helpers, options, meeting)?;
            if let Some(damaged) = meeting.damaged() {
                return Err(damaged.into());
            }
            match helped {
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

    /// Leads the check; nothing where another came to lead it, or said before what it comes to.
    fn lead(
        &self,
        meeting: &Meeting<'_>,
        machines: &mut [Machine],
        options: &Options,
        counts: &mut Counts,
    ) -> Result<Option<Walked>> {
        self.observer.status("Leading", "what others look at is merged here");
        let before = meeting.insist(|| meeting.all_kept())?;
        let keeping =
            Keeping { before: Box::new(before.into_iter()), keeper: meeting, helpers: Some(meeting) };
        let walked = self.walk(machines, options, (Some(keeping), counts))?;
        if meeting.is_deposed.swap(false, Ordering::Relaxed) && !self.budget.is_over() {
            self.observer.status("Following", "another process leads now");
            *counts = machines[0].program().declared();
            meeting.forget();
            return Ok(None);
        }
        match &walked {
            Ok(checked) if checked.limit.is_none_or(|limit| !limit.is_from_outside()) => {
                if !meeting.decide(checked, counts, machines[0].program())? {
                    return Ok(None);
                }
            }
            Err(_) => drop(meeting.give_up()),
            Ok(_) => meeting.resign(),
        }
        Ok(Some(walked))
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

    /// What the check was begun with, by this process where nobody has.
    fn begun(&self, hub: Arc<OnServer>, program: &Program, settings: &Settings) -> Result<Header> {
        let mut shared = Shared::new(hub, 0);
        if let Some(header) = shared.header()? {
            return Ok(header);
        }
        let mut key = vec![0; 32];
        getrandom::fill(&mut key).context("this machine has no random numbers")?;
        let begun = Settings { key, ..settings.clone() };
        let header = Header {
            module: Hex(program.hash()),
            target: self.guest.place.name(),
            settings: serde_json::to_value(&begun)?,
        };
        match shared.begin(&header, self.wasm) {
            Ok(()) => Ok(header),
            // Another was faster, with a key of its own.
            Err(error) => shared.header()?.ok_or(error),
        }
    }

    /// Joins other processes in a check, before this one has hashed a state: they say under which key.
    pub(super) fn meet(
        &self,
        fleet: &Fleet,
        program: &Arc<Program>,
        options: &Options,
    ) -> Result<Meeting<'_>> {
        if !options.can_be_kept() || options.draws {
            let text = "several machines check breadth-first only, and without --runs, --list, --graph, --preemptions or --delays";
            return Err(Error::new(ErrorKind::Config, anyhow!(text)).into());
        }
        let nats = Nats::connect(&fleet.server, self.budget)?;
        let name = fleet.campaign.clone();
        let name = name.unwrap_or_else(|| format!("{}-check", name_of(&self.guest.place.name())));
        let hub = Arc::new(nats.open_or_make(&name, &fleet.server)?);
        let config = self.guest.config;
        // What no result depends on may differ.
        let settings = Settings {
            check: Options { saved_bytes_max: 0, met_bytes_max: 0, copies: false, ..options.clone() },
            limits: config.limits,
            selection: config.selection.clone(),
            environment: config.environment.clone(),
            key: Vec::new(),
        };
        let header = self.begun(hub.clone(), program, &settings)?;
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
        let has_liveness = options.judges() && !program.liveness().is_empty();
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
            damaged: Mutex::default(),
            tell: Box::new(|text| self.observer.warning(text)),
            sizes: ((program.rules().len(), program.faults().len()), has_liveness),
        })
    }
}
