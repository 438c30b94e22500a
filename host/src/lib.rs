//! Spelunk explores anything that compiles to WebAssembly.
//!
//! **A run is a function of (module, answers).** A guest is deterministic but for the questions it asks the
//! host: which rule next, which value, does this fault strike. Everything here is that one loop with another
//! supply of answers: [`search`] draws them, [`check`] tries all, [`replay`] reads them from a [`trace::Trace`],
//! [`shrink`] reads them from a smaller one. From it follow two rules: a snapshot is a cache, never a semantics, and time
//! decides only when to stop, never what to try.
//!
//! [`machine::Machine`] is the guest, [`target::Target`] the little of it that the search sees, and
//! [`choice::Chooser`] where all answers come from.

pub mod budget;
pub mod campaign;
pub mod check;
pub mod choice;
pub mod console;
pub mod coverage;
pub mod disk;
pub mod explain;
pub mod file;
pub mod load;
pub mod machine;
#[cfg(test)]
mod model;
pub mod outcome;
pub mod property;
pub mod replay;
pub mod report;
pub mod search;
pub mod session;
pub mod shrink;
pub mod store;
pub mod story;
pub mod target;
pub mod text;
pub mod trace;

pub use budget::Budget;
pub use session::{Config, Error, Event, Finding, Job, Observer, Session, Summary, Verdict};
