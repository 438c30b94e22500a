//! `wasi:io/streams` and `wasi:io/error`.

use wasip2::cli::{stderr, stdin, stdout};
use wasip2::filesystem::types::{ErrorCode, OpenFlags, filesystem_error_code};
use wasip2::io::streams::StreamError;

use crate::{BOTH, content, data, folder, made, open};

fn is_closed<T>(result: Result<T, StreamError>) -> bool {
    matches!(result, Err(StreamError::Closed))
}

pub(crate) fn standard_input() {
    let (input, other) = (stdin::get_stdin(), stdin::get_stdin());
    assert_eq!(input.read(0).unwrap(), b"");
    assert_eq!(input.read(2).unwrap(), b"in");
    assert_eq!(other.blocking_read(1).unwrap(), b"p");
    assert_eq!(input.skip(1).unwrap(), 1);
    assert_eq!(input.blocking_skip(u64::MAX).unwrap(), 1);
    assert!(is_closed(input.read(1)) && is_closed(other.blocking_read(u64::MAX)));
    assert!(is_closed(input.skip(1)) && is_closed(input.blocking_skip(1)));
    assert!(input.subscribe().ready());
}

pub(crate) fn standard_output() {
    let (output, error) = (stdout::get_stdout(), stderr::get_stderr());
    assert_eq!(output.check_write().unwrap(), 1 << 20);
    output.write(b"one ").unwrap();
    output.blocking_write_and_flush(b"two\n").unwrap();
    error.write(b"").unwrap();
    output.flush().unwrap();
    error.blocking_flush().unwrap();
    output.subscribe().block();
}

pub(crate) fn file_streams() {
    let file = made("new", b"");
    let (here, there) = (file.write_via_stream(0).unwrap(), file.write_via_stream(3).unwrap());
    there.write(b"def").unwrap();
    assert_eq!(content(&file), b"\0\0\0def");
    here.write(b"a").unwrap();
    here.blocking_write_and_flush(b"b").unwrap();
    there.write(b"g").unwrap();
    assert_eq!(content(&file), b"ab\0defg");
    let reading = file.read_via_stream(1).unwrap();
    assert_eq!(reading.read(3).unwrap(), b"b\0d");
    assert_eq!(reading.blocking_skip(1).unwrap(), 1);
    here.write(b"c").unwrap();
    assert_eq!(reading.blocking_read(100).unwrap(), b"fg");
    assert!(is_closed(reading.read(1)));
    // What is appended later is read then.
    there.write(b"h").unwrap();
    assert_eq!(reading.read(1).unwrap(), b"h");
    // A stream keeps its file.
    drop(file);
    folder("/").unlink_file_at("new").unwrap();
    here.write(b"x").unwrap();
    assert!(is_closed(reading.read(1)));
    assert!(is_closed(
        data()
            .open_at(crate::KEEP, "file", crate::NOTHING, BOTH)
            .unwrap()
            .read_via_stream(9)
            .unwrap()
            .read(1)
    ));
}

pub(crate) fn appending() {
    let file = made("new", b"abc");
    let (one, two) = (file.append_via_stream().unwrap(), file.append_via_stream().unwrap());
    one.write(b"d").unwrap();
    two.write(b"e").unwrap();
    one.write(b"f").unwrap();
    assert_eq!(content(&file), b"abcdef");
}

pub(crate) fn zeroes() {
    let file = made("new", b"abcdefgh");
    let stream = file.write_via_stream(1).unwrap();
    stream.write_zeroes(2).unwrap();
    stream.blocking_write_zeroes_and_flush(2).unwrap();
    stream.write_zeroes(0).unwrap();
    assert_eq!(content(&file), b"a\0\0\0\0fgh");
}

pub(crate) fn splicing() {
    let (from, to) = (data(), made("new", b""));
    let from = open(&from, "file", crate::NOTHING, BOTH).unwrap().read_via_stream(0).unwrap();
    let sink = to.write_via_stream(0).unwrap();
    assert_eq!(sink.splice(&from, 2).unwrap(), 2);
    assert_eq!(sink.blocking_splice(&from, u64::MAX).unwrap(), 3);
    assert!(is_closed(sink.splice(&from, 1)) && is_closed(sink.blocking_splice(&from, 1)));
    assert_eq!(content(&to), b"hello");
    let output = stdout::get_stdout();
    assert_eq!(output.splice(&stdin::get_stdin(), 100).unwrap(), 5);
}

pub(crate) fn errors() {
    let file = made("new", b"");
    // No file is as large.
    let stream = file.write_via_stream(u64::MAX).unwrap();
    let Err(StreamError::LastOperationFailed(error)) = stream.write(b"a") else { panic!("it was written") };
    assert_eq!(filesystem_error_code(&error), Some(ErrorCode::FileTooLarge));
    assert_eq!(error.to_debug_string(), "file-too-large");
    assert!(is_closed(stream.write(b"a")) && is_closed(stream.check_write()) && is_closed(stream.flush()));
    assert!(is_closed(stream.splice(&stdin::get_stdin(), 1)));
    assert!(stream.subscribe().ready());
    let all = open(&folder("/"), "all", OpenFlags::CREATE, BOTH).unwrap();
    let stream = all.append_via_stream().unwrap();
    let full = (0..100).find_map(|_| stream.write(&vec![1; 1 << 20]).err());
    let Some(StreamError::LastOperationFailed(error)) = full else { panic!("there is room for all") };
    assert_eq!(filesystem_error_code(&error), Some(ErrorCode::InsufficientSpace));
}
