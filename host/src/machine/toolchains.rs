//! What toolchains expect of the world beside WASI: AssemblyScript, and C without a libc.
//!
//! One name may have several types, as `abort` has; the type that a module imports it with says which is meant.

use wasmtime::{Caller, Error, Func, FuncType, Memory, Store, Trap};

use super::emscripten::{clock, random};
use super::host::{Host, Stop, pay};
use super::imports::{memory_of, slice};
use crate::outcome::{Failure, FailureKind};

/// The module name that toolchains import such functions from.
pub(super) const MODULE: &str = "env";

type Answer<T> = wasmtime::Result<T>;
type Call<'c> = Caller<'c, Host>;

/// Characters of a text that are read.
const TEXT_MAX: u32 = 16 << 10;

/// What an import from [`MODULE`] with this type is, where it is known.
pub(super) fn provided(store: &mut Store<Host>, name: &str, wanted: &FuncType) -> Option<Func> {
    let found = assemblyscript(store, name).into_iter().chain(c(store, name));
    let found: Vec<Func> = found.collect();
    found.into_iter().find(|func| FuncType::eq(&func.ty(&*store), wanted))
}

fn assemblyscript(store: &mut Store<Host>, name: &str) -> Option<Func> {
    let log = |store: &mut Store<Host>, is_error| {
        Func::wrap(store, move |mut call: Call<'_>, text: u32| {
            let text = utf16(&mut call, text)? + "\n";
            call.data_mut().step.say(text.as_bytes(), is_error);
            Answer::Ok(())
        })
    };
    Some(match name {
        "abort" => {
            Func::wrap(store, |mut call: Call<'_>, message: u32, file: u32, line: u32, column: u32| {
                let message = utf16(&mut call, message)?;
                let place = format!("{}:{line}:{column}", utf16(&mut call, file)?);
                panicked::<()>(if message.is_empty() { "abort".to_string() } else { message }, Some(place))
            })
        }
        "trace" => Func::wrap(store, trace),
        "console.log" | "console.info" | "console.debug" => log(store, false),
        "console.warn" | "console.error" => log(store, true),
        "seed" => Func::wrap(store, |mut call: Call<'_>| Answer::Ok(f64::from_bits(random(&mut call)?))),
        "Date.now" => {
            Func::wrap(store, |mut call: Call<'_>| Answer::Ok((clock(&mut call, true)?.0 / 1_000_000) as f64))
        }
        "performance.now" => {
            Func::wrap(store, |mut call: Call<'_>| Answer::Ok(clock(&mut call, false)?.1 as f64 / 1e6))
        }
        _ => return None,
    })
}

/// A message, how many numbers belong to it, and up to five numbers.
#[expect(clippy::too_many_arguments, reason = "AssemblyScript passes them")]
fn trace(mut call: Call<'_>, text: u32, count: u32, a: f64, b: f64, c: f64, d: f64, e: f64) -> Answer<()> {
    let mut line = format!("trace: {}", utf16(&mut call, text)?);
    for number in [a, b, c, d, e].iter().take(count as usize) {
        line += &format!(" {number}");
    }
    call.data_mut().step.say((line + "\n").as_bytes(), true);
    Ok(())
}

fn c(store: &mut Store<Host>, name: &str) -> Option<Func> {
    Some(match name {
        "abort" => Func::wrap(store, || panicked::<()>("abort was called".to_string(), None)),
        "exit" | "_exit" | "_Exit" => {
            Func::wrap(store, |code: u32| Answer::<()>::Err(Stop::Exit(code).into()))
        }
        "segfault" => Func::wrap(store, || panicked::<()>("an address that is not valid".to_string(), None)),
        "alignfault" => {
            Func::wrap(store, || panicked::<()>("an address that is not aligned".to_string(), None))
        }
        _ => return None,
    })
}

/// An assertion of C does not hold: what it says, its file and line.
pub(super) fn assertion(mut call: Call<'_>, what: u32, file: u32, line: u32, _function: u32) -> Answer<()> {
    let message = format!("assertion failed: {}", c_text(&mut call, what)?);
    let place = format!("{}:{line}", c_text(&mut call, file)?);
    panicked(message, Some(place))
}

pub(super) fn panicked<T>(message: String, place: Option<String>) -> Answer<T> {
    Err(Error::from(Stop::Fail(Failure { kind: FailureKind::Panic, subject: None, message, place })))
}

/// A string of AssemblyScript: UTF-16, and its bytes stand before it.
fn utf16(call: &mut Call<'_>, at: u32) -> Answer<String> {
    if at == 0 {
        return Ok(String::new());
    }
    let memory = memory_of(call)?;
    let before = at.checked_sub(4).ok_or(Trap::MemoryOutOfBounds)?;
    let len = slice(memory.data(&*call), before, 4)?;
    let len = u32::from_le_bytes(*len.first_chunk().expect("four bytes")).min(2 * TEXT_MAX);
    pay(call, len as usize)?;
    let units =
        slice(memory.data(&*call), at, len)?.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit));
    Ok(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

/// A string that ends in a 0.
fn c_text(call: &mut Call<'_>, at: u32) -> Answer<String> {
    let memory: Memory = memory_of(call)?;
    let data = memory.data(&*call);
    let rest = data.get(at as usize..).ok_or(Trap::MemoryOutOfBounds)?;
    let rest = &rest[..rest.len().min(TEXT_MAX as usize)];
    let text = rest.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text).into_owned();
    pay(call, text.len())?;
    Ok(text)
}
