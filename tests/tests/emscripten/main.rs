//! Emscripten's modules: their system calls are answered as the glue around them answers, and packages run as they are.

mod calls;
mod guest;
mod packages;

use guest::{Arg, Call, Look, Room, check};
use spelunk_tests::tools::npm_package;

fn call(name: &'static str, args: impl IntoIterator<Item = Arg>) -> Call {
    Call { name, args: args.into_iter().collect(), look: Look::Number, bytes: Vec::new() }
}

impl Call {
    /// Compares these bytes after the call.
    fn sees(mut self, bytes: &[(u32, u32)]) -> Call {
        self.bytes = bytes.to_vec();
        self
    }

    /// Compares whether it is an error alone.
    fn opens(mut self) -> Call {
        self.look = Look::Sign;
        self
    }
}

fn n(number: i64) -> Arg {
    Arg::Number(number)
}

const HERE: Arg = Arg::Number(-100);
/// Places of texts and numbers in the room.
const FILE: Arg = Arg::At(0);
const OTHER: Arg = Arg::At(64);
const FOLDER: Arg = Arg::At(128);
const MISSING: Arg = Arg::At(192);
const BELOW: Arg = Arg::At(256);
const ABOVE: Arg = Arg::At(320);
const EMPTY: Arg = Arg::At(384);
const MODE: Arg = Arg::At(512);
const WRITTEN: Arg = Arg::At(520);
const READ: Arg = Arg::At(528);
const LOCK: Arg = Arg::At(536);
const TIMES: Arg = Arg::At(576);
const COUNT: Arg = Arg::At(640);
const APPENDED: Arg = Arg::At(648);
const OUT: Arg = Arg::At(4096);

fn room() -> Room {
    Room::default()
        .text(0, "/tmp/file")
        .text(64, "tmp/../tmp/./other")
        .text(128, "/tmp/folder")
        .text(192, "/tmp/missing/file")
        .text(256, "below")
        .text(320, "/../../tmp/file")
        .text(384, "")
        .numbers(512, &[0o640])
        // The list of one part of memory: its address is put in later, and its length is that distance.
        .numbers(520, &[0xadd0, 1024])
        .numbers(528, &[0xadd0, 2048])
        .numbers(536, &[0xadd0, OUT_AT])
        .numbers(576, &[1000, 0, 5_000_000, 0, 0, 0, 0x3fff_fffe, 0])
        .numbers(648, &[0o2000])
        .text(1024, "what is written")
}

const OUT_AT: u32 = 4096;
/// Mode, names and numbers of owners; size and blocks; whole seconds of the first time.
const ATTRIBUTES: [(u32, u32); 2] = [(OUT_AT + 4, 4), (OUT_AT + 24, 16)];

const CREATED: i64 = 0o102;
const EXCLUSIVE: i64 = 0o302;

#[test]
fn files_are_opened_as_the_glue_opens_them() {
    let Some(glue) = npm_package("sql.js/dist/sql-wasm-debug.js") else { return };
    let open = |path, flags| call("__syscall_openat", [HERE, path, n(flags), MODE]).opens();
    let calls = [
        open(FILE, 0),
        open(FILE, CREATED),
        call("__syscall_stat64", [FILE, OUT]).sees(&ATTRIBUTES),
        open(FILE, EXCLUSIVE),
        open(ABOVE, 0),
        open(EMPTY, CREATED),
        open(OTHER, CREATED),
        open(MISSING, CREATED),
        open(EMPTY, 0),
        open(FILE, 0o200000),
        call("__syscall_mkdirat", [HERE, FOLDER, n(0o777)]),
        call("__syscall_mkdirat", [HERE, FOLDER, n(0o777)]),
        call("__syscall_mkdirat", [HERE, MISSING, n(0o777)]),
        call("__syscall_stat64", [FOLDER, OUT]).sees(&ATTRIBUTES),
        open(FOLDER, 0),
        open(FOLDER, 1),
        open(FOLDER, 0o200000),
        call("__syscall_openat", [Arg::Result(14), BELOW, n(CREATED), MODE]).opens(),
        call("__syscall_newfstatat", [Arg::Result(14), BELOW, OUT, n(0)]).sees(&ATTRIBUTES),
        call("__syscall_newfstatat", [Arg::Result(14), EMPTY, OUT, n(4096)]).sees(&ATTRIBUTES),
        call("__syscall_newfstatat", [Arg::Result(14), EMPTY, OUT, n(0)]),
        call("__syscall_rmdir", [FOLDER]),
        call("__syscall_unlinkat", [HERE, FOLDER, n(0)]),
        call("__syscall_unlinkat", [Arg::Result(14), BELOW, n(0)]),
        call("__syscall_unlinkat", [HERE, FILE, n(512)]),
        call("__syscall_unlinkat", [HERE, FILE, n(7)]),
        call("__syscall_rmdir", [FOLDER]),
        call("__syscall_rmdir", [FOLDER]),
        call("__syscall_unlinkat", [HERE, FILE, n(0)]),
        call("__syscall_unlinkat", [HERE, FILE, n(0)]),
        call("__syscall_stat64", [FILE, OUT]),
        call("__syscall_fstat64", [Arg::Result(1), OUT]).sees(&ATTRIBUTES),
        call("__syscall_readlinkat", [HERE, OTHER, OUT, n(20)]),
        call("__syscall_readlinkat", [HERE, MISSING, OUT, n(20)]),
        call("__syscall_getcwd", [OUT, n(2)]).sees(&[(OUT_AT, 2)]),
        call("__syscall_getcwd", [OUT, n(1)]),
        call("__syscall_getcwd", [OUT, n(0)]),
        call("__syscall_geteuid32", []),
    ];
    check(&glue, &room(), &calls);
}

