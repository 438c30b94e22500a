//! `path_rename`.

use crate::*;

#[track_caller]
fn rename(old: &str, new: &str) {
    works(unsafe { wasip1::path_rename(ROOT, old, ROOT, new) });
}

#[track_caller]
fn make(paths: &[&str]) {
    for path in paths {
        works(unsafe { path_create_directory(ROOT, path) });
    }
}

#[track_caller]
fn cannot(cases: &[(&str, &str, Errno)]) {
    for (old, new, error) in cases {
        let renamed = unsafe { wasip1::path_rename(ROOT, old, ROOT, new) };
        assert_eq!(renamed, Err(*error), "{old} {new}");
    }
}

rules! {
    fn path_rename() {
        let ino = works(stat(DATA, "file")).ino;
        works(wasip1::path_rename(DATA, "file", ROOT, "moved"));
        assert_eq!((works(stat(ROOT, "moved")).ino, content(ROOT, "moved")), (ino, b"hello".to_vec()));
        fails(stat(DATA, "file"), ERRNO_NOENT);
        // Over another file, which is there as long as it is open.
        create(ROOT, "other", b"other");
        let fd = open(ROOT, "other", 0);
        rename("moved", "other");
        assert_eq!((content(ROOT, "other"), read(fd, 9)), (b"hello".to_vec(), Ok(b"other".to_vec())));
        assert_eq!(works(fd_filestat_get(fd)).nlink, 0);
        rename("other", "other");
        rename("other", "./data/../other");
        assert_eq!(content(ROOT, "other"), b"hello");
        cannot(&[
            ("none", "new", ERRNO_NOENT), ("none", "other", ERRNO_NOENT), ("other", "none/new", ERRNO_NOENT),
            ("other", "data", ERRNO_ISDIR), ("other", "new/", ERRNO_NOTDIR), ("other/", "new", ERRNO_NOTDIR),
            ("other", "other/new", ERRNO_NOTDIR), ("", "new", ERRNO_NOENT), ("other", "", ERRNO_NOENT),
            ("other", "../new", ERRNO_PERM), ("/other", "new", ERRNO_PERM), ("other", ".", ERRNO_NOTDIR), ("data", ".", ERRNO_INVAL),
        ]);
        fails(wasip1::path_rename(CLOSED, "other", ROOT, "new"), ERRNO_BADF);
        fails(wasip1::path_rename(ROOT, "other", CLOSED, "new"), ERRNO_BADF);
        fails(wasip1::path_rename(ROOT, "other", FD_STDIN, "new"), ERRNO_NOTDIR);
    }

    fn path_rename_of_directories() {
        make(&["a", "a/b", "a/b/c", "empty", "full", "full/x"]);
        let open = open_directory(ROOT, "a/b");
        rename("a/b", "moved/");
        assert_eq!(works(stat(ROOT, "moved/c")).filetype, FILETYPE_DIRECTORY);
        // What is open moved with it, and `..` is where it is now.
        works(path_create_directory(open, "d"));
        assert_eq!(names(open).into_keys().collect::<Vec<_>>(), ["c", "d"]);
        assert_eq!(works(stat(ROOT, "moved/d/../..")).ino, works(fd_filestat_get(ROOT)).ino);
        rename("moved/", "empty");
        assert_eq!(works(stat(ROOT, "empty/c")).filetype, FILETYPE_DIRECTORY);
        cannot(&[
            ("empty", "full", ERRNO_NOTEMPTY), ("empty", "data/file", ERRNO_NOTDIR), ("empty", "empty/c/x", ERRNO_INVAL),
            ("empty", "empty/x", ERRNO_INVAL), ("empty/c", "empty", ERRNO_NOTEMPTY), (".", "new", ERRNO_INVAL),
            ("empty/.", "new", ERRNO_INVAL), ("empty", "new/.", ERRNO_NOENT), ("empty", "full/..", ERRNO_INVAL),
            ("data", "data/dir/x", ERRNO_INVAL),
        ]);
        rename("empty", "empty");
        rename("empty", "empty/");
        rename("full/x", "x");
        rename("x", "full/x");
        assert_eq!(names(ROOT).into_keys().collect::<Vec<_>>(), ["a", "data", "empty", "full"]);
    }

    /// A link is moved itself, and replaced itself; two names of one file stay both.
    fn path_rename_of_links() {
        works(path_symlink("data/file", ROOT, "l"));
        rename("l", "m");
        assert_eq!((content(ROOT, "m"), works(stat(ROOT, "m")).filetype), (b"hello".to_vec(), FILETYPE_SYMBOLIC_LINK));
        create(ROOT, "f", b"new");
        rename("f", "m");
        assert_eq!((content(ROOT, "m"), content(DATA, "file")), (b"new".to_vec(), b"hello".to_vec()));
        works(path_link(ROOT, 0, "m", ROOT, "n"));
        rename("m", "n");
        assert_eq!(works(stat(ROOT, "m")).ino, works(stat(ROOT, "n")).ino);
        works(path_symlink("data", ROOT, "d"));
        make(&["e"]);
        cannot(&[("e", "d", ERRNO_NOTDIR), ("d", "e", ERRNO_ISDIR)]);
    }

    /// A directory that is removed by it is there as long as it is open.
    fn path_rename_over_what_is_open() {
        make(&["a", "b"]);
        let fd = open_directory(ROOT, "b");
        rename("a", "b");
        assert_eq!((works(fd_filestat_get(fd)).nlink, names(fd).len()), (0, 0));
        fails(path_create_directory(fd, "c"), ERRNO_NOENT);
        fails(wasip1::path_rename(ROOT, "b", fd, "c"), ERRNO_NOENT);
    }
}
