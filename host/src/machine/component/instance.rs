//! What of a linked module the host calls and reads.

use anyhow::{Context, Result};
use wasmtime::{AsContext, AsContextMut};
use wasmtime::{Extern, Global, Instance, Memory, Store, TypedFunc, Val};

use super::super::host::Host;
use super::interface::Interface;
use super::link::export_name;

/// Room as an instance gives it: what was there and how many bytes it had, the alignment, and the bytes that it is to have.
type Realloc = TypedFunc<(u32, u32, u32, u32), u32>;

/// An instance of a linked module.
pub(crate) struct Linked {
    /// With where their dirty marks begin.
    memories: Vec<(Memory, u32)>,
    reallocs: Vec<Realloc>,
    post_returns: Vec<wasmtime::Func>,
    /// By the type of the resource.
    drops: Vec<Option<TypedFunc<u32, ()>>>,
    /// Whether an instance of a component may be left.
    flags: Vec<Global>,
}

impl Linked {
    /// Finds it all. `find` gives what is exported under a name.
    ///
    /// # Errors
    /// An export that is not there.
    pub(super) fn of<S: AsContextMut<Data = Host>>(
        interface: &Interface,
        store: &mut S,
        find: &mut dyn FnMut(&mut S, &str) -> Option<Extern>,
    ) -> Result<Linked> {
        let mut must = |store: &mut S, name: &str| {
            find(store, name).with_context(|| format!("the instrumented module lost its export `{name}`"))
        };
        let mut linked = Linked {
            memories: Vec::new(),
            reallocs: Vec::new(),
            post_returns: Vec::new(),
            drops: Vec::new(),
            flags: Vec::new(),
        };
        let exported = store.as_context().data().guest.memory_exports.clone();
        for (name, marks) in &*exported {
            let memory = must(store, name)?.into_memory();
            linked.memories.push((memory.context("it is a memory")?, *marks));
        }
        for index in 0..interface.reallocs {
            let func =
                must(store, &export_name("realloc", index))?.into_func().context("it is a function")?;
            linked.reallocs.push(func.typed(&*store).map_err(super::super::compile::engine_error)?);
        }
        for index in 0..interface.post_returns {
            let func = must(store, &export_name("post-return", index))?.into_func();
            linked.post_returns.push(func.context("it is a function")?);
        }
        for resource in &interface.resources {
            let drop = match &resource.drop {
                Some(name) => {
                    let func = must(store, name)?.into_func().context("it is a function")?;
                    Some(func.typed(&*store).map_err(super::super::compile::engine_error)?)
                }
                None => None,
            };
            linked.drops.push(drop);
        }
        for index in 0..if interface.has_flags { interface.instances } else { 0 } {
            let global = must(store, &export_name("flags", index))?.into_global();
            linked.flags.push(global.context("it is a global")?);
        }
        Ok(linked)
    }

    /// Of an instance that was just made.
    ///
    /// # Errors
    /// As [`Linked::of`].
    pub(in super::super) fn of_instance(
        interface: &Interface,
        instance: Instance,
        store: &mut Store<Host>,
    ) -> Result<Linked> {
        Linked::of(interface, store, &mut |store, name| instance.get_export(store, name))
    }

    pub(super) fn memory(&self, index: u32) -> Option<(Memory, u32)> {
        self.memories.get(index as usize).copied()
    }

    pub(super) fn realloc(&self, index: u32) -> Option<Realloc> {
        self.reallocs.get(index as usize).cloned()
    }

    pub(super) fn post_return(&self, index: u32) -> Option<wasmtime::Func> {
        self.post_returns.get(index as usize).copied()
    }

    pub(super) fn drop_of(&self, resource: u32) -> Option<TypedFunc<u32, ()>> {
        self.drops.get(resource as usize)?.clone()
    }

    /// Whether an instance may call what it imports.
    pub(super) fn may_leave(&self, store: &mut impl AsContextMut, instance: u32) -> bool {
        let flag = self.flags.get(instance as usize);
        flag.is_none_or(|flag| flag.get(store.as_context_mut()).unwrap_i32() != 0)
    }

    pub(super) fn set_may_leave(&self, store: &mut impl AsContextMut, instance: u32, may: bool) {
        if let Some(flag) = self.flags.get(instance as usize) {
            flag.set(store.as_context_mut(), Val::I32(may.into())).expect("it is a mutable i32");
        }
    }
}
