//! Where what belongs to a target is kept.

use std::io::Error;
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, anyhow};

use crate::disk;
use crate::file::TraceFile;
use crate::outcome::Failure;

/// A target's folder below the one that the user named.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    base: PathBuf,
    folder: PathBuf,
}

/// Bytes that the name of a folder may have; a longer one is cut, and ends in a hash.
const NAME_MAX: usize = 200;
/// What stands between the names of two targets. A name has none of it: every part of a path has a letter.
const BETWEEN: &str = "++";
/// What the name of the current folder begins with, wherever that is. No part of a path is `.`.
const HERE: &str = "+.+";

impl Place {
    /// The place of this target below `out`.
    pub fn of(target: &Path, out: &Path) -> Place {
        Place { base: out.to_path_buf(), folder: out.join(name_of(target)) }
    }

    /// The place of a target and of what it is compared with, if it is.
    pub fn of_both(target: &Path, other: Option<&Path>, out: &Path) -> Place {
        let Some(other) = other else { return Place::of(target, out) };
        let name = cut(format!("{}{BETWEEN}{}", full_name_of(target), full_name_of(other)));
        Place { base: out.to_path_buf(), folder: out.join(name) }
    }

    /// The folders of campaigns below `out` in which this target was compared with others, in the order of their names.
    pub fn beside_others(target: &Path, out: &Path) -> Vec<PathBuf> {
        let start = format!("{}{BETWEEN}", full_name_of(target));
        let entries = std::fs::read_dir(out).into_iter().flatten().filter_map(Result::ok);
        let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&start));
        let mut folders: Vec<PathBuf> = named.map(|entry| entry.path()).collect();
        folders.sort();
        folders
    }

    /// The name of the folder.
    pub(super) fn name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// A folder that the user named.
    pub fn at(folder: &Path) -> Place {
        Place { base: folder.to_path_buf(), folder: folder.to_path_buf() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of findings.
    pub fn findings(&self) -> PathBuf {
        self.folder.join("findings")
    }

    /// The file of a finding.
    pub fn trace(&self, failure: &Failure) -> PathBuf {
        self.findings().join(format!("{}.json", failure.id()))
    }

    /// The file of a finding that was saved; where it is not there, that of the same failure at another place, as another build has it.
    pub fn saved(&self, failure: &Failure) -> PathBuf {
        let path = self.trace(failure);
        if path.exists() {
            return path;
        }
        let is_it = |path: &PathBuf| {
            let saved = TraceFile::read(path).ok().and_then(|file| file.failure);
            saved.is_some_and(|saved| saved.is_same(failure) || saved.has_moved(failure))
        };
        let mut files = disk::files(&self.findings(), Some("json")).unwrap_or_default().into_iter();
        files.find(is_it).unwrap_or(path)
    }

    /// Makes the folders.
    ///
    /// # Errors
    /// One is a symbolic link, or cannot be made.
    pub fn make(&self) -> Result<()> {
        disk::make_folder(&self.base, &self.findings()).map_err(|error| {
            match error.root_cause().is::<Error>() {
                true => anyhow!("{error:#}; `--in-memory` needs none, and --out names another"),
                false => error,
            }
        })
    }
}

/// The name of a target's folder: its path from the current folder with `+` between the parts, so that no two targets
/// have the same. A path from elsewhere begins with `+`.
fn name_of(target: &Path) -> String {
    cut(full_name_of(target))
}

fn full_name_of(target: &Path) -> String {
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
    // It may be there no more.
    let absolute = target.canonicalize().unwrap_or_else(|_| here.join(target));
    if absolute == here {
        return format!("{HERE}{}", plain(&here.file_name().unwrap_or_default().to_string_lossy()));
    }
    let below = absolute.strip_prefix(&here).ok();
    let parts = below.unwrap_or(&absolute).components().filter_map(|part| match part {
        Component::Normal(name) => Some(plain(&name.to_string_lossy())),
        _ => None,
    });
    let name = parts.collect::<Vec<_>>().join("+");
    if below.is_none() { format!("+{name}") } else { name }
}

/// A name that is too long, cut.
fn cut(name: String) -> String {
    if name.len() <= NAME_MAX {
        return name;
    }
    let cut = (0..=NAME_MAX).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    format!("{}+{}", &name[..cut], &blake3::hash(name.as_bytes()).to_hex()[..16])
}

/// A part of a path without what has a meaning in a name.
fn plain(part: &str) -> String {
    let plain = part.replace('%', "%25").replace('+', "%2B");
    // A name may not begin as a flag does.
    plain.strip_prefix('-').map_or(plain.clone(), |rest| format!("%2D{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_name_of_its_own() {
        let check = |target: &str, expected: &str| assert_eq!(name_of(Path::new(target)), expected);
        check("/nowhere/a/x.wasm", "+nowhere+a+x.wasm");
        check("/nowhere/a+x.wasm", "+nowhere+a%2Bx.wasm");
        check("/nowhere/...wat", "+nowhere+...wat");
        check("/nowhere/-x.wat", "+nowhere+%2Dx.wat");
        check("Cargo.toml", "Cargo.toml");
        check("./src/../src/lib.rs", "src+lib.rs");
        check(".", "+.+host");
        check("../host", "+.+host");
        let both = |target: &str, other: &str| {
            Place::of_both(Path::new(target), Some(Path::new(other)), Path::new("out")).name()
        };
        assert_eq!(both("Cargo.toml", "src/lib.rs"), "Cargo.toml++src+lib.rs");
        // The second begins with `+` by itself, and no first ends with one.
        assert_eq!(both("/nowhere/a", "/nowhere/b"), "+nowhere+a+++nowhere+b");
        let long = format!("/{}", "x".repeat(300));
        assert_eq!(name_of(Path::new(&long)).len(), 217);
        assert_ne!(name_of(Path::new(&long)), name_of(Path::new(&format!("{long}y"))));
    }
}
