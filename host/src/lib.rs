//! Spelunk explores anything that compiles to WebAssembly.
//!
//! **A run is a function of (module, answers).** A guest is deterministic except for the questions it asks the host: which
//! rule comes next, which value, does this fault strike. Everything here is the same loop with different answers:
//! [`search`] draws them, [`check`] tries all of them, [`replay`] reads them from a [`trace::Trace`], and [`shrink`] reads
//! them from a smaller one. Two rules follow. A snapshot is a cache and never changes a result. Time decides only when to
//! stop, never what to try.
//!
//! Most users need a [`Session`], which does a whole job: find, run again, shrink, explain, save, resume.
//!
//! ```no_run
//! use spelunk::{Config, Session};
//! use std::time::Duration;
//!
//! let config = Config { time: Some(Duration::from_secs(10)), ..Config::explore() };
//! let summary = Session::open("guest.wasm")?.config(config).run(&mut ())?;
//! assert!(summary.findings.is_empty(), "{}", summary.findings[0]);
//! # Ok::<(), spelunk::Error>(())
//! ```
//!
//! Below it, [`machine::Machine`] is the guest, [`target::Target`] is the small part of it that the search sees, and
//! [`choice::Chooser`] supplies all answers.

#![deny(missing_docs)]

pub mod budget;
pub mod campaign;
pub mod changes;
pub mod check;
pub mod choice;
pub mod compare;
pub mod console;
pub mod coverage;
pub mod debug;
pub mod disk;
pub mod explain;
pub mod file;
pub mod fleet;
pub mod load;
pub mod machine;
#[cfg(test)]
mod model;
mod observed;
pub mod orders;
pub mod outcome;
pub mod property;
pub mod reached;
pub mod replay;
pub mod report;
pub mod schedules;
pub mod search;
pub mod session;
pub mod shrink;
pub mod start;
pub mod store;
pub mod story;
pub mod symbols;
pub mod target;
pub mod text;
mod threads;
pub mod trace;
pub mod unit_test;

pub use budget::Budget;
pub use session::{Config, Error, Event, Finding, Job, Observer, Session, Summary, Verdict};
