//! What a linked module imports: handles of resources, text for another instance, and what the component itself imports.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use wasmtime::{Caller as Calling, Extern, Func, FuncType, Linker, Module, Store, Val};

use super::super::host::Host;
use super::super::host::pay;
use super::abi::{Caller, FlatReader, Passing, broken};
use super::instance::Linked;
use super::interface::{Flat, Import, Interface, Ty};
use super::lifted::{bits_of, value_of};
use super::link::MODULE;
use super::provided::Provided;
use super::value::Value;
use super::{provided, resources, transcode};
use crate::file::StubImports;

/// A call costs as much as reading so many bytes.
pub(super) const CALL_BYTES: usize = 256;

/// Defines what a linked module imports.
///
/// # Errors
/// Imports that nobody provides, which are listed, unless they are to be stubbed.
pub(in super::super) fn define(
    linker: &mut Linker<Host>,
    store: &mut Store<Host>,
    module: &Module,
    interface: &Arc<Interface>,
    stubs: StubImports,
) -> Result<()> {
    let provided = provided::all(interface, stubs)?;
    for import in module.imports().filter(|import| import.module() == MODULE) {
        let index: usize = import.name().parse().expect("linking names them by their indices");
        let ty = import.ty().unwrap_func().clone();
        let func = one(store, ty, interface, index, &provided);
        linker.define(&mut *store, MODULE, import.name(), func).map_err(|error| anyhow!("{error:#}"))?;
    }
    Ok(())
}

fn one(
    store: &mut Store<Host>,
    ty: FuncType,
    interface: &Arc<Interface>,
    index: usize,
    provided: &[Option<Provided>],
) -> Func {
    match &interface.imports[index] {
        Import::Function { .. } => {
            let provided = provided[index].clone().expect("each function is provided");
            let function = Imported::new(interface, index, provided);
            Func::new(store, ty, move |mut caller, args, results| function.call(&mut caller, args, results))
        }
        Import::Transcode { how, from, to } => transcode::function(store, ty, interface, (*how, *from, *to)),
        Import::ResourceNew(_) | Import::ResourceRep(_) | Import::ResourceDrop(_) => {
            resources::function(store, interface, &interface.imports[index])
        }
        Import::TransferOwn | Import::TransferBorrow | Import::EnterCall | Import::ExitCall => {
            resources::between(store, interface, &interface.imports[index])
        }
        Import::Trap => Func::wrap(store, trap),
    }
}

/// What an adapter between instances traps for, as the engine numbers it.
fn trap(code: u32) -> wasmtime::Result<()> {
    use wasmtime_environ::Trap;
    let trap = u8::try_from(code).ok().and_then(Trap::from_u8);
    let said = trap.map_or(format!("trap {code}"), |trap| trap.to_string());
    broken(format!("a call between its instances: {}", said.trim_start_matches("wasm trap: ")))
}

/// The instance as the host knows it. While it is made, it is known by its exports only.
pub(super) fn linked(interface: &Interface, caller: &mut Calling<'_, Host>) -> wasmtime::Result<Arc<Linked>> {
    if let Some(linked) = &caller.data().guest.linked {
        return Ok(linked.clone());
    }
    let find =
        &mut |caller: &mut Calling<'_, Host>, name: &str| -> Option<Extern> { caller.get_export(name) };
    let linked =
        Linked::of(interface, caller, find).map_err(|error| wasmtime::Error::msg(format!("{error:#}")))?;
    let linked = Arc::new(linked);
    caller.data_mut().guest.linked = Some(linked.clone());
    Ok(linked)
}

/// Refuses what an instance may not do now: it is being handed values, or returned already.
pub(super) fn leave(
    interface: &Interface,
    caller: &mut Calling<'_, Host>,
    instance: u32,
) -> wasmtime::Result<Arc<Linked>> {
    let linked = linked(interface, caller)?;
    if linked.may_leave(caller, instance) {
        return Ok(linked);
    }
    broken("it calls what it imports while it is handed values or after it returned")
}

/// A function that the component imports.
struct Imported {
    interface: Arc<Interface>,
    index: usize,
    provided: Provided,
    /// The types that it takes and returns; none where they are in memory.
    params: Option<Vec<Flat>>,
    result: Option<(Ty, Option<Flat>)>,
}

impl Imported {
    fn new(interface: &Arc<Interface>, index: usize, provided: Provided) -> Imported {
        let Import::Function { params, result, .. } = &interface.imports[index] else {
            unreachable!("it is a function")
        };
        Imported {
            params: interface.types.flat_params(params),
            result: result.map(|ty| (ty, interface.types.flat_result(ty))),
            interface: interface.clone(),
            index,
            provided,
        }
    }

    fn call(
        &self,
        caller: &mut Calling<'_, Host>,
        args: &[Val],
        results: &mut [Val],
    ) -> wasmtime::Result<()> {
        let interface = &self.interface;
        let Import::Function { params, options, .. } = &interface.imports[self.index] else {
            unreachable!("it is a function")
        };
        let instance = interface.options[*options as usize].instance;
        let linked = leave(interface, caller, instance)?;
        pay(caller, CALL_BYTES)?;
        let bits: Vec<u64> = args.iter().map(bits_of).collect();
        let mut passing = Passing::new(caller, interface, &linked, (*options, Caller::Instance));
        let (values, rest) = match &self.params {
            Some(flat) => {
                let (values, rest) = bits.split_at(flat.len());
                let mut from = FlatReader { values };
                let values = params.iter().map(|(_, ty)| passing.lift_flat(*ty, &mut from));
                (values.collect::<wasmtime::Result<Vec<Value>>>()?, rest)
            }
            None => (passing.lift_params(params, bits[0] as u32)?, &bits[1..]),
        };
        let answer = (self.provided)(caller, values)?;
        let (Some((ty, flat)), Some(value)) = (self.result, answer) else { return Ok(()) };
        linked.set_may_leave(caller, instance, false);
        let mut passing = Passing::new(caller, interface, &linked, (*options, Caller::Instance));
        match flat {
            Some(flat) => {
                let mut bits = Vec::new();
                passing.lower_flat(ty, &value, &mut bits)?;
                results[0] = value_of(flat, bits[0]);
            }
            None => passing.lower_result(ty, &value, rest.first().copied().unwrap_or(0) as u32)?,
        }
        linked.set_may_leave(caller, instance, true);
        Ok(())
    }
}
