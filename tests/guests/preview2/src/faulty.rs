//! What holds whatever goes wrong.

use wasip2::filesystem::types::{ErrorCode, OpenFlags, filesystem_error_code};
use wasip2::io::streams::{Error, InputStream, OutputStream, StreamError};

use crate::{BOTH, KEEP, NOTHING, data, folder, open};

/// A stream that failed says why, and only once.
fn check(error: &Error, input: Option<&InputStream>) {
    let code = filesystem_error_code(error);
    assert!(matches!(code, Some(ErrorCode::Io | ErrorCode::InsufficientSpace)), "{code:?}");
    assert!(input.is_none_or(|input| matches!(input.read(1), Err(StreamError::Closed))));
}

pub(crate) fn faulty() {
    if let Ok(file) = open(&data(), "file", NOTHING, BOTH) {
        read(&file.read_via_stream(0).unwrap());
        let read = file.read(5, 0);
        match read {
            Ok((bytes, is_end)) => assert!(b"hello".starts_with(&bytes) && is_end == (bytes.len() == 5)),
            Err(error) => {
                assert!(matches!(error, ErrorCode::Io | ErrorCode::Interrupted | ErrorCode::WouldBlock))
            }
        }
    }
    if let Ok(file) = open(&folder("/"), "new", OpenFlags::CREATE, BOTH) {
        let written = file.write(b"hello", 0).unwrap_or(0) as usize;
        write(&file.append_via_stream().unwrap());
        if let Ok((bytes, true)) = file.read(1000, 0) {
            assert!(bytes.starts_with(&b"hello"[..written]));
        }
        let _ = (file.sync(), file.sync_data(), file.set_size(1));
    }
    others();
}

/// Whether these do what they are asked for does not matter.
fn others() {
    let (root, data) = (folder("/"), data());
    let _ = (wasip2::clocks::monotonic_clock::now(), wasip2::clocks::wall_clock::now());
    let _ = (data.read_directory().map(|listing| listing.read_directory_entry()), root.sync());
    let _ =
        (root.create_directory_at("d"), root.symlink_at("d", "s"), data.link_at(KEEP, "file", &root, "l"));
    let _ = (root.rename_at("l", &root, "d/l"), root.unlink_file_at("s"), root.remove_directory_at("d"));
    let (Ok(from), Ok(to)) = (
        open(&data, "file", NOTHING, BOTH),
        open(&root, "to", OpenFlags::CREATE | OpenFlags::TRUNCATE, BOTH),
    ) else {
        return;
    };
    let from = [0; 3].map(|at| from.read_via_stream(at).unwrap());
    let [to, zeroes, flushed] = [0; 3].map(|at| to.write_via_stream(at).unwrap());
    let _ =
        (to.splice(&from[0], 2), to.blocking_splice(&from[0], 5), from[1].skip(2), from[2].blocking_skip(2));
    let _ = (zeroes.write_zeroes(1), zeroes.blocking_write_zeroes_and_flush(1));
    let _ = flushed.blocking_write_and_flush(b"a");
}

/// All bytes come in the end, unless it failed.
fn read(input: &InputStream) {
    let mut all = Vec::new();
    for count in 0.. {
        match if count % 2 == 0 { input.read(2) } else { input.blocking_read(2) } {
            Ok(bytes) => all.extend(bytes),
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(error)) => return check(&error, Some(input)),
        }
    }
    assert_eq!(all, b"hello");
}

/// As much as is permitted is written, until all is.
fn write(output: &OutputStream) {
    let mut left: &[u8] = &[7; 200];
    while !left.is_empty() {
        let permitted = output.check_write().unwrap().min(left.len() as u64) as usize;
        if let Err(StreamError::LastOperationFailed(error)) = output.write(&left[..permitted]) {
            assert!(matches!(output.check_write(), Err(StreamError::Closed)));
            return check(&error, None);
        }
        left = &left[permitted..];
    }
    output.blocking_flush().unwrap();
}
