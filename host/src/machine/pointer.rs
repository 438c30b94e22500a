//! What the guest's one global holds once a fuzz target has returned: nearly always the pointer of its stack.
//!
//! To read a global of a guest takes the host longer than to call a function that does nothing. A small module of our own calls the target,
//! and returns what the global holds beside what the target returns.

use spelunk_instrumenter::ValueKind;
use wasmtime::{Engine, Extern, Func, Global, Instance, Module, Store, TypedFunc};

use super::host::Host;
use super::program::Program;
use super::saved::GlobalValue;

/// A fuzz target, and what of it is returned: the number that it returns, and the bits of the global.
pub(super) type Target = TypedFunc<(u32, u32), (i32, i64)>;

/// As the target, and tells the global, where the guest has one.
pub(super) fn telling(
    program: &Program,
    (target, globals): (Func, &[Global]),
    store: &mut Store<Host>,
) -> Option<Target> {
    let (global, kind) = (*globals.first()?, sole(program)?);
    let module = program.ours.pointer.get_or_init(|| module(&program.engine, kind)).as_ref()?;
    let instance = Instance::new(&mut *store, module, &[Extern::from(target), Extern::from(global)]).ok()?;
    instance.get_typed_func(&mut *store, "").ok()
}

/// What the one mutable global of a guest is, where it is a number.
fn sole(program: &Program) -> Option<ValueKind> {
    let [global] = &program.instrumented.layout.globals[..] else { return None };
    value(global.kind, 0).map(|_| global.kind)
}

/// The value of such bits.
pub(super) fn value(kind: ValueKind, bits: i64) -> Option<GlobalValue> {
    Some(match kind {
        ValueKind::I32 => GlobalValue::I32(bits as i32),
        ValueKind::I64 => GlobalValue::I64(bits),
        ValueKind::F32 => GlobalValue::F32(bits as u32),
        ValueKind::F64 => GlobalValue::F64(bits as u64),
        ValueKind::V128 | ValueKind::Function => return None,
    })
}

fn module(engine: &Engine, kind: ValueKind) -> Option<Module> {
    let (ty, bits) = match kind {
        ValueKind::I32 => ("i32", "i64.extend_i32_u (global.get 0)"),
        ValueKind::I64 => ("i64", "global.get 0"),
        ValueKind::F32 => ("f32", "i64.extend_i32_u (i32.reinterpret_f32 (global.get 0))"),
        ValueKind::F64 => ("f64", "i64.reinterpret_f64 (global.get 0)"),
        ValueKind::V128 | ValueKind::Function => return None,
    };
    let text = format!(
        "(module
            (import \"\" \"\" (func $target (param i32 i32) (result i32)))
            (import \"\" \"\" (global (mut {ty})))
            (func (export \"\") (param i32 i32) (result i32 i64)
                (call $target (local.get 0) (local.get 1))
                ({bits})))"
    );
    Module::new(engine, wat::parse_str(text).ok()?).ok()
}
