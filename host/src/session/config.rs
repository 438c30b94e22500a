//! What a session is to do.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::campaign::Settings;
use crate::check;
use crate::disk;
use crate::file::{Conditions, Environment, Limits, Selection};
use crate::fleet::{Server, ensure_name};
use crate::load::Folder;
use crate::machine::Cache;

/// Where a fleet meets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// The server.
    pub server: Server,
    /// The campaign's name there; by default one that the target's gives.
    pub campaign: Option<String>,
}

/// What a session is to do, and with how much.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Explore or check, and how.
    pub job: Job,
    /// Cargo features of a target that is a folder.
    pub guest_features: Vec<String>,
    /// The Rust target that a folder is built for, where the package does not say it.
    pub guest_target: Option<String>,
    /// The Cargo profile that a folder is built with, as it is. By default `release`, with overflow checks and debug assertions.
    pub guest_profile: Option<String>,
    /// What the guest may use.
    pub limits: Limits,
    /// Which edges are counted, in an exploration.
    pub selection: Selection,
    /// Arguments, variables and standard input.
    pub environment: Environment,
    /// Folders that the guest finds.
    pub folders: Vec<Folder>,
    /// The file that says how exports are called, in place of the one beside the target.
    pub signatures: Option<PathBuf>,
    /// The module that imports what the target exports, and has the rules.
    pub link: Option<PathBuf>,
    /// Components that provide what the target imports.
    pub compose: Vec<PathBuf>,
    /// The module, or folder, that is given the same calls as the target.
    pub against: Option<PathBuf>,
    /// What of the two is not compared, see [`Ignored`](crate::file::Ignored).
    pub ignored: Vec<String>,
    /// Runs, at most; of an exploration those of the campaign so far counted. `None` is no bound.
    pub runs: Option<u64>,
    /// Time, at most, from when the target is built.
    pub time: Option<Duration>,
    /// Stop after this many different failures, of an exploration those of the campaign so far counted; 0 is after
    /// [`FINDINGS_MAX`], and more are never kept.
    pub findings_max: usize,
    /// Threads; by default one for each core. No result depends on how many.
    pub workers: Option<NonZero<usize>>,
    /// Bytes that saved states may take.
    pub memory: usize,
    /// Candidates that shrinking a finding may execute; 0 leaves findings as they are.
    pub shrink_budget: u64,
    /// Runs start from saved states. Without, everything is replayed from the start, with the same results.
    pub uses_snapshots: bool,
    /// The folder that campaigns and findings are kept in, each below one named after its target.
    pub out: PathBuf,
    /// What of an exploration, or of a check that is not complete, is kept between sessions.
    pub keep: Keep,
    /// Bytes of disk for a campaign.
    pub store_max: Option<u64>,
    /// The fleet that shares the campaign, in place of one on disk.
    pub fleet: Option<Fleet>,
    /// Whether programs are kept once they are compiled.
    pub cache: Caching,
    /// What a check walks first; by default, depth-first a guest that is one function, and others breadth-first.
    pub order: Option<check::Order>,
    /// Whether a check tells how often each rule was called, and when each property was seen first.
    pub coverage: bool,
    /// A file for the graph of the states that a check meets, which ends in `.dot` or `.json`.
    pub graph: Option<PathBuf>,
    /// Seed inputs of an `LLVMFuzzerTestOneInput`: files, and folders of such.
    pub seeds: Vec<PathBuf>,
    /// A file for a report of coverage, checkpoints, properties and findings, as JSON.
    pub report: Option<PathBuf>,
    /// Whether cargo, which builds a folder, says warnings and errors only.
    pub is_quiet: bool,
    /// How commands that reproduce a finding call the tool.
    pub program: String,
}

/// Different failures after which a session stops, however many are wanted.
pub const FINDINGS_MAX: usize = 10_000;

