//! From a path as POSIX knows it to what it names.
//!
//! A path is absolute, or below the working directory or an open one. Above `/` is `/`.

use super::super::host::pay;
use super::super::preview1::Done;
use super::super::system::{End, Errno, Files, Open, Place, ROOT, resolve};
use super::memory::{Call, text};
use super::system;

/// Stands for the working directory.
pub(super) const HERE: i32 = -100;
/// Looking at one entry of a directory costs as much as reading so many bytes.
const ENTRY_BYTES: usize = 64;

/// What the path at `path` names.
pub(super) fn place(call: &mut Call<'_>, at: i32, path: u32, last: End) -> Done<Place> {
    let path = text(call, path)?;
    if path.is_empty() {
        return Err(Errno::Noent.into());
    }
    place_of(call, at, &path, last)
}

/// As [`place`]; the empty path is that of the directory itself.
pub(super) fn place_or_itself(call: &mut Call<'_>, at: i32, path: u32, last: End) -> Done<Place> {
    let path = text(call, path)?;
    place_of(call, at, if path.is_empty() { "." } else { &path }, last)
}

pub(super) fn place_of(call: &mut Call<'_>, at: i32, path: &str, last: End) -> Done<Place> {
    let path = below_root(&absolute(call, at, path)?);
    let mut work = 0;
    let found = resolve(&system(call).files, ROOT, &path, last, &mut work);
    pay(call, work)?;
    Ok(found?)
}

/// The number of what a path names, which is there.
pub(super) fn existing(call: &mut Call<'_>, at: i32, path: u32, last: End) -> Done<u32> {
    let place = place(call, at, path, last)?;
    Ok(place.existing(&system(call).files)?)
}

/// The path from `/`.
fn absolute(call: &mut Call<'_>, at: i32, path: &str) -> Done<String> {
    if path.starts_with('/') {
        return Ok(path.to_string());
    }
    let directory = match at {
        HERE => system(call).process.directory.clone(),
        fd => {
            let Open::Directory { ino, .. } = system(call).descriptor(fd as u32)?.open else {
                return Err(Errno::Notdir.into());
            };
            path_of(call, ino)?
        }
    };
    Ok(format!("{directory}/{path}"))
}

/// The path from `/` of a directory.
pub(super) fn path_of(call: &mut Call<'_>, directory: u32) -> Done<String> {
    let mut names = Vec::new();
    let (mut at, mut work) = (directory, 0);
    while at != ROOT {
        let files = &system(call).files;
        let above = files.parent(at);
        let entries = files.entries(above)?;
        work += entries.len() * ENTRY_BYTES;
        // One that was removed has no name.
        let (name, _) = entries.iter().find(|(_, ino)| **ino == at).ok_or(Errno::Noent)?;
        names.push(name.clone());
        at = above;
    }
    pay(call, work)?;
    let parts = names.iter().rev().map(|name| format!("/{name}"));
    let path: String = parts.collect();
    Ok(if path.is_empty() { "/".to_string() } else { path })
}

/// A path below `/`: as this absolute one, but what would lead above `/` is left out.
fn below_root(path: &str) -> String {
    let mut kept = Vec::new();
    let mut depth = 0u32;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        match part {
            ".." if depth == 0 => continue,
            ".." => depth -= 1,
            "." => {}
            _ => depth += 1,
        }
        kept.push(part);
    }
    let end = if path.ends_with('/') && !kept.is_empty() { "/" } else { "" };
    if kept.is_empty() { ".".to_string() } else { kept.join("/") + end }
}

/// Fails where somebody may not do with a file or directory what these bits say.
pub(super) fn may(files: &Files, ino: u32, bits: u16) -> Result<(), Errno> {
    const READ: u16 = 0o444;
    const WRITE: u16 = 0o222;
    const EXECUTE: u16 = 0o111;
    let mode = files.get(ino).mode;
    let is_allowed = [READ, WRITE, EXECUTE].iter().all(|who| bits & who == 0 || mode & who != 0);
    if is_allowed { Ok(()) } else { Err(Errno::Acces) }
}

/// Fails where entries of a directory may not be made and removed.
pub(super) fn may_change(files: &Files, directory: u32) -> Result<(), Errno> {
    may(files, directory, 0o333)
}

#[cfg(test)]
mod tests {
    use super::below_root;

    #[test]
    fn above_the_root_is_the_root() {
        for (path, below) in [
            ("/", "."),
            ("/..", "."),
            ("/../a", "a"),
            ("//a//b/", "a/b/"),
            ("/a/../..", "a/.."),
            ("/a/../../b", "a/../b"),
            ("/./a", "./a"),
        ] {
            assert_eq!(below_root(path), below, "{path}");
        }
    }
}
