//! What the faces of WASI do with files once they know what they are asked for: the checks, the faults that may strike, what it
//! costs, and the change itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use wasmtime::Caller;

use super::host::{Host, pay};
use super::preview1::{CHANGE, Done, GROW, LOOK, change, may_fail, system};
use super::system::{
    Answer, Content, Descriptor, End, Errno, Inode, Node, Open, Place, State, Times, resolve, rights,
};
use crate::file::HostFault;

type Call<'c> = Caller<'c, Host>;

/// A path below an open directory.
pub(super) type At<'p> = (u32, &'p str);

/// How a path is opened: made where it is not there, as a directory, made anew, cut to nothing.
pub(super) const CREATE: u32 = 1;
pub(super) const DIRECTORY: u32 = 2;
pub(super) const EXCLUSIVE: u32 = 4;
pub(super) const TRUNCATE: u32 = 8;

/// What a path below an open directory with these rights names.
pub(super) fn place(call: &mut Call<'_>, needed: u64, (fd, path): At<'_>, end: End) -> Done<Place> {
    let mut work = 0;
    let system = system(call);
    let found =
        system.directory(fd, needed).and_then(|base| resolve(&system.files, base, path, end, &mut work));
    pay(call, work)?;
    Ok(found?)
}

/// What a link at the end of a path stands for, as it is followed or not.
pub(super) fn end(follows: bool) -> End {
    if follows { End::Target } else { End::Link }
}

/// The file, directory or link that a path names.
pub(super) fn existing(call: &mut Call<'_>, needed: u64, at: At<'_>, follows: bool) -> Done<u32> {
    let place = place(call, needed, at, end(follows))?;
    Ok(place.existing(&system(call).files)?)
}

pub(super) fn create_directory(call: &mut Call<'_>, name: &str, at: At<'_>) -> Done {
    let place = place(call, rights::PATH_CREATE_DIRECTORY, at, End::Entry)?;
    may_fail(call, name, &GROW, place.directory)?;
    if place.ino.is_some() {
        return Err(Errno::Exist.into());
    }
    let node = Node::Directory { entries: BTreeMap::new(), parent: place.directory };
    change(call).create(place.directory, place.entry()?, node)?;
    Ok(())
}

pub(super) fn link(call: &mut Call<'_>, name: &str, (old, follows): (At<'_>, bool), new: At<'_>) -> Done {
    let ino = existing(call, rights::PATH_LINK_SOURCE, old, follows)?;
    let to = place(call, rights::PATH_LINK_TARGET, new, End::Entry)?;
    may_fail(call, name, &GROW, to.directory)?;
    if to.ino.is_some() {
        return Err(Errno::Exist.into());
    }
    if to.must_be_directory {
        return Err(Errno::Noent.into());
    }
    Ok(change(call).link(to.directory, to.entry()?, ino)?)
}

/// How something is to be opened.
pub(super) struct Opening<'p> {
    pub(super) at: At<'p>,
    /// A link at the end of the path is followed.
    pub(super) follows: bool,
    pub(super) how: u32,
    /// The rights that are asked for, for it and for what is opened through it.
    pub(super) rights: u64,
    pub(super) inheriting: u64,
    pub(super) flags: u16,
}

