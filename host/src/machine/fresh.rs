//! A guest that was just instantiated, and what the host keeps for it.

use std::sync::Arc;

use anyhow::Result;
use wasmtime::{Linker, Store};

use super::against::Effects;
use super::calls::{Calls, Room};
use super::component::{Handles, Linked};
use super::emscripten::linking::enter_functions;
use super::host::{Guest, Host, Limiter};
use super::program::Program;
use super::signed::{Placer, Pools};
use super::state::State;
use super::watchdog::Watched;
use super::{Edges, STACK_BYTES, STACK_MARGIN, compile, failure, link, pointer, schedule};

fn new_store(program: &Program) -> Store<Host> {
    let layout = &program.instrumented.layout;
    let guest = Guest {
        faults: vec![false; program.exports.faults.len()],
        fault_names: program.exports.faults.clone(),
        pools: Pools::empty(program.exports.pools()),
        handles: program
            .exports
            .component
            .as_ref()
            .map_or(Handles::default(), |component| component.handles()),
        memory_exports: layout
            .memories
            .iter()
            .map(|memory| (memory.export.clone(), memory.dirty.start))
            .collect(),
        memory_export: layout.memories.first().map(|memory| memory.export.clone()),
        depth_max: program.limits.depth_max,
        has_claims: !program.liveness.is_empty(),
        is_relaxed: program.module.imports().any(|import| schedule::relaxes(&import)),
        shadow_export: layout.sanitizer.as_ref().map(|sanitizer| sanitizer.shadow.clone()),
        ..Guest::default()
    };
    let limits = Limiter {
        memory_bytes_max: program.memory_bytes_max(),
        shadow_bytes_max: program.shadow_bytes_max(),
        ..Limiter::default()
    };
    let host = Host {
        budget: program.budget.clone(),
        guest,
        limits,
        environment: program.world.environment.clone(),
        system: program.world.system.clone(),
        input_bytes_max: program.limits.input_bytes_max,
        ..Host::default()
    };
    let mut store = Store::new(&program.engine, host);
    store.data_mut().step.effects =
        program.compared.as_ref().map(|ignored| Box::new(Effects::but_for(ignored)));
    store.limiter(|host| host);
    store
}

/// A guest that was just instantiated.
pub(super) struct Fresh {
    pub(super) store: Store<Host>,
    pub(super) state: State,
    pub(super) calls: Calls,
}

impl Fresh {
    pub(super) fn new(program: &Program, watched: &Watched) -> Result<Fresh> {
        let mut store = new_store(program);
        let mut linker = Linker::new(&program.engine);
        let (module, dynamic) = (&program.module, program.dynamic.as_ref());
        let stubs = program.limits.stub_imports;
        link::link(&mut linker, &mut store, module, (stubs, program.interface()), dynamic)?;
        let needed = STACK_BYTES + STACK_MARGIN;
        watched.set_place(program.place_of_start());
        watched.turn();
        let instance = stacker::maybe_grow(needed, needed + STACK_MARGIN, || {
            link::define_spaces(&mut linker, &mut store, module, dynamic)?;
            linker.instantiate(&mut store, module)
        });
        watched.turn();
        let instance = instance.map_err(|error| failure::of_start(program, &error))?;
        enter_functions(instance, &mut store, module, dynamic).map_err(compile::engine_error)?;
        let takes_input = program.exports.takes_input;
        let room = takes_input.then(|| Room::of(instance, &mut store, program.limits.input_bytes_max));
        let room = room.transpose()?;
        let placement = program.exports.plans.placement.as_ref();
        let placer = placement.map(|placement| Placer::of(placement, instance, &mut store)).transpose()?;
        let mut state = State::of(
            &program.instrumented.layout,
            &program.entered,
            (&program.memories, &program.data),
            instance,
            &mut store,
        )?;
        state.keeps_counts = program.conditions().selection.edges == Edges::Blocks;
        watched.set_place(state.place_of_budget());
        if let Some(interface) = program.interface() {
            let linked = Linked::of_instance(interface, instance, &mut store)?;
            store.data_mut().guest.linked = Some(Arc::new(linked));
        }
        let rooms = (room.as_ref(), placer.as_ref());
        let mut calls = Calls::of(&program.exports, instance, &mut store, rooms)?;
        for call in &mut calls.rules {
            call.tell(|target| pointer::telling(program, (target, state.globals()), &mut store));
        }
        Ok(Fresh { store, state, calls })
    }
}
