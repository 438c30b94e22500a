//! The SDK, whose source the tool carries: it is not in a registry, and a harness depends on it by path.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::disk;
use crate::machine::{data_of_user, ensure_own_folder};

/// Its files: their paths, and what is in them.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sdk.rs"));
/// That of the workspace, which the manifests refer to.
pub(super) const EDITION: &str = "2024";

/// The files with manifests that refer to no workspace.
fn files() -> impl Iterator<Item = (&'static str, String)> {
    FILES.iter().map(|(path, text)| match path.ends_with("Cargo.toml") {
        true => (*path, standalone(text)),
        false => (*path, (*text).to_string()),
    })
}

/// A manifest with the values that it inherits, and without the lints, which are for those who work on it.
fn standalone(manifest: &str) -> String {
    let inherited = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("edition", EDITION),
        ("rust-version", env!("CARGO_PKG_RUST_VERSION")),
        ("license", env!("CARGO_PKG_LICENSE")),
    ];
    let text = inherited.iter().fold(manifest.to_string(), |text, (key, value)| {
        text.replace(&format!("\n{key}.workspace = true"), &format!("\n{key} = \"{value}\""))
    });
    let is_kept = |line: &&str| !line.contains("workspace = true") && *line != "[lints]";
    let mut lines: Vec<&str> = text.lines().filter(is_kept).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines.join("\n") + "\n"
}

/// The folder of the SDK of this version in the user's folder for data, where it is unpacked once.
///
/// Cargo builds what is in it, and runs its macros: only the user may have written it. It is named after what is in it, and looked at
/// each time.
///
/// # Errors
/// There is no such folder, others can write to it, or it holds something else.
pub fn sdk_of_user() -> Result<PathBuf> {
    let all = data_of_user()?.join("sdk");
    let folder = all.join(name());
    let cannot = || format!("cannot keep the SDK in `{}`", folder.display());
    let above = all.parent().context("a folder in another has one above")?;
    DirBuilder::new().recursive(true).mode(0o700).create(above).with_context(cannot)?;
    for own in [above, &all, &folder] {
        ensure_own_folder(own)?;
    }
    if folder.exists() {
        ensure_whole(&folder)?;
        return Ok(folder);
    }
    DirBuilder::new().recursive(true).mode(0o700).create(&all).with_context(cannot)?;
    let part = tempfile::Builder::new().prefix(".part").tempdir_in(&all).with_context(cannot)?;
    let whole = part.path().join("whole");
    write_sdk(&whole).with_context(cannot)?;
    match fs::rename(&whole, &folder) {
        // Another process was first.
        Err(_) if folder.exists() => {}
        renamed => renamed.with_context(cannot)?,
    }
    ensure_own_folder(&folder)?;
    ensure_whole(&folder)?;
    Ok(folder)
}

/// `0.1.0-3f9a1c2b4d5e`: by version and content, so that the SDKs of two builds of the tool do not meet.
fn name() -> String {
    let mut hasher = blake3::Hasher::new();
    for (path, text) in files() {
        for part in [path, &text] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
    }
    format!("{}-{}", env!("CARGO_PKG_VERSION"), &hasher.finalize().to_hex()[..12])
}

/// Refuses a folder that does not hold what was unpacked there.
fn ensure_whole(folder: &Path) -> Result<()> {
    for (path, text) in files() {
        let is_same =
            disk::read_at_most(&folder.join(path), text.len() as u64).is_ok_and(|it| it == text.as_bytes());
        ensure!(
            is_same,
            "`{}` is not as it was unpacked: `{path}` differs. Remove the folder, and it is unpacked again",
            folder.display()
        );
    }
    Ok(())
}

/// Writes the SDK to a folder, which is new.
///
/// # Errors
/// There is something, or it cannot be written to.
pub fn write_sdk(folder: &Path) -> Result<()> {
    let files: Vec<(&str, String)> = files().collect();
    let written = write_files(folder, files.iter().map(|(path, text)| (*path, text.as_str())));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => error_of_used(folder),
        _ => anyhow::Error::new(error).context(format!("cannot write the SDK to `{}`", folder.display())),
    })
}

fn error_of_used(folder: &Path) -> anyhow::Error {
    anyhow::anyhow!(
        "there is something at `{}`, and nothing is overwritten: name a new folder",
        folder.display()
    )
}

/// Writes files below a folder, which is new.
pub(super) fn write_files<'f>(
    folder: &Path,
    files: impl Iterator<Item = (&'f str, &'f str)>,
) -> io::Result<()> {
    fs::create_dir(folder)?;
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_is_the_sdk_and_needs_no_workspace() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        assert!(workspace.contains(&format!("\nedition = \"{EDITION}\"")));
        let all: Vec<(&str, String)> = files().collect();
        for (path, text) in &all {
            let source = root.join("guest-sdk").join(path);
            match path.ends_with("Cargo.toml") {
                true => {
                    toml::from_str::<toml::Table>(text).unwrap();
                    assert!(!text.contains("workspace"), "{text}");
                    assert!(text.contains("\nversion = \"0.1.0\"\nedition = \"2024\"\n"), "{text}");
                }
                false => assert_eq!(*text, fs::read_to_string(source).unwrap(), "{path}"),
            }
        }
        for below in ["src", "macros/src"] {
            let is_below = |(path, _): &&(&str, String)| path.starts_with(below);
            let count = walked(&root.join("guest-sdk").join(below));
            assert_eq!(all.iter().filter(is_below).count(), count);
        }
    }

    /// How many files are in a folder and those below.
    fn walked(folder: &Path) -> usize {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| if path.is_dir() { walked(&path) } else { 1 }).sum()
    }
}
