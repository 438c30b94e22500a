//! In which file two systems differ first.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::pages::Hashing;
use super::files::{Files, Ino, Inode, Node, ROOT};

/// Bytes that are compared at once.
const CHUNK: usize = 4096;

impl Files {
    /// The first path, in the order of their names, at which the files are not those of another system, and what is there in
    /// each. When they were written does not count, and nothing that has no name.
    pub(crate) fn difference(&self, other: &Files) -> Option<(String, [String; 2])> {
        // Systems that were given the same calls number their files alike.
        let mut pairs = self.inodes.iter().zip(&other.inodes);
        let is_same = pairs.all(|((ino, one), (number, other))| {
            ino == number && (Arc::ptr_eq(one, other) || is_alike(*ino, one, other))
        });
        if is_same && self.inodes.len() == other.inodes.len() {
            return None;
        }
        // The names that lead to a directory, each with the place of that which it is in; and those that are still to be looked
        // at, the first of them last.
        let mut trail: Vec<(usize, &Arc<str>)> = Vec::new();
        let mut left = vec![(NOWHERE, ROOT, ROOT)];
        while let Some((above, one, two)) = left.pop() {
            let (Node::Directory { entries: a, .. }, Node::Directory { entries: b, .. }) =
                (&self.get(one).node, &other.get(two).node)
            else {
                continue;
            };
            let names: BTreeSet<&Arc<str>> = a.keys().chain(b.keys()).collect();
            let mut below = Vec::new();
            for name in names {
                trail.push((above, name));
                let shown = match (a.get(name), b.get(name)) {
                    (Some(one), Some(two)) => {
                        below.push((trail.len() - 1, *one, *two));
                        apart(self.get(*one), other.get(*two))
                    }
                    (one, two) => {
                        let shown = |files: &Files, ino: Option<&Ino>| {
                            ino.map_or("nothing".to_string(), |ino| what(&files.get(*ino).node))
                        };
                        Some([shown(self, one), shown(other, two)])
                    }
                };
                if let Some(shown) = shown {
                    return Some((path_of(&trail), shown));
                }
            }
            left.extend(below.into_iter().rev());
        }
        None
    }
}

/// No place in a trail.
const NOWHERE: usize = usize::MAX;
/// Bytes of a path that are shown, of a longer one the last.
const PATH_MAX: usize = 1000;

/// The path of the last name in a trail.
fn path_of(trail: &[(usize, &Arc<str>)]) -> String {
    let (mut parts, mut bytes) = (Vec::new(), 0);
    let mut next = trail.len().checked_sub(1);
    while let Some((above, name)) = next.and_then(|next| trail.get(next)) {
        if bytes > PATH_MAX {
            parts.push("…");
            break;
        }
        bytes += name.len();
        parts.push(name);
        next = Some(*above);
    }
    parts.iter().rev().map(|part| format!("/{part}")).collect()
}

/// Whether two of this number are the same but for when they were written, where entries of the same number are. What files hold
/// is compared by hashes, which pages remember.
fn is_alike(ino: Ino, one: &Inode, other: &Inode) -> bool {
    let is_same = match (&one.node, &other.node) {
        (Node::Directory { entries: one, .. }, Node::Directory { entries: other, .. }) => one == other,
        (Node::File(one), Node::File(other)) => {
            one.size() == other.size() && one.hash(ino, Hashing::Keyed) == other.hash(ino, Hashing::Keyed)
        }
        (Node::Link(one), Node::Link(other)) => one == other,
        _ => false,
    };
    is_same && one.mode == other.mode
}

/// What two are that are not the same; the entries of directories are looked at by themselves.
fn apart(one: &Inode, other: &Inode) -> Option<[String; 2]> {
    let both = [one, other];
    match (&one.node, &other.node) {
        (Node::File(_), Node::File(_)) => {
            if let Some(at) = first_byte(one, other) {
                let byte = |inode: &Inode| match byte_at(inode, at) {
                    Some(byte) => format!("a file with the byte {byte:#04x} at {at}"),
                    None => format!("a file of {at} bytes"),
                };
                return Some(both.map(byte));
            }
        }
        (Node::Directory { .. }, Node::Directory { .. }) => {}
        (Node::Link(a), Node::Link(b)) if a == b => {}
        _ => return Some(both.map(|inode| what(&inode.node))),
    }
    (one.mode != other.mode)
        .then(|| both.map(|inode| format!("{} of mode {:03o}", kind(&inode.node), inode.mode)))
}

fn what(node: &Node) -> String {
    match node {
        Node::File(content) => format!("a file of {} bytes", content.size()),
        Node::Link(target) => format!("a link to {target:?}"),
        Node::Directory { .. } => "a directory".to_string(),
    }
}

fn kind(node: &Node) -> &'static str {
    match node {
        Node::File(_) => "a file",
        Node::Link(_) => "a link",
        Node::Directory { .. } => "a directory",
    }
}

fn byte_at(inode: &Inode, at: u64) -> Option<u8> {
    let Node::File(content) = &inode.node else { return None };
    let mut byte = [0];
    (content.read(at, &mut byte) == 1).then_some(byte[0])
}

