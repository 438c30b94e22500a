//! The functions of a guest that the machine calls.

use anyhow::{Context, Result, anyhow, bail};
use wasmtime::{Func, Instance, Store, TypedFunc, Val};

use super::against::{Number, Returned};
use super::compile::engine_error;
use super::component::ComponentCall;
use super::copies::CopyCalls;
use super::emscripten::names;
use super::emscripten::{Main, Stack};
use super::exports::Exports;
use super::heap::grow_shadow;
use super::host::{Host, Stop};
use super::imports::{fill, stop, write};
use super::link::{drawn, drawn_kind};
use super::pointer;
use super::signed::{Placer, Pools, Signed};
use super::spelling::{INITIALIZE, INPUT, START};
use crate::choice::{Kind, Value};
use crate::outcome::FailureKind;

/// A function of the guest, prepared to be called.
pub(super) enum Call {
    Plain(TypedFunc<(), ()>),
    /// A program from its start to its end, which it may end itself.
    Start(TypedFunc<(), ()>),
    Checked(TypedFunc<(), i32>),
    General {
        func: Func,
        args: Vec<Val>,
        results: Vec<Val>,
    },
    /// Takes bytes: where they stand and how many.
    Input {
        func: TypedFunc<(u32, u32), i32>,
        /// As that, where it tells a global too.
        telling: Option<pointer::Target>,
        room: Room,
    },
    /// A program as C knows it, which returns what it ends with.
    Main(Main),
    /// Tells a module that checks the bounds of its stack where they are.
    Stack(Stack),
    /// As its signature says.
    Signed(Box<Signed>),
    /// As the types of a component say.
    Component(ComponentCall),
    /// Takes the addresses of the number and the list of the arguments of a program; there are none.
    Initialize {
        func: TypedFunc<(u32, u32), i32>,
        room: Room,
    },
}

/// Where the host may write in a guest's memory, and how much.
#[derive(Clone)]
pub(super) struct Room {
    place: Place,
    bytes_max: u32,
}

#[derive(Clone)]
enum Place {
    /// Where the guest's own `malloc` says.
    Malloc(TypedFunc<u32, u32>),
    /// At the end of the memory that the module has when it is instantiated.
    End(u32),
}

impl Room {
    /// The guest's `malloc`, or as many bytes that the memory grows by.
    ///
    /// # Errors
    /// Neither is there.
    pub(super) fn of(instance: Instance, store: &mut Store<Host>, bytes_max: u32) -> Result<Room> {
        if let Ok(malloc) = instance.get_typed_func(&mut *store, "malloc") {
            return Ok(Room { place: Place::Malloc(malloc), bytes_max });
        }
        let name = store.data().guest.memory_export.clone();
        let memory = name.and_then(|name| instance.get_memory(&mut *store, &name));
        let grown = memory.and_then(|memory| {
            let pages = u64::from(bytes_max).div_ceil(memory.page_size(&*store)).max(1);
            let at = memory.data_size(&*store);
            memory.grow(&mut *store, pages).ok()?;
            grow_shadow(instance, store, memory)?;
            u32::try_from(at).ok()
        });
        let Some(at) = grown else {
            bail!(
                "there is no room for the input of `{INPUT}`: let the module export `malloc`, or have a memory \
                 that can grow by {bytes_max} bytes"
            );
        };
        Ok(Room { place: Place::End(at), bytes_max })
    }

    fn reserve(&self, store: &mut Store<Host>, bytes: u32) -> wasmtime::Result<u32> {
        match &self.place {
            Place::End(at) => Ok(*at),
            Place::Malloc(malloc) => {
                let at = malloc.call(&mut *store, bytes.max(1))?;
                let is_inside = u64::from(at) + u64::from(bytes) <= memory_size(store);
                if at == 0 || !is_inside {
                    let message = format!("malloc gave {at:#x} as room for {bytes} bytes, which is none");
                    return stop(FailureKind::Abi, None, message);
                }
                Ok(at)
            }
        }
    }
}

fn memory_size(store: &Store<Host>) -> u64 {
    store.data().guest.memory.map_or(0, |memory| memory.data_size(store) as u64)
}

