//! What the engine's own component model does, where Spelunk does not do what a test file says: of another version of the
//! specification, the engine is of the same as Spelunk.

use wasmtime::component::{Component, Instance, Linker, Val, wasm_wave};
use wasmtime::{Engine, Store};

use super::script::{Bytes, Call, Instance as Described};

/// Whether the engine takes a component.
pub(crate) fn takes(bytes: &Bytes) -> bool {
    bytes.as_ref().is_ok_and(|bytes| Component::new(&Engine::default(), bytes).is_ok())
}

/// What the last of these calls returns; nothing where it traps.
pub(crate) fn returns(described: &Described, last: usize) -> Option<Option<String>> {
    let engine = Engine::default();
    let component = Component::new(&engine, described.wasm.as_ref()?.as_ref().ok()?).ok()?;
    let mut store = Store::new(&engine, ());
    let instance = Linker::new(&engine).instantiate(&mut store, &component).ok()?;
    let mut came = None;
    for call in &described.calls[..=last] {
        came = one(&mut store, &instance, call);
    }
    came
}

fn one(store: &mut Store<()>, instance: &Instance, call: &Call) -> Option<Option<String>> {
    let func = instance.get_func(&mut *store, &call.name)?;
    let ty = func.ty(&*store);
    let args = ty.params().zip(&call.args).map(|((_, ty), arg)| wasm_wave::from_str(&ty, arg).ok());
    let args: Vec<Val> = args.collect::<Option<_>>()?;
    let mut results = vec![Val::Bool(false); ty.results().len()];
    func.call(&mut *store, &args, &mut results).ok()?;
    Some(results.first().map(|result| wasm_wave::to_string(result).unwrap()))
}
