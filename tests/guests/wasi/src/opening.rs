//! `path_open`, directories, and paths of all forms.

use crate::*;

rules! {
    fn path_open() {
        let fd = works(wasip1::path_open(DATA, 0, "file", 0, RIGHTS_FD_READ, 0, 0));
        assert_eq!(read(fd, 9), Ok(b"hello".to_vec()));
        fails(try_open(DATA, 0, "none", 0), ERRNO_NOENT);
        fails(try_open(DATA, 0, "none/file", OFLAGS_CREAT), ERRNO_NOENT);
        fails(try_open(DATA, 0, "file/more", OFLAGS_CREAT), ERRNO_NOTDIR);
        fails(try_open(CLOSED, 0, "file", 0), ERRNO_BADF);
        fails(try_open(FD_STDIN, 0, "file", 0), ERRNO_NOTDIR);
        fails(try_open(fd, 0, "file", 0), ERRNO_NOTDIR);
        fails(wasip1::path_open(DATA, 2, "file", 0, 0, 0, 0), ERRNO_INVAL);
        fails(wasip1::path_open(DATA, 0, "file", 16, 0, 0, 0), ERRNO_INVAL);
        fails(wasip1::path_open(DATA, 0, "file", 0, 0, 0, 32), ERRNO_INVAL);
        // A descriptor without rights is one.
        let fd = works(wasip1::path_open(DATA, 0, "file", 0, 0, 0, FDFLAGS_NONBLOCK));
        fails(read(fd, 1), ERRNO_BADF);
        fails(write(fd, b"x"), ERRNO_BADF);
    }

    fn path_open_to_create() {
        works(try_open(ROOT, 0, "new", OFLAGS_CREAT));
        assert_eq!(content(ROOT, "new"), b"");
        create(ROOT, "full", b"full");
        works(try_open(ROOT, 0, "full", OFLAGS_CREAT));
        assert_eq!(content(ROOT, "full"), b"full");
        fails(try_open(ROOT, 0, "full", OFLAGS_CREAT | OFLAGS_EXCL), ERRNO_EXIST);
        fails(try_open(ROOT, 0, "full", OFLAGS_CREAT | OFLAGS_EXCL | OFLAGS_TRUNC), ERRNO_EXIST);
        assert_eq!(content(ROOT, "full"), b"full");
        works(try_open(ROOT, 0, "full", OFLAGS_CREAT | OFLAGS_TRUNC));
        assert_eq!(content(ROOT, "full"), b"");
        works(try_open(ROOT, 0, "fresh", OFLAGS_CREAT | OFLAGS_EXCL | OFLAGS_TRUNC));
        fails(try_open(ROOT, 0, "slash/", OFLAGS_CREAT), ERRNO_ISDIR);
        fails(try_open(ROOT, 0, "slash/.", OFLAGS_CREAT), ERRNO_NOENT);
        fails(try_open(ROOT, 0, "new/", OFLAGS_CREAT), ERRNO_ISDIR);
        fails(try_open(ROOT, 0, "d", OFLAGS_CREAT | OFLAGS_DIRECTORY), ERRNO_INVAL);
        assert_eq!(names(ROOT).into_keys().collect::<Vec<_>>(), ["data", "fresh", "full", "new"]);
    }

    /// A file is cut where it is opened so, also without a right to write to it.
    fn path_open_to_cut() {
        create(ROOT, "f", b"abc");
        let reader = open(ROOT, "f", 0);
        works(wasip1::path_open(ROOT, 0, "f", OFLAGS_TRUNC, 0, 0, 0));
        assert_eq!(read(reader, 9), Ok(vec![]));
        fails(try_open(ROOT, 0, "none", OFLAGS_TRUNC), ERRNO_NOENT);
        fails(try_open(ROOT, 0, "data", OFLAGS_TRUNC), ERRNO_ISDIR);
    }

    fn path_open_of_directories() {
        for path in [".", "./", "data", "data/", "data//", "data/.", "data/./", "data/..", "data/dir/../../data"] {
            works(try_open(ROOT, 0, path, OFLAGS_DIRECTORY));
            works(try_open(ROOT, 0, path, 0));
        }
        fails(try_open(DATA, 0, "file", OFLAGS_DIRECTORY), ERRNO_NOTDIR);
        fails(try_open(DATA, 0, "none", OFLAGS_DIRECTORY), ERRNO_NOENT);
        fails(try_open(ROOT, 0, "data", OFLAGS_CREAT), ERRNO_ISDIR);
        fails(try_open(ROOT, 0, "data", OFLAGS_CREAT | OFLAGS_EXCL), ERRNO_EXIST);
        let write = RIGHTS_FD_READ | RIGHTS_FD_WRITE;
        fails(wasip1::path_open(ROOT, 0, "data", OFLAGS_DIRECTORY, write, 0, 0), ERRNO_ISDIR);
        fails(wasip1::path_open(ROOT, 0, "data", 0, write, 0, 0), ERRNO_ISDIR);
        // The right to read does not apply.
        let fd = works(wasip1::path_open(ROOT, 0, "data", OFLAGS_DIRECTORY, RIGHTS_FD_READ, 0, 0));
        assert_eq!(works(fd_fdstat_get(fd)).fs_rights_base, 0);
        // Through one that was opened, files are found below it alone.
        let fd = open_directory(DATA, "dir");
        assert_eq!(content(fd, "inner"), b"inner");
        fails(try_open(fd, 0, "../file", 0), ERRNO_PERM);
    }

    fn path_open_of_links() {
        assert_eq!(content(DATA, "link"), b"hello");
        fails(try_open(DATA, 0, "link", 0), ERRNO_LOOP);
        fails(try_open(DATA, 0, "link", OFLAGS_DIRECTORY), ERRNO_NOTDIR);
        fails(try_open(DATA, FOLLOW, "link", OFLAGS_DIRECTORY), ERRNO_NOTDIR);
        fails(try_open(DATA, FOLLOW, "link/", 0), ERRNO_NOTDIR);
        fails(try_open(DATA, FOLLOW, "link", OFLAGS_CREAT | OFLAGS_EXCL), ERRNO_EXIST);
        // What a link leads to is created, though not where it must be new.
        works(path_symlink("made", ROOT, "dangling"));
        fails(try_open(ROOT, FOLLOW, "dangling", 0), ERRNO_NOENT);
        fails(try_open(ROOT, FOLLOW, "dangling", OFLAGS_CREAT | OFLAGS_EXCL), ERRNO_EXIST);
        fails(try_open(ROOT, 0, "dangling", OFLAGS_CREAT), ERRNO_LOOP);
        works(try_open(ROOT, FOLLOW, "dangling", OFLAGS_CREAT));
        assert_eq!(works(stat(ROOT, "made")).filetype, FILETYPE_REGULAR_FILE);
        // Links in the middle of a path are followed always.
        works(path_symlink("data/dir", ROOT, "short"));
        assert_eq!((content(ROOT, "short/inner"), content(ROOT, "short/../file")), (b"inner".to_vec(), b"hello".to_vec()));
        works(try_open(ROOT, 0, "short/inner", 0));
        works(try_open(ROOT, 0, "short/", OFLAGS_DIRECTORY));
        fails(try_open(ROOT, 0, "short", OFLAGS_DIRECTORY), ERRNO_NOTDIR);
    }

    /// Nothing above the directory is reachable, by no form of path.
    fn path_open_of_what_is_outside() {
        for path in ["/", "/data/file", "//", "..", "../", "../data/file", "dir/../..", "dir/../../data/file", "dir/../../../.."] {
            fails(try_open(DATA, FOLLOW, path, 0), ERRNO_PERM);
            fails(try_open(DATA, 0, path, OFLAGS_CREAT), ERRNO_PERM);
        }
        for (target, name) in [("..", "up"), ("../data/file", "out"), ("dir/../../data/file", "around"), ("up", "twice")] {
            works(path_symlink(target, DATA, name));
            fails(try_open(DATA, FOLLOW, name, 0), ERRNO_PERM);
            fails(try_open(DATA, FOLLOW, name, OFLAGS_CREAT), ERRNO_PERM);
            fails(stat(DATA, &format!("{name}/")), ERRNO_PERM);
        }
        // From the directory above, the same links lead somewhere.
        assert_eq!(content(ROOT, "data/out"), b"hello");
        assert_eq!(content(ROOT, "data/around"), b"hello");
        // Not a link that a folder came with, which is absolute.
        fails(try_open(DATA, FOLLOW, "absolute", 0), ERRNO_PERM);
        fails(try_open(ROOT, FOLLOW, "data/absolute", 0), ERRNO_PERM);
        assert_eq!(works(stat(DATA, "absolute")).size, 11);
    }

    fn path_open_of_odd_paths() {
        fails(try_open(DATA, 0, "", 0), ERRNO_NOENT);
        fails(try_open(DATA, 0, "file\0", 0), ERRNO_INVAL);
        fails(try_open(DATA, 0, "fi\0le", OFLAGS_CREAT), ERRNO_INVAL);
        fails(try_open(DATA, 0, "file/", 0), ERRNO_NOTDIR);
        fails(try_open(DATA, 0, "file/.", 0), ERRNO_NOTDIR);
        fails(try_open(DATA, 0, "file/..", 0), ERRNO_NOTDIR);
        fails(try_open(DATA, 0, "none/..", 0), ERRNO_NOENT);
        for path in ["./file", "././/file", "dir/../file", "dir/.//../dir/../file"] {
            assert_eq!(content(DATA, path), b"hello");
        }
        works(try_open(DATA, 0, " ", OFLAGS_CREAT));
        works(try_open(DATA, 0, "...", OFLAGS_CREAT));
        works(try_open(DATA, 0, "\\..\\file", OFLAGS_CREAT));
        works(try_open(DATA, 0, "naïve 文件 🗎", OFLAGS_CREAT));
        // Bytes that are no text, and paths of no length.
        let (mut fd, bad) = (0u32, [b'a', 0xff]);
        let raw_open = |path: &[u8], len: i32, out: &mut u32| {
            raw::path_open(DATA as i32, 0, path.as_ptr() as i32, len, 1, 0, 0, 0, std::ptr::from_mut(out) as i32)
        };
        assert_eq!(raw_open(&bad, 2, &mut fd), 25);
        assert_eq!(raw_open(&bad, 0, &mut fd), 44);
        assert_eq!((raw_open(&bad, 1, &mut fd), works(stat(DATA, "a")).size), (0, 0));
    }

    fn path_create_directory() {
        works(wasip1::path_create_directory(ROOT, "a"));
        works(wasip1::path_create_directory(ROOT, "a/b/"));
        works(wasip1::path_create_directory(ROOT, "./a//c"));
        for (path, error) in [
            ("a", ERRNO_EXIST), ("a/", ERRNO_EXIST), ("data/file", ERRNO_EXIST), ("data/link", ERRNO_EXIST),
            (".", ERRNO_EXIST), ("a/..", ERRNO_EXIST), ("none/d", ERRNO_NOENT), ("none/.", ERRNO_NOENT),
            ("data/file/d", ERRNO_NOTDIR), ("", ERRNO_NOENT), ("/d", ERRNO_PERM), ("../d", ERRNO_PERM),
        ] {
            assert_eq!(wasip1::path_create_directory(ROOT, path), Err(error), "{path}");
        }
        fails(wasip1::path_create_directory(CLOSED, "d"), ERRNO_BADF);
        fails(wasip1::path_create_directory(FD_STDIN, "d"), ERRNO_NOTDIR);
        assert_eq!(names(open_directory(ROOT, "a")).into_iter().collect::<Vec<_>>(), [("b".into(), 3), ("c".into(), 3)]);
    }

    fn path_remove_directory() {
        works(wasip1::path_create_directory(ROOT, "a"));
        works(wasip1::path_create_directory(ROOT, "a/b"));
        for (path, error) in [
            ("a", ERRNO_NOTEMPTY), ("a/b/..", ERRNO_INVAL), ("a/b/.", ERRNO_INVAL), (".", ERRNO_INVAL),
            ("none", ERRNO_NOENT), ("data/file", ERRNO_NOTDIR), ("data/file/", ERRNO_NOTDIR),
            ("data/link", ERRNO_NOTDIR), ("", ERRNO_NOENT), ("..", ERRNO_PERM),
        ] {
            assert_eq!(wasip1::path_remove_directory(ROOT, path), Err(error), "{path}");
        }
        works(wasip1::path_remove_directory(ROOT, "a/b/"));
        works(wasip1::path_remove_directory(ROOT, "a"));
        fails(stat(ROOT, "a"), ERRNO_NOENT);
        fails(wasip1::path_remove_directory(CLOSED, "d"), ERRNO_BADF);
    }

    /// It is there as long as it is open, and holds nothing.
    fn path_remove_directory_that_is_open() {
        works(wasip1::path_create_directory(ROOT, "a"));
        let fd = open_directory(ROOT, "a");
        works(wasip1::path_remove_directory(ROOT, "a"));
        assert_eq!(works(fd_filestat_get(fd)).nlink, 0);
        assert_eq!((names(fd).len(), works(stat(fd, ".")).nlink), (0, 0));
        fails(try_open(fd, 0, "new", OFLAGS_CREAT), ERRNO_NOENT);
        fails(wasip1::path_create_directory(fd, "new"), ERRNO_NOENT);
        fails(path_symlink("x", fd, "new"), ERRNO_NOENT);
        fails(path_link(DATA, 0, "file", fd, "new"), ERRNO_NOENT);
        fails(path_rename(DATA, "file", fd, "new"), ERRNO_NOENT);
        fails(path_rename(DATA, "dir", fd, "new"), ERRNO_NOENT);
        fails(try_open(fd, 0, "..", 0), ERRNO_PERM);
        // A new one of the same name is another.
        works(wasip1::path_create_directory(ROOT, "a"));
        assert_ne!(works(stat(ROOT, "a")).ino, works(fd_filestat_get(fd)).ino);
        works(fd_close(fd));
    }

    fn path_unlink_file() {
        create(ROOT, "f", b"abc");
        let fd = open(ROOT, "f", 0);
        works(wasip1::path_unlink_file(ROOT, "f"));
        // What is open is there, and can be written to.
        assert_eq!((write(fd, b"X"), works(fd_filestat_get(fd)).nlink, read_at(fd, 9, 0)), (Ok(1), 0, Ok(b"Xbc".to_vec())));
        create(ROOT, "f", b"new");
        assert_ne!(works(stat(ROOT, "f")).ino, works(fd_filestat_get(fd)).ino);
        works(wasip1::path_unlink_file(DATA, "link"));
        assert_eq!(content(DATA, "file"), b"hello");
        for (path, error) in [
            ("none", ERRNO_NOENT), ("data", ERRNO_ISDIR), ("data/", ERRNO_ISDIR), ("f/", ERRNO_NOTDIR),
            ("f/.", ERRNO_NOTDIR), ("data/.", ERRNO_ISDIR), ("", ERRNO_NOENT), ("/f", ERRNO_PERM),
        ] {
            assert_eq!(wasip1::path_unlink_file(ROOT, path), Err(error), "{path}");
        }
        fails(wasip1::path_unlink_file(CLOSED, "f"), ERRNO_BADF);
    }

    fn path_filestat_get() {
        let get = |flags, path| wasip1::path_filestat_get(DATA, flags, path);
        let [file, link, followed] = [get(0, "file"), get(0, "link"), get(FOLLOW, "link")].map(works);
        assert_eq!([file.ino, file.size, file.nlink], [followed.ino, 5, 1]);
        assert_eq!((link.filetype, link.size), (FILETYPE_SYMBOLIC_LINK, 4));
        assert_eq!(works(get(0, "dir")).filetype, FILETYPE_DIRECTORY);
        assert_eq!(works(get(0, "dir/..")).ino, works(fd_filestat_get(DATA)).ino);
        fails(get(0, "none"), ERRNO_NOENT);
        fails(get(0, "file/"), ERRNO_NOTDIR);
        fails(get(0, "link/"), ERRNO_NOTDIR);
        fails(get(2, "file"), ERRNO_INVAL);
        fails(wasip1::path_filestat_get(CLOSED, 0, "file"), ERRNO_BADF);
    }

    fn path_filestat_set_times() {
        let set = |flags, path, which| wasip1::path_filestat_set_times(DATA, flags, path, 5, 6, which);
        let both = FSTFLAGS_ATIM | FSTFLAGS_MTIM;
        let times = |path| {
            let stat = works(stat(DATA, path));
            [stat.atim, stat.mtim]
        };
        let before = times("file");
        works(set(0, "link", both));
        assert_eq!((times("link"), times("file")), ([5, 6], before));
        works(set(FOLLOW, "link", FSTFLAGS_MTIM));
        assert_eq!(times("file"), [before[0], 6]);
        works(set(0, "dir", both));
        assert_eq!(times("dir"), [5, 6]);
        works(set(0, "dir", FSTFLAGS_ATIM_NOW));
        assert_eq!(times("dir"), [before[0], 6]);
        fails(set(0, "file", FSTFLAGS_ATIM | FSTFLAGS_ATIM_NOW), ERRNO_INVAL);
        fails(set(0, "file", 16), ERRNO_INVAL);
        fails(set(2, "file", both), ERRNO_INVAL);
        fails(set(0, "none", both), ERRNO_NOENT);
        fails(wasip1::path_filestat_set_times(CLOSED, 0, "file", 0, 0, 0), ERRNO_BADF);
    }
}