#[test]
fn attributes_and_contents_are_those_of_the_glue() {
    let Some(glue) = npm_package("sql.js/dist/sql-wasm-debug.js") else { return };
    let access = |mode, flags| call("__syscall_faccessat", [HERE, FILE, n(mode), n(flags)]);
    let opened = Arg::Result(0);
    let stat = || call("__syscall_fstat64", [opened, OUT]).sees(&ATTRIBUTES);
    let calls = [
        call("__syscall_openat", [HERE, FILE, n(CREATED), MODE]).opens(),
        call("fd_write", [opened, WRITTEN, n(1), COUNT]).sees(&[(640, 4)]),
        stat(),
        call("fd_seek", [opened, n(4), n(0), COUNT]).sees(&[(640, 8)]),
        call("fd_read", [opened, READ, n(1), COUNT]).sees(&[(640, 4), (2048, 16)]),
        call("__syscall_ftruncate64", [opened, n(5)]),
        stat(),
        call("__syscall_ftruncate64", [opened, n(-1)]),
        call("__syscall_ftruncate64", [opened, n(5000)]),
        stat(),
        call("__syscall_fchmod", [opened, n(0o444)]),
        access(0, 0),
        access(2, 0),
        access(4, 0),
        access(1, 512),
        access(8, 0),
        call("__syscall_openat", [HERE, FILE, n(2), MODE]).opens(),
        call("__syscall_openat", [HERE, FILE, n(0), MODE]).opens(),
        call("__syscall_ftruncate64", [Arg::Result(17), n(1)]),
        call("fd_write", [Arg::Result(17), WRITTEN, n(1), COUNT]),
        call("__syscall_chmod", [FILE, n(0o600)]),
        call("__syscall_chmod", [MISSING, n(0o600)]),
        stat(),
        call("__syscall_fchown32", [opened, n(1), n(1)]),
        call("__syscall_utimensat", [HERE, FILE, TIMES, n(0)]),
        call("__syscall_stat64", [FILE, OUT]).sees(&[(OUT_AT + 40, 12)]),
        call("__syscall_fcntl64", [opened, n(1), n(0)]),
        call("__syscall_fcntl64", [opened, n(4), APPENDED]),
        call("__syscall_fcntl64", [opened, n(12), LOCK]).sees(&[(OUT_AT, 2)]),
        call("__syscall_fcntl64", [opened, n(13), LOCK]),
        call("__syscall_fcntl64", [opened, n(99), LOCK]),
        call("__syscall_fcntl64", [n(77), n(1), n(0)]),
        call("_mmap_js", [n(8), n(1), n(2), opened, n(0), COUNT, OUT]),
        call("_mmap_js", [n(0), n(1), n(2), opened, n(0), COUNT, OUT]),
        call("_mmap_js", [n(8), n(1), n(2), n(77), n(0), COUNT, OUT]),
        call("_mmap_js", [n(8), n(3), n(1), Arg::Result(17), n(0), COUNT, OUT]),
        call("fd_sync", [opened]),
        call("fd_close", [opened]),
        call("__syscall_fstat64", [opened, OUT]),
    ];
    check(&glue, &room(), &calls);
}

#[test]
fn calendars_are_those_of_the_glue_in_utc() {
    let Some(glue) = npm_package("sql.js/dist/sql-wasm-debug.js") else { return };
    let times = [0, -1, 951_782_400, 1_735_689_600, 4_107_542_399, 8_640_000_000_000, 8_640_000_000_001];
    let mut calls: Vec<Call> =
        times.iter().map(|time| call("_localtime_js", [n(*time), OUT]).sees(&[(OUT_AT, 40)])).collect();
    calls.push(call("_tzset_js", [OUT, COUNT, Arg::At(5000), Arg::At(5100)]).sees(&[
        (OUT_AT, 4),
        (640, 4),
        (5000, 9),
        (5100, 9),
    ]));
    check(&glue, &room(), &calls);
}
