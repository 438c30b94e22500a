//! Trace files: a finding on disk. JSON, one step a line, so that two of them can be compared with `diff`.

mod against;
mod build_flags;
mod dictionary;
mod environment;
mod faults;
mod image;
mod limits;
mod line;
mod linked;
mod section;
mod signatures;

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::disk;
use crate::outcome::Failure;
use crate::trace::{STEPS_MAX, Trace};

pub use against::{Against, Ignored};
pub use build_flags::BuildFlags;
pub use dictionary::Dictionary;
pub use environment::{Environment, Stdin};
pub use faults::HostFault;
pub use image::{Entry, Image};
pub(crate) use limits::{DRAWN, ZERO};
pub use limits::{Edges, Limits, MEMORY_BYTES_MAX, STEP_BUDGET_MAX, Sanitizer, Selection, StubImports};
pub use line::{ChoiceEntry, FloatBits, Hex, Names, StepLine, lines_of, name_of};
pub(crate) use line::{part_of, trace_of};
pub use linked::Parts;
pub(crate) use section::push_number;
pub(crate) use signatures::nearest;
pub use signatures::{
    Allocator, Buffer, Content, Described, Given, Named, Null, Param, Pool, Returns, Signature, Signatures,
    What, When,
};

/// Bytes of a file that is read: somebody else may have written it.
const BYTES_MAX: u64 = 64 << 20;
/// The format that this version writes and the newest it reads.
pub const VERSION: u32 = 1;

/// A trace as it stands in a file: rules and faults are named, so that it can be read into another build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// [`VERSION`].
    pub spelunk: u32,
    /// The module that the trace was recorded on: its hash, 32 hexadecimal digits.
    pub module: Hex,
    /// What the guest was allowed to use.
    pub limits: Limits,
    /// Which edges were counted, which decides in which iteration a hang is ended.
    pub selection: Selection,
    /// What it was given of a system around it.
    #[serde(default, skip_serializing_if = "Environment::is_default")]
    pub environment: Environment,
    /// The flags that it was built with.
    #[serde(default, skip_serializing_if = "BuildFlags::is_default")]
    pub built: BuildFlags,
    /// What it ended with; `None` where every step passes.
    pub failure: Option<Failure>,
    /// How far it was shrunk, where it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrinking: Option<Shrinking>,
    /// The steps.
    pub steps: Vec<StepLine>,
}

/// What a guest is run with, beside what it is told: a run depends on it.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Conditions {
    pub limits: Limits,
    pub selection: Selection,
    pub environment: Environment,
}

/// The flags that are not the same.
fn differing<const N: usize>(flags: [(&'static str, bool); N]) -> Vec<&'static str> {
    flags.into_iter().filter(|(_, is_same)| !is_same).map(|(flag, _)| flag).collect()
}

/// How far a trace was shrunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shrinking {
    /// Not yet, or not to the end.
    Pending,
    /// As far as the candidates went that it was allowed.
    Limited,
    /// No pass helps any more.
    Minimal,
}

impl TraceFile {
    /// The trace, for this target.
    ///
    /// # Errors
    /// A rule or fault that the target does not have; an answer that its own question does not allow; setup
    /// or teardown in the wrong place.
    pub fn trace<N: Names>(&self, target: &N) -> Result<Trace> {
        trace_of(target, &self.steps)
    }

    /// What it was recorded with.
    pub fn conditions(&self) -> Conditions {
        let (limits, selection, environment) =
            (self.limits, self.selection.clone(), self.environment.clone());
        Conditions { limits, selection, environment }
    }

    /// Whether it was recorded on this very module under these conditions: then its states compare.
    pub fn is_of(&self, module: u128, conditions: &Conditions) -> bool {
        self.module.0 == module && self.conditions() == *conditions
    }

    /// Reads a file.
    ///
    /// # Errors
    /// A file that cannot be read, that is not a trace, or that a newer version wrote.
    pub fn read(path: &Path) -> Result<TraceFile> {
        let text = disk::read_at_most(path, BYTES_MAX)
            .with_context(|| format!("cannot read the trace `{}`", path.display()))?;
        TraceFile::parse(&text).with_context(|| {
            format!(
                "`{}` is not a trace that can be read (explorations save them below .spelunk/TARGET/findings)",
                path.display()
            )
        })
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// Text that is not a trace of a version up to [`VERSION`].
    pub fn parse(text: &[u8]) -> Result<TraceFile> {
        #[derive(Deserialize)]
        struct Header {
            spelunk: u32,
        }
        // The version first: a newer file may have fields that this version does not know.
        let Header { spelunk } = serde_json::from_slice(text)?;
        if spelunk == 0 || spelunk > VERSION {
            bail!(
                "it has version {spelunk} of the format, and this Spelunk reads up to {VERSION}: use a newer Spelunk"
            );
        }
        let file: TraceFile = serde_json::from_slice(text)?;
        file.limits.validate()?;
        file.environment.validate()?;
        ensure!(
            file.steps.len() <= STEPS_MAX,
            "it has {} steps, and {STEPS_MAX} are the most",
            file.steps.len()
        );
        Ok(file)
    }

    /// Whether it was shrunk, as far as that went.
    pub fn is_shrunk(&self) -> bool {
        self.shrinking != Some(Shrinking::Pending)
    }

    /// The text of the file: one line a step.
    pub fn text(&self) -> String {
        let mut text = String::from("{\n");
        let _ = writeln!(text, "  \"spelunk\": {},", self.spelunk);
        let _ = writeln!(text, "  \"module\": {},", json(&self.module));
        let _ = writeln!(text, "  \"limits\": {},", json(&self.limits));
        let _ = writeln!(text, "  \"selection\": {},", json(&self.selection));
        if !self.environment.is_default() {
            let _ = writeln!(text, "  \"environment\": {},", json(&self.environment));
        }
        if !self.built.is_default() {
            let _ = writeln!(text, "  \"built\": {},", json(&self.built));
        }
        let _ = writeln!(text, "  \"failure\": {},", json(&self.failure));
        if let Some(shrinking) = self.shrinking {
            let _ = writeln!(text, "  \"shrinking\": {},", json(&shrinking));
        }
        let lines: Vec<String> = self.steps.iter().map(|step| format!("    {}", json(step))).collect();
        let _ = writeln!(text, "  \"steps\": [\n{}\n  ]\n}}", lines.join(",\n"));
        text
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// The folder cannot be written to; the file would be too large to be read.
    pub fn write(&self, path: &Path) -> Result<()> {
        let names = self.steps.iter().map(|step| step.step.len() as u64).sum::<u64>();
        let text = (names <= BYTES_MAX).then(|| self.text()).filter(|text| text.len() as u64 <= BYTES_MAX);
        let text = text.with_context(|| {
            format!("it would have more than {} MiB, and could not be read again", BYTES_MAX >> 20)
        });
        let written = text.and_then(|text| Ok(disk::write(path, text.as_bytes())?));
        written.with_context(|| format!("cannot write the trace `{}`", path.display()))
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a trace has no map with keys that are not strings")
}

#[cfg(test)]
mod tests;
