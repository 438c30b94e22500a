//! A folder that packages of several workspaces are built in. Cargo tells those of one name and one place in their workspace apart by how
//! old their sources are, so what was built of one may be taken for the other. So each says here of which workspace it was built last, and
//! what is of another one is built anew.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::POLL;
use crate::budget::Budget;
use crate::disk;

/// Where that is said, in a folder of builds.
const FOLDER: &str = ".packages";
/// The workspace that is being built, which holds the lock.
const LOCK: &str = ".lock";
/// The path of a workspace, at most.
const BYTES_MAX: u64 = 1 << 16;

/// What cargo says of something that it built, or took for built.
#[derive(Deserialize)]
pub(super) struct Artifact {
    reason: String,
    #[serde(default)]
    package_id: String,
    pub(super) manifest_path: Option<PathBuf>,
    #[serde(default)]
    pub(super) filenames: Vec<PathBuf>,
    #[serde(default)]
    fresh: bool,
}

/// The artifacts among cargo's messages.
pub(super) fn artifacts(messages: &[u8]) -> impl Iterator<Item = Artifact> {
    let lines = messages.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .filter(|artifact: &Artifact| artifact.reason == "compiler-artifact")
}

impl Artifact {
    /// The name of the package, if it is one of this workspace: of others cargo knows where they are.
    fn name_in(&self, root: &Path) -> Option<&str> {
        self.manifest_path.as_deref().filter(|manifest| manifest.starts_with(root))?;
        // `path+file:///a/demo#0.1.0`, or `path+file:///a/b#demo@0.1.0`
        let (folder, version) = self.package_id.strip_prefix("path+")?.rsplit_once('#')?;
        let name =
            version.split_once('@').map_or_else(|| folder.rsplit('/').next(), |(name, _)| Some(name))?;
        let is_plain = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '_';
        name.chars().all(is_plain).then_some(name)
    }
}

/// A folder of builds, while nobody else builds there.
pub(super) struct Shared<'r> {
    /// Where cargo keeps what it built, and where it puts what was asked for.
    folders: [PathBuf; 2],
    root: &'r Path,
    _lock: File,
}

impl<'r> Shared<'r> {
    /// Waits until nobody else builds there. The first of the folders is where cargo keeps what it built.
    ///
    /// # Errors
    /// It cannot be written to; the budget is over.
    pub(super) fn lock(
        folders: [PathBuf; 2],
        root: &'r Path,
        budget: &Budget,
        waits: &mut dyn FnMut(),
    ) -> Result<Shared<'r>> {
        let said = folders[0].join(FOLDER);
        let [kept, _] = folders.clone();
        let cannot = || format!("cannot build in `{}`", kept.display());
        std::fs::create_dir_all(&said).with_context(cannot)?;
        let path = said.join(LOCK);
        let lock = File::options().create(true).truncate(false).read(true).write(true).open(&path);
        let lock = lock.with_context(cannot)?;
        let mut has_waited = false;
        // A file system without locks has one user at a time, let us hope.
        while let Err(TryLockError::WouldBlock) = lock.try_lock() {
            budget.check()?;
            if !std::mem::replace(&mut has_waited, true) {
                waits();
            }
            std::thread::sleep(POLL);
        }
        let shared = Shared { folders, root, _lock: lock };
        // A build of another workspace that did not come to its end built nobody knows what.
        let begun = disk::read_at_most(&path, BYTES_MAX).unwrap_or_default();
        if !begun.is_empty() && begun != shared.root_bytes() {
            for entry in std::fs::read_dir(&said).with_context(cannot)? {
                let entry = entry.with_context(cannot)?.path();
                if entry != path {
                    std::fs::remove_file(entry).with_context(cannot)?;
                }
            }
        }
        std::fs::write(&path, shared.root_bytes()).with_context(cannot)?;
        Ok(shared)
    }

    fn root_bytes(&self) -> &[u8] {
        self.root.as_os_str().as_encoded_bytes()
    }

    fn said(&self, name: &str) -> PathBuf {
        self.folders[0].join(FOLDER).join(name)
    }

    /// The packages that cargo took for built, and of which another workspace may have been.
    pub(super) fn taken(&self, messages: &[u8]) -> BTreeSet<String> {
        let all: Vec<Artifact> = artifacts(messages).collect();
        let fresh = all.iter().filter(|artifact| artifact.fresh);
        let names: BTreeSet<&str> = fresh.filter_map(|artifact| artifact.name_in(self.root)).collect();
        let is_ours = |name: &str| {
            disk::read_at_most(&self.said(name), BYTES_MAX).is_ok_and(|root| root == self.root_bytes())
        };
        names.into_iter().filter(|name| !is_ours(name)).map(String::from).collect()
    }

    /// Has cargo build these packages anew, for whatever target and profile.
    pub(super) fn forget(&self, names: &BTreeSet<String>) -> Result<()> {
        let folders = self.folders.iter().flat_map(|folder| {
            let targets = entries(folder);
            let profiles: Vec<PathBuf> = targets.iter().flat_map(|target| entries(target)).collect();
            targets.into_iter().chain(profiles)
        });
        for fingerprint in folders.flat_map(|profile| entries(&profile.join(".fingerprint"))) {
            let name = fingerprint.file_name().map(|name| name.to_string_lossy().into_owned());
            // Its name, and a hash.
            let name = name.as_deref().and_then(|name| name.rsplit_once('-')).map(|(name, _)| name);
            if name.is_some_and(|name| names.contains(name)) {
                let cannot = || format!("cannot remove `{}`", fingerprint.display());
                std::fs::remove_dir_all(&fingerprint).with_context(cannot)?;
            }
        }
        Ok(())
    }

    /// Cargo has come to its end: what it built, and took for built, is of this workspace. Where it failed there may be more that it built.
    pub(super) fn built(&self, messages: &[u8], is_success: bool) -> Result<()> {
        let all: Vec<Artifact> = artifacts(messages).collect();
        let names: BTreeSet<&str> = all.iter().filter_map(|artifact| artifact.name_in(self.root)).collect();
        for name in names {
            let path = self.said(name);
            std::fs::write(&path, self.root_bytes())
                .with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        if !is_success {
            return Ok(());
        }
        let lock = self.said(LOCK);
        std::fs::write(&lock, []).with_context(|| format!("cannot write `{}`", lock.display()))
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_a_workspace_have_names() {
        let check = |id: &str, manifest: &str, expected: Option<&str>| {
            let message = serde_json::json!({
                "reason": "compiler-artifact", "package_id": id, "manifest_path": manifest, "fresh": true
            });
            let [artifact] = &artifacts(message.to_string().as_bytes()).collect::<Vec<_>>()[..] else {
                panic!("{message}")
            };
            assert_eq!(artifact.name_in(Path::new("/a/b")), expected, "{id}");
        };
        check("path+file:///a/b#demo@0.1.0", "/a/b/Cargo.toml", Some("demo"));
        check("path+file:///a/b/c_d#0.1.0", "/a/b/c_d/Cargo.toml", Some("c_d"));
        check("path+file:///a/bc#0.1.0", "/a/bc/Cargo.toml", None);
        check(
            "registry+https://github.com/rust-lang/crates.io-index#syn@2.0.0",
            "/a/b/vendor/syn/Cargo.toml",
            None,
        );
        check("path+file:///a/b#../x@0.1.0", "/a/b/Cargo.toml", None);
    }
}
