//! From a path below an open directory to what it names. Nothing above that directory is reachable.

use std::collections::VecDeque;
use std::sync::Arc;

use super::errno::{Answer, Errno};
use super::files::{Files, Ino, NAME_MAX, Node};

/// Links that a path may lead through.
const LINKS_MAX: u32 = 40;
/// Bytes of a path.
const PATH_MAX: usize = 4096;
/// Parts of a path, with those of the links it leads through.
const PARTS_MAX: usize = 4096;
/// Looking at one part of a path costs as much as reading so many bytes, and a byte of it as this many.
const PART_BYTES: usize = 256;
const BYTE_BYTES: usize = 4;

/// What a link at the end of a path stands for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum End {
    /// What it leads to.
    Target,
    /// Itself, unless a slash follows it.
    Link,
    /// Itself: it is to be made, replaced or removed.
    Entry,
    /// What it leads to, which is made where it is not there: a slash after it is an error.
    NewTarget,
}

/// What a path names.
#[derive(Debug, PartialEq)]
pub(crate) struct Place {
    /// The directory that holds the entry.
    pub(crate) directory: Ino,
    /// The name of the entry; `None` where the path names that directory itself.
    pub(crate) name: Option<Arc<str>>,
    /// What the entry refers to, where it is there.
    pub(crate) ino: Option<Ino>,
    /// The path ends in a way that only a directory may: `a/`.
    pub(crate) must_be_directory: bool,
}

impl Place {
    /// What it refers to.
    pub(crate) fn existing(&self, files: &Files) -> Answer<Ino> {
        let ino = self.ino.ok_or(Errno::Noent)?;
        if self.must_be_directory && !files.is_directory(ino) { Err(Errno::Notdir) } else { Ok(ino) }
    }

    /// The entry's name, to be made, replaced or removed.
    pub(crate) fn entry(&self) -> Answer<&str> {
        self.name.as_deref().ok_or(Errno::Inval)
    }
}

/// Resolves a path below the directory `base`. What it costs is added to `work`, in bytes.
pub(crate) fn resolve(files: &Files, base: Ino, path: &str, end: End, work: &mut usize) -> Answer<Place> {
    check_path(path)?;
    let mut rest: VecDeque<Arc<str>> = VecDeque::new();
    let mut must_be_directory = path.ends_with('/');
    push_front(&mut rest, path, work)?;
    let mut above = vec![base];
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        let directory = *above.last().expect("the base is never left");
        if !files.is_directory(directory) {
            return Err(Errno::Notdir);
        }
        if &*part == "." {
            continue;
        }
        if &*part == ".." {
            above.pop();
            if above.is_empty() {
                return Err(Errno::Perm);
            }
            continue;
        }
        if part.len() > NAME_MAX {
            return Err(Errno::Nametoolong);
        }
        let ino = files.lookup(directory, &part)?;
        let is_last = rest.is_empty();
        let follows = match end {
            End::Target => true,
            End::Link => must_be_directory,
            End::Entry => false,
            End::NewTarget => !must_be_directory,
        };
        if let Some(ino) = ino
            && let Node::Link(target) = &files.get(ino).node
            && (follows || !is_last)
        {
            links += 1;
            if links > LINKS_MAX {
                return Err(Errno::Loop);
            }
            must_be_directory |= is_last && target.ends_with('/');
            push_front(&mut rest, target, work)?;
            continue;
        }
        if is_last {
            return Ok(Place { directory, name: Some(part), ino, must_be_directory });
        }
        above.push(ino.ok_or(Errno::Noent)?);
    }
    let directory = *above.last().expect("the base is never left");
    if !files.is_directory(directory) {
        return Err(Errno::Notdir);
    }
    Ok(Place { directory, name: None, ino: Some(directory), must_be_directory: true })
}

