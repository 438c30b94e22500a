//! From the files that a run begins with to a tree of them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail};

use super::content::Content;
use super::errno::Errno;
use super::files::{Files, INODES_MAX, Ino, Node, ROOT, TEXTS_MAX};
use crate::file::{Entry, Image};

/// The tree that an image stands for, for so many bytes.
///
/// # Errors
/// Paths that name no entry; more bytes.
pub(super) fn files_of(image: &Image, bytes_max: u64, now: u64) -> Result<Files> {
    let mut files = Files::new(bytes_max, now);
    for (path, entry) in &image.entries {
        add(&mut files, path, entry, now)
            .with_context(|| format!("`{path}` cannot be given to the guest"))?;
    }
    Ok(files)
}

fn add(files: &mut Files, path: &str, entry: &Entry, now: u64) -> Result<()> {
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    let node = match entry {
        Entry::Directory => return directory(files, path, now).map(drop),
        Entry::File(_) => Node::File(Content::default()),
        Entry::Link(target) => Node::Link(target.as_str().into()),
    };
    let above = directory(files, above, now)?;
    let ino = files.create(above, name, node, now, |_| false).map_err(|errno| refused(files, errno))?;
    if let Entry::File(bytes) = entry {
        files.write(ino, 0, bytes, now).map_err(|errno| refused(files, errno))?;
    }
    Ok(())
}

/// The directory at a path below `/`, made where it is not there.
pub(super) fn directory(files: &mut Files, path: &str, now: u64) -> Result<Ino> {
    let mut at = ROOT;
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        at = match files.lookup(at, part).map_err(|errno| refused(files, errno))? {
            Some(ino) if files.is_directory(ino) => ino,
            Some(_) => bail!("`{part}` in `{path}` is no folder"),
            None => {
                let node = Node::Directory { entries: BTreeMap::new(), parent: at };
                files.create(at, part, node, now, |_| false).map_err(|errno| refused(files, errno))?
            }
        };
    }
    Ok(at)
}

fn refused(files: &Files, errno: Errno) -> anyhow::Error {
    match errno {
        Errno::Nospc if files.is_full() => {
            anyhow!("a guest may have {INODES_MAX} files and {} MiB of their names", TEXTS_MAX >> 20)
        }
        Errno::Nospc => anyhow!("there is no room for it; --files-max sets the limit"),
        Errno::Nametoolong => anyhow!("a name or a link's target in it is too long"),
        Errno::Inval => anyhow!("a name in it is none that a file can have"),
        Errno::Exist => anyhow!("it is there twice"),
        errno => anyhow!("it is refused: {errno:?}"),
    }
}
