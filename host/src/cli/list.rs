//! `spelunk list`.

use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use spelunk::budget::Budget;
use spelunk::file::Conditions;
use spelunk::machine::{Limits, Listing, Program, Selection, StubImports, Warning, WarningKind};
use spelunk::session::Caching;
use spelunk::text::{block, line};

use super::system::System;
use super::{Compiled, Guest, GuestLimits, Output, PASSED};

#[derive(Args)]
pub(super) struct List {
    #[command(flatten)]
    guest: Guest,
    #[command(flatten)]
    system: System,
    #[command(flatten)]
    limits: GuestLimits,
    #[command(flatten)]
    compiled: Compiled,
}

impl List {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let wasm = self.guest.load(&output.console, budget)?;
        // What it imports is listed, whoever provides it.
        let asked = Limits::from(&self.limits);
        let stub_imports = match asked.stub_imports {
            StubImports::None => StubImports::Zero,
            stubs => stubs,
        };
        let limits = Limits { stub_imports, ..asked };
        let environment = self.system.environment(self.guest.files_bytes_max())?;
        let conditions = Conditions { limits, selection: Selection::default(), environment };
        // Where there can be none, whoever explores it hears why.
        let cache = Caching::from(&self.compiled).open().and_then(Result::ok);
        let program = Program::load_in(&wasm, conditions, cache.as_ref(), budget)
            .with_context(|| format!("cannot list `{}`", self.guest.target.display()))?;
        let (listing, mut warnings) = (program.listing(), Arc::new(program).warnings());
        let are_stubbed = asked.stub_imports != StubImports::None;
        warnings.retain(|warning| !(are_stubbed && warning.kind == WarningKind::Imports));
        output.report.text(&text(&listing, &warnings))?;
        output.report.event("list", Listed { listing, warnings })?;
        Ok(PASSED)
    }
}

/// What a target has, and what of it will not work.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    listing: Listing,
    warnings: Vec<Warning>,
}

/// A heading for each kind of which there is anything, and a line each.
fn text(listing: &Listing, warnings: &[Warning]) -> String {
    let Listing { rules, preconditions, invariants, faults, setup, teardown, left_out, .. } = listing;
    let Listing { resources, imports, obstacles, .. } = listing;
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
        ("not called, since neither names nor signatures make them rules", plain(left_out)),
        ("resources", plain(resources)),
        ("imports", typed(imports)),
        ("no snapshots, because of", plain(obstacles)),
    ];
    let mut text = Vec::new();
    for (kind, lines) in kinds.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        text.push(kind.to_string());
        text.extend(lines.into_iter().map(|line| format!("  {line}")));
    }
    if !warnings.is_empty() {
        text.push("warnings".to_string());
        text.extend(warnings.iter().map(|warning| format!("  {}", block(&warning.text, "    "))));
    }
    text.join("\n")
}