/// Opens what a path names; its descriptor.
pub(super) fn open(call: &mut Call<'_>, name: &str, opening: &Opening<'_>) -> Done<u32> {
    let how = opening.how;
    let is_new = how & (CREATE | EXCLUSIVE) == CREATE | EXCLUSIVE;
    if how & (CREATE | DIRECTORY) == CREATE | DIRECTORY {
        return Err(Errno::Inval.into());
    }
    let end = match (end(opening.follows), how & CREATE != 0) {
        (End::Target, true) if !is_new => End::NewTarget,
        (_, true) => End::Entry,
        (end, false) => end,
    };
    let place = place(call, needed(how), opening.at, end)?;
    let faults: &[HostFault] = match how {
        _ if place.ino.is_none() && how & CREATE != 0 => &GROW,
        _ if how & TRUNCATE != 0 => &CHANGE,
        _ => &LOOK,
    };
    may_fail(call, name, faults, place.directory)?;
    // A free number is looked for among those that are taken.
    pay(call, system(call).descriptors.len() * DESCRIPTOR_BYTES)?;
    system(call).may_open()?;
    if how & CREATE != 0 && place.must_be_directory && place.name.is_some() {
        return Err(Errno::Isdir.into());
    }
    let is_written = opening.rights & rights::FD_WRITE != 0;
    let existing = match place.ino {
        Some(_) if is_new => return Err(Errno::Exist.into()),
        Some(_) => Some(open_existing(system(call), &place, how, is_written)?),
        None if how & CREATE == 0 => return Err(Errno::Noent.into()),
        None => None,
    };
    let is_directory = matches!(existing, Some(Open::Directory { .. }));
    let (rights, inheriting) = granted(system(call).descriptor(opening.at.0)?, is_directory, opening)?;
    let system = change(call);
    let open = match existing {
        Some(open) => open,
        None => {
            let node = Node::File(Content::default());
            Open::File { ino: system.create(place.directory, place.entry()?, node)?, at: 0 }
        }
    };
    if let Open::File { ino, .. } = open
        && how & TRUNCATE != 0
    {
        system.resize(ino, 0)?;
    }
    Ok(system.add(Descriptor { open, flags: opening.flags, rights, inheriting })?)
}

/// Looking at one descriptor costs as much as reading so many bytes.
const DESCRIPTOR_BYTES: usize = 4;

/// The rights that a directory must have for something to be opened so.
fn needed(how: u32) -> u64 {
    let right = |flag: u32, right: u64| if how & flag != 0 { right } else { 0 };
    rights::PATH_OPEN
        | right(CREATE, rights::PATH_CREATE_FILE)
        | right(TRUNCATE, rights::PATH_FILESTAT_SET_SIZE)
}

/// The rights that a new descriptor has of those that are asked for: those that apply to what it stands for. All of them must
/// be inherited from the directory that it is opened through.
fn granted(above: &Descriptor, is_directory: bool, opening: &Opening<'_>) -> Answer<(u64, u64)> {
    let (base, inheriting) = match is_directory {
        true => (opening.rights & rights::DIRECTORY, opening.inheriting & (rights::DIRECTORY | rights::FILE)),
        false => (opening.rights & rights::FILE, 0),
    };
    let is_held = (base | inheriting) & !above.inheriting == 0;
    if is_held { Ok((base, inheriting)) } else { Err(Errno::Notcapable) }
}

/// Opens what is there.
fn open_existing(system: &State, place: &Place, how: u32, is_written: bool) -> Answer<Open> {
    let ino = place.existing(&system.files)?;
    match system.files.get(ino).node {
        Node::File(_) | Node::Link(_) if how & DIRECTORY != 0 => Err(Errno::Notdir),
        Node::Link(_) => Err(Errno::Loop),
        Node::File(_) => Ok(Open::File { ino, at: 0 }),
        Node::Directory { .. } if how & (CREATE | TRUNCATE) != 0 => Err(Errno::Isdir),
        Node::Directory { .. } if is_written => Err(Errno::Isdir),
        Node::Directory { .. } => Ok(Open::Directory { ino, preopen: None }),
    }
}

/// What a symbolic link says.
pub(super) fn read_link(call: &mut Call<'_>, at: At<'_>) -> Done<Arc<str>> {
    let ino = existing(call, rights::PATH_READLINK, at, false)?;
    match &system(call).files.get(ino).node {
        Node::Link(target) => Ok(target.clone()),
        _ => Err(Errno::Inval.into()),
    }
}

pub(super) fn remove_directory(call: &mut Call<'_>, name: &str, at: At<'_>) -> Done {
    let place = place(call, rights::PATH_REMOVE_DIRECTORY, at, End::Entry)?;
    may_fail(call, name, &CHANGE, place.directory)?;
    place.existing(&system(call).files)?;
    Ok(change(call).remove_directory(place.directory, place.entry()?)?)
}

