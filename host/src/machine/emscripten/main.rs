//! How a module starts: its stack, and a program as C knows it, which takes its arguments and returns what it ends with.

use wasmtime::{Func, Instance, Store, TypedFunc, Val};

use super::super::host::{Host, Stop};
use super::super::imports::write;
use super::super::preview1::args;

/// Exports that reserve memory: on the stack, or on the heap.
const RESERVE: [&str; 3] = ["_emscripten_stack_alloc", "stackAlloc", "malloc"];

/// Such a function, prepared to be called.
pub(crate) struct Main {
    func: Func,
    /// Where the arguments go.
    reserve: Option<TypedFunc<u32, u32>>,
}

impl Main {
    /// The export with this name.
    pub(crate) fn of(instance: &Instance, store: &mut Store<Host>, name: &str) -> Option<Main> {
        let func = instance.get_func(&mut *store, name)?;
        let reserve = RESERVE.iter().find_map(|name| instance.get_typed_func(&mut *store, name).ok());
        Some(Main { func, reserve })
    }

    /// Calls it. What it returns ends the program, as if it had called `exit` with that.
    pub(crate) fn call(&self, store: &mut Store<Host>) -> wasmtime::Result<()> {
        let args = match self.func.ty(&*store).params().len() {
            0 => Vec::new(),
            _ => self.arguments(store)?,
        };
        let mut result = vec![Val::I32(0); self.func.ty(&*store).results().len()];
        self.func.call(store, &args, &mut result)?;
        match result.first().map_or(0, Val::unwrap_i32) {
            0 => Ok(()),
            code => Err(Stop::Exit(code as u32).into()),
        }
    }

    /// The number of arguments and their list: addresses of texts that end in a 0, and then a 0.
    fn arguments(&self, store: &mut Store<Host>) -> wasmtime::Result<Vec<Val>> {
        let Some(reserve) = &self.reserve else { return Ok(vec![Val::I32(0); 2]) };
        let (mut texts, mut places) = (Vec::new(), Vec::new());
        for text in args(store.data()) {
            places.push(texts.len() as u32);
            texts.extend(text.as_bytes());
            texts.push(0);
        }
        let reserved = |store: &mut Store<Host>, len: usize| -> wasmtime::Result<u32> {
            match reserve.call(store, len as u32)? {
                // It has no memory left, which says nothing of the program.
                0 => Err(Stop::Reject.into()),
                at => Ok(at),
            }
        };
        let at = reserved(&mut *store, texts.len())?;
        write(store, at, &texts)?;
        let addresses = places.iter().map(|place| at.wrapping_add(*place)).chain([0]);
        let list: Vec<u8> = addresses.flat_map(u32::to_le_bytes).collect();
        let list_at = reserved(&mut *store, list.len())?;
        write(store, list_at, &list)?;
        Ok(vec![Val::I32(places.len() as i32), Val::I32(list_at as i32)])
    }
}

/// What checks the bounds of the stack, to be told them.
pub(crate) struct Stack {
    set: TypedFunc<(u32, u32), ()>,
    /// What says where the stack ends, which is its lowest address, and where it begins.
    bounds: Option<[TypedFunc<(), u32>; 2]>,
}

impl Stack {
    /// The export with this name.
    pub(crate) fn of(instance: &Instance, store: &mut Store<Host>, name: &str) -> Option<Stack> {
        let set = instance.get_typed_func(&mut *store, name).ok()?;
        let mut bound = |name: &str| instance.get_typed_func(&mut *store, name).ok();
        let bounds = bound("emscripten_stack_get_end").zip(bound("emscripten_stack_get_base"));
        Some(Stack { set, bounds: bounds.map(|(end, base)| [end, base]) })
    }

    /// Tells it. A module that does not say where its stack is keeps what it has.
    pub(crate) fn call(&self, store: &mut Store<Host>) -> wasmtime::Result<()> {
        let Some([end, base]) = &self.bounds else { return Ok(()) };
        let (end, base) = (end.call(&mut *store, ())?, base.call(&mut *store, ())?);
        self.set.call(store, (base, end))
    }
}
