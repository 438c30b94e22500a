//! Exceptions of C++ where they are thrown through the host. What is known of one stands before it in the guest's memory.

use wasmtime::{Func, FuncType, Module, Store, Val, ValType};

use super::super::host::Host;
use super::super::imports::stop;
use super::super::preview1::Done;
use super::super::system::{CAUGHT_MAX, Exceptions};
use super::calls::{exports_any, get, give, paid, throw};
use super::memory::{Call, get_u32, put, put_u32};
use super::{change, system};
use crate::outcome::FailureKind;

type Answer<T> = wasmtime::Result<T>;

/// What is known of an exception begins so many bytes before it.
const KNOWN: u32 = 24;
/// Where in that its type stands, what destroys it, whether it is caught and thrown again, and where it is as the caught type.
const TYPE: u32 = 4;
const DESTRUCTOR: u32 = 8;
const IS_CAUGHT: u32 = 12;
const IS_RETHROWN: u32 = 13;
const ADJUSTED: u32 = 16;

/// Exports that count who refers to an exception, and say where it is and who can catch it.
const COUNT_UP: &str = "__cxa_increment_exception_refcount";
const COUNT_DOWN: &str = "__cxa_decrement_exception_refcount";
const PLACE: &str = "__cxa_get_exception_ptr";
const CAN_CATCH: &str = "__cxa_can_catch";
const SET_SECOND: &str = "_emscripten_tempret_set";

