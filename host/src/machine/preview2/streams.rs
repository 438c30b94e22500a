//! `wasi:io/streams` and `wasi:io/error`.

use super::super::component::Value;
use super::super::host::pay;
use super::super::preview1::{GROW, change, may_fail, stdin_left, struck, system};
use super::super::system::{Awaited, Errno, Resource, Sink, Source};
use super::values::Args;
use super::{Call, Done, Fail, Function, add, broken};
use crate::file::HostFault;

const STREAMS: &str = "wasi:io/streams";

pub(super) const FUNCTIONS: &[Function] = &[
    (STREAMS, "[method]input-stream.read", READ_TYPE, read),
    (STREAMS, "[method]input-stream.blocking-read", READ_TYPE, blocking_read),
    (STREAMS, "[method]input-stream.skip", SKIP_TYPE, skip),
    (STREAMS, "[method]input-stream.blocking-skip", SKIP_TYPE, blocking_skip),
    (STREAMS, "[method]input-stream.subscribe", "func(self: borrow<input-stream>) -> pollable", subscribe),
    (
        STREAMS,
        "[method]output-stream.check-write",
        "func(self: borrow<output-stream>) -> result<u64, stream-error>",
        check_write,
    ),
    (STREAMS, "[method]output-stream.write", WRITE_TYPE, write),
    (STREAMS, "[method]output-stream.blocking-write-and-flush", WRITE_TYPE, write_and_flush),
    (STREAMS, "[method]output-stream.flush", FLUSH_TYPE, flush),
    (STREAMS, "[method]output-stream.blocking-flush", FLUSH_TYPE, flush),
    (STREAMS, "[method]output-stream.subscribe", "func(self: borrow<output-stream>) -> pollable", subscribe),
    (STREAMS, "[method]output-stream.write-zeroes", ZEROES_TYPE, zeroes),
    (STREAMS, "[method]output-stream.blocking-write-zeroes-and-flush", ZEROES_TYPE, zeroes_and_flush),
    (STREAMS, "[method]output-stream.splice", SPLICE_TYPE, splice),
    (STREAMS, "[method]output-stream.blocking-splice", SPLICE_TYPE, blocking_splice),
    ("wasi:io/error", "[method]error.to-debug-string", "func(self: borrow<error>) -> string", debug),
];

const READ_TYPE: &str = "func(self: borrow<input-stream>, len: u64) -> result<list<u8>, stream-error>";
const SKIP_TYPE: &str = "func(self: borrow<input-stream>, len: u64) -> result<u64, stream-error>";
const WRITE_TYPE: &str = "func(self: borrow<output-stream>, contents: list<u8>) -> result<_, stream-error>";
const FLUSH_TYPE: &str = "func(self: borrow<output-stream>) -> result<_, stream-error>";
const ZEROES_TYPE: &str = "func(self: borrow<output-stream>, len: u64) -> result<_, stream-error>";
const SPLICE_TYPE: &str =
    "func(self: borrow<output-stream>, src: borrow<input-stream>, len: u64) -> result<u64, stream-error>";

/// Bytes that are read at once.
const READ_MAX: u64 = 64 << 10;
/// Bytes that may be written at once, so many where a fault makes it few, and with a flush.
const WRITE_MAX: u64 = 1 << 20;
const FEW: u32 = 64;
const FLUSHED_MAX: u64 = 4096;

/// Faults that can strike a read. What does not block is not ready, and a stream is not interrupted: it has no value for that.
const READS: [HostFault; 3] = [HostFault::ShortRead, HostFault::Eio, HostFault::Eagain];
const BLOCKS: [HostFault; 2] = [HostFault::ShortRead, HostFault::Eio];
/// Faults that can strike where it is asked how much may be written.
const CHECKS: [HostFault; 2] = [HostFault::ShortWrite, HostFault::Eagain];

fn source(call: &Call<'_>, number: u32) -> Done<Source> {
    match system(call).resource(number) {
        Some(Resource::Input(source)) => Ok(*source),
        _ => broken("there is no such input-stream"),
    }
}

fn sink(call: &Call<'_>, number: u32) -> Done<Sink> {
    match system(call).resource(number) {
        Some(Resource::Output(sink)) => Ok(*sink),
        _ => broken("there is no such output-stream"),
    }
}

/// Takes so many bytes at most from a stream, or none where it is not ready.
fn take(call: &mut Call<'_>, name: &str, number: u32, len: u64, faults: &[HostFault]) -> Done<Vec<u8>> {
    let source = source(call, number)?;
    let left = match source {
        Source::Closed => return Err(Fail::Closed),
        Source::Stdin => stdin_left(call)?,
        Source::File { ino, at } => system(call).files.content(ino)?.size().saturating_sub(at),
    };
    let len = len.min(READ_MAX);
    if left == 0 && len > 0 {
        return Err(Fail::Closed);
    }
    let len = left.min(len) as u32;
    let is_witness = matches!(source, Source::File { ino, .. } if system(call).is_witness(ino));
    let len = match if is_witness || len == 0 { Ok(len) } else { struck(call, name, faults, len) } {
        Ok(len) => len,
        Err(fail) => match fail.into() {
            Fail::Errno(Errno::Again) => 0,
            Fail::Errno(errno) => {
                change(call).set_resource(number, Resource::Input(Source::Closed));
                return Err(failed(errno, matches!(source, Source::File { .. })));
            }
            fail => return Err(fail),
        },
    };
    pay(call, len as usize)?;
    let mut bytes = vec![0; len as usize];
    if bytes.is_empty() {
        return Ok(bytes);
    }
    match source {
        Source::File { ino, at } => {
            let read = system(call).files.read(ino, at, &mut bytes)?;
            let source = Source::File { ino, at: at.saturating_add(read as u64) };
            change(call).set_resource(number, Resource::Input(source));
        }
        _ => {
            bytes.copy_from_slice(&system(call).stdin_left()[..len as usize]);
            change(call).stdin_at += u64::from(len);
        }
    }
    Ok(bytes)
}

