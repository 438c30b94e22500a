//! The canonical ABI: how values are passed between an instance of a component and the host.
//!
//! After the Component Model's `CanonicalABI.md`: lifting reads values of an instance, lowering hands it some. What an instance does that
//! the specification has it trap for is a failure of the kind `abi`.

mod lift;
mod lower;
mod text;

pub(super) use lift::FlatReader;
pub(super) use text::UTF16;

use std::sync::Arc;

use wasmtime::{AsContext, AsContextMut, StoreContextMut, Trap};

use super::super::PAGE;
use super::super::host::{Host, pay};
use super::super::imports::stop;
use super::handles::{HOST, Refusal, table_of};
use super::instance::Linked;
use super::interface::{HandleType, Interface, Options};
use crate::outcome::FailureKind;

type Passed<T> = wasmtime::Result<T>;

/// Values that one call passes, and bytes.
const VALUES_MAX: usize = 1 << 20;
const BYTES_MAX: usize = 64 << 20;
/// A value costs as much as so many bytes.
const VALUE_BYTES: usize = 16;

/// Whose call it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Caller {
    /// The host calls an export, and handles are those of its table.
    Host,
    /// An instance calls an import, and handles are what the host knows resources by.
    Instance,
}

/// What values are passed to and from.
pub(super) struct Passing<'s> {
    pub(super) store: StoreContextMut<'s, Host>,
    pub(super) interface: Arc<Interface>,
    linked: Arc<Linked>,
    options: Options,
    caller: Caller,
    values: usize,
    bytes: usize,
}

impl<'s> Passing<'s> {
    pub(super) fn new(
        store: &'s mut impl AsContextMut<Data = Host>,
        interface: &Arc<Interface>,
        linked: &Arc<Linked>,
        (options, caller): (u32, Caller),
    ) -> Passing<'s> {
        Passing {
            store: store.as_context_mut(),
            interface: interface.clone(),
            linked: linked.clone(),
            options: interface.options[options as usize].clone(),
            caller,
            values: 0,
            bytes: 0,
        }
    }

    /// Counts a value that is passed.
    fn count(&mut self, values: usize, bytes: usize) -> Passed<()> {
        self.values = self.values.saturating_add(values);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.values > VALUES_MAX || self.bytes > BYTES_MAX {
            return broken(format!(
                "a call passes more than {VALUES_MAX} values, or {} MiB of text",
                BYTES_MAX >> 20
            ));
        }
        pay(&mut self.store, values.saturating_mul(VALUE_BYTES).saturating_add(bytes))
    }

    /// Bytes of the memory that values are passed in.
    fn memory(&self) -> &[u8] {
        let memory = self.options.memory.and_then(|memory| self.linked.memory(memory));
        memory.map_or(&[], |(memory, _)| memory.data(self.store.as_context()))
    }

    fn read(&self, at: u32, len: usize) -> Passed<&[u8]> {
        let place = self.memory().get(at as usize..).and_then(|from| from.get(..len));
        place.ok_or_else(|| Trap::MemoryOutOfBounds.into())
    }

    fn read_array<const N: usize>(&self, at: u32) -> Passed<[u8; N]> {
        Ok(*self.read(at, N)?.first_chunk().expect("a slice of this length"))
    }

    /// Writes, and marks the pages that it writes.
    fn write(&mut self, at: u32, bytes: &[u8]) -> Passed<()> {
        let memory = self.options.memory.and_then(|memory| self.linked.memory(memory));
        let (memory, marks) = memory.ok_or(Trap::MemoryOutOfBounds)?;
        let place = memory.data_mut(&mut self.store).get_mut(at as usize..);
        let place = place.and_then(|place| place.get_mut(..bytes.len())).ok_or(Trap::MemoryOutOfBounds)?;
        place.copy_from_slice(bytes);
        mark(&mut self.store, marks, (at, bytes.len()));
        Ok(())
    }

    /// Room in the memory of the instance, of this size and alignment. What stood at `old` is copied there.
    fn realloc(&mut self, old: (u32, u32), align: u32, size: u32) -> Passed<u32> {
        let Some(realloc) = self.options.realloc.and_then(|index| self.linked.realloc(index)) else {
            return broken("there is nothing to pass values in memory with");
        };
        let at = realloc.call(&mut self.store, (old.0, old.1, align, size))?;
        if !at.is_multiple_of(align) {
            return broken(format!("its realloc gave {at:#x}, which is not aligned to {align} bytes"));
        }
        if u64::from(at) + u64::from(size) > self.memory().len() as u64 {
            return broken(format!(
                "its realloc gave {at:#x} as room for {size} bytes, which is outside of memory"
            ));
        }
        Ok(at)
    }

    fn handle_type(&self, handle: u32) -> HandleType {
        let known = self.interface.handles.get(handle as usize).copied().flatten();
        known.expect("types have handles that an instance has")
    }

    /// The table of the instance that values are passed to and from.
    fn table(&self) -> usize {
        table_of(self.options.instance)
    }

    /// Takes the resource of a handle that an instance passes.
    fn lift_handle(&mut self, handle: u32, ty: u32, is_own: bool) -> Passed<u32> {
        let (table, resource) = (self.table(), self.handle_type(ty).resource);
        let handles = &mut self.store.data_mut().guest.handles;
        let entry = match is_own {
            true => handles.take_own(table, handle, resource),
            false => handles.get_of(table, handle, resource),
        };
        let entry = entry.map_err(refused)?;
        if self.caller == Caller::Instance {
            return Ok(entry.rep);
        }
        self.store.data_mut().guest.handles.add_own(HOST, resource, entry.rep).map_err(refused)
    }

    /// Hands an instance the resource of a handle.
    fn lower_handle(&mut self, handle: u32, ty: u32, is_own: bool) -> Passed<u32> {
        let (table, resource) = (self.table(), self.handle_type(ty).resource);
        let defines = self.interface.resources[resource as usize].instance == Some(self.options.instance);
        let handles = &mut self.store.data_mut().guest.handles;
        let rep = match (self.caller, is_own) {
            (Caller::Instance, _) => Ok(handle),
            (Caller::Host, true) => handles.take_own(HOST, handle, resource).map(|entry| entry.rep),
            (Caller::Host, false) => handles.lend(HOST, handle, resource).map(|entry| entry.rep),
        };
        let rep = rep.map_err(refused)?;
        match is_own {
            true => handles.add_own(table, resource, rep).map_err(refused),
            false if defines => Ok(rep),
            false => handles.add_borrow(table, resource, rep).map_err(refused),
        }
    }
}

/// Marks the pages of bytes that were written, of a memory whose marks begin there.
pub(super) fn mark(store: &mut StoreContextMut<'_, Host>, marks: u32, (at, len): (u32, usize)) {
    if let Some(private) = store.data().guest.private
        && len > 0
    {
        let (first, last) = (at / PAGE as u32, (at + (len as u32 - 1)) / PAGE as u32);
        private.memory.data_mut(store)[(marks + first) as usize..=(marks + last) as usize].fill(1);
    }
}

/// An instance does what the specification has it trap for.
pub(super) fn broken<T>(message: impl Into<String>) -> Passed<T> {
    stop(FailureKind::Abi, None, message)
}

pub(super) fn refused(refusal: Refusal) -> wasmtime::Error {
    broken::<()>(refusal.to_string()).expect_err("it is broken")
}
