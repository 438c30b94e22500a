//! Which place a finding has, of a harness in a package of its own beside what it tests.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use spelunk::load::{Build, load};
use spelunk::machine::{Limits, Program, Selection};
use spelunk::search::Explorer;
use spelunk_tests::{machine, on_guest_stack, seeded};

use crate::write_package;

const BANK: &str = "pub fn pay(total: &mut u32, amount: u32) {
    *total += amount;

    if *total == 5 {
        panic!(\"of the bank\");
    }
}
";

/// Its first rule fails at the line and column at which what it tests does, and others fail whenever they are called.
const HARNESS: &str = "use spelunk_guest::prelude::*;
#[derive(Default)] struct Payer { total: u32 }
#[harness] impl Payer {
    #[rule] fn balance(&mut self) { if self.total == 3 {
        panic!(\"of the harness\"); } }
    #[rule] fn pay(&mut self, #[draw(0..4_u32)] amount: u32) { bank::pay(&mut self.total, amount) }
    #[rule] fn always(&mut self) { panic!(\"always\") }
    #[rule] fn assert(&mut self) { self.total = 0;
        assert!(self.total == 1); }
}
";

const ODD: &str = "use spelunk_guest::prelude::*;
fn all(n: u8) {
    assert!(n != 7);
    assert!(n != 4);
}
#[derive(Default)] struct Odd { n: u8, by: i32 }
#[harness] impl Odd {
    #[rule] fn add(&mut self) { self.n = (self.n + 1) % 10; }
    #[rule] fn go(&mut self) {
        if self.n == 3 { self.by = 1; return; }
        all(self.n);
    }
    #[rule]
    fn divide(&mut self, #[draw(sampled_from([1, i32::MIN]))] n: i32, #[draw(-1..=1)] by: i32) {
        if by == 0 || by == -1 && n == i32::MIN { self.by = n / by; }
    }
}
";

#[test]
fn failures_in_files_of_one_name_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let harness = folder.path().join("spelunk");
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("Cargo.toml"), "[package]\nname = \"bank\"\nedition = \"2024\"\n")
        .unwrap();
    std::fs::write(folder.path().join("src/lib.rs"), BANK).unwrap();
    write_package(&harness, "payer", HARNESS);
    let manifest = std::fs::read_to_string(harness.join("Cargo.toml")).unwrap();
    std::fs::write(harness.join("Cargo.toml"), manifest + "bank = { path = \"..\" }\n").unwrap();
    let places: BTreeSet<_> = found(&harness).into_iter().map(|(place, _)| place).collect();
    let expected =
        ["spelunk/src/lib.rs:5:9", "spelunk/src/lib.rs:7:36", "spelunk/src/lib.rs:9:9", "src/lib.rs:5:9"];
    assert_eq!(places, expected.map(String::from).into());
}

/// What the compiler makes one comparison of is several, and so are the ways in which one division can fail.
#[test]
fn failures_of_an_inlined_function_and_of_one_expression_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    write_package(folder.path(), "odd", ODD);
    let [seven, four, divided] = ["src/lib.rs:3:5", "src/lib.rs:4:5", "src/lib.rs:15:61"];
    let expected = [
        (seven, "assertion failed: n != 7"),
        (four, "assertion failed: n != 4"),
        (divided, "attempt to divide by zero"),
        (divided, "attempt to divide with overflow"),
    ];
    let expected: BTreeSet<_> = expected.map(|(place, why)| (place.to_string(), why.to_string())).into();
    assert_eq!(found(folder.path()), expected);
}

/// The places and messages of what is found in a package.
fn found(package: &Path) -> BTreeSet<(String, String)> {
    let wasm = load(package, &Build::default(), &mut |_, _| {}).unwrap();
    let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap());
    on_guest_stack(|| {
        let mut machine = machine(&program);
        let mut explorer = Explorer::new(&mut machine, seeded(1));
        explorer.explore(|progress| progress.runs < 3000);
        let failures = explorer.findings().map(|found| &found.failure);
        failures.map(|failure| (failure.place.clone().unwrap(), failure.message.clone())).collect()
    })
}
