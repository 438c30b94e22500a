//! An exploration that shares its campaign with other processes: what it hands over and takes over, and who shrinks what.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::explore::Search;
use super::saved::Saved;
use super::{Fleet, Work};
use crate::campaign::{Campaign, Settings};
use crate::choice::mix;
use crate::file::TraceFile;
use crate::fleet::{Nats, Shared, name_of};
use crate::machine::{Elsewhere, Machine};
use crate::outcome::{Failure, Found};
use crate::search::Options;
use crate::store::Claim;

/// A server that could not be reached is asked again after so long.
const AGAIN: Duration = Duration::from_secs(2);

/// How many others there are is asked so often.
const COUNTED: Duration = Duration::from_secs(60);

/// Where an exploration is with the server.
#[derive(Default)]
pub(super) struct Link {
    /// It could not be reached, and is asked again then.
    away_until: Option<Instant>,
    /// When the others were counted.
    counted: Option<Instant>,
    /// Findings that others shrink.
    waiting: Vec<Found>,
    /// How many findings of others do not fail here.
    refused: usize,
}

impl Link {
    /// How many of the findings that are known do not count: others shrink them, or they do not fail here.
    pub(super) fn uncounted(&self) -> usize {
        self.waiting.len() + self.refused
    }
}

impl Work<'_> {
    /// Joins the campaign that the fleet shares, or begins it. The draws of each worker are its own.
    pub(super) fn join(
        &self,
        fleet: &Fleet,
        machines: &mut [Machine],
        settings: &Settings,
        options: &mut Options,
    ) -> Result<Campaign> {
        let nats = Nats::connect(&fleet.server, self.budget)?;
        let name = fleet.campaign.clone().unwrap_or_else(|| name_of(&self.guest.place.name()));
        let hub = nats.open_or_make(&name, &fleet.server)?;
        let worker = getrandom::u64().context("this machine has no random numbers")?;
        options.seed = mix(options.seed, worker);
        let shared = Shared::new(Arc::new(hub), worker);
        let (states, program) = (shared.states(), machines[0].program().clone());
        states.are_of(&program, self.guest.config.memory);
        for machine in machines {
            machine.set_elsewhere(states.clone() as Arc<dyn Elsewhere>);
        }
        let place = &self.guest.place;
        let campaign = Campaign::join(shared, (place.folder(), &place.name()), self.wasm, settings.clone())?;
        self.observer.status("Joined", &format!("the campaign {name} at {}", nats.addresses()));
        Ok(campaign)
    }
}

