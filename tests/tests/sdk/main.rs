//! What a user of the Rust SDK sees of it in a package: errors of the compiler, and findings as unit tests.

mod errors;
mod native;
mod places;

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace")
}

/// Writes a manifest of a package, whose workspace is its own, that depends on the SDK.
fn write_package(folder: &Path, name: &str, source: &str) {
    let manifest = format!(
        "[workspace]\n[package]\nname = \"{name}\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n\
         [dependencies]\nspelunk-guest = {{ path = {:?} }}\n",
        root().join("guest-sdk")
    );
    std::fs::create_dir_all(folder.join("src")).unwrap();
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    std::fs::write(folder.join("src/lib.rs"), source).unwrap();
    // The versions of the macros' dependencies that are there.
    std::fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
}

/// What cargo writes in this folder, both streams; whether it succeeded.
fn cargo(folder: &Path, words: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO"));
    command.args(words).current_dir(folder).env("CARGO_TARGET_DIR", target()).env("RUST_BACKTRACE", "0");
    // What cargo says to this test is not for what it runs.
    command.env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("RUSTFLAGS");
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// Where packages are built: in one place, so that the SDK is compiled once.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk")
}
