//! From what is on disk to an exploration that begins, or resumes.

use std::path::Path;

use anyhow::{Result, bail};

use super::{Event, Keep, Work};
use crate::campaign::{Campaign, Settings};
use crate::machine::{Machine, Program, Snapshot};
use crate::report::counted;
use crate::search::{Explorer, Knowledge, Options, Planted};

/// An exploration, and the campaign that it is saved in.
pub(super) struct Started<'m> {
    pub(super) explorer: Explorer<'m, Machine>,
    pub(super) campaign: Option<Campaign>,
    /// Of the explorer's findings so many were reported by earlier sessions.
    pub(super) reported: usize,
}

impl Work<'_> {
    /// Opens the target's campaign, or begins one. One with other settings, or of another build, is backed up.
    pub(super) fn start<'m>(
        &self,
        machines: &'m mut [Machine],
        settings: &Settings,
        options: Options,
    ) -> Result<Started<'m>> {
        let program = machines[0].program().clone();
        let started = |explorer, campaign| Started { explorer, campaign, reported: 0 };
        if let Some(fleet) = &self.guest.config.fleet {
            let mut options = options;
            let campaign = self.join(fleet, machines, settings, &mut options)?;
            return self.resume(machines, options, campaign);
        }
        if self.guest.config.keep == Keep::Findings {
            return Ok(started(Explorer::with_workers(machines, options), None));
        }
        self.guest.place.make()?;
        let folder = self.guest.place.folder();
        if self.guest.config.keep == Keep::Fresh {
            self.back_up(folder, "--fresh begins anew")?;
        }
        let Some(campaign) = Campaign::open(folder)? else {
            let campaign = self.begin(settings)?;
            return Ok(started(Explorer::with_workers(machines, options), Some(campaign)));
        };
        let differing = campaign.settings().flags_beside(settings);
        if !differing.is_empty() {
            drop(campaign);
            self.back_up(folder, &format!("it was begun with other {}", differing.join(", ")))?;
            let campaign = self.begin(settings)?;
            return Ok(started(Explorer::with_workers(machines, options), Some(campaign)));
        }
        if campaign.module_hash() == program.hash() {
            return self.resume(machines, options, campaign);
        }
        self.rebuild(Explorer::with_workers(machines, options), campaign, settings)
    }

    fn begin(&self, settings: &Settings) -> Result<Campaign> {
        let place = &self.guest.place;
        Campaign::begin(place.folder(), &place.name(), self.wasm, settings.clone())
    }

    /// Goes on where the campaign was.
    fn resume<'m>(
        &self,
        machines: &'m mut [Machine],
        options: Options,
        mut campaign: Campaign,
    ) -> Result<Started<'m>> {
        let known = campaign.load(machines[0].program())?;
        let progress = known.progress();
        let what = [
            (known.checkpoints.len() as u64, "checkpoint"),
            (progress.edges.into(), "edge"),
            (progress.findings as u64, "finding"),
        ];
        if progress.runs > 0 || !known.checkpoints.is_empty() {
            let text = format!(
                "the campaign in {} at run {}, with {}",
                campaign.folder().display(),
                progress.runs,
                what.map(|(count, noun)| counted(count, noun)).join(", ")
            );
            self.observer.status("Resumed", &text);
        }
        self.observer.on(Event::Resumed { runs: progress.runs, edges: progress.edges })?;
        let reported = known.findings.len();
        Ok(Started {
            explorer: Explorer::resume(machines, options, known),
            campaign: Some(campaign),
            reported,
        })
    }

    /// Follows the steps of a campaign of another build, which is backed up once they are in the new one. What fails
    /// in this build only is a finding.
    fn rebuild<'m>(
        &self,
        mut explorer: Explorer<'m, Machine>,
        old: Campaign,
        settings: &Settings,
    ) -> Result<Started<'m>> {
        let (mut kept, mut total) = (0u64, 0);
        let program = explorer.target().program().clone();
        old.each_trace(&program, &mut |energy, trace| {
            let planted = trace.map(|trace| explorer.plant_rebuilt(&trace, energy));
            if self.budget.is_over() || matches!(planted, Ok(Planted::Stopped | Planted::Torn)) {
                bail!("there was no time to follow the steps of the campaign in this build: it is as it was");
            }
            total += 1;
            kept += u64::from(matches!(planted, Ok(Planted::Checkpoint | Planted::Known)));
            Ok(())
        })?;
        drop(old);
        let campaign = self.replace(explorer.knowledge(), &program, settings)?;
        let edges = explorer.progress().edges;
        self.observer.status(
            "Rebuilt",
            &format!("the steps of {kept} of {total} checkpoints fit the new build, and reach {edges} edges"),
        );
        self.observer.on(Event::Rebuilt { module: program.hash(), checkpoints: total, kept, edges })?;
        Ok(Started { explorer, campaign: Some(campaign), reported: 0 })
    }

    /// Begins the campaign with what is known already, in place of the one of another build.
    fn replace(
        &self,
        known: &Knowledge<Snapshot>,
        program: &Program,
        settings: &Settings,
    ) -> Result<Campaign> {
        let place = &self.guest.place;
        let mut campaign =
            Campaign::begin_beside(place.folder(), &place.name(), self.wasm, settings.clone())?;
        campaign.save(known, program)?;
        // A module is built often, and what still fits is taken over: one is kept.
        let backup = campaign.take_place(place.folder())?;
        self.tell_backup(&backup, "it is of another build");
        Ok(campaign)
    }

    /// Backs up the campaign in `folder`.
    fn back_up(&self, folder: &Path, why: &str) -> Result<()> {
        if let Some(path) = Campaign::set_aside(folder)? {
            self.tell_backup(&path, why);
        }
        Ok(())
    }

    fn tell_backup(&self, path: &Path, why: &str) {
        self.observer
            .status("Backed up", &format!("the earlier campaign in {}, since {why}", path.display()));
    }
}
