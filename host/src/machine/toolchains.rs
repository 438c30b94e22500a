//! What toolchains expect of the world beside WASI: AssemblyScript, C without a libc, and the basics of Emscripten.
//!
//! One name may have several types, as `abort` has; the type that a module imports it with says which is meant.

use wasmtime::{Caller, Error, ExternType, Func, FuncType, ImportType, Memory, Store, Trap};

use super::host::{Host, Stop, pay};
use super::imports::{mark, memory_of, slice, stop};
use super::system::{State, System};
use crate::outcome::{Failure, FailureKind};

/// The module name that toolchains import such functions from.
pub(super) const MODULE: &str = "env";

type Answer<T> = wasmtime::Result<T>;
type Call<'c> = Caller<'c, Host>;

/// Characters of a text that are read.
const TEXT_MAX: u32 = 16 << 10;
/// The most that Emscripten lets a memory grow to: addresses are signed in places.
const HEAP_MAX: u32 = 0x8000_0000;

/// What an import is, where it is known with its type.
pub(super) fn provided(store: &mut Store<Host>, import: &ImportType<'_>) -> Option<Func> {
    let ExternType::Func(wanted) = import.ty() else { return None };
    if import.module() != MODULE {
        return None;
    }
    let store = &mut *store;
    let found = assemblyscript(store, import.name());
    let found = found.into_iter().chain(c(store, import.name())).chain(emscripten(store, import.name()));
    let found: Vec<Func> = found.collect();
    found.into_iter().find(|func| FuncType::eq(&func.ty(&*store), &wanted))
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
        "seed" => Func::wrap(store, |mut call: Call<'_>| Answer::Ok(f64::from_bits(random(&mut call)))),
        "Date.now" => Func::wrap(store, |mut call: Call<'_>| Answer::Ok(milliseconds(&mut call).0.floor())),
        "performance.now" => Func::wrap(store, |mut call: Call<'_>| Answer::Ok(milliseconds(&mut call).1)),
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
        "abort" | "_abort_js" => Func::wrap(store, || panicked::<()>("abort was called".to_string(), None)),
        "__assert_fail" => {
            Func::wrap(store, |mut call: Call<'_>, what: u32, file: u32, line: u32, _function: u32| {
                let message = format!("assertion failed: {}", c_text(&mut call, what)?);
                let place = format!("{}:{line}", c_text(&mut call, file)?);
                panicked::<()>(message, Some(place))
            })
        }
        "exit" | "_exit" | "_Exit" => {
            Func::wrap(store, |code: u32| Answer::<()>::Err(Stop::Exit(code).into()))
        }
        "__handle_stack_overflow" => Func::wrap(store, |_: u32| -> Answer<()> {
            stop(FailureKind::StackOverflow, None, "the stack of the program is exhausted")
        }),
        "segfault" => Func::wrap(store, || panicked::<()>("an address that is not valid".to_string(), None)),
        "alignfault" => {
            Func::wrap(store, || panicked::<()>("an address that is not aligned".to_string(), None))
        }
        _ => return None,
    })
}

fn emscripten(store: &mut Store<Host>, name: &str) -> Option<Func> {
    Some(match name {
        "emscripten_notify_memory_growth" => Func::wrap(store, |_: u32| {}),
        "emscripten_resize_heap" => Func::wrap(store, resize_heap),
        "emscripten_get_heap_max" => Func::wrap(store, || HEAP_MAX),
        "emscripten_memcpy_big" | "emscripten_memcpy_js" | "_emscripten_memcpy_js" => Func::wrap(store, copy),
        "emscripten_date_now" => Func::wrap(store, |mut call: Call<'_>| milliseconds(&mut call).0.floor()),
        "emscripten_get_now" => Func::wrap(store, |mut call: Call<'_>| milliseconds(&mut call).1),
        "emscripten_get_now_res" => Func::wrap(store, || 0.001f64),
        "emscripten_random" => Func::wrap(store, |mut call: Call<'_>| {
            // 24 bits, as many as the number has.
            (random(&mut call) >> 40) as f32 / (1u32 << 24) as f32
        }),
        _ => return None,
    })
}

fn panicked<T>(message: String, place: Option<String>) -> Answer<T> {
    Err(Error::from(Stop::Fail(Failure { kind: FailureKind::Panic, subject: None, message, place })))
}

fn change<'c>(call: &'c mut Call<'_>) -> &'c mut State {
    call.data_mut().system.as_mut().map(System::change).expect("a guest that imports it has one")
}

/// Since 1970, and since a point before the start.
fn milliseconds(call: &mut Call<'_>) -> (f64, f64) {
    let (real, monotonic) = change(call).read_clock();
    (real as f64 / 1e6, monotonic as f64 / 1e6)
}

fn random(call: &mut Call<'_>) -> u64 {
    let mut bytes = [0; 8];
    change(call).fill_random(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// Grows memory 0 to this many bytes; 0 where it cannot.
fn resize_heap(mut call: Call<'_>, bytes: u32) -> Answer<u32> {
    let memory = memory_of(&mut call)?;
    let missing = u64::from(bytes).saturating_sub(memory.data_size(&call) as u64);
    let pages = missing.div_ceil(memory.page_size(&call));
    Ok(u32::from(memory.grow(&mut call, pages).is_ok()))
}

fn copy(mut call: Call<'_>, to: u32, from: u32, len: u32) -> Answer<()> {
    pay(&mut call, len as usize)?;
    let memory = memory_of(&mut call)?;
    let data = memory.data_mut(&mut call);
    slice(data, to, len)?;
    slice(data, from, len)?;
    data.copy_within(from as usize..from as usize + len as usize, to as usize);
    mark(&mut call, to, len);
    Ok(())
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
