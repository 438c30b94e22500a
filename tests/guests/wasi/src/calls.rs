//! Calls by numbers, so that two systems can be asked for the same.

/// A call, with paths below one directory and files by the slots that they were opened in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Call {
    MakeDirectory(&'static str),
    RemoveDirectory(&'static str),
    Unlink(&'static str),
    Rename(&'static str, &'static str),
    Link(&'static str, &'static str),
    /// What it leads to, and where it is.
    Symlink(&'static str, &'static str),
    ReadLink(&'static str),
    Stat {
        path: &'static str,
        follows: bool,
    },
    List(&'static str),
    Open {
        slot: usize,
        path: &'static str,
        how: How,
    },
    Close(usize),
    Read {
        slot: usize,
        len: usize,
        offset: Option<u64>,
    },
    Write {
        slot: usize,
        len: usize,
        offset: Option<u64>,
    },
    /// From the start, from where it is, or from the end.
    Seek {
        slot: usize,
        offset: i64,
        whence: u8,
    },
    Resize {
        slot: usize,
        size: u64,
    },
    Size(usize),
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct How {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) appends: bool,
    pub(crate) creates: bool,
    pub(crate) is_new: bool,
    pub(crate) truncates: bool,
    pub(crate) is_directory: bool,
    pub(crate) follows: bool,
}

/// Files that may be open.
pub(crate) const SLOTS: usize = 4;

/// No link among them leads above the directory, by no path.
const PATHS: [&str; 26] = [
    "a", "b", "c", "l", "m", "a/b", "a/c", "b/a", "b/b", "a/b/c", "a/l", "l/a", "l/b", "m/c", "a/", "b/",
    "l/", "a/b/", "a/.", "l/.", "a/..", "./a", ".//a///b", "a/../b", ".", "b/../l/a",
];
const TARGETS: [&str; 9] = ["a", "b", "c", "l", "a/b", "b/", "a/b/", "m/c", "none"];

impl Call {
    /// The call that these numbers stand for.
    pub(crate) fn of(call: u32, [a, b, c]: [u32; 3]) -> Call {
        let path = |number: u32| PATHS[number as usize % PATHS.len()];
        let slot = a as usize % SLOTS;
        let offset = (c & 1 != 0).then_some(u64::from(c >> 1) % 5000);
        match call % 20 {
            0 => Call::MakeDirectory(path(a)),
            1 => Call::RemoveDirectory(path(a)),
            2 => Call::Unlink(path(a)),
            3 | 4 => Call::Rename(path(a), path(b)),
            5 => Call::Link(path(a), path(b)),
            6 => Call::Symlink(TARGETS[a as usize % TARGETS.len()], path(b)),
            7 => Call::ReadLink(path(a)),
            8 => Call::Stat { path: path(a), follows: b & 1 != 0 },
            9 => Call::List(path(a)),
            10..13 => Call::Open { slot, path: path(b), how: How::of(c) },
            13 => Call::Close(slot),
            14 => Call::Read { slot, len: b as usize % 3000, offset },
            15 | 16 => Call::Write { slot, len: b as usize % 3000, offset },
            17 => Call::Seek { slot, offset: i64::from(b as i32) % 5000, whence: (c % 3) as u8 },
            18 => Call::Resize { slot, size: u64::from(b) % 10_000 },
            _ => Call::Size(slot),
        }
    }
}

impl How {
    /// Only what asks for writing creates or cuts.
    fn of(bits: u32) -> How {
        let is = |bit: u32| bits >> bit & 1 != 0;
        let writes = is(1) || is(2);
        How {
            reads: is(0) || !writes,
            writes,
            appends: writes && is(3) && is(4),
            creates: writes && is(5),
            is_new: writes && is(5) && is(6),
            truncates: writes && is(7) && !(is(3) && is(4)),
            is_directory: is(8) && !(writes && is(5)),
            follows: is(9) || is(10),
        }
    }
}