/// What to do with a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::large_enum_variant, reason = "there is one of it")]
pub enum Job {
    /// Search for failures.
    Explore(Settings),
    /// Try all answers.
    Check(check::Options),
}

/// What of an exploration, or of a check that is not complete, is kept between sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// What it came to, on disk, where the next session goes on.
    Campaign,
    /// The same, begun anew.
    Fresh,
    /// Nothing but findings.
    Findings,
}

impl Keep {
    /// What flags say: nothing but what is found is to be kept, or it is to begin anew.
    pub fn of(is_in_memory: bool, is_fresh: bool) -> Keep {
        match (is_in_memory, is_fresh) {
            (true, _) => Keep::Findings,
            (false, true) => Keep::Fresh,
            (false, false) => Keep::Campaign,
        }
    }
}

/// Whether programs are kept once they are compiled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Caching {
    /// In the user's folder for such.
    User,
    /// In this folder.
    Folder(PathBuf),
    /// They are not.
    Off,
}

impl Caching {
    /// The cache, where there is to be one.
    pub fn open(&self) -> Option<Result<Cache>> {
        let folder = match self {
            Caching::Off => None,
            Caching::Folder(folder) => Some(folder.clone()),
            Caching::User => Cache::folder_of_user(),
        };
        folder.map(Cache::open)
    }
}

impl Config {
    /// To explore, with the defaults of `spelunk explore`.
    pub fn explore() -> Config {
        Config::of(Job::Explore(Settings::default()), 1)
    }

    /// To check, with the defaults of `spelunk check`.
    pub fn check() -> Config {
        let options = check::Options::default();
        let findings_max = options.findings_max;
        Config::of(Job::Check(options), findings_max)
    }

    fn of(job: Job, findings_max: usize) -> Config {
        Config {
            job,
            guest_features: Vec::new(),
            guest_target: None,
            guest_profile: None,
            limits: Limits::default(),
            selection: Selection::default(),
            environment: Environment::default(),
            folders: Vec::new(),
            signatures: None,
            link: None,
            compose: Vec::new(),
            against: None,
            ignored: Vec::new(),
            runs: None,
            time: None,
            findings_max,
            workers: None,
            memory: 1 << 30,
            shrink_budget: 100_000,
            uses_snapshots: true,
            out: PathBuf::from(disk::FOLDER),
            keep: Keep::Campaign,
            store_max: None,
            fleet: None,
            cache: Caching::User,
            order: None,
            coverage: false,
            graph: None,
            seeds: Vec::new(),
            report: None,
            is_quiet: false,
            program: "spelunk".to_string(),
        }
    }

    /// What the guest is run with.
    pub(super) fn conditions(&self) -> Conditions {
        let (limits, selection, environment) =
            (self.limits, self.selection.clone(), self.environment.clone());
        Conditions { limits, selection, environment }
    }

    /// Different failures after which to stop.
    pub(super) fn findings(&self) -> usize {
        match self.findings_max {
            0 => FINDINGS_MAX,
            max => max.min(FINDINGS_MAX),
        }
    }

    /// Refuses what makes no sense.
    pub(super) fn validate(&self) -> Result<()> {
        if let Some(name) = self.fleet.as_ref().and_then(|fleet| fleet.campaign.as_ref()) {
            ensure_name(name)?;
        }
        // Those of a fleet come from a server.
        self.limits.validate()?;
        self.environment.validate()?;
        match &self.job {
            Job::Explore(settings) => settings.validate(),
            Job::Check(options) => {
                ensure!(options.alternatives_max > 0, "--domain-max must be at least 1");
                let is_known =
                    |path: &PathBuf| path.extension().is_some_and(|end| end == "dot" || end == "json");
                ensure!(
                    self.graph.iter().all(is_known),
                    "--graph takes a file that ends in `.dot` or `.json`"
                );
                ensure!(
                    self.graph.is_none() || !options.reduces,
                    "--graph shows all steps, of which --reduce leaves out some"
                );
                Ok(())
            }
        }
    }
}
