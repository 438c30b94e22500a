//! Orderings of atomics: which stores a load may read. Small programs, with all that their threads may read by the standard of C++.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use spelunk::check;
use spelunk::machine::on_guest_stack;
use spelunk_tests::checks::{default_options, machines, program, run};
use spelunk_tests::{check_replays, steps_of};

const GUEST: &str = "tests/guests/sync";

type Read = BTreeMap<String, BTreeSet<String>>;

/// What each program reads in any run of a check.
fn read() -> Read {
    on_guest_stack(|| {
        let program = program(GUEST, &["litmus"]);
        let mut machines = machines(&program, 1);
        let mut counts = program.declared();
        let (go_on, see) = (&|_: &_| None, &mut |_: &_, _: &_| ());
        let options = default_options(&program);
        let checked =
            check::check_keeping(&mut machines, &options, (go_on, see), (None, &mut counts)).unwrap();
        assert_eq!((checked.limit, checked.findings.len()), (None, 0));
        let mut read = Read::new();
        for event in counts.events.keys() {
            let (name, values) = event.rsplit_once(": ").unwrap();
            read.entry(name.to_string()).or_default().insert(values.to_string());
        }
        read
    })
}

/// In the order of the programs, one a line; `tests/loom` reads the file too.
#[test]
fn programs_read_what_the_standard_allows() {
    let read = read();
    let mut text = String::new();
    for line in include_str!("orderings.txt").lines() {
        let name = line.rsplit_once(": ").map_or(line, |(name, _)| name);
        let values = read.get(name).map_or(Vec::new(), |values| Vec::from_iter(values.iter().cloned()));
        writeln!(text, "{name}: {}", values.join(" ")).unwrap();
    }
    assert_eq!(text, include_str!("orderings.txt"));
    assert_eq!(text.lines().count(), read.len());
}

/// What a barrier, or an order, that is missing breaks; and the steps of a shortest way there.
#[test]
fn mistakes_in_orders_are_found() {
    let mut found = String::new();
    for features in [["peterson", "relaxed"], ["publish", "relaxed"]] {
        on_guest_stack(|| {
            let program = program(GUEST, &features);
            let checked = run(&program, 2, &default_options(&program));
            for finding in &checked.findings {
                let (steps, failure) = (steps_of(&finding.trace), finding.failure.to_string());
                let what = failure.lines().next().unwrap_or_default();
                writeln!(found, "{}, {steps} steps: {what}", features[0]).unwrap();
                check_replays(&program, &finding.trace, &finding.failure);
            }
        });
    }
    let expected = "\
peterson, 8 steps: panic: assertion `left == right` failed: both are inside
publish, 4 steps: panic: assertion `left == right` failed: the value is not there yet
";
    assert_eq!(found, expected);
}
