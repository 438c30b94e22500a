//! From nothing to a harness that runs: `spelunk new` writes one with a bug to find, `spelunk init` one beside a package, and
//! both give it the SDK.

mod name;
mod sdk;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{disk, load, report};
pub use sdk::{sdk_of_user, write_sdk};

/// The folder of a harness, in that of the package that it is beside.
const BESIDE: &str = "spelunk";
/// The folder of the SDK, in that of a harness.
const VENDORED: &str = "spelunk-guest";

/// Bytes of a manifest that are looked at.
const MANIFEST_MAX: u64 = 1 << 20;

/// A harness that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Created {
    /// Its folder.
    pub folder: PathBuf,
    /// Why cargo refuses the workspace above it now, and what to do.
    pub warning: Option<String>,
}

/// Where the SDK is that a harness depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sdk {
    /// In the user's folder, once for all harnesses.
    OfUser,
    /// In the harness, which then builds on other machines too.
    Vendored,
}

/// Writes a harness, and code with a bug that it finds, to the folder, which is new or empty. The package is called as the folder is,
/// unless a name is given.
///
/// # Errors
/// There is something at the path; it cannot be written to; the name cannot be that of a package; the SDK has no place.
pub fn new(folder: &Path, name: Option<&str>, sdk: Sdk) -> Result<Created> {
    let name = match name {
        Some(name) => name.to_string(),
        None => name::of_folder(folder)?,
    };
    name::check(&name)?;
    let recent = include_str!("files/recent.rs");
    let harness = include_str!("files/harness.rs").replace("FOLDER", &shown(folder));
    let files = [("src/lib.rs", harness), ("src/recent.rs", recent.to_string())];
    create(folder, |path| manifest(&name, "", path), &files, sdk)
}

/// Writes a harness for the package in the folder, beside it: in a folder `spelunk` of its own.
///
/// # Errors
/// There is no package with a library; otherwise as [`new`].
pub fn init(package: &Path, sdk: Sdk) -> Result<Created> {
    let folder = package.join(BESIDE);
    let (name, library) = load::library_of(package)?;
    let depends = format!("{name} = {{ path = \"..\" }}\n");
    let harness = include_str!("files/beside.rs");
    let harness = harness.replace("LIBRARY", &library).replace("FOLDER", &shown(&folder));
    let manifest = |path: &str| manifest(&format!("{name}-spelunk"), &depends, path);
    create(&folder, manifest, &[("src/lib.rs", harness)], sdk)
}

/// A folder as the user named it, in a comment of one line.
fn shown(folder: &Path) -> String {
    report::command_line([folder.display().to_string().as_str()])
}

/// The manifest of a harness. Its last dependency is the SDK, at this path, which is written as TOML has it.
fn manifest(name: &str, depends: &str, sdk: &str) -> String {
    let edition = sdk::EDITION;
    format!(
        r#"[package]
name = "{name}"
version = "0.1.0"
edition = "{edition}"
publish = false

# What Spelunk explores is a .wasm, and that is what a library of this kind is built to.
[lib]
crate-type = ["cdylib"]

[dependencies]
{depends}spelunk-guest = {{ path = {sdk} }}

# It belongs to no workspace above it.
[workspace]
"#
    )
}

/// Where the SDK is, as TOML has it.
fn path_of_sdk(sdk: Sdk) -> Result<String> {
    let path = match sdk {
        Sdk::OfUser => sdk_of_user()?,
        Sdk::Vendored => PathBuf::from(VENDORED),
    };
    let path = path.to_str().with_context(|| format!("the path `{}` is not text", path.display()))?;
    Ok(toml::Value::from(path).to_string())
}

/// Moves what is in a folder to another, in which nothing of that name is; the manifest last, without which it is no harness.
fn move_all(from: &Path, to: &Path) -> io::Result<()> {
    let mut names: Vec<_> =
        std::fs::read_dir(from)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    names.sort_by_key(|name| name == "Cargo.toml");
    for name in names {
        if to.join(&name).symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        std::fs::rename(from.join(&name), to.join(&name))?;
    }
    Ok(())
}

