//! What of a program will not work, or not as well as it could, with what to do.

use std::sync::Arc;

use serde::Serialize;
use wasmtime::{Linker, Store};

use super::Machine;
use super::host::Host;
use super::link::link;
use super::program::Program;
use super::spelling::shown_few;
use crate::file::StubImports;

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// Imports that nobody provides.
    Imports,
    /// Functions that are not called, whatever they are for.
    Exports,
    /// It cannot be started: its memory is too large, or its start function fails.
    Start,
    /// Runs are executed from their start, since no snapshot holds all of its state.
    Snapshots,
    /// No lines are known.
    Lines,
    /// Nothing leads the search.
    Edges,
}

/// What will not work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// What it is, and what to do; some lines.
    pub text: String,
}

impl Program {
    /// What will not work. The guest is started, with imports that nobody provides as the program's limits say.
    pub fn warnings(self: &Arc<Program>) -> Vec<Warning> {
        let found = [
            (WarningKind::Imports, self.unprovided()),
            (WarningKind::Exports, self.uncalled()),
            (WarningKind::Start, Machine::new(self.clone()).err().map(|error| format!("{error:#}"))),
            (WarningKind::Snapshots, self.without_snapshots()),
            (WarningKind::Lines, self.without_lines()),
            (WarningKind::Edges, self.without_edges()),
        ];
        found.into_iter().filter_map(|(kind, text)| Some(Warning { kind, text: text? })).collect()
    }

    fn unprovided(&self) -> Option<String> {
        let mut store = Store::new(&self.engine, Host::default());
        let (stubs, mut linker) = (StubImports::None, Linker::new(&self.engine));
        let given = (stubs, self.interface());
        let linked = link(&mut linker, &mut store, &self.module, given, self.dynamic.as_ref());
        linked.err().map(|error| format!("{error:#}"))
    }

    fn uncalled(&self) -> Option<String> {
        let uncalled = shown_few(&self.exports.uncalled)?;
        Some(format!(
            "these functions are not called, since they take other values than numbers: {uncalled}\n\
             export a function that takes numbers and calls them"
        ))
    }

    fn without_snapshots(&self) -> Option<String> {
        let obstacles = self.obstacles();
        let first = obstacles.first()?;
        let inside = first.function.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
        let others = match obstacles.len() - 1 {
            0 => String::new(),
            others => format!(", and {others} more"),
        };
        Some(format!(
            "runs are replayed from the start, which is slower, since snapshots cannot hold this: {}{inside} at {:#x}{others}\n\
             nothing needs to be done; shorter runs (--steps) cost less",
            first.what, first.offset
        ))
    }

    fn without_lines(&self) -> Option<String> {
        let text = "findings name functions and offsets, not lines, since there is no debug information\n\
                    compile with -g, and do not strip the module";
        (!self.symbols().has_lines()).then(|| text.to_string())
    }

    fn without_edges(&self) -> Option<String> {
        let text = "nothing leads the search, since the module has no code of its own in which edges could be counted\n\
                    explore the module that has the code, or link it with --link";
        self.edges().edges.is_empty().then(|| text.to_string())
    }
}
