//! Clocks, the heap, the end of a program, and what has a simple answer.

use wasmtime::{Extern, Func, Store};

use super::super::heap::shadow_pages;
use super::super::host::{Host, pay};
use super::super::imports::{mark, memory_of, slice, stop};
use super::super::preview1::{Done, PROGRAM, drawn_random, jump};
use super::super::toolchains::{assertion, panicked};
use super::calls::within;
use super::memory::{Call, put, text};
use super::{Fail, change};
use crate::outcome::FailureKind;

type Answer<T> = wasmtime::Result<T>;

/// The most that a memory grows to: addresses are signed in places.
const HEAP_MAX: u32 = 0x8000_0000;

/// Numbers that nothing changes: there is one process of one user, and what would look at the stack of JavaScript sees nothing.
pub(super) fn constant(name: &str) -> Option<i32> {
    Some(match name {
        "__syscall_getuid32" | "__syscall_geteuid32" | "__syscall_getgid32" | "__syscall_getegid32" => 0,
        "__syscall_getpid" => 42,
        "__syscall_getppid" => 1,
        "emscripten_get_heap_max" => HEAP_MAX as i32,
        "emscripten_num_logical_cores" => 1,
        "emscripten_stack_snapshot" | "_emscripten_sanitizer_use_colors" => 0,
        _ => return None,
    })
}

pub(super) fn provided(store: &mut Store<Host>, name: &str) -> Option<Func> {
    Some(match name {
        "_abort_js" => Func::wrap(store, || panicked::<()>("abort was called".to_string(), None)),
        "__assert_fail" => Func::wrap(store, assertion),
        "__handle_stack_overflow" => Func::wrap(store, |_: u32| -> Answer<()> {
            stop(FailureKind::StackOverflow, None, "the stack of the program is exhausted")
        }),
        "emscripten_notify_memory_growth" => Func::wrap(store, |_: u32| {}),
        "_emscripten_runtime_keepalive_clear" => Func::wrap(store, || {}),
        "emscripten_resize_heap" => Func::wrap(store, resize_heap),
        "emscripten_memcpy_big" | "emscripten_memcpy_js" | "_emscripten_memcpy_js" => Func::wrap(store, copy),
        "emscripten_date_now" => {
            Func::wrap(store, |mut call: Call<'_>| Answer::Ok((clock(&mut call, true)?.0 / 1_000_000) as f64))
        }
        "emscripten_get_now" => {
            Func::wrap(store, |mut call: Call<'_>| Answer::Ok(clock(&mut call, false)?.1 as f64 / 1e6))
        }
        "emscripten_get_now_res" => Func::wrap(store, || 1000f64),
        "emscripten_random" => Func::wrap(store, |mut call: Call<'_>| {
            // 24 bits, as many as the number has.
            Answer::Ok((random(&mut call)? >> 40) as f32 / (1u32 << 24) as f32)
        }),
        // What a sanitizer shows of the code that called it.
        "emscripten_stack_unwind_buffer" => Func::wrap(store, |_: u32, _: u32, _: u32| 0u32),
        "emscripten_pc_get_function"
        | "emscripten_pc_get_file"
        | "emscripten_pc_get_line"
        | "emscripten_pc_get_column" => Func::wrap(store, |_: u32| 0u32),
        _ => return None,
    })
}

fn stopped(fail: Fail) -> wasmtime::Error {
    match fail {
        Fail::Stop(error) => error,
        Fail::Errno(errno) => unreachable!("neither clocks nor randomness fail with {errno:?}"),
    }
}

/// Nanoseconds since 1970, and since a point before the start.
pub(crate) fn clock(call: &mut Call<'_>, is_real: bool) -> Answer<(u64, u64)> {
    jump(call, "clock_time_get", is_real).map_err(stopped)?;
    Ok(change(call).read_clock())
}

/// 64 random bits.
pub(crate) fn random(call: &mut Call<'_>) -> Answer<u64> {
    let mut bytes = [0; 8];
    match drawn_random(call, 8).map_err(stopped)? {
        Some(drawn) => bytes.copy_from_slice(&drawn),
        None => change(call).fill_random(&mut bytes),
    }
    Ok(u64::from_le_bytes(bytes))
}

/// Grows memory 0 to this many bytes; 0 where it cannot.
fn resize_heap(mut call: Call<'_>, bytes: u32) -> Answer<u32> {
    if bytes > HEAP_MAX {
        return Ok(0);
    }
    let memory = memory_of(&mut call)?;
    let missing = u64::from(bytes).saturating_sub(memory.data_size(&call) as u64);
    let pages = missing.div_ceil(memory.page_size(&call));
    if memory.grow(&mut call, pages).is_err() {
        return Ok(0);
    }
    let shadow = call.data().guest.shadow_export.clone();
    if let Some(shadow) = shadow.and_then(|name| call.get_export(&name)).and_then(Extern::into_memory) {
        let missing = shadow_pages(memory.data_size(&call) as u64).saturating_sub(shadow.size(&call));
        shadow.grow(&mut call, missing)?;
    }
    Ok(1)
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

/// Writes what the program is called, cut where there is no room.
pub(super) fn program_name(call: &mut Call<'_>, out: u32, room: u32) -> Done<i32> {
    if room == 0 {
        return Ok(0);
    }
    let mut name = PROGRAM.as_bytes()[..PROGRAM.len().min(room as usize - 1)].to_vec();
    name.push(0);
    put(call, out, &name)?;
    Ok(0)
}

/// The option of a sanitizer, which is none: a text that the guest frees.
pub(super) fn no_option(call: &mut Call<'_>, name: u32) -> Done<i32> {
    text(call, name)?;
    let reserve = call.get_export("malloc").and_then(Extern::into_func);
    let reserve = reserve.and_then(|reserve| reserve.typed::<u32, u32>(&*call).ok());
    let Some(reserve) = reserve else { return Ok(0) };
    let at = within(call, |call| reserve.call(call, 1))?;
    if at != 0 {
        put(call, at, &[0])?;
    }
    Ok(at as i32)
}

/// Nothing happens by itself, so no timer runs out.
pub(super) fn no_timer(_: &mut Call<'_>, _which: u32, _milliseconds: f64) -> Done<i32> {
    Ok(0)
}
