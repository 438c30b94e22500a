//! Random calls, which leave files, streams and listings open.

use std::cell::RefCell;

use wasip2::clocks::monotonic_clock;
use wasip2::filesystem::types::{Descriptor, DirectoryEntryStream, NewTimestamp, OpenFlags};
use wasip2::io::poll::Pollable;
use wasip2::io::streams::{Error, InputStream, OutputStream, StreamError};

use crate::{BOTH, FOLLOW, KEEP, folder};

/// What is open.
struct Open {
    root: Descriptor,
    files: Vec<Descriptor>,
    inputs: Vec<InputStream>,
    outputs: Vec<OutputStream>,
    listings: Vec<DirectoryEntryStream>,
    pollables: Vec<Pollable>,
    errors: Vec<Error>,
    /// What came of it, so that the next calls depend on it.
    sum: u64,
}

thread_local! {
    static OPEN: RefCell<Option<Open>> = const { RefCell::new(None) };
}

const NAMES: [&str; 6] = ["a", "b", "d/a", "d/b", "d", "e"];

fn name(which: u8) -> &'static str {
    NAMES[usize::from(which) % NAMES.len()]
}

fn one<T>(all: &[T], which: u8) -> Option<&T> {
    all.get(usize::from(which) % all.len().max(1))
}

pub(crate) fn walk(what: u8, which: u8, size: u16) {
    OPEN.with_borrow_mut(|open| {
        let open = open.get_or_insert_with(|| Open {
            root: folder("/"),
            files: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            listings: Vec::new(),
            pollables: Vec::new(),
            errors: Vec::new(),
            sum: 0,
        });
        match what % 6 {
            0 => by_path(open, which, size),
            1 => make(open, which, size),
            2 => read(open, which, size),
            3 => write(open, which, size),
            4 => other(open, which, size),
            _ => forget(open, which),
        }
    });
}

fn by_path(open: &mut Open, which: u8, size: u16) {
    let (root, from, to) = (&open.root, name(which), name((size >> 8) as u8));
    let done = match size % 8 {
        0 => root.create_directory_at(from),
        1 => root.unlink_file_at(from),
        2 => root.remove_directory_at(from),
        3 => root.rename_at(from, root, to),
        4 => root.link_at(KEEP, from, root, to),
        5 => root.symlink_at(to, from),
        6 => root.set_times_at(FOLLOW, from, NewTimestamp::Now, NewTimestamp::NoChange),
        _ => root.metadata_hash_at(FOLLOW, from).map(|hash| open.sum ^= hash.lower),
    };
    open.sum = open.sum.wrapping_mul(31) + done.is_ok() as u64;
}

fn make(open: &mut Open, which: u8, size: u16) {
    if size.is_multiple_of(3) {
        let file = open.root.open_at(FOLLOW, name(which), OpenFlags::CREATE, BOTH);
        return open.files.extend(file);
    }
    let Some(file) = one(&open.files, which) else { return };
    match size % 6 {
        1 => open.inputs.extend(file.read_via_stream(u64::from(size / 64))),
        2 => open.outputs.extend(file.write_via_stream(u64::from(size / 64))),
        4 => open.outputs.extend(file.append_via_stream()),
        _ => open.listings.extend(open.root.read_directory()),
    }
}

fn read(open: &mut Open, which: u8, size: u16) {
    let mut bytes = Vec::new();
    match size % 4 {
        0 => {
            bytes =
                one(&open.files, which).and_then(|file| Some(file.read(300, 0).ok()?.0)).unwrap_or_default()
        }
        1 => {
            let entry = one(&open.listings, which).and_then(|listing| listing.read_directory_entry().ok()?);
            bytes.extend(entry.into_iter().flat_map(|entry| entry.name.into_bytes()));
        }
        _ => {
            let read = one(&open.inputs, which).map(|input| input.read(u64::from(size / 32)));
            bytes.extend(read.and_then(Result::ok).into_iter().flatten());
        }
    }
    open.sum = bytes.iter().fold(open.sum, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
}

fn write(open: &mut Open, which: u8, size: u16) {
    let bytes = vec![which; usize::from(size / 16)];
    if size.is_multiple_of(3) {
        if let Some(file) = one(&open.files, which) {
            open.sum += file.write(&bytes, u64::from(which)).unwrap_or(7);
        }
        return;
    }
    let Some(output) = one(&open.outputs, which) else { return };
    let done = match size % 4 {
        0 => output.write_zeroes(u64::from(size / 16)),
        1 => one(&open.inputs, which).map_or(Ok(()), |input| output.splice(input, u64::from(size)).map(drop)),
        _ => output.write(&bytes),
    };
    if let Err(StreamError::LastOperationFailed(error)) = done {
        open.errors.push(error);
    }
}

fn other(open: &mut Open, which: u8, size: u16) {
    match size % 5 {
        0 => open.pollables.push(monotonic_clock::subscribe_duration(u64::from(size) * 1000)),
        1 => one(&open.pollables, which).into_iter().for_each(Pollable::block),
        2 => open.pollables.extend(one(&open.inputs, which).map(|input| input.subscribe())),
        3 => open.sum ^= wasip2::random::random::get_random_u64() ^ monotonic_clock::now(),
        _ => drop(one(&open.files, which).map(|file| file.set_size(u64::from(size / 8)))),
    }
}

fn forget(open: &mut Open, which: u8) {
    fn take<T>(all: &mut Vec<T>, which: u8) {
        if !all.is_empty() {
            all.swap_remove(usize::from(which) % all.len());
        }
    }
    match which % 6 {
        0 => take(&mut open.files, which / 6),
        1 => take(&mut open.inputs, which / 6),
        2 => take(&mut open.outputs, which / 6),
        3 => take(&mut open.listings, which / 6),
        4 => take(&mut open.pollables, which / 6),
        _ => take(&mut open.errors, which / 6),
    }
}