/// What need not be kept: of what Spelunk writes all but the traces of findings, which are tests.
const IGNORED: &str = "/target\n.spelunk/*/*\n!.spelunk/*/findings/\n";

/// Writes all under another name first, and then gives it its own: a harness is there whole or not at all, and takes the place of nothing.
fn create(
    folder: &Path,
    manifest: impl FnOnce(&str) -> String,
    files: &[(&str, String)],
    sdk: Sdk,
) -> Result<Created> {
    refuse_used(folder)?;
    let manifest = manifest(&path_of_sdk(sdk)?);
    let cannot = || format!("cannot write to `{}`", folder.display());
    let above = match folder.parent().filter(|above| !above.as_os_str().is_empty()) {
        Some(above) => above,
        None => Path::new("."),
    };
    std::fs::create_dir_all(above).with_context(cannot)?;
    // An empty folder stays the one that it is: somebody may stand in it.
    let is_there = folder.is_dir();
    // The error without the name of the temporary folder, which means nothing to the user.
    let part = tempfile::Builder::new().prefix(".spelunk").tempdir_in(if is_there { folder } else { above });
    let part = part.map_err(|error| io::Error::from(error.kind())).with_context(cannot)?;
    let whole = part.path().join("whole");
    let files = files.iter().map(|(path, text)| (*path, text.as_str()));
    let files = files.chain([("Cargo.toml", &*manifest), (".gitignore", IGNORED)]);
    sdk::write_files(&whole, files).with_context(cannot)?;
    if sdk == Sdk::Vendored {
        write_sdk(&whole.join(VENDORED)).with_context(cannot)?;
    }
    // Fails where something was put there meanwhile.
    match is_there {
        true => move_all(&whole, folder).with_context(cannot)?,
        false => std::fs::rename(&whole, folder).with_context(cannot)?,
    }
    drop(part);
    Ok(Created { folder: folder.to_path_buf(), warning: conflict(folder) })
}

/// Refuses a path at which there is something, but for an empty folder.
fn refuse_used(folder: &Path) -> Result<()> {
    let shown = folder.display();
    match std::fs::symlink_metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot look at `{shown}`")),
        Ok(metadata) => {
            ensure!(metadata.is_dir(), "`{shown}` is there, and is no folder: nothing is overwritten")
        }
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot look at `{shown}`"))?;
    if entries.count() == 0 {
        return Ok(());
    }
    match folder.join("Cargo.toml").is_file() {
        true => {
            let command = |verb| report::command_line(["spelunk", verb, &shown.to_string()]);
            bail!(
                "`{shown}` holds a package, and nothing is overwritten: `{}` explores it if it is a harness, `{}` writes a \
                 harness for it if it is not",
                command("explore"),
                command("init")
            )
        }
        false => bail!("the folder `{shown}` is not empty, and nothing is overwritten: name a new one"),
    }
}

/// Whether a workspace above takes the new folder for a member, which cargo then refuses.
fn conflict(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    for above in folder.ancestors().skip(1) {
        let manifest = above.join("Cargo.toml");
        // What lies above is not always the user's: no device and no pipe is read.
        let text = disk::read_start(&manifest, MANIFEST_MAX).unwrap_or_default().0;
        let is_workspace = String::from_utf8_lossy(&text).contains("[workspace");
        if !is_workspace {
            continue;
        }
        let mut cargo = Command::new(load::cargo());
        cargo.args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"]).arg(&manifest);
        let output = cargo.output().ok()?;
        let said = String::from_utf8_lossy(&output.stderr);
        // It names them, each on a line.
        if said.contains("multiple workspace roots")
            && said.lines().any(|line| Path::new(line.trim()) == folder)
        {
            let below = folder.strip_prefix(above).ok()?.display();
            return Some(format!(
                "the workspace of `{}` takes the new folder for one of its members: put it under `[workspace]` there, as \
                 `exclude = [\"{below}\"]`",
                manifest.display()
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests;
