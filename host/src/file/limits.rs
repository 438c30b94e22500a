//! What a guest may use and which edges are counted. A run depends on both, so a trace records them.

use std::fmt;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::differing;

/// The largest step budget: the guest counts it down in a signed number.
pub const STEP_BUDGET_MAX: u32 = i32::MAX as u32;
/// The largest limit of a memory: what 32-bit addresses reach.
pub const MEMORY_BYTES_MAX: u64 = 1 << 32;

/// What a guest may use, and what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Loop iterations and calls in one step and its invariants, in units of 256; those that take long count as several.
    pub step_budget: u32,
    /// Nested calls.
    pub depth_max: u32,
    /// Bytes that each memory may grow to.
    pub memory_bytes_max: u64,
    /// What imports do that Spelunk does not provide.
    pub stub_imports: StubImports,
    /// Bytes that a function which takes bytes is given, at most.
    #[serde(default = "input_bytes_max")]
    pub input_bytes_max: u32,
}

impl Limits {
    /// Refuses limits that no guest can have.
    ///
    /// # Errors
    /// One of them is one.
    pub fn validate(&self) -> Result<()> {
        let Limits { step_budget, memory_bytes_max, .. } = self;
        ensure!(
            (1..=STEP_BUDGET_MAX).contains(step_budget),
            "its step budget is {step_budget}, and must be in 1..={STEP_BUDGET_MAX}"
        );
        ensure!(
            *memory_bytes_max <= MEMORY_BYTES_MAX,
            "it lets memories grow to {memory_bytes_max} bytes, and {MEMORY_BYTES_MAX} are the most"
        );
        Ok(())
    }

    /// The flags by which they differ from others.
    pub fn flags_beside(&self, other: &Limits) -> Vec<&'static str> {
        let Limits { step_budget, depth_max, memory_bytes_max, stub_imports, input_bytes_max } = self;
        let parts = [
            ("--step-budget", *step_budget == other.step_budget),
            ("--depth-max", *depth_max == other.depth_max),
            ("--memory-max", *memory_bytes_max == other.memory_bytes_max),
            ("--stub-imports", *stub_imports == other.stub_imports),
            ("--input-max", *input_bytes_max == other.input_bytes_max),
        ];
        differing(parts)
    }

    /// The steps that a call may take.
    pub(crate) fn steps(&self) -> u64 {
        u64::from(self.step_budget) * 256
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            step_budget: 1 << 16,
            depth_max: 10_000,
            memory_bytes_max: 1 << 30,
            stub_imports: StubImports::None,
            input_bytes_max: input_bytes_max(),
        }
    }
}

/// The module of imports that return zero.
pub(crate) const ZERO: &str = "spelunk:zero";
/// The module of imports that return values that are drawn.
pub(crate) const DRAWN: &str = "spelunk:drawn";

/// What imports do that Spelunk does not provide. In files `false`, `true` and `"drawn"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stubs", into = "Stubs")]
pub enum StubImports {
    /// They are refused.
    None,
    /// Functions return zero.
    Zero,
    /// Functions return values that are drawn.
    Drawn,
}

/// [`StubImports`] in a file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stubs {
    Are(bool),
    How(How),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum How {
    Drawn,
}

impl From<Stubs> for StubImports {
    fn from(stubs: Stubs) -> StubImports {
        match stubs {
            Stubs::Are(false) => StubImports::None,
            Stubs::Are(true) => StubImports::Zero,
            Stubs::How(How::Drawn) => StubImports::Drawn,
        }
    }
}

impl From<StubImports> for Stubs {
    fn from(stubs: StubImports) -> Stubs {
        match stubs {
            StubImports::None => Stubs::Are(false),
            StubImports::Zero => Stubs::Are(true),
            StubImports::Drawn => Stubs::How(How::Drawn),
        }
    }
}

/// Also what it was before files said it.
fn input_bytes_max() -> u32 {
    4096
}

/// How edges are told apart and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// How edges are numbered.
    pub edges: Edges,
    /// Globs of function names to instrument; empty is all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Globs of function names not to instrument.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// What else is looked for while the guest runs, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sanitize: Vec<Sanitizer>,
    /// Whether what is compared is reported. So is a second build of a target, in which what is of interest runs again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compares: bool,
    /// Whether the guest copies states by itself, and its memory is neither looked at nor saved. So is a build for checks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copies: bool,
}

/// Looks for errors that need not make a guest fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sanitizer {
    /// Of the heap: accesses beyond a block or of one that was freed, blocks that are freed wrongly.
    Heap,
    /// Of the stack: accesses beyond a frame.
    Stack,
}

impl fmt::Display for Sanitizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sanitizer::Heap => "heap",
            Sanitizer::Stack => "stack",
        })
    }
}

impl Selection {
    /// The flags by which it differs from another.
    pub fn flags_beside(&self, other: &Selection) -> Vec<&'static str> {
        let parts = [
            ("--edges", self.edges == other.edges),
            ("--include", self.include == other.include),
            ("--exclude", self.exclude == other.exclude),
            ("--sanitize", self.sanitize == other.sanitize),
        ];
        differing(parts)
    }
}

impl Default for Selection {
    fn default() -> Selection {
        Selection {
            edges: Edges::Static,
            include: Vec::new(),
            exclude: Vec::new(),
            sanitize: Vec::new(),
            compares: false,
            copies: false,
        }
    }
}

/// How edges are numbered. See [`spelunk_instrumenter::Edges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Edges {
    None,
    Static,
    Hashed,
    Blocks,
}

impl From<Edges> for spelunk_instrumenter::Edges {
    fn from(edges: Edges) -> spelunk_instrumenter::Edges {
        match edges {
            Edges::None => spelunk_instrumenter::Edges::None,
            Edges::Static => spelunk_instrumenter::Edges::Static,
            Edges::Hashed => spelunk_instrumenter::Edges::Hashed,
            Edges::Blocks => spelunk_instrumenter::Edges::Blocks,
        }
    }
}