/// The first byte in which the contents of two files differ, or that only one has.
fn first_byte(one: &Inode, other: &Inode) -> Option<u64> {
    let (Node::File(a), Node::File(b)) = (&one.node, &other.node) else { return None };
    a.first_difference(b)
}

impl super::Content {
    /// The first byte in which they differ, or that only one has.
    fn first_difference(&self, other: &super::Content) -> Option<u64> {
        let indices: BTreeSet<u64> = self.leaves().chain(other.leaves()).map(|(index, _)| index).collect();
        for index in indices {
            let leaf = |content: &super::Content| content.leaf(index).cloned();
            let is_shared = match (leaf(self), leaf(other)) {
                (Some(one), Some(two)) => Arc::ptr_eq(&one, &two),
                _ => false,
            };
            if is_shared {
                continue;
            }
            let start = index * super::content::LEAF_BYTES;
            for at in (start..start + super::content::LEAF_BYTES).step_by(CHUNK) {
                let (mut one, mut two) = ([0; CHUNK], [0; CHUNK]);
                self.read(at, &mut one);
                other.read(at, &mut two);
                if let Some(byte) = one.iter().zip(&two).position(|(one, two)| one != two) {
                    // Behind the end of one there are zeros.
                    return Some((at + byte as u64).min(self.size().min(other.size())));
                }
            }
        }
        (self.size() != other.size()).then(|| self.size().min(other.size()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::Content;
    use super::*;

    /// Files with these contents.
    fn files(entries: &[(&str, &str)]) -> Files {
        let mut files = Files::new(1 << 20, 0);
        for (path, text) in entries {
            let mut directory = ROOT;
            let mut parts = path.split('/').peekable();
            while let Some(part) = parts.next() {
                let node = match parts.peek() {
                    Some(_) => Node::Directory { entries: Default::default(), parent: directory },
                    None if text.starts_with("->") => Node::Link(text[2..].into()),
                    None => Node::File(Content::default()),
                };
                let known = files.lookup(directory, part).unwrap();
                directory =
                    known.unwrap_or_else(|| files.create(directory, part, node, 5, |_| false).unwrap());
            }
            if !text.starts_with("->") {
                files.write(directory, 0, text.as_bytes(), 7).unwrap();
            }
        }
        files
    }

    fn check(one: &[(&str, &str)], other: &[(&str, &str)], expected: Option<[&str; 3]>) {
        let found = files(one).difference(&files(other)).map(|(path, [one, other])| [path, one, other]);
        assert_eq!(found, expected.map(|expected| expected.map(str::to_string)));
    }

    #[test]
    fn the_first_file_that_differs_is_named() {
        check(&[("a", "x")], &[("a", "x")], None);
        // However they are numbered.
        check(&[("a", "x"), ("b", "y")], &[("b", "y"), ("a", "x")], None);
        check(&[("d/a", "x"), ("d/b", "y")], &[("d/b", "y"), ("d/a", "x")], None);
        let bytes = ["/d/a", "a file with the byte 0x78 at 1", "a file with the byte 0x79 at 1"];
        check(&[("d/a", "xx")], &[("d/a", "xy")], Some(bytes));
        check(
            &[("a", "x")],
            &[("a", "xy")],
            Some(["/a", "a file of 1 bytes", "a file with the byte 0x79 at 1"]),
        );
        check(
            &[("a", "x")],
            &[("a", "x\0")],
            Some(["/a", "a file of 1 bytes", "a file with the byte 0x00 at 1"]),
        );
        check(&[("a", "x"), ("b/c", "")], &[("b/c", "")], Some(["/a", "a file of 1 bytes", "nothing"]));
        check(&[("b/c", "")], &[("b/c", ""), ("b/d", "->e")], Some(["/b/d", "nothing", "a link to \"e\""]));
        check(&[("b/c", "")], &[("b", "")], Some(["/b", "a directory", "a file of 0 bytes"]));
        let deep: String = vec!["directory"; 200].join("/");
        let (one, other) = (format!("{deep}/a"), format!("{deep}/b"));
        let found = files(&[(&one, "")]).difference(&files(&[(&other, "")])).unwrap().0;
        assert!(found.starts_with("/…/directory/") && found.ends_with("/directory/a") && found.len() < 1200);
        check(&[("b", "->x")], &[("b", "->y")], Some(["/b", "a link to \"x\"", "a link to \"y\""]));
    }

    #[test]
    fn holes_and_modes_are_compared() {
        let (mut one, mut other) = (files(&[("a", "")]), files(&[("a", "")]));
        let ino = one.lookup(ROOT, "a").unwrap().unwrap();
        one.write(ino, 1 << 20 | 5, b"z", 1).unwrap();
        other.resize(ino, (1 << 20) + 6, 2).unwrap();
        let found = one.difference(&other).unwrap();
        assert_eq!(found.1[0], "a file with the byte 0x7a at 1048581");
        other.write(ino, 1 << 20 | 5, b"z", 1).unwrap();
        assert!(one.difference(&other).is_none());
        other.set_mode(ino, 0o600, 9);
        let modes = ["a file of mode 666", "a file of mode 600"].map(str::to_string);
        assert_eq!(one.difference(&other), Some(("/a".to_string(), modes)));
    }
}
