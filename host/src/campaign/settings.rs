//! What decides the result of a campaign.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::Campaign;
use crate::file::{Conditions, Dictionary, Environment, Limits, Names as _, Selection, nearest};
use crate::machine::Program;
use crate::search::energy::{Energies, Strategy};
use crate::search::{Options, Part, Tokens};

/// What decides the result of a campaign, beside the module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Settings {
    pub seed: u64,
    /// The names of the rules that are called; empty is all.
    pub rules: Vec<String>,
    pub strategy: Strategy,
    pub steps_per_run: u32,
    pub checkpoint_rate: f64,
    pub fault_rate: f64,
    pub mutation_rate: f64,
    pub continuation_rate: f64,
    pub swarm_rate: f64,
    pub max_checkpoints: Option<usize>,
    pub energy_reward: f64,
    pub energy_decay: f64,
    pub limits: Limits,
    pub selection: Selection,
    #[serde(default)]
    pub environment: Environment,
    #[serde(default)]
    pub dict: Dictionary,
    /// What of the search is left out.
    #[serde(default)]
    pub without: BTreeSet<Part>,
}

impl Default for Settings {
    fn default() -> Settings {
        let (options, energies) = (Options::default(), Energies::default());
        Settings {
            seed: 0,
            rules: Vec::new(),
            strategy: options.strategy,
            steps_per_run: options.steps_max,
            checkpoint_rate: options.checkpoint_rate,
            fault_rate: options.fault_rate,
            mutation_rate: options.mutation_rate,
            continuation_rate: options.continuation_rate,
            swarm_rate: options.swarm_rate,
            max_checkpoints: options.checkpoints_max,
            energy_reward: energies.reward,
            energy_decay: energies.decay,
            limits: Limits::default(),
            selection: Selection::default(),
            environment: Environment::default(),
            dict: Dictionary::default(),
            without: BTreeSet::new(),
        }
    }
}

impl Settings {
    /// What the guest is run with.
    pub fn conditions(&self) -> Conditions {
        let (limits, selection, environment) =
            (self.limits, self.selection.clone(), self.environment.clone());
        Conditions { limits, selection, environment }
    }

    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// What does not, and what would.
    pub fn validate(&self) -> Result<()> {
        ensure!(self.steps_per_run > 0, "--steps-per-run must be at least 1");
        ensure!(self.max_checkpoints != Some(0), "--max-checkpoints must be at least 1");
        let rates = [
            ("checkpoint-rate", self.checkpoint_rate),
            ("fault-rate", self.fault_rate),
            ("mutation-rate", self.mutation_rate),
            ("continuation-rate", self.continuation_rate),
            ("swarm-rate", self.swarm_rate),
            ("energy-decay", self.energy_decay),
        ];
        for (name, rate) in rates {
            ensure!((0.0..=1.0).contains(&rate), "--{name} must be in 0..=1, and is {rate}");
        }
        let reward = self.energy_reward;
        ensure!((0.0..=REWARD_MAX).contains(&reward), "--energy-reward must be in 0..=1e9, and is {reward}");
        self.limits.validate()?;
        self.environment.validate()
    }

    /// The options of an exploration of this program.
    ///
    /// # Errors
    /// A rule that the target does not have.
    pub fn options(&self, program: &Program) -> Result<Options> {
        let index = |name: &String| {
            let index = program.rules().iter().position(|rule| rule.name == *name);
            index.map(|index| index as u16).with_context(|| {
                let names = program.rules().iter().map(|rule| &*rule.name);
                format!("the target has no rule `{name}`; {}", nearest(name, names))
            })
        };
        let mut options = Options {
            seed: self.seed,
            rules: self.rules.iter().map(index).collect::<Result<_>>()?,
            strategy: self.strategy,
            steps_max: self.steps_per_run,
            checkpoint_rate: self.checkpoint_rate,
            fault_rate: self.fault_rate,
            mutation_rate: self.mutation_rate,
            continuation_rate: self.continuation_rate,
            swarm_rate: self.swarm_rate,
            checkpoints_max: self.max_checkpoints,
            energies: Energies {
                reward: self.energy_reward,
                decay: self.energy_decay,
                ..Energies::default()
            },
            tokens: Tokens { given: self.dict.0.clone(), ..Tokens::default() },
            ..Options::default()
        };
        self.without.iter().for_each(|part| options.leave_out(*part));
        Ok(options)
    }

    /// The flags of those that differ.
    pub fn flags_beside(&self, other: &Settings) -> Vec<String> {
        let named = |name: String| -> Vec<String> {
            let flags = match &*name {
                "limits" => self.limits.flags_beside(&other.limits),
                "environment" => self.environment.flags_beside(&other.environment),
                "selection" => self.selection.flags_beside(&other.selection),
                "rules" => vec!["--rule"],
                _ => return vec![format!("--{}", name.replace('_', "-"))],
            };
            flags.into_iter().map(str::to_string).collect()
        };
        self.differences(other).into_iter().flat_map(named).collect()
    }

    /// The names of those that differ.
    pub fn differences(&self, other: &Settings) -> Vec<String> {
        let fields = |settings: &Settings| match serde_json::to_value(settings) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => unreachable!("settings are an object"),
        };
        let (one, other) = (fields(self), fields(other));
        one.iter()
            .filter(|(name, value)| other.get(*name) != Some(*value))
            .map(|(name, _)| name.clone())
            .collect()
    }
}

/// The most energy for a new edge: sums of more would lose the small ones.
const REWARD_MAX: f64 = 1e9;

/// Whether what two campaigns know can be put together: one module, and what counts its edges and bounds its steps.
///
/// # Errors
/// What differs.
pub fn ensure_alike(one: &Campaign, other: &Campaign) -> Result<()> {
    let shown = |campaign: &Campaign| campaign.folder.display().to_string();
    if one.module != other.module {
        bail!("`{}` and `{}` are of two modules, or two builds of one", shown(one), shown(other));
    }
    for name in one.settings.differences(&other.settings) {
        ensure!(
            !["limits", "selection", "environment"].contains(&&*name),
            "`{}` and `{}` were begun with other {name}, so their states and edges do not compare",
            shown(one),
            shown(other)
        );
    }
    Ok(())
}
