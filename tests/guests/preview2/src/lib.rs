//! The functions of WASI preview 2: an export asserts what the specification says of some, and `tests/tests/preview2` calls each
//! from the start state. There `/data` is open, with `file` ("hello"), `dir/inner` and the link `link` to `file`; and so is `/`,
//! which is otherwise empty.

mod faulty;
mod files;
mod paths;
mod process;
mod streams;
mod walk;

use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, ErrorCode, OpenFlags, PathFlags};

wit_bindgen::generate!({ inline: "
    package spelunk:checks;
    world checks {
        export environment: func();
        export exit-well: func();
        export exit-badly: func();
        export exit-with-a-code: func();
        export terminals: func();
        export clocks: func();
        export waiting: func();
        export waiting-for-nothing: func();
        export randomness: func();
        export network: func();
        export standard-input: func();
        export standard-output: func();
        export writes-too-much: func();
        export flushes-too-much: func();
        export file-streams: func();
        export appending: func();
        export zeroes: func();
        export splicing: func();
        export errors-of-streams: func();
        export reading-and-writing: func();
        export ends-of-files: func();
        export attributes: func();
        export times: func();
        export listing: func();
        export listing-while-it-changes: func();
        export opening: func();
        export directories: func();
        export links: func();
        export renaming: func();
        export objects: func();
        export outside: func();
        export removed-files: func();
        export too-many-descriptors: func();
        export too-many-streams: func();
        export faulty: func();
        export walk: func(what: u8, which: u8, size: u16);
    }
" });

struct Checks;

impl Guest for Checks {
    fn environment() {
        process::environment();
    }
    fn exit_well() {
        wasip2::cli::exit::exit(Ok(()));
    }
    fn exit_badly() {
        wasip2::cli::exit::exit(Err(()));
    }
    fn exit_with_a_code() {
        wasip2::cli::exit::exit_with_code(7);
    }
    fn terminals() {
        process::terminals();
    }
    fn clocks() {
        process::clocks();
    }
    fn waiting() {
        process::waiting();
    }
    fn waiting_for_nothing() {
        wasip2::io::poll::poll(&[]);
    }
    fn randomness() {
        process::randomness();
    }
    fn network() {
        process::network();
    }
    fn standard_input() {
        streams::standard_input();
    }
    fn standard_output() {
        streams::standard_output();
    }
    fn writes_too_much() {
        let _ = wasip2::cli::stdout::get_stdout().write(&vec![0; (1 << 20) + 1]);
    }
    fn flushes_too_much() {
        let _ = wasip2::cli::stdout::get_stdout().blocking_write_and_flush(&[0; 4097]);
    }
    fn file_streams() {
        streams::file_streams();
    }
    fn appending() {
        streams::appending();
    }
    fn zeroes() {
        streams::zeroes();
    }
    fn splicing() {
        streams::splicing();
    }
    fn errors_of_streams() {
        streams::errors();
    }
    fn reading_and_writing() {
        files::reading_and_writing();
    }
    fn ends_of_files() {
        files::ends();
    }
    fn attributes() {
        files::attributes();
    }
    fn times() {
        files::times();
    }
    fn listing() {
        files::listing();
    }
    fn listing_while_it_changes() {
        files::listing_while_it_changes();
    }
    fn opening() {
        paths::opening();
    }
    fn directories() {
        paths::directories();
    }
    fn links() {
        paths::links();
    }
    fn renaming() {
        paths::renaming();
    }
    fn objects() {
        paths::objects();
    }
    fn outside() {
        paths::outside();
    }
    fn removed_files() {
        paths::removed();
    }
    fn too_many_descriptors() {
        paths::too_many();
    }
    fn too_many_streams() {
        let streams: Vec<_> = (0..1025).map(|_| wasip2::cli::stdout::get_stdout()).collect();
        drop(streams);
    }
    fn faulty() {
        faulty::faulty();
    }
    fn walk(what: u8, which: u8, size: u16) {
        walk::walk(what, which, size);
    }
}

export!(Checks);

/// Reads and writes.
const BOTH: DescriptorFlags = DescriptorFlags::READ.union(DescriptorFlags::WRITE);
const NOTHING: OpenFlags = OpenFlags::empty();
const KEEP: PathFlags = PathFlags::empty();
const FOLLOW: PathFlags = PathFlags::SYMLINK_FOLLOW;

/// The folder that is open under this path.
fn folder(path: &str) -> Descriptor {
    let folders = get_directories().into_iter();
    folders.filter(|(_, other)| other == path).map(|(folder, _)| folder).next().unwrap()
}

fn data() -> Descriptor {
    folder("/data")
}

fn open(
    at: &Descriptor,
    path: &str,
    how: OpenFlags,
    flags: DescriptorFlags,
) -> Result<Descriptor, ErrorCode> {
    at.open_at(FOLLOW, path, how, flags)
}

/// A new file with these bytes.
fn made(path: &str, bytes: &[u8]) -> Descriptor {
    let file = open(&folder("/"), path, OpenFlags::CREATE | OpenFlags::EXCLUSIVE, BOTH).unwrap();
    assert_eq!(file.write(bytes, 0), Ok(bytes.len() as u64));
    file
}

/// All that a file holds.
fn content(file: &Descriptor) -> Vec<u8> {
    file.read(1 << 16, 0).unwrap().0
}