fn check_path(path: &str) -> Answer<()> {
    match path {
        "" => Err(Errno::Noent),
        path if path.len() > PATH_MAX => Err(Errno::Nametoolong),
        path if path.contains('\0') => Err(Errno::Inval),
        _ => Ok(()),
    }
}

/// Puts the parts of a path before those that are left. A `.` matters at the end alone: it names a directory by itself.
fn push_front(rest: &mut VecDeque<Arc<str>>, path: &str, work: &mut usize) -> Answer<()> {
    *work += path.len() * BYTE_BYTES;
    if path.starts_with('/') {
        return Err(Errno::Perm);
    }
    let parts = path.rsplit('/').filter(|part| !part.is_empty()).enumerate();
    for (_, part) in parts.filter(|(from_end, part)| *part != "." || *from_end == 0) {
        *work += PART_BYTES;
        rest.push_front(part.into());
    }
    if rest.len() > PARTS_MAX { Err(Errno::Nametoolong) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::content::Content;
    use super::super::files::ROOT;
    use super::*;

    /// `/d/e/f`, a file, with links beside it.
    fn tree() -> Files {
        let mut files = Files::new(1 << 20, 0);
        let directory = |parent| Node::Directory { entries: BTreeMap::new(), parent };
        let d = files.create(ROOT, "d", directory(ROOT), 0, |_| false).unwrap();
        let e = files.create(d, "e", directory(d), 0, |_| false).unwrap();
        files.create(e, "f", Node::File(Content::default()), 0, |_| false).unwrap();
        for (at, name, target) in [
            (ROOT, "to-f", "d/e/f"),
            (ROOT, "to-d", "d/"),
            (e, "up", "../.."),
            (ROOT, "out", "../d"),
            (ROOT, "root", "/d"),
            (ROOT, "loop", "loop"),
            (ROOT, "nowhere", "d/none"),
        ] {
            files.create(at, name, Node::Link(target.into()), 0, |_| false).unwrap();
        }
        files
    }

    fn check(path: &str, expected: &str) {
        let files = tree();
        let shown = |end| match resolve(&files, ROOT, path, end, &mut 0) {
            Err(errno) => format!("{errno:?}"),
            Ok(place) => {
                let name = place.name.as_deref().unwrap_or("itself");
                let ino = place.ino.map_or("none".to_string(), |ino| ino.to_string());
                format!("{name} {ino}{}", if place.must_be_directory { "/" } else { "" })
            }
        };
        let mut found = [End::Target, End::Link, End::Entry].map(shown).to_vec();
        found.dedup();
        let found = found.join(" or ");
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn paths_stay_below_the_base() {
        check("d/e/f", "f 4");
        check("d//./e/f", "f 4");
        check("d/e/../e/f", "f 4");
        check("d/e/..", "itself 2/");
        check(".", "itself 1/");
        check("d/e/f/", "f 4/");
        check("d/.", "itself 2/");
        check("new/.", "Noent");
        check("d/e/f/.", "Notdir");
        check("d/e/f/g", "Notdir");
        check("d/e/f/..", "Notdir");
        check("d/new", "new none");
        check("new/d", "Noent");
        check("..", "Perm");
        check("d/../..", "Perm");
        check("/d", "Perm");
        check("", "Noent");
        check("d\0", "Inval");
        check(&"a".repeat(5000), "Nametoolong");
    }

    #[test]
    fn links_are_followed_and_lead_nowhere_else() {
        check("to-f", "f 4 or to-f 5");
        check("to-f/", "f 4/ or to-f 5/");
        check("to-d/e/f", "f 4");
        check("to-d", "d 2/ or to-d 6");
        check("d/e/up", "itself 1/ or up 7");
        check("d/e/up/to-d/e/up/d/e/f", "f 4");
        check("d/e/up/..", "Perm");
        check("out", "Perm or out 8");
        check("root/e", "Perm");
        check("loop", "Loop or loop 10");
        check("nowhere", "none none or nowhere 11");
    }
}
