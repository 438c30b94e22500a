//! `spelunk export --as-test`: a finding as a unit test of a harness in Rust.

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::json;
use spelunk::budget::Budget;
use spelunk::campaign::Campaign;
use spelunk::disk;
use spelunk::file::TraceFile;
use spelunk::load::{self, Build};
use spelunk::machine::harness_of;
use spelunk::unit_test::UnitTest;

use super::{folder_of, shown};
use crate::cli::guest::Package;
use crate::cli::{Output, PASSED};

/// Bytes of a file that say whether it is such a test.
const START_BYTES: u64 = 64;

/// Prints the test of a trace, or writes it to a file.
pub(super) fn write(
    (target, package): (&Path, &Package),
    trace: &Path,
    to: Option<&Path>,
    output: &mut Output,
    budget: &Budget,
) -> Result<u8> {
    let file = TraceFile::read(trace)?;
    let harness = harness_of(&module(target, package, output, budget)?);
    let cannot = || format!("the trace `{}` cannot be a test", trace.display());
    let test = UnitTest::of(&file, harness.as_deref()).with_context(cannot)?;
    let written = to.map(|to| to.display().to_string());
    let data = json!({ "name": test.name, "package": test.package, "to": written, "text": test.text });
    output.report.event("test", data)?;
    let Some(to) = to else {
        output.report.text(test.text.trim_end())?;
        return Ok(PASSED);
    };
    // A file of the user's would be lost. What is no file, such as a pipe, holds nothing, and is not read.
    let is_file = std::fs::metadata(to).is_ok_and(|there| there.is_file());
    let there = if is_file { disk::read_start(to, START_BYTES)?.0 } else { Vec::new() };
    ensure!(
        there.is_empty() || UnitTest::is_start_of(&String::from_utf8_lossy(&there)),
        "`{}` holds something else than such a test, and is not overwritten: name a new file",
        to.display()
    );
    disk::write_named(to, test.text.as_bytes())
        .map_err(|e| anyhow!("cannot write `{}`: {e}", to.display()))?;
    let stem = to.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    output.report.text(&format!(
        "`{}` in `{}`. In the source of `{}`, beside it: `#[cfg(test)] mod {};`, and `cargo test {}` runs it, with the `--features` of the guest if there are any",
        test.name,
        shown(to),
        test.package,
        spelunk::text::line(&stem),
        test.name
    ))?;
    Ok(PASSED)
}

/// The module that the campaign has; or else the target, as where a build is said: the campaign may be of another one.
fn module(target: &Path, package: &Package, output: &Output, budget: &Budget) -> Result<Vec<u8>> {
    let campaign = folder_of(target).ok().map(|folder| Campaign::open(&folder)).transpose()?.flatten();
    match campaign.filter(|_| package.is_default()) {
        Some(campaign) => campaign.module(),
        None => {
            let is_quiet = output.console.is_quiet();
            let build = Build { is_quiet, budget: budget.clone(), ..package.build() };
            load::load(target, &build, &mut |verb, text| output.console.status(verb, text))
        }
    }
}
