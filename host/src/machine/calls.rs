//! The functions of a guest that the machine calls.

use anyhow::{Result, bail};
use wasmtime::{Func, Instance, Store, TypedFunc, Val};

use super::exports::Exports;
use super::imports::{Host, Stop};
use super::program::engine_error;
use crate::choice::{Kind, Value};

/// A function of the guest, prepared to be called.
pub(super) enum Call {
    Plain(TypedFunc<(), ()>),
    Checked(TypedFunc<(), i32>),
    General { func: Func, args: Vec<Val>, results: Vec<Val> },
}

/// What a machine calls, in the order of [`Exports`].
pub(super) struct Calls {
    pub(super) setup: Vec<Call>,
    pub(super) teardown: Option<Call>,
    pub(super) state: Option<Call>,
    pub(super) rules: Vec<Call>,
    pub(super) faults: Vec<TypedFunc<i32, ()>>,
    pub(super) preconditions: Vec<(u16, Call)>,
    pub(super) invariants: Vec<Call>,
}

impl Calls {
    pub(super) fn of(exports: &Exports, instance: Instance, store: &mut Store<Host>) -> Result<Calls> {
        let mut faults = Vec::new();
        for name in &exports.fault_exports {
            faults.push(instance.get_typed_func(&mut *store, name).map_err(engine_error)?);
        }
        let mut call = |name: &String| Call::new(&instance, store, name);
        let mut guards = Vec::new();
        for (rule, name) in &exports.preconditions {
            guards.push((*rule, call(name)?));
        }
        Ok(Calls {
            setup: exports.setup.iter().map(&mut call).collect::<Result<_>>()?,
            teardown: exports.teardown.iter().map(&mut call).next().transpose()?,
            state: exports.state.iter().map(&mut call).next().transpose()?,
            rules: exports.rule_exports.iter().map(&mut call).collect::<Result<_>>()?,
            faults,
            preconditions: guards,
            invariants: exports.invariants.iter().map(|(_, name)| call(name)).collect::<Result<_>>()?,
        })
    }
}

impl Call {
    fn new(instance: &Instance, store: &mut Store<Host>, name: &str) -> Result<Call> {
        let Some(func) = instance.get_func(&mut *store, name) else {
            bail!("the instrumented module lost its export `{name}`");
        };
        if let Ok(plain) = func.typed(&*store) {
            return Ok(Call::Plain(plain));
        }
        if let Ok(checked) = func.typed(&*store) {
            return Ok(Call::Checked(checked));
        }
        let ty = func.ty(&*store);
        let args = ty.params().map(|ty| Val::default_for_ty(&ty).unwrap_or(Val::I32(0))).collect();
        let results = vec![Val::I32(0); ty.results().len()];
        Ok(Call::General { func, args, results })
    }

    /// Calls the function; its result where it returns one `i32`.
    pub(super) fn call(&mut self, store: &mut Store<Host>) -> wasmtime::Result<Option<i32>> {
        match self {
            Call::Plain(func) => func.call(store, ()).map(|()| None),
            Call::Checked(func) => func.call(store, ()).map(Some),
            Call::General { func, args, results } => {
                for arg in args.iter_mut() {
                    draw_argument(arg, store)?;
                }
                func.call(store, args, results).map(|()| None)
            }
        }
    }
}

/// Draws one argument of a rule by its type.
fn draw_argument(arg: &mut Val, store: &mut Store<Host>) -> wasmtime::Result<()> {
    let integer = |min, max| Kind::Integer { min, max, simplest: 0 };
    let float = Kind::Float { min: f64::NEG_INFINITY, max: f64::INFINITY, nan: true, infinite: true };
    let chooser = &mut store.data_mut().chooser;
    let kind = match arg {
        Val::I32(_) => integer(i32::MIN.into(), i32::MAX.into()),
        Val::I64(_) => integer(i64::MIN, i64::MAX),
        _ => float,
    };
    *arg = match (&*arg, chooser.ask(kind).ok_or(Stop::Reject)?) {
        (Val::I32(_), Value::Integer(v)) => Val::I32(*v as i32),
        (Val::I64(_), Value::Integer(v)) => Val::I64(*v),
        (Val::F32(_), Value::Float(v)) => Val::F32((*v as f32).to_bits()),
        (Val::F64(_), Value::Float(v)) => Val::F64(v.to_bits()),
        (arg, value) => unreachable!("{value:?} answers {arg:?}"),
    };
    Ok(())
}
