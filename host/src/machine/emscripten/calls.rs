//! Calls that the guest has the host make, and that may be left before they end: `invoke_*`, `longjmp`, exceptions of C++.
//!
//! The code of such a module throws through the host: what is thrown ends the calls up to the nearest `invoke_*`, which puts back
//! the stack pointer, says so with `setThrew`, and returns. A step never ends in between, so no snapshot holds any of it, but for
//! the exceptions that were thrown and are not over.

use wasmtime::{Caller, Extern, Func, FuncType, Module, Ref, Store, Table, Trap, Val};

use super::super::host::{Host, Private, Stop, pay};
use super::super::preview1::Done;
use super::linking::TABLE;
use super::memory::Call;
use super::{CALL_BYTES, exceptions};

type Answer<T> = wasmtime::Result<T>;

/// Exports that put back the stack pointer, and that ask for it; the second name is that of older versions.
const RESTORE: [&str; 2] = ["_emscripten_stack_restore", "stackRestore"];
const SAVE: [&str; 2] = ["emscripten_stack_get_current", "stackSave"];
const SET_THREW: &str = "setThrew";

/// Whether a module exports one of these. Of one of which only the imports are known it is not known, so it may.
pub(super) fn exports_any(module: &Module, names: &[&str]) -> bool {
    module.exports().len() == 0 || names.iter().any(|name| module.get_export(name).is_some())
}

/// Whether calls of this module can be left.
pub(super) fn can_catch(module: &Module) -> bool {
    exports_any(module, &[SET_THREW]) && exports_any(module, &RESTORE) && exports_any(module, &SAVE)
}

/// The function that calls an element of the table, and returns also where the call is left.
pub(super) fn invoke(
    store: &mut Store<Host>,
    module: &Module,
    name: &str,
    wanted: &FuncType,
) -> Option<Func> {
    // Of many imports each is asked for, so all are looked at only where that decides.
    let is_invoke = name.starts_with("invoke_") && wanted.param(0).is_some_and(|ty| ty.is_i32());
    let has_table = || exports_any(module, &[TABLE]) || module.imports().any(|import| import.name() == TABLE);
    if !is_invoke || !has_table() || !can_catch(module) {
        return None;
    }
    let ty = wanted.clone();
    Some(Func::new(store, wanted.clone(), move |mut call, args, out| {
        let function = element(&mut call, args[0].unwrap_i32() as u32)?;
        let own = function.ty(&call);
        let mut params = own.params().zip(ty.params().skip(1));
        let mut results = own.results().zip(ty.results());
        if own.params().len() != args.len() - 1
            || own.results().len() != out.len()
            || !params.all(|(own, given)| own.matches(&given) && given.matches(&own))
            || !results.all(|(own, wanted)| own.matches(&wanted) && wanted.matches(&own))
        {
            return Err(Trap::BadSignature.into());
        }
        let stack = ask(&mut call, &SAVE)?;
        let depth = depth_of(&mut call);
        match within(&mut call, |call| function.call(call, &args[1..], out)) {
            Err(error) if matches!(error.downcast_ref(), Some(Stop::Thrown(_))) => {
                set_depth(&mut call, depth);
                give(&mut call, &RESTORE, &[stack])?;
                for (out, ty) in out.iter_mut().zip(ty.results()) {
                    *out = Val::default_for_ty(&ty).unwrap_or(Val::I32(0));
                }
                give(&mut call, &[SET_THREW], &[1, 0])
            }
            ended => ended,
        }
    }))
}

/// The function that an address stands for.
fn element(call: &mut Call<'_>, index: u32) -> Answer<Func> {
    let exported = call.get_export(TABLE).and_then(Extern::into_table);
    let table: Table = exported.or(call.data().guest.table).ok_or(Trap::TableOutOfBounds)?;
    match table.get(&mut *call, index.into()) {
        None => Err(Trap::TableOutOfBounds.into()),
        Some(Ref::Func(Some(function))) => Ok(function),
        Some(_) => Err(Trap::IndirectCallToNull.into()),
    }
}

