//! `fd_readdir`.

use crate::*;

/// Files `n0`, `n1`, … in a new directory, which is open.
#[track_caller]
fn files(count: usize) -> Fd {
    works(unsafe { path_create_directory(ROOT, "d") });
    let directory = open_directory(ROOT, "d");
    for n in 0..count {
        create(directory, &format!("n{n}"), b"");
    }
    directory
}

/// All entries, with a buffer of so many bytes.
#[track_caller]
fn all(directory: Fd, len: usize) -> Vec<Entry> {
    let (mut all, mut cookie) = (Vec::new(), 0);
    loop {
        let bytes = works(listed(directory, len, cookie));
        let entries = entries(&bytes);
        cookie = entries.last().map_or(cookie, |entry| entry.next);
        all.extend(entries);
        if bytes.len() < len {
            return all;
        }
    }
}

rules! {
    fn fd_readdir() {
        let found = all(DATA, 4096);
        let shown: Vec<_> = found.iter().map(|entry| (&*entry.name, entry.kind)).collect();
        assert_eq!(shown[..2], [(".", 3), ("..", 3)]);
        assert_eq!(found[0].ino, works(fd_filestat_get(DATA)).ino);
        assert_eq!(found[1].ino, works(fd_filestat_get(ROOT)).ino);
        let mut rest = shown[2..].to_vec();
        rest.sort();
        assert_eq!(rest, [("absolute", 7), ("dir", 3), ("file", 4), ("link", 7)]);
        for entry in &found[2..] {
            assert_eq!(entry.ino, works(stat(DATA, &entry.name)).ino);
        }
        let root = all(ROOT, 4096);
        assert_eq!(root[0].ino, root[1].ino);
        fails(listed(CLOSED, 9, 0), ERRNO_BADF);
        fails(listed(FD_STDIN, 9, 0), ERRNO_NOTDIR);
        fails(listed(open(DATA, "file", 0), 9, 0), ERRNO_NOTDIR);
    }

    /// With every size of the buffer that has room for an entry, each is listed once, in the same order.
    fn fd_readdir_in_parts() {
        let directory = files(30);
        let whole = all(directory, 1 << 16);
        assert_eq!(whole.len(), 32);
        assert!(whole.windows(2).all(|two| two[0].next < two[1].next));
        for len in (27..1200).step_by(7) {
            assert_eq!(all(directory, len), whole, "{len}");
        }
        // What has no room is cut, and the buffer is full.
        for len in 0..27 {
            assert_eq!(listed(directory, len, 2).map(|bytes| bytes.len()), Ok(len));
        }
        let (bytes, cut) = (works(listed(directory, 999, 0)), works(listed(directory, 60, 0)));
        assert_eq!(bytes[..60], cut);
        for (at, entry) in whole.iter().enumerate() {
            assert_eq!(entries(&works(listed(directory, 4096, entry.next))), whole[at + 1..]);
        }
        let after: Vec<u64> = vec![whole[31].next, whole[31].next + 1, u64::MAX];
        assert_eq!(after.into_iter().map(|cookie| listed(directory, 99, cookie)).collect::<Vec<_>>(), [const { Ok(Vec::new()) }; 3]);
    }

    /// What stays is listed once, whatever is added and removed meanwhile.
    fn fd_readdir_meanwhile() {
        let directory = files(40);
        let mut seen = Vec::new();
        let mut cookie = 0;
        for round in 0.. {
            let bytes = works(listed(directory, 100, cookie));
            for entry in entries(&bytes) {
                cookie = entry.next;
                seen.push(entry.name);
            }
            if bytes.len() < 100 {
                break;
            }
            create(directory, &format!("new{round}"), b"");
            // Odd ones go, seen or not.
            if round < 20 {
                works(path_unlink_file(directory, &format!("n{}", 2 * round + 1)));
            }
        }
        for n in (0..40).step_by(2) {
            assert_eq!(seen.iter().filter(|name| **name == format!("n{n}")).count(), 1, "n{n}");
        }
        seen.sort();
        assert!(seen.windows(2).all(|two| two[0] != two[1]));
    }

    fn fd_readdir_of_a_thousand() {
        let directory = files(1000);
        let mut found: Vec<_> = all(directory, 256).into_iter().map(|entry| entry.name).collect();
        found.sort();
        let mut expected: Vec<_> = (0..1000).map(|n| format!("n{n}")).chain([".".into(), "..".into()]).collect();
        expected.sort();
        assert_eq!(found, expected);
        for n in 0..1000 {
            works(path_unlink_file(directory, &format!("n{n}")));
        }
        works(path_remove_directory(ROOT, "d"));
        assert_eq!(names(directory).len(), 0);
    }
}