impl Search<'_, '_, '_> {
    /// Takes over what others found, and hands over what is new to all. Where the server is away the exploration goes on, and what it
    /// finds is handed over later.
    pub(super) fn exchange(&mut self) -> Result<()> {
        if self.link.away_until.is_some_and(|until| Instant::now() < until) {
            return Ok(());
        }
        let was_away = self.link.away_until.take().is_some();
        match self.try_exchange() {
            Ok(()) if was_away => self.work.observer.status("Reached", "the server again"),
            Ok(()) => {}
            Err(error) => {
                if !was_away {
                    let text = format!("{error:#}; what is found is handed over once that is well");
                    self.work.observer.warning(text);
                }
                self.link.away_until = Some(Instant::now() + AGAIN);
            }
        }
        Ok(())
    }

    fn try_exchange(&mut self) -> Result<()> {
        let program = self.explorer.target().program().clone();
        let campaign = self.campaign.as_mut().context("there is a campaign that is shared")?;
        let news = campaign.news(&program)?;
        if let Some(news) = news {
            self.explorer.take_news(&news);
        }
        campaign.save(self.explorer.knowledge(), &program)?;
        if self.link.counted.is_none_or(|at| at.elapsed() >= COUNTED) {
            self.link.counted = Some(Instant::now());
            // Without it the exploration goes on as well.
            if let Ok(sharers) = campaign.sharers() {
                self.explorer.set_sharers(sharers);
            }
        }
        Ok(())
    }

    /// Shrinks and reports a finding, where no other does so; else waits for that one.
    pub(super) fn tell_or_wait(
        &mut self,
        found: &Found,
        tell: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        match self.claim(found) {
            Claim::Theirs => {
                let text = format!("{}; another worker shrinks it", found.failure);
                self.work.observer.status("Waiting", &text);
                self.link.waiting.push(found.clone());
                Ok(())
            }
            Claim::Done(trace) => self.take_trace(found, &trace),
            Claim::Ours if self.is_of_others(found) => self.tell_of_others(found),
            Claim::Ours => {
                tell(self)?;
                self.hand_over(&found.failure);
                Ok(())
            }
        }
    }

    /// Whose it is to shrink a finding. Where nobody can be asked, it is this one's.
    fn claim(&mut self, found: &Found) -> Claim {
        let program = self.explorer.target().program().clone();
        let Some(campaign) = &mut self.campaign else { return Claim::Ours };
        if self.link.away_until.is_some() {
            return Claim::Ours;
        }
        campaign.claim(found, &program).unwrap_or(Claim::Ours)
    }

    /// Hands over the trace of a finding, where it was shrunk.
    pub(super) fn hand_over(&mut self, failure: &Failure) {
        let path = self.work.guest.place.trace(failure);
        let file = TraceFile::read(&path).ok().filter(TraceFile::is_shrunk);
        if let (Some(campaign), Some(file)) = (&mut self.campaign, file) {
            campaign.settle(failure, &file);
        }
    }

    /// Keeps the trace of a finding that another worker shrank, unless there is one of it here, and reports it. One that does not fail here
    /// is not taken for it.
    fn take_trace(&mut self, found: &Found, trace: &str) -> Result<()> {
        let path = self.work.guest.place.trace(&found.failure);
        self.work.guest.place.make()?;
        let written = match path.exists() {
            true => Ok(()),
            false => TraceFile::parse(trace.as_bytes()).and_then(|file| file.write(&path)),
        };
        let saved = written.map(|()| Saved::at(self.explorer.target(), path));
        match saved {
            Ok(saved) if saved.fails_with(&found.failure) => {
                self.told(|work, machine| work.tell_saved(machine, &saved, found.run))
            }
            _ => self.tell_of_others(found),
        }
    }

    /// Whether another worker found it, as far as is known here.
    fn is_of_others(&mut self, found: &Found) -> bool {
        self.campaign.as_ref().is_some_and(|campaign| campaign.is_of_others(&found.failure))
    }

    /// Shrinks and reports what another worker found. That it does not fail here says nothing of this exploration: whoever found it may
    /// not have told the truth.
    fn tell_of_others(&mut self, found: &Found) -> Result<()> {
        let finding = self.work.tell(self.explorer.target(), found, None, false)?;
        if finding.is_some() {
            self.hand_over(&found.failure);
        } else {
            self.link.refused += 1;
        }
        self.keep_told(finding);
        Ok(())
    }

    /// Asks after findings that others shrink; where the exploration is over, they are reported as they were found.
    pub(super) fn tell_waiting(&mut self, is_over: bool) -> Result<()> {
        for found in std::mem::take(&mut self.link.waiting) {
            if self.is_flaky {
                return Ok(());
            }
            match self.claim(&found) {
                Claim::Done(trace) => self.take_trace(&found, &trace)?,
                Claim::Theirs if !is_over => self.link.waiting.push(found),
                _ => self.tell_of_others(&found)?,
            }
        }
        Ok(())
    }

    /// Hands over the last of it, and counts what others counted.
    pub(super) fn leave(&mut self) -> Result<()> {
        if !self.campaign.as_ref().is_some_and(Campaign::is_shared) {
            return Ok(());
        }
        self.link.away_until = None;
        if !self.explorer.is_torn() {
            self.exchange()?;
        }
        let Some(campaign) = self.campaign.as_mut().filter(|_| self.link.away_until.is_none()) else {
            return Ok(());
        };
        let left = campaign.leave().and_then(|()| campaign.others());
        match left {
            // What others counted of runs is for `status` to say.
            Ok(others) => others.iter().for_each(|(_, tally)| self.explorer.see_others(&tally.counts)),
            Err(error) => self.work.observer.warning(format!("{error:#}")),
        }
        Ok(())
    }
}
