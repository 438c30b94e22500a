//! A function that a component exports, called with values that are drawn.

use std::sync::Arc;

use wasmtime::{Func, Store, Val};

use super::super::host::{Guest, Host, Stop, pay};
use super::super::imports::{span_begin, stop};
use super::super::signed::{LABEL, Pools};
use super::abi::{Caller, FlatReader, Passing, broken, refused};
use super::draw;
use super::given::Choices;
use super::handles::HOST;
use super::instance::Linked;
use super::interface::{Flat, Function, Interface, Sort, Ty, Type};
use super::shown::{WitValue, shown};
use super::value::Value;
use crate::outcome::FailureKind;

/// A call costs as much as reading so many bytes, besides what it does.
pub(super) const CALL_BYTES: usize = 1024;
/// Handles of one resource, beyond which no rule is called that returns another. A pool holds a few more.
const POOL_MAX: usize = 1000;

/// An exported function, prepared to be called.
pub(crate) struct Lifted {
    interface: Arc<Interface>,
    linked: Arc<Linked>,
    function: usize,
    func: Func,
    args: Vec<Val>,
    results: Vec<Val>,
    /// Types that parameters are passed as; none where they are in memory.
    flat: Option<Vec<Flat>>,
    has_handles: bool,
    /// Resources that it is given, and how many of each, of those that are parameters by themselves.
    given: Vec<(u32, usize)>,
    /// Resources that it may return.
    owned: Vec<u32>,
    /// What the last call returned, where that is compared.
    pub(super) returned: Option<WitValue>,
    /// Values that its parameters are given.
    pub(super) choices: Option<Choices>,
    /// An error that it returns is a failure.
    pub(super) fails_on_error: bool,
    /// What of its result counts.
    pub(super) role: Role,
}

/// What a function is called for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Role {
    Rule,
    /// A result that is false, or an error, says that it does not hold.
    Condition,
    /// A program from its start to its end, which may end itself.
    Command,
}

impl Lifted {
    pub(super) fn new(
        interface: &Arc<Interface>,
        linked: &Arc<Linked>,
        (function, func, role): (usize, Func, Role),
        store: &Store<Host>,
    ) -> Lifted {
        let described = &interface.functions[function];
        let ty = func.ty(store);
        let mut owned = Vec::new();
        described.result.iter().for_each(|ty| interface.types.owned(*ty, &interface.handles, &mut owned));
        let mentioned = described.params.iter().map(|(_, ty)| *ty).chain(described.result);
        Lifted {
            function,
            func,
            args: ty.params().map(|ty| Val::default_for_ty(&ty).unwrap_or(Val::I32(0))).collect(),
            results: vec![Val::I32(0); ty.results().len()],
            flat: interface.types.flat_params(&described.params),
            has_handles: mentioned.into_iter().any(|ty| interface.types[ty].has_handles),
            given: given(interface, described),
            owned,
            returned: None,
            choices: None,
            fails_on_error: false,
            role,
            interface: interface.clone(),
            linked: linked.clone(),
        }
    }

    fn described(&self) -> &Function {
        &self.interface.functions[self.function]
    }

    /// Whether it may be called with these pools.
    pub(in super::super) fn is_enabled(&self, pools: &Pools) -> bool {
        let described = self.described();
        let has_values =
            described.params.iter().all(|(_, ty)| draw::is_there(&self.interface, *ty, Some(pools)));
        has_values
            && self.given.iter().all(|(resource, many)| pools.handles(*resource as usize).len() >= *many)
            && !self.is_cut(pools)
    }

    /// Whether only that there are too many handles keeps it from being called.
    pub(in super::super) fn is_cut(&self, pools: &Pools) -> bool {
        self.owned.iter().any(|resource| pools.handles(*resource as usize).len() >= POOL_MAX)
    }

    /// Draws what it takes, and calls it; whether what it returned says that something holds, where it says that.
    pub(in super::super) fn call(&mut self, store: &mut Store<Host>) -> wasmtime::Result<Option<i32>> {
        pay(store, CALL_BYTES)?;
        let args = self.draw(store)?;
        let result = self.call_with(store, &args)?;
        if store.data().step.effects.is_some() {
            let typed = self.described().result.zip(result.clone());
            self.returned = typed.map(|(ty, value)| WitValue::new(&self.interface, ty, value));
        }
        self.learn(store, result)
    }

