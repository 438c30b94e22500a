//! What an exploration finds fails as a unit test too, with the same message, and passes where the bug is mended.

use std::path::Path;
use std::sync::Arc;

use spelunk::file::{Shrinking, TraceFile};
use spelunk::load::{Build, load};
use spelunk::machine::{Limits, Program, Selection, harness_of};
use spelunk::session::write_trace;
use spelunk::unit_test::UnitTest;
use spelunk_tests::{explore, machine, on_guest_stack, seeded, shrunk, wasm};

use crate::{cargo, root, write_package};

/// The test of the first finding of a module, and what that says.
fn found(wasm: &[u8]) -> (UnitTest, String) {
    let program = Arc::new(Program::load(wasm, Limits::default(), Selection::default()).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("finding.json");
    on_guest_stack(|| {
        let mut machine = machine(&program);
        let (finding, _) = explore(&mut machine, seeded(1), 100_000);
        let shrunk = shrunk(&mut machine, &finding.expect("there is a bug"));
        let failure = (Some(&shrunk.failure), Some(Shrinking::Minimal));
        write_trace(&machine, &shrunk.trace, failure, &path).unwrap();
    });
    let file = TraceFile::read(&path).unwrap();
    let test = UnitTest::of(&file, harness_of(wasm).as_deref()).unwrap();
    (test, file.failure.unwrap().message)
}

/// Copies a package of the examples, with a test in it.
fn copy(name: &str, to: &Path, test: &UnitTest) {
    let from = root().join("examples").join(name);
    std::fs::create_dir_all(to.join("src")).unwrap();
    std::fs::copy(from.join("Cargo.toml"), to.join("Cargo.toml")).unwrap();
    for entry in std::fs::read_dir(from.join("src")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join("src").join(entry.file_name())).unwrap();
    }
    edit(&to.join("src/lib.rs"), |text| text + "\n" + &test.text);
}

fn edit(path: &Path, f: impl FnOnce(String) -> String) {
    let text = std::fs::read_to_string(path).unwrap();
    let edited = f(text.clone());
    assert_ne!(edited, text, "{}", path.display());
    std::fs::write(path, edited).unwrap();
}

/// A workspace with what its members take from that of the repository.
fn write_workspace(folder: &Path, members: &[&str]) {
    let all = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let section = |name: &str| all.split(name).nth(1).unwrap().split("\n[").next().unwrap();
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = {members:?}\n[workspace.package]{}\n[workspace.lints.rust]{}\n\
         [workspace.dependencies]\nspelunk-guest = {{ path = {:?} }}\n",
        section("[workspace.package]"),
        section("[workspace.lints.rust]"),
        root().join("guest-sdk")
    );
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    std::fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
}

/// Each test fails with its message, after the steps to it.
#[test]
fn findings_of_the_examples_fail_natively_until_they_are_mended() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let examples: [(&str, &[&str]); 3] = [("bank", &[]), ("kv", &["bug"]), ("priority-queue", &[])];
    write_workspace(folder, &examples.map(|(name, _)| name));
    let tests = examples.map(|(name, features)| {
        let (test, message) = found(&wasm(name, features));
        copy(name, &folder.join(name), &test);
        (test, message)
    });
    assert_eq!(tests[0].0.name, "invariant_conserved_total_is_90_expected_100");

    let run = ["test", "--workspace", "--lib", "--no-fail-fast", "--features", "kv/bug"];
    let (succeeded, text) = cargo(folder, &run);
    assert!(!succeeded, "{text}");
    for (test, message) in &tests {
        assert!(text.contains(&format!("test {} ... FAILED", test.name)), "{}: {text}", test.name);
        let said = text.split(&format!("---- {} stdout ----", test.name)).nth(1).expect("it says why");
        let said = said.split("\n----").next().unwrap();
        assert!(said.contains(message.as_str()) && said.contains("src/lib.rs:"), "{message}: {said}");
        assert!(said.contains("These steps were replayed:\n  1  setup"), "{said}");
    }
    let steps = "  2  open                name=\"a\" amount=100\n  3  fault disk_full on\n  4  transfer";
    assert!(text.contains(steps), "{text}");

    let journal_first = |text: String| {
        let line = "self.balances.insert(from.into(), left);\n";
        let (before, after) = text.split_once(line).unwrap();
        let (entry, rest) = after.split_once("?;\n").unwrap();
        format!("{before}{entry}?;\n{line}{rest}")
    };
    edit(&folder.join("bank/src/ledger.rs"), journal_first);
    edit(&folder.join("priority-queue/Cargo.toml"), |text| text.replace("=1.0.3", "=1.0.5"));
    let (succeeded, text) = cargo(folder, &["test", "--workspace", "--lib"]);
    assert!(succeeded, "{text}");
    for (test, _) in &tests {
        assert!(text.contains(&format!("test {} ... ok", test.name)), "{text}");
    }
}

#[test]
fn a_function_is_replayed_natively() {
    let folder = tempfile::tempdir().unwrap();
    let source = "use spelunk_guest::prelude::*;\n#[check]\nfn sums() {\n    let (a, b) = (roll(6), roll(6));\n    \
                  assert!(a + b < 10, \"{a} + {b} is 10\");\n}\n";
    write_package(folder.path(), "sums", source);
    let wasm = load(folder.path(), &Build::default(), &mut |_, _| {}).unwrap();
    let (test, message) = found(&wasm);
    assert_eq!((test.name.as_str(), test.package.as_str()), ("panic_5_5_is_10", "sums"));
    edit(&folder.path().join("src/lib.rs"), |source| source + &test.text);
    let (succeeded, text) = cargo(folder.path(), &["test", "--lib"]);
    assert!(!succeeded && text.contains("panicked at src/lib.rs:5:5:") && text.contains(&message), "{text}");
}
