//! Where something is full: files may have 8 MiB together here.

use crate::*;

const SPACE: u64 = 8 << 20;

rules! {
    /// What does not fit is refused, what is removed makes room, and so it goes on for ever.
    fn fd_write_to_a_full_disk() {
        let fd = open(ROOT, "f", OFLAGS_CREAT);
        let block = vec![7u8; 1 << 20];
        for _ in 0..7 {
            assert_eq!(write(fd, &block), Ok(1 << 20));
        }
        fails(write(fd, &block), ERRNO_NOSPC);
        assert_eq!(works(fd_filestat_get(fd)).size, 7 << 20);
        // Of several parts those count that fit.
        let part = |len| Ciovec { buf: block.as_ptr(), buf_len: len };
        assert_eq!(fd_write(fd, &[part(1 << 19), part(1 << 20), part(1)]), Ok(1 << 19));
        fails(write_at(fd, &block, 9 << 20), ERRNO_NOSPC);
        fails(fd_allocate(fd, 0, SPACE + 1), ERRNO_NOSPC);
        assert_eq!(write_at(fd, &block, 0), Ok(1 << 20));
        works(fd_filestat_set_size(fd, 0));
        for _ in 0..7 {
            assert_eq!(write_at(fd, &block, 0), Ok(1 << 20));
        }
        works(path_unlink_file(ROOT, "f"));
        create(ROOT, "g", &block);
        works(fd_close(fd));
        create(ROOT, "h", &block[..1 << 19]);
    }

    /// Only what is written takes room.
    fn fd_write_with_holes() {
        let fd = open(ROOT, "f", OFLAGS_CREAT);
        for n in 0..1000u64 {
            assert_eq!(write_at(fd, &n.to_le_bytes(), n << 30), Ok(8));
        }
        assert_eq!(works(fd_filestat_get(fd)).size, (999 << 30) + 8);
        for n in 0..1000u64 {
            let mut expected = vec![0; 4];
            expected.extend(n.to_le_bytes());
            assert_eq!(read_at(fd, 12, (n << 30).wrapping_sub(4)), Ok(if n == 0 { vec![] } else { expected }));
        }
        works(fd_filestat_set_size(fd, 1));
        works(fd_filestat_set_size(fd, 1 << 40));
        assert_eq!(read_at(fd, 8, 1 << 30), Ok(vec![0; 8]));
    }

    fn path_open_of_too_many() {
        let mut last = 4;
        while let Ok(fd) = path_open(DATA, 0, "file", 0, 0, 0, 0) {
            assert_eq!(fd, last + 1);
            last = fd;
        }
        assert_eq!(last, 1023);
        fails(path_open(DATA, 0, "file", 0, 0, 0, 0), ERRNO_MFILE);
        fails(path_open(ROOT, 0, "new", OFLAGS_CREAT, 0, 0, 0), ERRNO_MFILE);
        fails(stat(ROOT, "new"), ERRNO_NOENT);
        works(fd_close(500));
        assert_eq!(path_open(DATA, 0, "file", 0, 0, 0, 0), Ok(500));
    }

    fn path_create_directory_of_too_many() {
        let mut count = 0;
        let last = loop {
            match path_create_directory(ROOT, &format!("d{count}")) {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
        };
        // `/`, and what was there before.
        assert_eq!((last, count), (ERRNO_NOSPC, 16384 - 7));
        fails(path_symlink("x", ROOT, "new"), ERRNO_NOSPC);
        fails(try_open(ROOT, 0, "new", OFLAGS_CREAT), ERRNO_NOSPC);
        works(path_link(DATA, 0, "file", ROOT, "hard"));
        works(path_rename(ROOT, "d0", ROOT, "renamed"));
        works(path_remove_directory(ROOT, "d7"));
        works(path_create_directory(ROOT, "new"));
    }

    /// A file has at most so many names.
    fn path_link_of_too_many() {
        let mut count = 0;
        while path_link(DATA, 0, "file", ROOT, &format!("l{count}")).is_ok() {
            count += 1;
        }
        assert_eq!((count, works(stat(DATA, "file")).nlink), (1023, 1024));
        fails(path_link(DATA, 0, "file", ROOT, "more"), ERRNO_MLINK);
    }

    /// Names of 255 bytes, whatever their characters.
    fn path_open_of_long_names() {
        let [fits, wide] = ["a".repeat(255), format!("a{}", "ä".repeat(127))];
        for name in [&*fits, &*wide] {
            create(ROOT, name, b"x");
            assert_eq!(names(ROOT).into_keys().filter(|found| found == name).count(), 1);
            let long = format!("{name}b");
            fails(try_open(ROOT, 0, &long, OFLAGS_CREAT), ERRNO_NAMETOOLONG);
            fails(path_create_directory(ROOT, &long), ERRNO_NAMETOOLONG);
            fails(path_symlink("x", ROOT, &long), ERRNO_NAMETOOLONG);
            fails(path_link(ROOT, 0, name, ROOT, &long), ERRNO_NAMETOOLONG);
            fails(path_rename(ROOT, name, ROOT, &long), ERRNO_NAMETOOLONG);
            fails(stat(ROOT, &long), ERRNO_NAMETOOLONG);
            works(path_rename(ROOT, name, ROOT, "short"));
            works(path_rename(ROOT, "short", ROOT, name));
            works(path_unlink_file(ROOT, name));
        }
    }

    /// Directories may be deeper than a path is long.
    fn path_open_of_deep_paths() {
        let mut at = ROOT;
        for _ in 0..3000 {
            works(path_create_directory(at, "d"));
            let below = open_directory(at, "d");
            if at != ROOT {
                works(fd_close(at));
            }
            at = below;
        }
        create(at, "f", b"deep");
        assert_eq!(content(at, "./f"), b"deep");
        let path = "d/".repeat(2048);
        works(try_open(ROOT, 0, &path, 0));
        fails(try_open(ROOT, 0, &format!("{path}d"), 0), ERRNO_NAMETOOLONG);
        fails(path_rename(ROOT, "d", at, "x"), ERRNO_INVAL);
        works(path_rename(DATA, "dir", at, "x"));
        assert_eq!(content(at, "x/inner"), b"inner");
        // Up again, from as far as a path leads.
        let up = open_directory(ROOT, &"d/".repeat(1000));
        fails(try_open(up, 0, "..", 0), ERRNO_PERM);
        works(try_open(ROOT, 0, &"d/../".repeat(819), OFLAGS_DIRECTORY));
    }
}