    fn draw(&self, store: &mut Store<Host>) -> wasmtime::Result<Vec<Value>> {
        let (mut args, mut used) = (Vec::new(), draw::Used::default());
        for (index, (name, ty)) in self.described().params.iter().enumerate() {
            span_begin(&mut store.data_mut().step, (index as u32, LABEL))?;
            let value = match self.choices.as_ref().map(|choices| &choices[index][..]) {
                None | Some([]) => draw::value(&self.interface, *ty, store.data_mut(), &mut used)?,
                Some(values) => draw::one_of(values, store.data_mut())?.clone(),
            };
            let step = &mut store.data_mut().step;
            step.chooser.span_end(false);
            step.describe(|| (name.clone(), shown(&self.interface, *ty, &value)));
            args.push(value);
        }
        Ok(args)
    }

    /// Calls it with these values; what it returns.
    pub(super) fn call_with(
        &mut self,
        store: &mut Store<Host>,
        args: &[Value],
    ) -> wasmtime::Result<Option<Value>> {
        let interface = self.interface.clone();
        let described = &interface.functions[self.function];
        let options = &interface.options[described.options as usize];
        if self.has_handles {
            store.data_mut().guest.handles.enter();
        }
        self.lower(store, args)?;
        self.func.call(&mut *store, &self.args, &mut self.results)?;
        if self.has_handles {
            store.data_mut().guest.handles.exit().map_err(refused)?;
        }
        let returned: Vec<u64> = self.results.iter().map(bits_of).collect();
        let mut passing = Passing::new(store, &interface, &self.linked, (described.options, Caller::Host));
        let value = match described.result {
            None => None,
            Some(ty) if interface.types.flat_result(ty).is_some() => {
                Some(passing.lift_flat(ty, &mut FlatReader { values: &returned })?)
            }
            Some(ty) => Some(passing.lift_result(ty, returned.first().copied().unwrap_or(0) as u32)?),
        };
        if let Some(after) = options.post_return.and_then(|index| self.linked.post_return(index)) {
            self.linked.set_may_leave(store, options.instance, false);
            after.call(&mut *store, &self.results, &mut [])?;
            self.linked.set_may_leave(store, options.instance, true);
        }
        Ok(value)
    }

    /// Readies the arguments of the core function.
    fn lower(&mut self, store: &mut Store<Host>, args: &[Value]) -> wasmtime::Result<()> {
        let interface = self.interface.clone();
        let described = &interface.functions[self.function];
        let instance = interface.options[described.options as usize].instance;
        let has_memory =
            self.flat.is_none() || described.params.iter().any(|(_, ty)| interface.types[*ty].is_placed);
        if has_memory {
            self.linked.set_may_leave(store, instance, false);
        }
        let mut passing = Passing::new(store, &interface, &self.linked, (described.options, Caller::Host));
        let types = described.params.iter().map(|(_, ty)| *ty);
        match &self.flat {
            Some(flat) => {
                let mut bits = Vec::new();
                for (ty, value) in types.zip(args) {
                    passing.lower_flat(ty, value, &mut bits)?;
                }
                for ((arg, flat), bits) in self.args.iter_mut().zip(flat).zip(bits) {
                    *arg = value_of(*flat, bits);
                }
            }
            None => {
                let at = passing.lower_params(types.zip(args))?;
                self.args[0] = Val::I32(at as i32);
            }
        }
        if has_memory {
            self.linked.set_may_leave(store, instance, true);
        }
        Ok(())
    }

    /// What a call that returned means: for the pools, and for the run.
    fn learn(&self, store: &mut Store<Host>, result: Option<Value>) -> wasmtime::Result<Option<i32>> {
        let described = self.described();
        // Handles that were given away are in no pool any more, and those that were returned are.
        if self.has_handles {
            self.fill_pools(store, result.as_ref())?;
        }
        let (Some(ty), Some(value)) = (described.result, result) else { return Ok(None) };
        let is_error = is_error(&self.interface, ty, &value);
        if self.role == Role::Command && is_error {
            return Err(Stop::Exit(1).into());
        }
        if self.role == Role::Condition {
            return match (&value, is_error) {
                (Value::Bool(holds), _) => Ok(Some(i32::from(*holds))),
                (_, true) => {
                    let message = format!("it returned {}", shown(&self.interface, ty, &value));
                    stop(FailureKind::Fail, None, message)
                }
                _ => Ok(Some(1)),
            };
        }
        // What is compared, whoever compares it says.
        if store.data().step.effects.is_none() {
            store.data_mut().step.note(|| format!("returns {}", shown(&self.interface, ty, &value)));
        }
        if is_error && self.fails_on_error {
            let message = format!("it returned {}", shown(&self.interface, ty, &value));
            return stop(FailureKind::Fail, None, message);
        }
        Ok(None)
    }

