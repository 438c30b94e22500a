//! See `tests/tests/checking/orderings.rs`.

#![cfg(test)]

use std::collections::BTreeSet;
use std::fmt::Write;

/// The names that the programs take from the module that they stand in.
mod sync {
    pub(super) use loom::{sync::*, thread};
}

#[path = "../../guests/sync/src/programs.rs"]
mod programs;

/// Loom takes a sequentially consistent access for one that acquires and releases.
const SEQUENTIAL: &str = "sequential";

#[test]
fn another_explorer_reads_the_same() {
    let mut beside = String::new();
    for (name, program) in programs::PROGRAMS.iter().filter(|(name, _)| !name.contains(SEQUENTIAL)) {
        let (sender, receiver) = std::sync::mpsc::channel();
        loom::model(move || sender.send(format!("{:?}", program())).unwrap());
        let read: BTreeSet<String> = receiver.into_iter().collect();
        writeln!(beside, "{name}: {}", Vec::from_iter(read).join(" ")).unwrap();
    }
    let is_run =
        |line: &&str| beside.lines().any(|other| line.split(": ").next() == other.split(": ").next());
    let ours = include_str!("../../tests/checking/orderings.txt").lines().filter(is_run);
    assert_eq!(beside, ours.map(|line| format!("{line}\n")).collect::<String>());
}