/// What a machine calls, in the order of [`Exports`].
pub(super) struct Calls {
    pub(super) setup: Vec<Call>,
    pub(super) teardown: Vec<Call>,
    /// What readies the guest after a crash.
    pub(super) recovery: Vec<Call>,
    pub(super) state: Option<Call>,
    pub(super) terminal: Option<Call>,
    pub(super) describe_state: Option<Call>,
    pub(super) rules: Vec<Call>,
    pub(super) faults: Vec<TypedFunc<i32, ()>>,
    pub(super) preconditions: Vec<(u16, Call)>,
    pub(super) invariants: Vec<Call>,
    /// Of a guest that copies its states.
    pub(super) copies: Option<CopyCalls>,
}

impl Calls {
    pub(super) fn of(
        exports: &Exports,
        instance: Instance,
        store: &mut Store<Host>,
        (room, placer): (Option<&Room>, Option<&Placer>),
    ) -> Result<Calls> {
        let mut faults = Vec::new();
        for name in &exports.fault_exports {
            faults.push(instance.get_typed_func(&mut *store, name).map_err(engine_error)?);
        }
        let linked = store.data().guest.linked.clone();
        let mut call = |name: &String| match (exports.plans.calls.get(name), &exports.main) {
            _ if let (Some(component), Some(linked)) = (&exports.component, &linked) => {
                ComponentCall::of(component, name, (instance, linked), store).map(Call::Component)
            }
            (Some(plan), _) => {
                let func = func_of(&instance, store, name)?;
                let signed = Signed::new(plan, &exports.plans, (func, placer), store);
                Ok(Call::Signed(Box::new(signed)))
            }
            (None, Some(main)) if main == name => Call::main(&instance, store, name),
            _ => Call::new(&instance, store, name, room),
        };
        let mut guards = Vec::new();
        for (rule, name) in &exports.preconditions {
            guards.push((*rule, call(name)?));
        }
        let invariants = exports.invariants.iter().map(|(_, name)| call(name)).collect::<Result<_>>()?;
        Ok(Calls {
            invariants,
            setup: exports.setup.iter().map(&mut call).collect::<Result<_>>()?,
            recovery: exports.recovery().map(&mut call).collect::<Result<_>>()?,
            teardown: exports.teardown.iter().map(&mut call).collect::<Result<_>>()?,
            state: exports.state.iter().map(&mut call).next().transpose()?,
            terminal: exports.terminal.iter().map(&mut call).next().transpose()?,
            describe_state: exports.describe_state.iter().map(&mut call).next().transpose()?,
            rules: exports.rule_exports.iter().map(&mut call).collect::<Result<_>>()?,
            faults,
            preconditions: guards,
            copies: CopyCalls::of(instance, store),
        })
    }
}

fn func_of(instance: &Instance, store: &mut Store<Host>, name: &str) -> Result<Func> {
    let func = instance.get_func(&mut *store, name);
    func.with_context(|| format!("the instrumented module lost its export `{name}`"))
}

impl Call {
    /// Whether the rule that this is may be called with these pools.
    pub(super) fn is_enabled(&self, pools: &Pools) -> bool {
        match self {
            Call::Signed(signed) => signed.is_enabled(pools),
            Call::Component(call) => call.is_enabled(pools),
            _ => true,
        }
    }

