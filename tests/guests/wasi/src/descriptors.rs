//! What is open, and what may be done with it.

use crate::*;

/// The rights of a descriptor, and those that it passes on.
#[track_caller]
fn rights(fd: Fd) -> (Rights, Rights) {
    let stat = works(unsafe { wasip1::fd_fdstat_get(fd) });
    (stat.fs_rights_base, stat.fs_rights_inheriting)
}

/// The descriptors that are open, of the first hundred.
fn all_open() -> Vec<Fd> {
    (0..100).filter(|fd| unsafe { wasip1::fd_fdstat_get(*fd) }.is_ok()).collect()
}

/// Gives up all rights but these.
#[track_caller]
fn keep(fd: Fd, base: Rights, inheriting: Rights) {
    works(unsafe { wasip1::fd_fdstat_set_rights(fd, base, inheriting) });
    assert_eq!(rights(fd), (base, inheriting));
}

rules! {
    /// The lowest number that is free is used again.
    fn fd_close() {
        assert_eq!(all_open(), [0, 1, 2, 3, 4]);
        let fds = [(); 3].map(|()| open(DATA, "file", 0));
        assert_eq!(fds, [5, 6, 7]);
        works(wasip1::fd_close(5));
        works(wasip1::fd_close(0));
        fails(wasip1::fd_close(5), ERRNO_BADF);
        fails(wasip1::fd_close(CLOSED), ERRNO_BADF);
        fails(wasip1::fd_close(u32::MAX), ERRNO_BADF);
        assert_eq!([(); 3].map(|()| open(DATA, "file", 0)), [0, 5, 8]);
    }

    /// Also the standard streams and the folders that are open from the start.
    fn fd_close_all() {
        for fd in 0..5 {
            works(wasip1::fd_close(fd));
        }
        assert_eq!(all_open(), []);
        fails(write(FD_STDOUT, b"gone"), ERRNO_BADF);
        fails(try_open(ROOT, 0, ".", 0), ERRNO_BADF);
        fails(wasip1::fd_prestat_get(DATA), ERRNO_BADF);
    }

    fn fd_datasync() {
        let file = open(DATA, "file", 0);
        works(wasip1::fd_datasync(file));
        works(wasip1::fd_datasync(DATA));
        fails(wasip1::fd_datasync(CLOSED), ERRNO_BADF);
        fails(wasip1::fd_datasync(FD_STDOUT), ERRNO_INVAL);
        keep(file, RIGHTS_FD_SYNC, 0);
        fails(wasip1::fd_datasync(file), ERRNO_NOTCAPABLE);
    }

    fn fd_sync() {
        let file = open(DATA, "file", 0);
        works(wasip1::fd_sync(file));
        works(wasip1::fd_sync(DATA));
        fails(wasip1::fd_sync(CLOSED), ERRNO_BADF);
        fails(wasip1::fd_sync(FD_STDIN), ERRNO_INVAL);
        keep(file, RIGHTS_FD_DATASYNC, 0);
        fails(wasip1::fd_sync(file), ERRNO_NOTCAPABLE);
        keep(DATA, RIGHTS_FD_READDIR, 0);
        fails(wasip1::fd_sync(DATA), ERRNO_NOTCAPABLE);
    }

    fn fd_fdstat_get() {
        let file = works(wasip1::path_open(DATA, 0, "file", 0, RIGHTS_FD_READ, 0, FDFLAGS_APPEND | FDFLAGS_SYNC));
        let stat = works(wasip1::fd_fdstat_get(file));
        assert_eq!(stat.fs_filetype, FILETYPE_REGULAR_FILE);
        assert_eq!(stat.fs_flags, FDFLAGS_APPEND | FDFLAGS_SYNC);
        assert_eq!(rights(file), (RIGHTS_FD_READ, 0));
        let kinds = [FD_STDIN, FD_STDOUT, FD_STDERR, DATA].map(|fd| {
            let stat = works(wasip1::fd_fdstat_get(fd));
            (stat.fs_filetype, stat.fs_flags)
        });
        let terminal = (FILETYPE_CHARACTER_DEVICE, 0);
        assert_eq!(kinds, [(FILETYPE_UNKNOWN, 0), terminal, terminal, (FILETYPE_DIRECTORY, 0)]);
        assert_eq!(rights(DATA), (DIRECTORY_RIGHTS, DIRECTORY_RIGHTS | FILE_RIGHTS));
        let common = RIGHTS_FD_FDSTAT_SET_FLAGS | RIGHTS_FD_FILESTAT_GET | RIGHTS_POLL_FD_READWRITE;
        assert_eq!(rights(FD_STDIN), (RIGHTS_FD_READ | common, 0));
        assert_eq!(rights(FD_STDERR), (RIGHTS_FD_WRITE | common, 0));
        fails(wasip1::fd_fdstat_get(CLOSED), ERRNO_BADF);
        // Bytes between the fields are zero.
        let mut bytes = [9u8; 25];
        assert_eq!(raw::fd_fdstat_get(file as i32, bytes.as_mut_ptr() as i32), 0);
        let expected = [4, 0, FDFLAGS_APPEND as u8 | FDFLAGS_SYNC as u8, 0, 0, 0, 0, 0, 2];
        assert_eq!((&bytes[..9], bytes[24]), (&expected[..], 9));
    }

    fn fd_fdstat_set_flags() {
        create(ROOT, "log", b"one");
        let file = open(ROOT, "log", 0);
        works(wasip1::fd_fdstat_set_flags(file, FDFLAGS_APPEND | FDFLAGS_NONBLOCK));
        assert_eq!(works(wasip1::fd_fdstat_get(file)).fs_flags, FDFLAGS_APPEND | FDFLAGS_NONBLOCK);
        assert_eq!(write(file, b"two"), Ok(3));
        works(wasip1::fd_fdstat_set_flags(file, 0));
        works(wasip1::fd_seek(file, 0, WHENCE_SET));
        assert_eq!(write(file, b"1"), Ok(1));
        assert_eq!(content(ROOT, "log"), b"1netwo");
        fails(wasip1::fd_fdstat_set_flags(file, 32), ERRNO_INVAL);
        assert_eq!(raw::fd_fdstat_set_flags(file as i32, 1 << 16), INVAL);
        fails(wasip1::fd_fdstat_set_flags(CLOSED, 0), ERRNO_BADF);
        keep(file, RIGHTS_FD_WRITE, 0);
        fails(wasip1::fd_fdstat_set_flags(file, FDFLAGS_APPEND), ERRNO_NOTCAPABLE);
    }

    /// They can be given up, and not be had back.
    fn fd_fdstat_set_rights() {
        let file = open(DATA, "file", 0);
        keep(file, FILE_RIGHTS & !RIGHTS_FD_WRITE, 0);
        fails(write(file, b"x"), ERRNO_BADF);
        fails(write_at(file, b"x", 0), ERRNO_BADF);
        fails(wasip1::fd_fdstat_set_rights(file, FILE_RIGHTS, 0), ERRNO_NOTCAPABLE);
        fails(wasip1::fd_fdstat_set_rights(file, RIGHTS_FD_READ, RIGHTS_FD_READ), ERRNO_NOTCAPABLE);
        keep(file, 0, 0);
        fails(read(file, 1), ERRNO_BADF);
        fails(wasip1::fd_filestat_get(file), ERRNO_NOTCAPABLE);
        fails(wasip1::fd_fdstat_set_rights(CLOSED, 0, 0), ERRNO_BADF);
        // What is opened through a directory has no right that the directory does not pass on.
        let directory = open_directory(ROOT, ".");
        keep(directory, DIRECTORY_RIGHTS, RIGHTS_FD_READ | RIGHTS_FD_READDIR);
        let create = OFLAGS_CREAT;
        fails(wasip1::path_open(directory, 0, "new", create, RIGHTS_FD_WRITE, 0, 0), ERRNO_NOTCAPABLE);
        fails(stat(ROOT, "new"), ERRNO_NOENT);
        let file = works(wasip1::path_open(directory, 0, "new", create, RIGHTS_FD_READ, 0, 0));
        assert_eq!(rights(file), (RIGHTS_FD_READ, 0));
        fails(wasip1::path_open(directory, 0, ".", 0, 0, RIGHTS_FD_SEEK, 0), ERRNO_NOTCAPABLE);
        // Rights that do not apply are dropped.
        let of_all = wasip1::path_open(ROOT, 0, "new", 0, u64::MAX, u64::MAX, 0);
        assert_eq!(rights(works(of_all)), (FILE_RIGHTS, 0));
        let of_all = wasip1::path_open(ROOT, 0, ".", 0, !RIGHTS_FD_WRITE, u64::MAX, 0);
        assert_eq!(rights(works(of_all)), (DIRECTORY_RIGHTS, DIRECTORY_RIGHTS | FILE_RIGHTS));
    }

    /// Each function of paths needs its right.
    fn fd_fdstat_set_rights_of_a_directory() {
        create(ROOT, "f", b"");
        let directory = open_directory(ROOT, ".");
        keep(directory, RIGHTS_PATH_OPEN, FILE_RIGHTS);
        works(try_open(directory, 0, "f", 0));
        fails(try_open(directory, 0, "new", OFLAGS_CREAT), ERRNO_NOTCAPABLE);
        fails(try_open(directory, 0, "f", OFLAGS_TRUNC), ERRNO_NOTCAPABLE);
        fails(wasip1::path_create_directory(directory, "d"), ERRNO_NOTCAPABLE);
        fails(wasip1::path_filestat_get(directory, 0, "f"), ERRNO_NOTCAPABLE);
        fails(wasip1::path_filestat_set_times(directory, 0, "f", 0, 0, 0), ERRNO_NOTCAPABLE);
        fails(wasip1::path_link(directory, 0, "f", ROOT, "g"), ERRNO_NOTCAPABLE);
        fails(wasip1::path_link(ROOT, 0, "f", directory, "g"), ERRNO_NOTCAPABLE);
        let mut byte = 0u8;
        fails(wasip1::path_readlink(directory, "f", &raw mut byte, 1), ERRNO_NOTCAPABLE);
        fails(wasip1::path_remove_directory(directory, "f"), ERRNO_NOTCAPABLE);
        fails(wasip1::path_rename(directory, "f", ROOT, "g"), ERRNO_NOTCAPABLE);
        fails(wasip1::path_rename(ROOT, "f", directory, "g"), ERRNO_NOTCAPABLE);
        fails(wasip1::path_symlink("f", directory, "l"), ERRNO_NOTCAPABLE);
        fails(wasip1::path_unlink_file(directory, "f"), ERRNO_NOTCAPABLE);
        fails(listed(directory, 100, 0), ERRNO_NOTCAPABLE);
        fails(wasip1::fd_filestat_get(directory), ERRNO_NOTCAPABLE);
        fails(wasip1::fd_filestat_set_times(directory, 0, 0, 0), ERRNO_NOTCAPABLE);
        keep(directory, 0, 0);
        fails(try_open(directory, 0, "f", 0), ERRNO_NOTCAPABLE);
    }

    fn fd_prestat_get() {
        let lens = [DATA, ROOT].map(|fd| {
            let stat = works(wasip1::fd_prestat_get(fd));
            (stat.tag, stat.u.dir.pr_name_len)
        });
        assert_eq!(lens, [(0, 5), (0, 1)]);
        for fd in [FD_STDIN, FD_STDERR, 5, CLOSED, open(DATA, "file", 0), open_directory(ROOT, ".")] {
            fails(wasip1::fd_prestat_get(fd), ERRNO_BADF);
        }
    }

    fn fd_prestat_dir_name() {
        let mut bytes = [9u8; 8];
        works(wasip1::fd_prestat_dir_name(DATA, bytes.as_mut_ptr(), 5));
        assert_eq!(&bytes, b"/data\x09\x09\x09");
        works(wasip1::fd_prestat_dir_name(ROOT, bytes.as_mut_ptr(), 8));
        assert_eq!(&bytes, b"/data\x09\x09\x09");
        fails(wasip1::fd_prestat_dir_name(DATA, bytes.as_mut_ptr(), 4), ERRNO_NAMETOOLONG);
        fails(wasip1::fd_prestat_dir_name(FD_STDIN, bytes.as_mut_ptr(), 8), ERRNO_BADF);
        fails(wasip1::fd_prestat_dir_name(CLOSED, bytes.as_mut_ptr(), 8), ERRNO_BADF);
        fails(wasip1::fd_prestat_dir_name(open_directory(ROOT, "."), bytes.as_mut_ptr(), 8), ERRNO_BADF);
    }

    fn fd_renumber() {
        let [one, two] = ["file", "dir/inner"].map(|path| open(DATA, path, 0));
        works(wasip1::fd_seek(one, 2, WHENCE_SET));
        works(wasip1::fd_renumber(one, two));
        assert_eq!(read(two, 9), Ok(b"llo".to_vec()));
        fails(wasip1::fd_tell(one), ERRNO_BADF);
        fails(wasip1::fd_renumber(one, two), ERRNO_BADF);
        fails(wasip1::fd_renumber(two, one), ERRNO_BADF);
        fails(wasip1::fd_renumber(two, u32::MAX), ERRNO_BADF);
        works(wasip1::fd_renumber(two, two));
        assert_eq!(wasip1::fd_tell(two), Ok(5));
        fails(wasip1::fd_renumber(CLOSED, CLOSED), ERRNO_BADF);
        // A folder that is open from the start stays one, and a file in its place is none.
        works(wasip1::fd_renumber(DATA, FD_STDIN));
        assert_eq!(works(wasip1::fd_prestat_get(FD_STDIN)).u.dir.pr_name_len, 5);
        works(wasip1::fd_renumber(two, ROOT));
        fails(wasip1::fd_prestat_get(ROOT), ERRNO_BADF);
        assert_eq!(all_open(), [0, 1, 2, 4]);
        // A stream that took the number of a file is written to.
        works(wasip1::fd_renumber(FD_STDERR, ROOT));
        assert_eq!(write(ROOT, b"moved\n"), Ok(6));
    }
}
