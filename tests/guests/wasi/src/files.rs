//! Reading, writing, sizes and times of open files.

use crate::*;

/// A new file with all rights that holds this, at its start.
#[track_caller]
fn file(bytes: &[u8]) -> Fd {
    create(ROOT, "f", bytes);
    open(ROOT, "f", 0)
}

fn size(fd: Fd) -> u64 {
    works(unsafe { wasip1::fd_filestat_get(fd) }).size
}

/// A file that is open with these rights alone.
#[track_caller]
fn limited(rights: Rights) -> Fd {
    works(unsafe { path_open(ROOT, 0, "f", 0, rights, 0, 0) })
}

fn times(fd: Fd) -> [u64; 3] {
    let stat = works(unsafe { wasip1::fd_filestat_get(fd) });
    [stat.atim, stat.mtim, stat.ctim]
}

/// When a run begins.
const EPOCH: u64 = 1_735_689_600_000_000_000;

rules! {
    fn fd_advise() {
        let fd = file(b"abc");
        let all =
            [ADVICE_NORMAL, ADVICE_SEQUENTIAL, ADVICE_RANDOM, ADVICE_WILLNEED, ADVICE_DONTNEED, ADVICE_NOREUSE];
        for advice in all {
            works(wasip1::fd_advise(fd, 1 << 40, 0, advice));
        }
        assert_eq!(size(fd), 3);
        assert_eq!(raw::fd_advise(fd as i32, 0, 0, 6), INVAL);
        fails(wasip1::fd_advise(fd, u64::MAX, 1, ADVICE_NORMAL), ERRNO_INVAL);
        fails(wasip1::fd_advise(CLOSED, 0, 0, ADVICE_NORMAL), ERRNO_BADF);
        fails(wasip1::fd_advise(ROOT, 0, 0, ADVICE_NORMAL), ERRNO_BADF);
        fails(wasip1::fd_advise(FD_STDIN, 0, 0, ADVICE_NORMAL), ERRNO_SPIPE);
        fails(wasip1::fd_advise(limited(RIGHTS_FD_READ), 0, 0, ADVICE_NORMAL), ERRNO_NOTCAPABLE);
    }

    /// The file has the size then, if it was smaller.
    fn fd_allocate() {
        let fd = file(b"abc");
        works(wasip1::fd_allocate(fd, 10, 5));
        assert_eq!((size(fd), content(ROOT, "f")), (15, b"abc\0\0\0\0\0\0\0\0\0\0\0\0".to_vec()));
        works(wasip1::fd_allocate(fd, 0, 15));
        assert_eq!(size(fd), 15);
        fails(wasip1::fd_allocate(fd, 0, 0), ERRNO_INVAL);
        fails(wasip1::fd_allocate(fd, u64::MAX, 1), ERRNO_FBIG);
        fails(wasip1::fd_allocate(fd, 1 << 40, 1), ERRNO_FBIG);
        fails(wasip1::fd_allocate(fd, 0, 1 << 30), ERRNO_NOSPC);
        fails(wasip1::fd_allocate(CLOSED, 0, 1), ERRNO_BADF);
        fails(wasip1::fd_allocate(ROOT, 0, 1), ERRNO_BADF);
        fails(wasip1::fd_allocate(limited(RIGHTS_FD_WRITE), 0, 1), ERRNO_NOTCAPABLE);
        assert_eq!(size(fd), 15);
    }

    fn fd_filestat_get() {
        let stat = works(wasip1::fd_filestat_get(file(b"abc")));
        assert_eq!((stat.dev, stat.filetype, stat.nlink, stat.size), (1, FILETYPE_REGULAR_FILE, 1, 3));
        assert_eq!([stat.atim, stat.mtim, stat.ctim], [EPOCH; 3]);
        let root = works(wasip1::fd_filestat_get(ROOT));
        assert_eq!((root.dev, root.filetype, root.nlink, root.size), (1, FILETYPE_DIRECTORY, 1, 0));
        assert_ne!(root.ino, stat.ino);
        assert_eq!(works(wasip1::fd_filestat_get(FD_STDOUT)).filetype, FILETYPE_CHARACTER_DEVICE);
        assert_eq!(works(wasip1::fd_filestat_get(FD_STDIN)).filetype, FILETYPE_UNKNOWN);
        fails(wasip1::fd_filestat_get(CLOSED), ERRNO_BADF);
        fails(wasip1::fd_filestat_get(limited(RIGHTS_FD_READ)), ERRNO_NOTCAPABLE);
    }

    fn fd_filestat_set_size() {
        let fd = file(b"abcdef");
        works(wasip1::fd_filestat_set_size(fd, 2));
        works(wasip1::fd_filestat_set_size(fd, 4));
        assert_eq!(content(ROOT, "f"), b"ab\0\0");
        // A hole takes no room, however large.
        works(wasip1::fd_filestat_set_size(fd, 1 << 40));
        assert_eq!((size(fd), read_at(fd, 9, (1 << 40) - 2)), (1 << 40, Ok(vec![0, 0])));
        fails(wasip1::fd_filestat_set_size(fd, (1 << 40) + 1), ERRNO_FBIG);
        fails(wasip1::fd_filestat_set_size(fd, u64::MAX), ERRNO_FBIG);
        assert_eq!(size(fd), 1 << 40);
        works(wasip1::fd_filestat_set_size(fd, 0));
        assert_eq!((size(fd), wasip1::fd_tell(fd)), (0, Ok(0)));
        fails(wasip1::fd_filestat_set_size(CLOSED, 0), ERRNO_BADF);
        fails(wasip1::fd_filestat_set_size(ROOT, 0), ERRNO_BADF);
        fails(wasip1::fd_filestat_set_size(limited(RIGHTS_FD_WRITE), 0), ERRNO_NOTCAPABLE);
    }

    fn fd_filestat_set_times() {
        let fd = file(b"");
        let set = |atim, mtim, flags| wasip1::fd_filestat_set_times(fd, atim, mtim, flags);
        works(set(1, 2, FSTFLAGS_ATIM | FSTFLAGS_MTIM));
        assert_eq!(times(fd), [1, 2, EPOCH]);
        works(wasip1::clock_time_get(CLOCKID_REALTIME, 0));
        works(set(7, 7, FSTFLAGS_ATIM_NOW));
        assert_eq!(times(fd), [EPOCH + 1000, 2, EPOCH + 1000]);
        works(set(7, u64::MAX, FSTFLAGS_MTIM));
        works(set(7, 7, 0));
        assert_eq!(times(fd), [EPOCH + 1000, u64::MAX, EPOCH + 1000]);
        works(set(7, 7, FSTFLAGS_MTIM_NOW));
        fails(set(7, 7, FSTFLAGS_ATIM | FSTFLAGS_ATIM_NOW), ERRNO_INVAL);
        fails(set(7, 7, FSTFLAGS_MTIM | FSTFLAGS_MTIM_NOW), ERRNO_INVAL);
        fails(set(7, 7, 16), ERRNO_INVAL);
        assert_eq!(times(fd), [EPOCH + 1000; 3]);
        works(wasip1::fd_filestat_set_times(ROOT, 5, 6, FSTFLAGS_ATIM | FSTFLAGS_MTIM));
        assert_eq!(times(ROOT)[..2], [5, 6]);
        fails(wasip1::fd_filestat_set_times(CLOSED, 0, 0, 0), ERRNO_BADF);
        fails(wasip1::fd_filestat_set_times(limited(RIGHTS_FD_READ), 0, 0, 0), ERRNO_NOTCAPABLE);
    }

    /// What changes a file or directory changes its times.
    fn fd_filestat_get_times() {
        let fd = file(b"abc");
        let tick = || works(wasip1::clock_time_get(CLOCKID_REALTIME, 0));
        tick();
        works(write(fd, b"x"));
        assert_eq!(times(fd), [EPOCH, EPOCH + 1000, EPOCH + 1000]);
        tick();
        works(wasip1::path_link(ROOT, 0, "f", ROOT, "g"));
        assert_eq!((times(fd), times(ROOT)), ([EPOCH, EPOCH + 1000, EPOCH + 2000], [EPOCH, EPOCH + 2000, EPOCH + 2000]));
        tick();
        works(wasip1::path_unlink_file(ROOT, "g"));
        assert_eq!((times(fd)[2], times(ROOT)[1]), (EPOCH + 3000, EPOCH + 3000));
        tick();
        works(wasip1::fd_filestat_set_size(fd, 1));
        assert_eq!((times(fd)[1], times(ROOT)[1]), (EPOCH + 4000, EPOCH + 3000));
    }

    fn fd_pread() {
        let fd = file(b"abcdef");
        works(wasip1::fd_seek(fd, 1, WHENCE_SET));
        assert_eq!(read_at(fd, 3, 2), Ok(b"cde".to_vec()));
        assert_eq!((read_at(fd, 9, 4), read_at(fd, 9, 6)), (Ok(b"ef".to_vec()), Ok(vec![])));
        assert_eq!((read_at(fd, 9, u64::MAX), read_at(fd, 0, 0)), (Ok(vec![]), Ok(vec![])));
        assert_eq!(wasip1::fd_tell(fd), Ok(1));
        fails(read_at(CLOSED, 1, 0), ERRNO_BADF);
        fails(read_at(ROOT, 1, 0), ERRNO_BADF);
        fails(read_at(FD_STDIN, 1, 0), ERRNO_SPIPE);
        fails(read_at(limited(RIGHTS_FD_WRITE | RIGHTS_FD_SEEK), 1, 0), ERRNO_BADF);
        fails(read_at(limited(RIGHTS_FD_READ), 1, 0), ERRNO_NOTCAPABLE);
    }

    fn fd_pwrite() {
        let fd = file(b"abc");
        works(wasip1::fd_seek(fd, 1, WHENCE_SET));
        assert_eq!((write_at(fd, b"X", 2), write_at(fd, b"Y", 5), write_at(fd, b"", 99)), (Ok(1), Ok(1), Ok(0)));
        assert_eq!((content(ROOT, "f"), wasip1::fd_tell(fd)), (b"abX\0\0Y".to_vec(), Ok(1)));
        fails(write_at(fd, b"x", u64::MAX), ERRNO_FBIG);
        fails(write_at(fd, b"x", 1 << 40), ERRNO_FBIG);
        assert_eq!((write_at(fd, b"x", (1 << 40) - 1), size(fd)), (Ok(1), 1 << 40));
        fails(write_at(CLOSED, b"x", 0), ERRNO_BADF);
        fails(write_at(ROOT, b"x", 0), ERRNO_BADF);
        fails(write_at(FD_STDOUT, b"x", 0), ERRNO_SPIPE);
        fails(write_at(limited(RIGHTS_FD_READ | RIGHTS_FD_SEEK), b"x", 0), ERRNO_BADF);
        fails(write_at(limited(RIGHTS_FD_WRITE), b"x", 0), ERRNO_NOTCAPABLE);
    }

    fn fd_read() {
        let fd = file(b"abcdef");
        let mut bytes = [9u8; 8];
        let at = bytes.as_mut_ptr();
        let part = |from: usize, len| Iovec { buf: at.wrapping_add(from), buf_len: len };
        // Parts are filled in the order of the list, also where they overlap or are empty.
        assert_eq!(wasip1::fd_read(fd, &[part(4, 2), part(0, 0), part(0, 2), part(1, 1)]), Ok(5));
        assert_eq!(bytes, *b"ce\x09\x09ab\x09\x09");
        assert_eq!((wasip1::fd_tell(fd), read(fd, 9), read(fd, 9)), (Ok(5), Ok(b"f".to_vec()), Ok(vec![])));
        works(wasip1::fd_seek(fd, 99, WHENCE_SET));
        assert_eq!((read(fd, 9), wasip1::fd_tell(fd)), (Ok(vec![]), Ok(99)));
        assert_eq!(wasip1::fd_read(fd, &[]), Ok(0));
        let many = [(); 1025].map(|()| part(0, 0));
        assert_eq!(wasip1::fd_read(fd, &many[..1024]), Ok(0));
        fails(wasip1::fd_read(fd, &many), ERRNO_INVAL);
        fails(read(CLOSED, 1), ERRNO_BADF);
        fails(read(ROOT, 1), ERRNO_BADF);
        fails(read(FD_STDOUT, 1), ERRNO_BADF);
        fails(read(limited(RIGHTS_FD_WRITE), 1), ERRNO_BADF);
    }

    fn fd_read_standard_input() {
        assert_eq!((read(FD_STDIN, 3), read(FD_STDIN, 9), read(FD_STDIN, 9)), (Ok(b"inp".to_vec()), Ok(b"ut".to_vec()), Ok(vec![])));
    }

    fn fd_write() {
        let fd = file(b"abcdef");
        let part = |bytes: &'static [u8]| Ciovec { buf: bytes.as_ptr(), buf_len: bytes.len() };
        assert_eq!(wasip1::fd_write(fd, &[part(b"XY"), part(b""), part(b"Z")]), Ok(3));
        assert_eq!((content(ROOT, "f"), wasip1::fd_tell(fd)), (b"XYZdef".to_vec(), Ok(3)));
        // Past the end a hole comes first.
        works(wasip1::fd_seek(fd, 8, WHENCE_SET));
        assert_eq!((write(fd, b"!"), content(ROOT, "f")), (Ok(1), b"XYZdef\0\0!".to_vec()));
        assert_eq!((wasip1::fd_write(fd, &[]), write(fd, b"")), (Ok(0), Ok(0)));
        works(wasip1::fd_seek(fd, i64::MAX, WHENCE_SET));
        fails(write(fd, b"x"), ERRNO_FBIG);
        assert_eq!((write(FD_STDOUT, b"out\n"), write(FD_STDERR, b"err\n")), (Ok(4), Ok(4)));
        let many = [(); 1025].map(|()| part(b""));
        fails(wasip1::fd_write(fd, &many), ERRNO_INVAL);
        fails(write(CLOSED, b"x"), ERRNO_BADF);
        fails(write(ROOT, b"x"), ERRNO_BADF);
        fails(write(FD_STDIN, b"x"), ERRNO_BADF);
        fails(write(limited(RIGHTS_FD_READ), b"x"), ERRNO_BADF);
    }

    /// Two descriptors that append write behind one another, wherever they are.
    fn fd_write_at_the_end() {
        create(ROOT, "f", b"ab");
        let fds = [(); 2].map(|()| works(path_open(ROOT, 0, "f", 0, FILE_RIGHTS, 0, FDFLAGS_APPEND)));
        assert_eq!((write(fds[0], b"1"), write(fds[1], b"2")), (Ok(1), Ok(1)));
        works(wasip1::fd_seek(fds[0], 0, WHENCE_SET));
        assert_eq!((write(fds[0], b"3"), wasip1::fd_tell(fds[0])), (Ok(1), Ok(5)));
        assert_eq!(wasip1::fd_tell(fds[1]), Ok(4));
        // An offset that is given is used.
        assert_eq!((write_at(fds[0], b"X", 0), content(ROOT, "f")), (Ok(1), b"Xb123".to_vec()));
    }

    fn fd_seek() {
        let fd = file(b"abcdef");
        let seek = |offset, whence| wasip1::fd_seek(fd, offset, whence);
        assert_eq!((seek(4, WHENCE_SET), seek(-1, WHENCE_CUR), seek(-6, WHENCE_END)), (Ok(4), Ok(3), Ok(0)));
        assert_eq!((seek(99, WHENCE_END), read(fd, 1)), (Ok(105), Ok(vec![])));
        fails(seek(-1, WHENCE_SET), ERRNO_INVAL);
        fails(seek(-106, WHENCE_CUR), ERRNO_INVAL);
        fails(seek(-7, WHENCE_END), ERRNO_INVAL);
        fails(seek(i64::MIN, WHENCE_END), ERRNO_INVAL);
        assert_eq!(seek(i64::MAX, WHENCE_SET), Ok(i64::MAX as u64));
        fails(seek(1, WHENCE_CUR), ERRNO_INVAL);
        let mut at = 7u64;
        assert_eq!((raw::fd_seek(fd as i32, 0, 3, &raw mut at as i32), at), (INVAL, 7));
        assert_eq!(seek(0, WHENCE_CUR), Ok(i64::MAX as u64));
        fails(wasip1::fd_seek(CLOSED, 0, WHENCE_SET), ERRNO_BADF);
        fails(wasip1::fd_seek(ROOT, 0, WHENCE_CUR), ERRNO_BADF);
        fails(wasip1::fd_seek(FD_STDOUT, 0, WHENCE_CUR), ERRNO_SPIPE);
        let fd = limited(RIGHTS_FD_TELL);
        assert_eq!(wasip1::fd_seek(fd, 0, WHENCE_CUR), Ok(0));
        fails(wasip1::fd_seek(fd, 1, WHENCE_CUR), ERRNO_NOTCAPABLE);
        fails(wasip1::fd_seek(fd, 0, WHENCE_SET), ERRNO_NOTCAPABLE);
    }

    fn fd_tell() {
        let fd = file(b"abcdef");
        assert_eq!((wasip1::fd_tell(fd), read(fd, 4).is_ok(), wasip1::fd_tell(fd)), (Ok(0), true, Ok(4)));
        // The right to move includes it.
        assert_eq!(wasip1::fd_tell(limited(RIGHTS_FD_SEEK)), Ok(0));
        fails(wasip1::fd_tell(limited(RIGHTS_FD_READ)), ERRNO_NOTCAPABLE);
        fails(wasip1::fd_tell(CLOSED), ERRNO_BADF);
        fails(wasip1::fd_tell(ROOT), ERRNO_BADF);
        fails(wasip1::fd_tell(FD_STDIN), ERRNO_SPIPE);
    }

    /// Each opening has a place of its own, and all see one file.
    fn fd_read_what_another_wrote() {
        let [one, two] = [file(b"abc"), open(ROOT, "f", 0)];
        assert_eq!((read(one, 1), read(two, 2), read(one, 1)), (Ok(b"a".to_vec()), Ok(b"ab".to_vec()), Ok(b"b".to_vec())));
        assert_eq!((write(one, b"X"), read(two, 1)), (Ok(1), Ok(b"X".to_vec())));
    }
}
