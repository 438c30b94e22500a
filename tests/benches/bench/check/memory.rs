//! The memory that breadth-first checks take beside stateright's, each in a process of its own: what one gave back counts
//! for none after it.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use spelunk::check::{self, Order};

use super::{COUNT, TwoPhaseCommit, collections, counts, prepared, protocols};
use crate::table::Table;

/// A process in whose environment this is measures what it names, and nothing else.
const MEASURED: &str = "SPELUNK_BENCH_MEMORY";

const OURS: &str = "spelunk";
const COLLECTIONS: &str = "collections";
const SAME_CODE: &str = "the same code";

/// Peaks of the memory of a process, beside what it had before the check.
pub(crate) fn memory(table: &mut Table) -> Result<()> {
    if !cfg!(target_os = "linux") {
        println!("| memory of a check | only measured on Linux | | |");
        return Ok(());
    }
    if let Ok(what) = std::env::var(MEASURED) {
        let (protocol, whose) = what.split_once('/').context("a protocol, and whose check")?;
        let (before, states) = checked(protocol, whose)?;
        // Read by the process that asks.
        println!("{MEASURED} {} {states}", peak()?.saturating_sub(before));
        return Ok(());
    }
    let two_phase = format!("two-phase commit, {COUNT} managers");
    for (name, protocol, beside) in [
        (two_phase.as_str(), "commit", COLLECTIONS),
        (two_phase.as_str(), "commit", SAME_CODE),
        ("raft", "raft", SAME_CODE),
    ] {
        let (ours, states) = measured(protocol, OURS)?;
        let (theirs, _) = measured(protocol, beside)?;
        table.cost(
            &format!("memory of a breadth-first check, {name}, {states} states, beside {beside}"),
            &format!("{:.1} MiB", ours as f64 / f64::from(1 << 20)),
            &format!("{:.1} MiB in stateright", theirs as f64 / f64::from(1 << 20)),
            ours as f64 / theirs as f64,
        );
    }
    Ok(())
}

/// The bytes that a check takes in a process of its own, and its states.
fn measured(protocol: &str, whose: &str) -> Result<(u64, u64)> {
    let child = Command::new(std::env::current_exe()?)
        .args(["--bench", "memory"])
        .env(MEASURED, format!("{protocol}/{whose}"))
        .output()?;
    ensure!(child.status.success(), "{protocol}/{whose}: {}", String::from_utf8_lossy(&child.stderr));
    let told = String::from_utf8(child.stdout)?;
    let line = told.lines().find_map(|line| line.strip_prefix(MEASURED)).context("the child says nothing")?;
    let (bytes, states) = line.trim().split_once(' ').context("two numbers")?;
    Ok((bytes.parse()?, states.parse()?))
}

/// The bytes that the process has before the check, and the states of that.
fn checked(protocol: &str, whose: &str) -> Result<(u64, u64)> {
    let order = Order::Breadth;
    let count = format!("n{COUNT}");
    if whose == OURS {
        let (path, feature) = match protocol {
            "raft" => ("examples/protocols", "raft"),
            _ => ("examples/two-phase-commit", count.as_str()),
        };
        let features = [feature];
        let mut check = prepared(path, &features);
        let options = check::Options { order, ..check::Options::default() };
        let before = peak()?;
        return Ok((before, check(&options)?.0));
    }
    let before = peak()?;
    let (states, _) = match (protocol, whose) {
        ("raft", _) => protocols::counts_of_raft(order),
        (_, COLLECTIONS) => counts(collections::TwoPhaseCommit, order, 1),
        _ => counts(TwoPhaseCommit, order, 1),
    };
    Ok((before, states))
}

/// The most bytes of memory that this process had.
fn peak() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib << 10)
}