    fn new(instance: &Instance, store: &mut Store<Host>, name: &str, room: Option<&Room>) -> Result<Call> {
        let func = func_of(instance, store, name)?;
        if let (INPUT | INITIALIZE, Some(room)) = (name, room) {
            let (func, room) = (func.typed(&*store).map_err(engine_error)?, room.clone());
            return Ok(if name == INPUT {
                Call::Input { func, telling: None, room }
            } else {
                Call::Initialize { func, room }
            });
        }
        if name == names::SET_STACK
            && let Some(stack) = Stack::of(instance, store, name)
        {
            return Ok(Call::Stack(stack));
        }
        if name == START {
            return Ok(Call::Start(func.typed(&*store).map_err(engine_error)?));
        }
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

    /// Has a fuzz target tell a global beside what it returns, where `of` says how.
    pub(super) fn tell(&mut self, of: impl FnOnce(Func) -> Option<pointer::Target>) {
        if let Call::Input { func, telling, .. } = self {
            *telling = of(*func.func());
        }
    }

    fn main(instance: &Instance, store: &mut Store<Host>, name: &str) -> Result<Call> {
        let main = Main::of(instance, store, name);
        main.map(Call::Main).ok_or_else(|| anyhow!("the instrumented module lost its export `{name}`"))
    }

    /// Calls the function as the rule that it is, and notes what it returns where that is to be compared.
    pub(super) fn call_rule(&mut self, store: &mut Store<Host>) -> wasmtime::Result<()> {
        let result = self.call(store)?;
        if let Some(effects) = &mut store.data_mut().step.effects {
            effects.returned = Some(match self {
                Call::Checked(_) => {
                    result.map_or(Returned::Nothing, |result| Returned::Number(Number::I32(result)))
                }
                Call::General { results, .. } => Returned::of(results),
                Call::Signed(signed) => signed.returned(),
                Call::Component(call) => call.returned().map_or(Returned::Nothing, Returned::Value),
                _ => Returned::Nothing,
            });
        }
        Ok(())
    }

    /// Calls the function; its result where it returns one `i32`.
    pub(super) fn call(&mut self, store: &mut Store<Host>) -> wasmtime::Result<Option<i32>> {
        match self {
            Call::Plain(func) => func.call(store, ()).map(|()| None),
            Call::Start(func) => match func.call(store, ()) {
                Err(error) if matches!(error.downcast_ref(), Some(Stop::Exit(0))) => Ok(None),
                ended => ended.map(|()| None),
            },
            Call::Main(main) => match main.call(store) {
                Err(error) if matches!(error.downcast_ref(), Some(Stop::Exit(0))) => Ok(None),
                ended => ended.map(|()| None),
            },
            Call::Stack(stack) => stack.call(store).map(|()| None),
            Call::Checked(func) => func.call(store, ()).map(Some),
            Call::Signed(signed) => signed.call(store),
            Call::Component(call) => call.call(store),
            Call::General { func, args, results } => {
                for arg in args.iter_mut() {
                    draw_argument(arg, store)?;
                }
                func.call(store, args, results).map(|()| None)
            }
            Call::Input { func, telling, room } => {
                let kind = Kind::Bytes { min: 0, max: room.bytes_max };
                let chooser = &mut store.data_mut().step.chooser;
                let number = chooser.choices.len();
                let len = bytes_of(chooser.ask(kind).ok_or(Stop::Reject)?).len() as u32;
                let at = room.reserve(store, len)?;
                fill(store, (at, len), |host, place| {
                    place.copy_from_slice(bytes_of(&host.step.chooser.choices[number].value));
                })?;
                let returned = match telling {
                    Some(func) => {
                        let (returned, global) = func.call(&mut *store, (at, len))?;
                        store.data_mut().step.global = Some(global);
                        returned
                    }
                    None => func.call(store, (at, len))?,
                };
                match returned {
                    -1 => Err(Stop::Reject.into()),
                    _ => Ok(None),
                }
            }
            Call::Initialize { func, room } => {
                let at = room.reserve(store, 8)?;
                write(store, at, &[0; 8])?;
                func.call(store, (at, at + 4)).map(|_| None)
            }
        }
    }
}

/// The bytes that an answer is.
fn bytes_of(answer: &Value) -> &[u8] {
    let Value::Bytes(bytes) = answer else { unreachable!("{answer:?} answers bytes") };
    bytes
}

/// Draws one argument of a rule by its type.
fn draw_argument(arg: &mut Val, store: &mut Store<Host>) -> wasmtime::Result<()> {
    let kind = drawn_kind(&arg.ty(&*store)?).expect("a rule has numeric parameters");
    let value = store.data_mut().step.chooser.ask(kind).ok_or(Stop::Reject)?;
    *arg = drawn(arg, value);
    Ok(())
}