pub(super) fn rename(call: &mut Call<'_>, name: &str, old: At<'_>, new: At<'_>) -> Done {
    let from = place(call, rights::PATH_RENAME_SOURCE, old, End::Entry)?;
    let to = place(call, rights::PATH_RENAME_TARGET, new, End::Entry)?;
    may_fail(call, name, &GROW, to.directory)?;
    let files = &system(call).files;
    let ino = from.existing(files)?;
    if to.must_be_directory && !files.is_directory(ino) {
        return Err(Errno::Notdir.into());
    }
    let (from, to) = ((from.directory, from.entry()?), (to.directory, to.entry()?));
    let mut work = 0;
    let renamed = change(call).rename(from, to, &mut work);
    pay(call, work)?;
    Ok(renamed?)
}

pub(super) fn symlink(call: &mut Call<'_>, name: &str, target: &str, at: At<'_>) -> Done {
    let place = place(call, rights::PATH_SYMLINK, at, End::Entry)?;
    may_fail(call, name, &GROW, place.directory)?;
    if place.ino.is_some() {
        return Err(Errno::Exist.into());
    }
    if place.must_be_directory {
        return Err(Errno::Noent.into());
    }
    if target.starts_with('/') {
        return Err(Errno::Perm.into());
    }
    change(call).create(place.directory, place.entry()?, Node::Link(target.into()))?;
    Ok(())
}

pub(super) fn unlink(call: &mut Call<'_>, name: &str, at: At<'_>) -> Done {
    let place = place(call, rights::PATH_UNLINK_FILE, at, End::Entry)?;
    may_fail(call, name, &CHANGE, place.directory)?;
    let files = &system(call).files;
    if files.is_directory(place.existing(files)?) {
        return Err(Errno::Isdir.into());
    }
    Ok(change(call).unlink(place.directory, place.entry()?)?)
}

/// Has what was written of a file or directory be on the disk.
pub(super) fn sync(call: &mut Call<'_>, name: &str, fd: u32, needed: u64) -> Done {
    let (ino, needed) = match system(call).descriptor(fd)?.open {
        Open::File { ino, .. } => (ino, needed),
        // A directory has no data apart.
        Open::Directory { ino, .. } => (ino, rights::FD_SYNC),
        _ => return Err(Errno::Inval.into()),
    };
    system(call).with_rights(fd, needed)?;
    may_fail(call, name, &CHANGE, ino)?;
    if system(call).may_crash() {
        change(call).sync(ino);
    }
    Ok(())
}

pub(super) fn advise(call: &Call<'_>, fd: u32, offset: u64, len: u64) -> Done {
    system(call).file(fd, rights::FD_ADVISE)?;
    if offset.checked_add(len).is_none() { Err(Errno::Inval.into()) } else { Ok(()) }
}

pub(super) fn set_size(call: &mut Call<'_>, name: &str, fd: u32, size: u64) -> Done {
    let (ino, _) = system(call).file(fd, rights::FD_FILESTAT_SET_SIZE)?;
    may_fail(call, name, &GROW, ino)?;
    Ok(change(call).resize(ino, size)?)
}

/// Bytes that a file, a directory or a link has.
pub(super) fn size(inode: &Inode) -> u64 {
    match &inode.node {
        Node::File(content) => content.size(),
        Node::Directory { .. } => 0,
        Node::Link(target) => target.len() as u64,
    }
}

/// Sets those times of an inode that `which` names: accessed to the given one (1) or now (2), modified to the given one (4) or
/// now (8).
pub(super) fn set_times(call: &mut Call<'_>, ino: u32, [accessed, modified]: [u64; 2], which: u32) -> Done {
    let system = system(call);
    let mut times: Times = system.files.get(ino).times;
    for (time, given, bits) in
        [(&mut times.accessed, accessed, which), (&mut times.modified, modified, which >> 2)]
    {
        match bits & 3 {
            0 => {}
            1 => *time = given,
            2 => *time = system.now(),
            _ => return Err(Errno::Inval.into()),
        }
    }
    times.changed = system.now();
    if which > 15 {
        return Err(Errno::Inval.into());
    }
    change(call).files.set_times(ino, times);
    Ok(())
}
