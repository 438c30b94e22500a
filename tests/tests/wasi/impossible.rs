//! What no guest leaves behind.

use std::collections::BTreeMap;

use super::records::{Descriptor, Disk, Inode, Node, ON_DISK, Open, Pending, State};

/// A file, a directory and a link of a state.
#[derive(Clone, Copy)]
pub(super) struct Samples {
    pub(super) file: u32,
    pub(super) folder: u32,
    pub(super) link: u32,
}

/// What is changed, and how.
pub(super) type Change = (&'static str, fn(&mut State, Samples));

pub(super) const OF_NAMES: [Change; 14] = [
    ("a root that has a name", |s, _| s.name(1, "r", 1)),
    ("an entry of nothing", |s, _| s.name(1, "n", 999)),
    ("an entry named `..`", |s, some| s.name(1, "..", some.file)),
    ("an entry named `.`", |s, some| s.name(1, ".", some.file)),
    ("an entry with a slash", |s, some| s.name(1, "a/b", some.file)),
    ("an entry with a zero", |s, some| s.name(1, "a\0", some.file)),
    ("an entry without a name", |s, some| s.name(1, "", some.file)),
    ("an entry with a long name", |s, some| s.name(1, &"n".repeat(256), some.file)),
    ("a directory with two names", |s, some| s.name(1, "n", some.folder)),
    ("a directory with another parent", |s, some| *s.directory(some.folder).1 = 12345),
    ("a root that is below", |s, some| *s.directory(1).1 = some.folder),
    ("a directory in itself", |s, some| {
        s.directory(1).0.retain(|_, ino| *ino != some.folder);
        s.name(some.folder, "n", some.folder);
        *s.directory(some.folder).1 = some.folder;
    }),
    ("a number that is too large", |s, some| {
        s.inodes.insert(1 << 15, s.inodes[&some.link].clone());
        s.name(1, "n", 1 << 15);
    }),
    ("two directories in one another", |s, _| {
        for (ino, other) in [(901, 902), (902, 901)] {
            let entries = BTreeMap::from([("n".to_string(), other)]);
            let node = Node::Directory { entries, parent: other };
            s.inodes.insert(ino, Inode { node, times: [0; 3], links: 1, mode: 0 });
        }
    }),
];

pub(super) const OF_FILES: [Change; 8] = [
    ("no root", |s, _| drop(s.inodes.remove(&1))),
    ("a root that is a file", |s, _| s.node(1, Node::File(0))),
    ("file 0", |s, some| drop(s.inodes.insert(0, s.inodes[&some.link].clone()))),
    ("a file that is nowhere", |s, some| drop(s.inodes.insert(999, s.inodes[&some.link].clone()))),
    ("a link to nowhere", |s, some| s.node(some.link, Node::Link(String::new()))),
    ("a link to too much", |s, some| s.node(some.link, Node::Link("a".repeat(4097)))),
    ("a link with a zero", |s, some| s.node(some.link, Node::Link("\0".into()))),
    ("a file that is too large", |s, some| s.node(some.file, Node::File((1 << 40) + 1))),
];

pub(super) const OF_OTHERS: [Change; 15] = [
    ("a working directory that is nowhere", |s, _| s.process.directory.clear()),
    ("a working directory with a long name", |s, _| s.process.directory = "/".repeat(4097)),
    ("a mask with other bits", |s, _| s.process.umask = 0o1000),
    ("too many exceptions", |s, _| s.process.caught = vec![0; 257]),
    ("a descriptor of nothing", |s, _| open(s, Open::File { ino: 999, at: 0 })),
    ("a directory that is open as a file", |s, _| open(s, Open::File { ino: 1, at: 0 })),
    ("a file that is open as a directory", |s, some| {
        open(s, Open::Directory { ino: some.file, preopen: None });
    }),
    ("too many descriptors", |s, _| {
        (0..1100).for_each(|fd| drop(s.descriptors.insert(fd, s.descriptors[&1].clone())));
    }),
    ("a clock before the start", |s, _| s.clock = 999_999_999),
    ("a clock after the end", |s, _| s.clock = u64::MAX),
    ("input that was read beyond its end", |s, _| s.stdin_at = 6),
    ("input that was read beyond all", |s, _| s.stdin_at = u64::MAX),
    ("input that was read and is not known", |s, _| (s.stdin, s.stdin_at) = (None, 1)),
    ("room for more", |s, _| s.bytes_max = u64::MAX),
    ("room for less", |s, _| s.bytes_max = 10),
];

pub(super) const OF_DISKS: [Change; 9] = [
    ("no disk", |s, _| s.disk = None),
    ("a disk without a root", |s, _| drop(disk(s).inodes.remove(&1))),
    ("an entry of nothing on the disk", |s, _| match &mut disk(s).inodes.get_mut(&1).unwrap().node {
        Node::Directory { entries, .. } => drop(entries.insert("n".into(), 999)),
        other => panic!("{other:?}"),
    }),
    ("a number that is too large on the disk", |s, some| {
        let inode = s.inodes[&some.link].clone();
        drop(disk(s).inodes.insert(ON_DISK + 5, inode));
    }),
    ("room for more on the disk", |s, _| disk(s).bytes_max = u64::MAX),
    ("too many changes", |s, _| disk(s).pending = vec![Pending::Size { ino: 2, size: 0 }; 257]),
    ("a change of file 0", |s, _| disk(s).pending.push(Pending::Size { ino: 0, size: 0 })),
    ("a block that is too large", |s, _| {
        disk(s).pending.push(Pending::Bytes { ino: 2, offset: 0, bytes: vec![0; 4097] });
    }),
    ("a witness that is too large", |s, _| disk(s).witness.push(ON_DISK)),
];

fn disk(state: &mut State) -> &mut Disk {
    state.disk.as_mut().unwrap()
}

fn open(state: &mut State, open: Open) {
    state.descriptors.insert(50, Descriptor { open, flags: 0, rights: u64::MAX, inheriting: u64::MAX });
}
