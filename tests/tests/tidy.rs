//! What depends on what. The rules are those of `ARCHITECTURE.md`.

use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace")
}

/// All Rust files below a folder of the workspace, or the file itself.
fn files(below: &str) -> Vec<PathBuf> {
    let path = root().join(below);
    if path.is_file() {
        return vec![path];
    }
    let entries = std::fs::read_dir(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .flat_map(|path| match path.is_dir() {
            true => files(path.strip_prefix(root()).unwrap().to_str().unwrap()),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    found.sort();
    found
}

/// No line of code below `within`, but for the files in `except`, contains one of `words`. Comments do not
/// count, nor do tests at the end of a file.
fn check(within: &[&str], except: &[&str], words: &[&str]) {
    let except: Vec<PathBuf> = except.iter().flat_map(|path| files(path)).collect();
    let mut found = Vec::new();
    for file in within.iter().flat_map(|path| files(path)).filter(|file| !except.contains(file)) {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for (number, line) in (1..).zip(code.lines()) {
            let line = line.split("//").next().unwrap();
            if words.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{number}: {line}", file.display()));
            }
        }
    }
    assert!(found.is_empty(), "{words:?} may not stand here:\n{}", found.join("\n"));
}

#[test]
fn the_instrumenter_knows_no_engine_and_does_no_io() {
    check(
        &["instrumenter/src"],
        &[],
        &["wasmtime::", "std::fs", "std::io", "std::net", "println!", "std::env", "std::time"],
    );
    let manifest = std::fs::read_to_string(root().join("instrumenter/Cargo.toml")).unwrap();
    let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
    assert!(!dependencies.contains("wasmtime") && !dependencies.contains("spelunk."));
}

#[test]
fn the_guest_sdk_depends_on_nothing_of_ours() {
    check(&["guest-sdk"], &[], &["spelunk::", "spelunk_instrumenter"]);
    let manifest = std::fs::read_to_string(root().join("guest-sdk/Cargo.toml")).unwrap();
    assert_eq!(manifest.matches("path = ").count(), 1, "its macros are all it may depend on");
}

#[test]
fn only_the_machine_names_wasmtime() {
    check(&["host/src"], &["host/src/machine"], &["wasmtime::"]);
}

#[test]
fn search_and_shrinking_see_only_the_target() {
    let search = ["choice", "coverage", "draw", "energy", "outcome", "replay", "target", "trace"];
    let mut search: Vec<String> = search.iter().map(|file| format!("host/src/{file}.rs")).collect();
    search.extend(["check", "explore", "shrink"].map(|folder| format!("host/src/{folder}")));
    let search: Vec<&str> = search.iter().map(String::as_str).collect();
    let words = [
        "machine",
        "wasm",
        "std::fs",
        "std::io",
        "std::env",
        "Instant",
        "SystemTime",
        "println!",
        "HashMap",
        "HashSet",
    ];
    check(&search, &[], &words);
}

#[test]
fn the_console_the_report_and_main_each_have_their_own() {
    check(&["host/src"], &["host/src/console.rs"], &["io::stderr()", "eprint"]);
    check(&["host/src"], &["host/src/report.rs"], &["stdout()", " println!", " print!"]);
    check(&["host/src"], &["host/src/main.rs"], &["process::exit", "process::abort"]);
}

#[test]
fn unsafe_lives_in_the_guest_abi_the_memory_file_and_the_cache() {
    let words = ["unsafe {", "unsafe impl", "unsafe fn", "unsafe extern"];
    check(
        &["host/src", "instrumenter/src"],
        &["host/src/machine/memory.rs", "host/src/machine/cache.rs"],
        &words,
    );
    check(&["guest-sdk/src"], &["guest-sdk/src/abi.rs"], &words);
    check(&["examples"], &[], &words);
}
