//! What the machine calls of a component.

use std::sync::Arc;

use anyhow::{Context, Result};
use wasmtime::{Instance, Store};

use super::super::host::{Host, Stop};
use super::super::signed::Pools;
use super::instance::Linked;
use super::lifted::{Lifted, Role};
use super::rules::{Called, Component, Dropped};
use super::shown::WitValue;

/// A function of a component, or a drop, prepared to be called.
pub(crate) enum ComponentCall {
    Lifted(Box<Lifted>),
    Dropped(Dropped),
}

impl ComponentCall {
    /// What is called under this name.
    ///
    /// # Errors
    /// The module lost it.
    pub(in super::super) fn of(
        component: &Component,
        name: &str,
        (instance, linked): (Instance, &Arc<Linked>),
        store: &mut Store<Host>,
    ) -> Result<ComponentCall> {
        let interface = &component.interface;
        Ok(match component.called.get(name).with_context(|| format!("nothing is called `{name}`"))? {
            Called::Drop(resource) => ComponentCall::Dropped(Dropped::new(interface, linked, *resource)),
            Called::Function(index, role) => {
                let export = &interface.functions[*index].export;
                let func = instance.get_func(&mut *store, export);
                let func =
                    func.with_context(|| format!("the instrumented module lost its export `{export}`"))?;
                let mut lifted = Lifted::new(interface, linked, (*index, func, *role), store);
                lifted.choices = component.given.get(index).cloned();
                lifted.fails_on_error = component.errors_that_fail.iter().any(|known| known == name);
                ComponentCall::Lifted(Box::new(lifted))
            }
        })
    }

    /// Whether the rule that this is may be called with these pools.
    pub(in super::super) fn is_enabled(&self, pools: &Pools) -> bool {
        match self {
            ComponentCall::Lifted(lifted) => lifted.is_enabled(pools),
            ComponentCall::Dropped(dropped) => dropped.is_enabled(pools),
        }
    }

    /// Whether only that there are too many handles keeps it from being called.
    pub(in super::super) fn is_cut(&self, pools: &Pools) -> bool {
        matches!(self, ComponentCall::Lifted(lifted) if lifted.is_cut(pools))
    }

    /// What the last call returned, of one that is compared.
    pub(in super::super) fn returned(&self) -> Option<WitValue> {
        match self {
            ComponentCall::Lifted(lifted) => lifted.returned.clone(),
            ComponentCall::Dropped(_) => None,
        }
    }

    /// Calls it; whether it says that something holds, where it says that.
    pub(in super::super) fn call(&mut self, store: &mut Store<Host>) -> wasmtime::Result<Option<i32>> {
        match self {
            ComponentCall::Lifted(lifted) => match lifted.call(store) {
                Err(error) if lifted.role == Role::Command && has_ended(&error) => {
                    store.data_mut().guest.handles.end_calls();
                    Ok(None)
                }
                called => called,
            },
            ComponentCall::Dropped(dropped) => dropped.call(store),
        }
    }
}

/// Whether a program ended itself, and said that all went well.
fn has_ended(error: &wasmtime::Error) -> bool {
    matches!(error.downcast_ref(), Some(Stop::Exit(0)))
}