pub(super) fn provided(store: &mut Store<Host>, module: &Module, name: &str) -> Option<Func> {
    if name == "llvm_eh_typeid_for" {
        return Some(Func::wrap(store, |ty: u32| ty));
    }
    if name == "getTempRet0" {
        return Some(Func::wrap(store, |call: Call<'_>| system(&call).process.exceptions.second));
    }
    if name == "setTempRet0" {
        return Some(Func::wrap(store, |mut call: Call<'_>, value: u32| {
            change(&mut call).process.exceptions.second = value;
        }));
    }
    if ![COUNT_UP, COUNT_DOWN, PLACE, CAN_CATCH].iter().all(|name| exports_any(module, &[name])) {
        return None;
    }
    if let Some(count) = name.strip_prefix("__cxa_find_matching_catch_") {
        // The name counts the result and the cleanup too.
        let types = count.parse::<usize>().ok().filter(|count| (2..=64).contains(count))? - 2;
        let ty = FuncType::new(store.engine(), vec![ValType::I32; types], [ValType::I32]);
        return Some(Func::new(store, ty, |mut call, args, out| {
            let types: Vec<u32> = args.iter().map(|ty| ty.unwrap_i32() as u32).collect();
            out[0] = Val::I32(paid(&mut call, |call| find(call, &types))? as i32);
            Ok(())
        }));
    }
    Some(match name {
        "__cxa_throw" => Func::wrap(store, |mut call: Call<'_>, object: u32, ty: u32, destructor: u32| {
            paid(&mut call, |call| thrown(call, object, ty, destructor))?;
            uncaught()
        }),
        "__cxa_begin_catch" => {
            Func::wrap(store, |mut call: Call<'_>, object: u32| paid(&mut call, |call| begin(call, object)))
        }
        "__cxa_end_catch" => Func::wrap(store, |mut call: Call<'_>| paid(&mut call, end)),
        "__cxa_rethrow" => Func::wrap(store, |mut call: Call<'_>| {
            paid(&mut call, again)?;
            uncaught()
        }),
        "__resumeException" => Func::wrap(store, |mut call: Call<'_>, object: u32| {
            let exceptions = &mut change(&mut call).process.exceptions;
            if exceptions.last == 0 {
                exceptions.last = object;
            }
            uncaught()
        }),
        "__cxa_uncaught_exceptions" => {
            Func::wrap(store, |call: Call<'_>| system(&call).process.exceptions.uncaught)
        }
        _ => return None,
    })
}

fn uncaught() -> Answer<()> {
    throw("an exception of C++ was thrown and not caught")
}

fn exceptions<'c>(call: &'c mut Call<'_>) -> &'c mut Exceptions {
    &mut change(call).process.exceptions
}

/// The address of something that is known of an exception.
fn known(object: u32, what: u32) -> u32 {
    object.wrapping_sub(KNOWN).wrapping_add(what)
}

fn flag(call: &mut Call<'_>, object: u32, what: u32) -> Done<bool> {
    Ok(super::memory::get::<1>(call, known(object, what))? != [0])
}

fn set_flag(call: &mut Call<'_>, object: u32, what: u32, is_set: bool) -> Done {
    put(call, known(object, what), &[is_set.into()])
}

fn thrown(call: &mut Call<'_>, object: u32, ty: u32, destructor: u32) -> Done {
    put_u32(call, known(object, ADJUSTED), 0)?;
    put_u32(call, known(object, TYPE), ty)?;
    put_u32(call, known(object, DESTRUCTOR), destructor)?;
    let exceptions = exceptions(call);
    exceptions.last = object;
    exceptions.uncaught = exceptions.uncaught.saturating_add(1);
    Ok(())
}

fn begin(call: &mut Call<'_>, object: u32) -> Done<u32> {
    if !flag(call, object, IS_CAUGHT)? {
        set_flag(call, object, IS_CAUGHT, true)?;
        let exceptions = exceptions(call);
        exceptions.uncaught = exceptions.uncaught.saturating_sub(1);
    }
    set_flag(call, object, IS_RETHROWN, false)?;
    push(call, object)?;
    give(call, &[COUNT_UP], &[object])?;
    Ok(get(call, PLACE, &[object])?)
}

fn push(call: &mut Call<'_>, object: u32) -> Done {
    let caught = &mut exceptions(call).caught;
    if caught.len() >= CAUGHT_MAX {
        let message = format!("more than {CAUGHT_MAX} exceptions are handled at a time");
        return Ok(stop(FailureKind::Abi, None, message)?);
    }
    caught.push(object);
    Ok(())
}

fn end(call: &mut Call<'_>) -> Done {
    give(call, &["setThrew"], &[0, 0])?;
    let Some(object) = exceptions(call).caught.pop() else {
        return Ok(stop(FailureKind::Abi, None, "__cxa_end_catch without an exception that is handled")?);
    };
    give(call, &[COUNT_DOWN], &[object])?;
    exceptions(call).last = 0;
    Ok(())
}

fn again(call: &mut Call<'_>) -> Done {
    let Some(object) = exceptions(call).caught.pop() else {
        return Ok(stop(FailureKind::Panic, None, "there is no exception to throw again")?);
    };
    if !flag(call, object, IS_RETHROWN)? {
        push(call, object)?;
        set_flag(call, object, IS_RETHROWN, true)?;
        set_flag(call, object, IS_CAUGHT, false)?;
        let exceptions = exceptions(call);
        exceptions.uncaught = exceptions.uncaught.saturating_add(1);
    }
    exceptions(call).last = object;
    Ok(())
}

/// The exception that was thrown; as the second result the type that it is caught as, of those that are looked for.
fn find(call: &mut Call<'_>, types: &[u32]) -> Done<u32> {
    let object = exceptions(call).last;
    let ty = if object == 0 { 0 } else { get_u32(call, known(object, TYPE))? };
    if ty == 0 {
        set_second(call, 0)?;
        return Ok(object);
    }
    put_u32(call, known(object, ADJUSTED), object)?;
    for caught in types {
        if *caught == 0 || *caught == ty {
            break;
        }
        if get(call, CAN_CATCH, &[*caught, ty, known(object, ADJUSTED)])? != 0 {
            set_second(call, *caught)?;
            return Ok(object);
        }
    }
    set_second(call, ty)?;
    Ok(object)
}

/// Some modules keep the second result themselves.
fn set_second(call: &mut Call<'_>, value: u32) -> Done {
    if call.get_export(SET_SECOND).is_some() {
        give(call, &[SET_SECOND], &[value])?;
    }
    exceptions(call).second = value;
    Ok(())
}