/// An export of the guest that takes and returns so many numbers, under one of these names.
fn export(call: &mut Call<'_>, names: &[&str]) -> Answer<Func> {
    let found = names.iter().find_map(|name| call.get_export(name).and_then(Extern::into_func));
    found.ok_or_else(|| wasmtime::format_err!("the module exports no function `{}`", names[0]))
}

/// What an export without parameters returns.
pub(super) fn ask(call: &mut Call<'_>, names: &[&str]) -> Answer<u32> {
    let function = export(call, names)?.typed::<(), u32>(&*call)?;
    within(call, |call| function.call(call, ()))
}

/// Calls an export that returns nothing.
pub(super) fn give(call: &mut Call<'_>, names: &[&str], args: &[u32]) -> Answer<()> {
    let function = export(call, names)?;
    let args: Vec<Val> = args.iter().map(|arg| Val::I32(*arg as i32)).collect();
    within(call, |call| function.call(call, &args, &mut []))
}

/// Calls an export that returns a number.
pub(super) fn get(call: &mut Call<'_>, name: &str, args: &[u32]) -> Answer<u32> {
    let function = export(call, &[name])?;
    let args: Vec<Val> = args.iter().map(|arg| Val::I32(*arg as i32)).collect();
    let mut result = [Val::I32(0)];
    within(call, |call| function.call(call, &args, &mut result))?;
    Ok(result[0].i32().unwrap_or(0) as u32)
}

/// A call through the host counts as so many that nest: it takes as much of the native stack.
const LEVELS: u32 = 2;

/// Makes a call into the guest for the guest. It counts among the calls that nest, and pays, since no code of the guest's
/// counts it.
pub(super) fn within<T>(
    call: &mut Call<'_>,
    f: impl FnOnce(&mut Caller<'_, Host>) -> Answer<T>,
) -> Answer<T> {
    pay(call, CALL_BYTES)?;
    let depth = depth_of(call);
    set_depth(call, depth.saturating_add(LEVELS));
    if call.data().guest.private.is_some() && depth.saturating_add(LEVELS) > call.data().guest.depth_max {
        return Err(Trap::UnreachableCodeReached.into());
    }
    let result = f(call)?;
    set_depth(call, depth);
    Ok(result)
}

/// How deep calls nest now.
fn depth_of(call: &mut Call<'_>) -> u32 {
    let Some(Private { memory, depth: Some(at), .. }) = call.data().guest.private else { return 0 };
    u32::from_le_bytes(*memory.data(&*call)[at as usize..].first_chunk().expect("four bytes"))
}

fn set_depth(call: &mut Call<'_>, depth: u32) {
    let Some(Private { memory, depth: Some(at), .. }) = call.data().guest.private else { return };
    memory.data_mut(call)[at as usize..][..4].copy_from_slice(&depth.to_le_bytes());
}

/// Leaves calls up to the nearest `invoke_*`.
pub(super) fn throw<T>(what: impl Into<String>) -> Answer<T> {
    Err(Stop::Thrown(what.into()).into())
}

pub(super) fn provided(store: &mut Store<Host>, module: &Module, name: &str) -> Option<Func> {
    if !can_catch(module) {
        return None;
    }
    match name {
        "_emscripten_throw_longjmp" => {
            Some(Func::wrap(store, || throw::<()>("a longjmp leads to no setjmp that is active")))
        }
        _ => exceptions::provided(store, module, name),
    }
}

/// What the host does for the guest, which the guest pays for.
pub(super) fn paid<T>(call: &mut Call<'_>, f: impl FnOnce(&mut Call<'_>) -> Done<T>) -> Answer<T> {
    pay(call, CALL_BYTES)?;
    f(call).map_err(|fail| match fail {
        super::Fail::Stop(error) => error,
        super::Fail::Errno(errno) => wasmtime::format_err!("{errno:?}"),
    })
}
