//! Folders of the host, copied for a guest. Nothing is ever written back.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::budget::Budget;
use crate::disk;
use crate::file::{Entry, Image};

/// A folder that a guest finds open from the start.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Folder {
    /// Where it is here.
    pub host: PathBuf,
    /// Its path in the guest.
    pub guest: String,
}

/// Entries that are read, of all folders.
const ENTRIES_MAX: usize = 100_000;

impl std::str::FromStr for Folder {
    type Err = String;

    /// `HOST::GUEST`, or one path for both.
    fn from_str(text: &str) -> Result<Folder, String> {
        let (host, guest) = text.split_once("::").unwrap_or((text, text));
        if host.is_empty() || guest.is_empty() {
            return Err("it must be HOST::GUEST, or one path for both".to_string());
        }
        if guest.split('/').any(|part| part == "..") {
            return Err(format!(
                "`{guest}` leads out of the guest's files: give it another path with HOST::GUEST"
            ));
        }
        Ok(Folder { host: host.into(), guest: guest.to_string() })
    }
}

impl std::fmt::Display for Folder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}::{}", self.host.display(), self.guest)
    }
}

/// The files in these folders.
///
/// # Errors
/// A folder or file that cannot be read; names that are not UTF-8; more than `bytes_max` bytes; the budget is over.
pub(super) fn image_of(folders: &[Folder], bytes_max: u64, budget: &Budget) -> Result<Image> {
    let mut image = Image::default();
    let mut left = bytes_max;
    for Folder { host, guest } in folders {
        let parts = guest.split('/').filter(|part| !part.is_empty() && *part != ".");
        let root = parts.collect::<Vec<_>>().join("/");
        ensure!(host.is_dir(), "`{}` is not a folder, which --dir names", host.display());
        image.folders.push(guest.clone());
        let mut pending = vec![(host.clone(), root)];
        while let Some((from, to)) = pending.pop() {
            budget.check()?;
            if !to.is_empty() {
                image.entries.insert(to.clone(), Entry::Directory);
            }
            ensure!(
                image.entries.len() <= ENTRIES_MAX,
                "the folders of --dir hold more than {ENTRIES_MAX} files"
            );
            for path in entries(&from)? {
                let name = path.file_name().and_then(|name| name.to_str());
                let name = name.with_context(|| format!("the name of `{}` is not UTF-8", path.display()))?;
                let to = if to.is_empty() { name.to_string() } else { format!("{to}/{name}") };
                match entry(&path, &mut left)? {
                    Found::Folder => pending.push((path, to)),
                    Found::Entry(entry) => drop(image.entries.insert(to, entry)),
                    // A device or a pipe has no content to copy.
                    Found::Other => {}
                }
            }
        }
    }
    Ok(image)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read the folder `{}`", folder.display());
    let entries: std::io::Result<Vec<_>> = std::fs::read_dir(folder).with_context(cannot)?.collect();
    Ok(entries.with_context(cannot)?.into_iter().map(|entry| entry.path()).collect())
}

enum Found {
    Folder,
    Entry(Entry),
    Other,
}

fn entry(path: &Path, left: &mut u64) -> Result<Found> {
    let cannot = || format!("cannot read `{}`", path.display());
    let metadata = path.symlink_metadata().with_context(cannot)?;
    if metadata.is_dir() {
        return Ok(Found::Folder);
    }
    if metadata.is_symlink() {
        let target = std::fs::read_link(path).with_context(cannot)?;
        let target =
            target.to_str().with_context(|| format!("what `{}` links to is not UTF-8", path.display()))?;
        return Ok(Found::Entry(Entry::Link(target.to_string())));
    }
    if !metadata.is_file() {
        return Ok(Found::Other);
    }
    if metadata.len() > *left {
        bail!("there is no room for `{}`; --files-max sets the limit", path.display());
    }
    let bytes = disk::read_at_most(path, *left).with_context(cannot)?;
    *left -= bytes.len() as u64;
    Ok(Found::Entry(Entry::File(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_read_with_their_links_and_without_devices() {
        let here = tempfile::tempdir().unwrap();
        let at = |path: &str| here.path().join(path);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/f"), "bytes").unwrap();
        std::os::unix::fs::symlink("b/f", at("a/l")).unwrap();
        let folder = Folder { host: at("a"), guest: "/data/".into() };
        let image = image_of(std::slice::from_ref(&folder), 5, &Budget::unlimited()).unwrap();
        let entries: Vec<_> = image.entries.iter().map(|(path, entry)| format!("{path} {entry:?}")).collect();
        let bytes = format!("{:?}", b"bytes");
        let expected = [
            "data Directory".to_string(),
            "data/b Directory".to_string(),
            format!("data/b/f File({bytes})"),
            "data/l Link(\"b/f\")".to_string(),
        ];
        assert_eq!((entries, image.folders), (expected.to_vec(), vec!["/data/".to_string()]));
        let error = image_of(&[folder], 4, &Budget::unlimited()).unwrap_err().to_string();
        assert!(error.ends_with("a/b/f`; --files-max sets the limit"), "{error}");
    }

    #[test]
    fn a_folder_is_host_and_guest() {
        let check = |text: &str, expected: Result<(&str, &str), &str>| {
            let found = text.parse::<Folder>();
            let found = found.as_ref().map(|folder| (folder.host.to_str().unwrap(), &*folder.guest));
            assert_eq!(found.map_err(|error| &**error), expected);
        };
        check("a::/b", Ok(("a", "/b")));
        check(".", Ok((".", ".")));
        check("::b", Err("it must be HOST::GUEST, or one path for both"));
        check("../a", Err("`../a` leads out of the guest's files: give it another path with HOST::GUEST"));
    }
}
