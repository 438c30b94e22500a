//! Links, hard and symbolic.

use crate::*;

/// What a link leads to, in so much room.
fn target(path: &str, room: usize) -> Result<String, Errno> {
    let mut bytes = vec![9u8; room + 1];
    let used = unsafe { wasip1::path_readlink(ROOT, path, bytes.as_mut_ptr(), room)? };
    assert!(bytes[used..].iter().all(|byte| *byte == 9));
    bytes.truncate(used);
    Ok(String::from_utf8(bytes).unwrap())
}

/// Links that lead to one another: `l0` to a file, each further one to the one before.
#[track_caller]
fn chain(count: usize) {
    create(ROOT, "f", b"end");
    works(unsafe { wasip1::path_symlink("f", ROOT, "l0") });
    for n in 1..count {
        works(unsafe { wasip1::path_symlink(&format!("l{}", n - 1), ROOT, &format!("l{n}")) });
    }
}

rules! {
    fn path_link() {
        works(wasip1::path_link(DATA, 0, "file", ROOT, "hard"));
        let [one, two] = [works(stat(DATA, "file")), works(stat(ROOT, "hard"))];
        assert_eq!((one.ino, one.nlink, two.nlink), (two.ino, 2, 2));
        let fd = open(ROOT, "hard", 0);
        works(write(fd, b"J"));
        works(wasip1::path_unlink_file(DATA, "file"));
        assert_eq!((content(ROOT, "hard"), works(stat(ROOT, "hard")).nlink), (b"Jello".to_vec(), 1));
        let link = |flags, old, new| wasip1::path_link(ROOT, flags, old, ROOT, new);
        for (old, new, error) in [
            ("hard", "hard", ERRNO_EXIST), ("hard", "data", ERRNO_EXIST), ("hard", "data/", ERRNO_EXIST),
            ("hard", "data/link", ERRNO_EXIST), ("none", "new", ERRNO_NOENT), ("data", "new", ERRNO_PERM),
            (".", "new", ERRNO_PERM), ("hard", "new/", ERRNO_NOENT), ("hard/", "new", ERRNO_NOTDIR),
            ("hard", "none/new", ERRNO_NOENT), ("hard", "hard/new", ERRNO_NOTDIR), ("hard", "", ERRNO_NOENT),
            ("", "new", ERRNO_NOENT), ("../hard", "new", ERRNO_PERM), ("hard", "/new", ERRNO_PERM),
        ] {
            assert_eq!(link(0, old, new), Err(error), "{old} {new}");
        }
        fails(link(2, "hard", "new"), ERRNO_INVAL);
        fails(wasip1::path_link(CLOSED, 0, "hard", ROOT, "new"), ERRNO_BADF);
        fails(wasip1::path_link(ROOT, 0, "hard", CLOSED, "new"), ERRNO_BADF);
        fails(wasip1::path_link(fd, 0, "hard", ROOT, "new"), ERRNO_NOTDIR);
    }

    /// To a symbolic link, or to what it leads to.
    fn path_link_of_links() {
        works(wasip1::path_symlink("data/dir/inner", ROOT, "soft"));
        works(wasip1::path_link(ROOT, 0, "soft", ROOT, "same"));
        works(wasip1::path_link(ROOT, FOLLOW, "soft", ROOT, "hard"));
        assert_eq!((target("same", 99), works(stat(ROOT, "soft")).nlink), (Ok("data/dir/inner".into()), 2));
        assert_eq!(works(stat(ROOT, "hard")).ino, works(stat(DATA, "dir/inner")).ino);
        works(wasip1::path_symlink("none", ROOT, "dangling"));
        works(wasip1::path_link(ROOT, 0, "dangling", ROOT, "again"));
        fails(wasip1::path_link(ROOT, FOLLOW, "dangling", ROOT, "new"), ERRNO_NOENT);
        fails(wasip1::path_link(ROOT, 0, "hard", ROOT, "dangling"), ERRNO_EXIST);
    }

    fn path_symlink() {
        let link = |old, new| wasip1::path_symlink(old, ROOT, new);
        works(link("any/thing at all", "l"));
        assert_eq!((target("l", 99), works(stat(ROOT, "l")).size), (Ok("any/thing at all".into()), 16));
        works(link("..", "above"));
        works(link("itself", "itself"));
        works(link("data/", "with-slash"));
        assert_eq!(content(ROOT, "with-slash/file"), b"hello");
        let long = "a/".repeat(2049);
        for (old, new, error) in [
            ("x", "l", ERRNO_EXIST), ("x", "data", ERRNO_EXIST), ("x", "data/", ERRNO_EXIST),
            ("x", "itself", ERRNO_EXIST), ("x", "new/", ERRNO_NOENT), ("x", "none/new", ERRNO_NOENT),
            ("x", "data/file/new", ERRNO_NOTDIR), ("x", "", ERRNO_NOENT), ("", "new", ERRNO_NOENT),
            ("/etc/passwd", "new", ERRNO_PERM), ("/", "new", ERRNO_PERM), ("a\0", "new", ERRNO_INVAL),
            ("x", "../new", ERRNO_PERM), (&long, "new", ERRNO_NAMETOOLONG),
        ] {
            assert_eq!(link(old, new), Err(error), "{old} {new}");
        }
        works(link(&long[..4096], "long"));
        fails(wasip1::path_symlink("x", CLOSED, "new"), ERRNO_BADF);
        fails(wasip1::path_symlink("x", FD_STDOUT, "new"), ERRNO_NOTDIR);
    }

    /// Forty links, and no more, may be on the way.
    fn path_symlink_to_links() {
        chain(41);
        assert_eq!(content(ROOT, "l39"), b"end");
        fails(try_open(ROOT, FOLLOW, "l40", 0), ERRNO_LOOP);
        works(wasip1::path_symlink(".", ROOT, "here"));
        let through = |count| format!("{}f", "here/".repeat(count));
        assert_eq!(content(ROOT, &through(40)), b"end");
        fails(try_open(ROOT, 0, &through(41), 0), ERRNO_LOOP);
        works(wasip1::path_symlink("itself", ROOT, "itself"));
        works(wasip1::path_symlink("two", ROOT, "one"));
        works(wasip1::path_symlink("one/", ROOT, "two"));
        for path in ["itself", "itself/x", "one", "two"] {
            fails(try_open(ROOT, FOLLOW, path, 0), ERRNO_LOOP);
        }
        fails(try_open(ROOT, FOLLOW, "itself", OFLAGS_CREAT), ERRNO_LOOP);
        // What is made has no slash at its end.
        fails(try_open(ROOT, FOLLOW, "two", OFLAGS_CREAT), ERRNO_ISDIR);
        assert_eq!(works(stat(ROOT, "itself")).filetype, FILETYPE_SYMBOLIC_LINK);
        // Twice as much with each link.
        works(wasip1::path_symlink("data/..", ROOT, "x0"));
        for n in 1..40 {
            let twice = format!("x{0}/x{0}", n - 1);
            works(wasip1::path_symlink(&twice, ROOT, &format!("x{n}")));
        }
        works(try_open(ROOT, FOLLOW, "x4", 0));
        fails(try_open(ROOT, FOLLOW, "x39", 0), ERRNO_LOOP);
    }

    /// It is cut to the room that there is.
    fn path_readlink() {
        works(wasip1::path_symlink("data/file", ROOT, "l"));
        let cut = [0, 1, 8, 9, 10].map(|room| target("l", room).unwrap());
        assert_eq!(cut, ["", "d", "data/fil", "data/file", "data/file"]);
        for (path, error) in [
            ("data", ERRNO_INVAL), ("data/file", ERRNO_INVAL), (".", ERRNO_INVAL), ("none", ERRNO_NOENT),
            ("l/", ERRNO_NOTDIR), ("l/x", ERRNO_NOTDIR), ("", ERRNO_NOENT), ("../l", ERRNO_PERM),
        ] {
            assert_eq!(target(path, 9), Err(error), "{path}");
        }
        let mut byte = 0u8;
        fails(wasip1::path_readlink(CLOSED, "l", &raw mut byte, 1), ERRNO_BADF);
        // One that a folder came with may be absolute.
        works(wasip1::path_link(DATA, 0, "absolute", ROOT, "absolute"));
        assert_eq!(target("absolute", 99), Ok("/etc/passwd".into()));
    }
}
