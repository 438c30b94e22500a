//! `spelunk list`.

use anyhow::{Context, Result};
use clap::Args;
use spelunk::budget::Budget;
use spelunk::file::Conditions;
use spelunk::machine::{Limits, Listing, Program, Selection, StubImports};
use spelunk::session::Caching;
use spelunk::text::line;

use super::system::System;
use super::{Compiled, Guest, Output, PASSED};

#[derive(Args)]
pub(super) struct List {
    #[command(flatten)]
    guest: Guest,
    #[command(flatten)]
    system: System,
    #[command(flatten)]
    compiled: Compiled,
}

impl List {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let wasm = self.guest.load(&output.console, budget)?;
        // What it imports is listed, whoever provides it.
        let limits = Limits { stub_imports: StubImports::Zero, ..Limits::default() };
        let environment = self.system.environment(self.guest.files_bytes_max())?;
        let conditions = Conditions { limits, selection: Selection::default(), environment };
        // Where there can be none, whoever explores it hears why.
        let cache = Caching::from(&self.compiled).open().and_then(Result::ok);
        let program = Program::load_in(&wasm, conditions, cache.as_ref(), budget)
            .with_context(|| format!("cannot list `{}`", self.guest.target.display()))?;
        let listing = program.listing();
        output.report.text(&text(&listing))?;
        output.report.event("list", listing)?;
        Ok(PASSED)
    }
}

/// A heading for each kind of which there is anything, and a line each.
fn text(listing: &Listing) -> String {
    let Listing { rules, preconditions, invariants, faults, setup, teardown, resources, imports, obstacles } =
        listing;
    let typed = |of: &[(String, String)]| {
        of.iter().map(|(name, ty)| format!("{}: {}", line(name), line(ty))).collect::<Vec<_>>()
    };
    let plain = |of: &[String]| of.iter().map(|name| line(name).to_string()).collect::<Vec<_>>();
    let kinds = [
        ("rules", typed(rules)),
        ("preconditions of", plain(preconditions)),
        ("invariants", plain(invariants)),
        ("faults", plain(faults)),
        ("setup", plain(setup)),
        ("teardown", plain(teardown)),
        ("resources", plain(resources)),
        ("imports", typed(imports)),
        ("no snapshots, because of", plain(obstacles)),
    ];
    let mut text = Vec::new();
    for (kind, lines) in kinds.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        text.push(kind.to_string());
        text.extend(lines.into_iter().map(|line| format!("  {line}")));
    }
    text.join("\n")
}
