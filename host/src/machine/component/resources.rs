//! Handles of resources: what instances do with theirs, and what goes from one to another.

use std::sync::Arc;

use wasmtime::{Caller as Calling, Func, Store};

use super::super::host::{Host, pay};
use super::abi::{broken, refused};
use super::handles::table_of;
use super::imports::{CALL_BYTES, leave};
use super::interface::{HandleType, Import, Interface};
use super::provided;

/// What makes a resource, looks at one or drops one.
pub(super) fn function(store: &mut Store<Host>, interface: &Arc<Interface>, import: &Import) -> Func {
    let of = interface.clone();
    let (Import::ResourceNew(ty) | Import::ResourceRep(ty) | Import::ResourceDrop(ty)) = import else {
        unreachable!("it is about resources of one type")
    };
    let handle = interface.handles[*ty as usize].expect("an instance has them");
    let HandleType { resource, instance } = handle;
    match import {
        Import::ResourceNew(_) => Func::wrap(store, move |mut caller: Calling<'_, Host>, rep: u32| {
            leave(&of, &mut caller, instance)?;
            let handles = &mut caller.data_mut().guest.handles;
            handles.add_own(table_of(instance), resource, rep).map_err(refused)
        }),
        Import::ResourceRep(_) => Func::wrap(store, move |caller: Calling<'_, Host>, handle: u32| {
            let entry = caller.data().guest.handles.get_of(table_of(instance), handle, resource);
            entry.map(|entry| entry.rep).map_err(refused)
        }),
        _ => Func::wrap(store, move |mut caller: Calling<'_, Host>, index: u32| {
            drop_handle(&of, &mut caller, handle, index)
        }),
    }
}

/// What a call from one instance to another does with handles.
pub(super) fn between(store: &mut Store<Host>, interface: &Arc<Interface>, import: &Import) -> Func {
    let of = interface.clone();
    match import {
        Import::TransferOwn => {
            Func::wrap(store, move |mut caller: Calling<'_, Host>, handle: u32, from: u32, to: u32| {
                let (from, to) = (handle_type(&of, from)?, handle_type(&of, to)?);
                let handles = &mut caller.data_mut().guest.handles;
                let entry = handles.take_own(table_of(from.instance), handle, from.resource);
                let entry = entry.map_err(refused)?;
                handles.add_own(table_of(to.instance), to.resource, entry.rep).map_err(refused)
            })
        }
        Import::TransferBorrow => {
            Func::wrap(store, move |mut caller: Calling<'_, Host>, handle: u32, from: u32, to: u32| {
                let (from, to) = (handle_type(&of, from)?, handle_type(&of, to)?);
                let handles = &mut caller.data_mut().guest.handles;
                let entry = handles.lend(table_of(from.instance), handle, from.resource);
                let entry = entry.map_err(refused)?;
                if of.resources[to.resource as usize].instance == Some(to.instance) {
                    return Ok(entry.rep);
                }
                handles.add_borrow(table_of(to.instance), to.resource, entry.rep).map_err(refused)
            })
        }
        Import::EnterCall => Func::wrap(store, |mut caller: Calling<'_, Host>, _: u32, _: u32, _: u32| {
            caller.data_mut().guest.handles.enter();
        }),
        _ => Func::wrap(store, |mut caller: Calling<'_, Host>| {
            caller.data_mut().guest.handles.exit().map_err(refused)
        }),
    }
}

fn handle_type(interface: &Interface, ty: u32) -> wasmtime::Result<HandleType> {
    match interface.handles.get(ty as usize).copied().flatten() {
        Some(handle) => Ok(handle),
        None => broken(format!("there are no handles of the type {ty}")),
    }
}

fn drop_handle(
    interface: &Interface,
    caller: &mut Calling<'_, Host>,
    HandleType { resource, instance }: HandleType,
    handle: u32,
) -> wasmtime::Result<()> {
    let linked = leave(interface, caller, instance)?;
    let dropped = caller.data_mut().guest.handles.drop(table_of(instance), handle, resource);
    let Some(entry) = dropped.map_err(refused)? else { return Ok(()) };
    pay(caller, CALL_BYTES)?;
    if let Some(drop) = linked.drop_of(resource) {
        return drop.call(caller, entry.rep);
    }
    provided::dropped(interface, caller.data_mut(), (resource, entry.rep))
}