    fn fill_pools(&self, store: &mut Store<Host>, result: Option<&Value>) -> wasmtime::Result<()> {
        let Guest { pools, handles, .. } = &mut store.data_mut().guest;
        for resource in 0..self.interface.resources.len() {
            let is_gone = |handle: i64| handles.get_of(HOST, handle as u32, resource as u32).is_err();
            // What changes is copied.
            if pools.handles(resource).iter().any(|handle| is_gone(*handle)) {
                pools.take(resource, is_gone);
            }
        }
        let mut returned = Vec::new();
        if let (Some(ty), Some(value)) = (self.described().result, result) {
            owned(&self.interface, ty, value, &mut returned);
        }
        for (resource, handle) in returned {
            if !store.data_mut().guest.pools.add(resource as usize, i64::from(handle)) {
                return broken("it returned more than 1024 resources of one type that were not dropped");
            }
        }
        Ok(())
    }
}

/// Resources that a function is given, and how many handles of each there must be: one of its own for each that is given away.
fn given(interface: &Interface, function: &Function) -> Vec<(u32, usize)> {
    let mut given: Vec<(u32, usize, bool)> = Vec::new();
    for (_, ty) in &function.params {
        let Type::Handle(handle, is_own) = interface.types[*ty].ty else { continue };
        let Some(of) = interface.handles[handle as usize] else { continue };
        match given.iter_mut().find(|(resource, ..)| *resource == of.resource) {
            Some((_, owned, is_lent)) => {
                *owned += usize::from(is_own);
                *is_lent |= !is_own;
            }
            None => given.push((of.resource, is_own.into(), !is_own)),
        }
    }
    given.into_iter().map(|(resource, owned, is_lent)| (resource, owned + usize::from(is_lent))).collect()
}

/// Whether it is the error of a result.
fn is_error(interface: &Interface, ty: Ty, value: &Value) -> bool {
    matches!((&interface.types[ty].ty, value), (Type::Variant(Sort::Result, _), Value::Variant(1, _)))
}

/// The handles in a value that are the host's now: the resource, and the handle.
fn owned(interface: &Interface, ty: Ty, value: &Value, found: &mut Vec<(u32, u32)>) {
    match (&interface.types[ty].ty, value) {
        (Type::Handle(ty, true), Value::Handle(handle)) => {
            found.extend(interface.handles[*ty as usize].map(|of| (of.resource, *handle)));
        }
        (Type::List(ty), Value::List(values)) => {
            values.iter().for_each(|value| owned(interface, *ty, value, found));
        }
        (Type::Record(fields), Value::Record(values)) => {
            let fields = fields.iter().zip(values);
            fields.for_each(|((_, ty), value)| owned(interface, *ty, value, found));
        }
        (Type::Tuple(types), Value::Record(values)) => {
            types.iter().zip(values).for_each(|(ty, value)| owned(interface, *ty, value, found));
        }
        (Type::Variant(_, cases), Value::Variant(case, Some(value))) => {
            if let Some((_, Some(ty))) = cases.get(*case as usize) {
                owned(interface, *ty, value, found);
            }
        }
        _ => {}
    }
}

pub(super) fn bits_of(value: &Val) -> u64 {
    match value {
        Val::I32(bits) => u64::from(*bits as u32),
        Val::I64(bits) => *bits as u64,
        Val::F32(bits) => u64::from(*bits),
        Val::F64(bits) => *bits,
        other => unreachable!("{other:?} is passed by no component"),
    }
}

pub(super) fn value_of(flat: Flat, bits: u64) -> Val {
    match flat {
        Flat::I32 => Val::I32(bits as i32),
        Flat::I64 => Val::I64(bits as i64),
        Flat::F32 => Val::F32(bits as u32),
        Flat::F64 => Val::F64(bits),
    }
}