fn failed(errno: Errno, is_of_file: bool) -> Fail {
    Fail::Stream { errno, is_of_file }
}

fn read(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (number, len) = (args.resource()?, args.number()?);
    Ok(Some(Value::Bytes(take(call, "input-stream.read", number, len, &READS)?)))
}

fn blocking_read(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (number, len) = (args.resource()?, args.number()?);
    Ok(Some(Value::Bytes(take(call, "input-stream.blocking-read", number, len, &BLOCKS)?)))
}

fn skip(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (number, len) = (args.resource()?, args.number()?);
    let skipped = take(call, "input-stream.skip", number, len, &READS)?;
    Ok(Some(Value::Unsigned(skipped.len() as u64)))
}

fn blocking_skip(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (number, len) = (args.resource()?, args.number()?);
    let skipped = take(call, "input-stream.blocking-skip", number, len, &BLOCKS)?;
    Ok(Some(Value::Unsigned(skipped.len() as u64)))
}

/// Streams are ready at once.
fn subscribe(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    match system(call).resource(args.resource()?) {
        Some(Resource::Input(_) | Resource::Output(_)) => {}
        _ => return broken("there is no such stream"),
    }
    add(call, Resource::Pollable(Awaited::Nothing)).map(Some)
}

fn check_write(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let max = match sink(call, args.resource()?)? {
        Sink::Closed => return Err(Fail::Closed),
        Sink::File { ino, .. } if !system(call).is_witness(ino) => {
            match struck(call, "output-stream.check-write", &CHECKS, FEW).map_err(Fail::from) {
                Err(Fail::Errno(Errno::Again)) => 0,
                few => Some(few?).filter(|few| *few < FEW).map_or(WRITE_MAX, u64::from),
            }
        }
        _ => WRITE_MAX,
    };
    Ok(Some(Value::Unsigned(max)))
}

/// Writes all of these bytes.
fn put(call: &mut Call<'_>, name: &str, number: u32, bytes: &[u8]) -> Done {
    pay(call, bytes.len())?;
    match sink(call, number)? {
        Sink::Closed => Err(Fail::Closed),
        Sink::Stdout => {
            call.data_mut().step.say(bytes, false);
            Ok(())
        }
        Sink::Stderr => {
            call.data_mut().step.say(bytes, true);
            Ok(())
        }
        Sink::File { ino, at } => {
            let written = may_fail(call, name, &GROW, ino).map_err(Fail::from).and_then(|()| {
                let from =
                    at.map_or_else(|| Ok(system(call).files.content(ino)?.size()), Ok::<u64, Errno>)?;
                change(call).write(ino, from, bytes)?;
                Ok(from)
            });
            match (written, at) {
                (Ok(from), Some(_)) if !bytes.is_empty() => {
                    let sink = Sink::File { ino, at: Some(from + bytes.len() as u64) };
                    change(call).set_resource(number, Resource::Output(sink));
                }
                (Err(Fail::Errno(errno)), _) => {
                    change(call).set_resource(number, Resource::Output(Sink::Closed));
                    return Err(failed(errno, true));
                }
                (written, _) => drop(written?),
            }
            Ok(())
        }
    }
}

/// Refuses to write more at once than may be.
fn limit(len: u64, max: u64) -> Done {
    match len {
        len if len > max => broken(format!("it writes {len} bytes at once to a stream; {max} are the most")),
        _ => Ok(()),
    }
}

fn write(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (number, bytes) = (args.resource()?, args.bytes()?);
    limit(bytes.len() as u64, WRITE_MAX)?;
    put(call, "output-stream.write", number, &bytes)?;
    Ok(None)
}

fn write_and_flush(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (number, bytes) = (args.resource()?, args.bytes()?);
    limit(bytes.len() as u64, FLUSHED_MAX)?;
    put(call, "output-stream.blocking-write-and-flush", number, &bytes)?;
    Ok(None)
}

/// What was written is there.
fn flush(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    if sink(call, args.resource()?)? == Sink::Closed { Err(Fail::Closed) } else { Ok(None) }
}

fn zeroes(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (number, len) = (args.resource()?, args.number()?);
    limit(len, WRITE_MAX)?;
    put(call, "output-stream.write-zeroes", number, &vec![0; len as usize])?;
    Ok(None)
}

fn zeroes_and_flush(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (number, len) = (args.resource()?, args.number()?);
    limit(len, FLUSHED_MAX)?;
    put(call, "output-stream.blocking-write-zeroes-and-flush", number, &vec![0; len as usize])?;
    Ok(None)
}

/// Writes what is read.
fn pass(call: &mut Call<'_>, name: &str, args: &mut Args, faults: &[HostFault]) -> Done<Option<Value>> {
    let (to, from, len) = (args.resource()?, args.resource()?, args.number()?);
    if sink(call, to)? == Sink::Closed {
        return Err(Fail::Closed);
    }
    let bytes = take(call, name, from, len.min(WRITE_MAX), faults)?;
    put(call, name, to, &bytes)?;
    Ok(Some(Value::Unsigned(bytes.len() as u64)))
}

fn splice(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    pass(call, "output-stream.splice", args, &READS)
}

fn blocking_splice(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    pass(call, "output-stream.blocking-splice", args, &BLOCKS)
}

fn debug(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    match system(call).resource(args.resource()?) {
        Some(Resource::Error { errno, .. }) => Ok(Some(Value::text(super::files::code(*errno).1))),
        _ => broken("there is no such error"),
    }
}
