//! The machine: a guest that can be stepped, saved and restored in place. Only this module names wasmtime.
//!
//! The one thing that is not obvious: a machine is never re-instantiated while it explores. Restoring copies
//! the pages that were written since, which the instrumented guest marks, and sets back what else it could
//! change. Where a module can change what cannot be set back (see [`Program::obstacles`]), there are no
//! snapshots, [`Target::reset`] instantiates anew, and the search replays instead.

mod exports;
mod failure;
mod imports;
mod memory;
mod pages;
mod stack;
mod state;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use spelunk_instrumenter::{EdgeMap, Instrumented, Obstacle, Options};
use wasmtime::{Collector, Config, Engine, Func, Instance, Linker, Module, Store, TypedFunc, Val};
use xxhash_rust::xxh3::xxh3_128;

use crate::choice::{Chooser, Kind, Value};
use crate::coverage::EdgeSet;
use crate::file;
use crate::outcome::{Failure, Outcome};
use crate::property::Properties;
use crate::target::{Rule, Target};
use crate::trace::Action;
use exports::Exports;
use failure::Phase;
use imports::{Host, Limiter};
use memory::Memories;
use stack::ShadowStack;
use state::State;

pub use spelunk_instrumenter::Edges;

pub use imports::Told;
pub use pages::PAGE;
pub use state::Snapshot;

/// Bytes of native stack a guest may use. With the default call depth that is 3 KiB a call.
const STACK_BYTES: usize = 32 << 20;
/// Bytes of stack that the host keeps for itself around a guest's.
const STACK_MARGIN: usize = 2 << 20;
/// The stack of a thread on which a guest runs without the machine having to switch to another.
const THREAD_STACK_BYTES: usize = STACK_BYTES + 4 * STACK_MARGIN;

/// What a guest may use, and how it is instrumented. A run depends on these, so a trace records them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Loop iterations and calls in one step and its invariants, in units of 256.
    pub step_budget: u32,
    /// Nested calls.
    pub depth_max: u32,
    /// Bytes that each memory may grow to.
    pub memory_bytes_max: u64,
    /// Imports that Spelunk does not provide return zero.
    pub stub_imports: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { step_budget: 1 << 16, depth_max: 10_000, memory_bytes_max: 1 << 30, stub_imports: false }
    }
}

impl From<&file::Limits> for Limits {
    fn from(limits: &file::Limits) -> Limits {
        let file::Limits { step_budget, depth_max, memory_bytes_max, stub_imports } = *limits;
        Limits { step_budget, depth_max, memory_bytes_max, stub_imports }
    }
}

impl From<&Limits> for file::Limits {
    fn from(limits: &Limits) -> file::Limits {
        let Limits { step_budget, depth_max, memory_bytes_max, stub_imports } = *limits;
        file::Limits { step_budget, depth_max, memory_bytes_max, stub_imports }
    }
}

/// How edges are told apart and where.
#[derive(Clone, Debug)]
pub struct Selection {
    /// How edges are numbered.
    pub edges: Edges,
    /// Globs of function names to instrument; empty is all.
    pub include: Vec<String>,
    /// Globs of function names not to instrument.
    pub exclude: Vec<String>,
}

impl From<&file::Selection> for Selection {
    fn from(selection: &file::Selection) -> Selection {
        let edges = match selection.edges {
            file::Edges::None => Edges::None,
            file::Edges::Static => Edges::Static,
            file::Edges::Hashed => Edges::Hashed,
        };
        Selection { edges, include: selection.include.clone(), exclude: selection.exclude.clone() }
    }
}

impl From<&Selection> for file::Selection {
    fn from(selection: &Selection) -> file::Selection {
        let edges = match selection.edges {
            Edges::None => file::Edges::None,
            Edges::Static => file::Edges::Static,
            Edges::Hashed => file::Edges::Hashed,
        };
        file::Selection { edges, include: selection.include.clone(), exclude: selection.exclude.clone() }
    }
}

impl Default for Selection {
    fn default() -> Selection {
        Selection { edges: Edges::Static, include: Vec::new(), exclude: Vec::new() }
    }
}

/// A module, instrumented and compiled. Machines are made from it.
pub struct Program {
    engine: Engine,
    module: Module,
    memories: Arc<Memories>,
    instrumented: Instrumented,
    exports: Exports,
    properties: Properties,
    stack: Option<ShadowStack>,
    /// Where the body of each function begins in the module as it came; those that are imported have none.
    bodies: Vec<Option<u32>>,
    limits: Limits,
    selection: Selection,
    hash: u128,
}

impl Program {
    /// Instruments and compiles a module in the binary format.
    ///
    /// # Errors
    /// A module that is malformed, that the instrumenter refuses, or that has nothing to explore.
    pub fn load(wasm: &[u8], limits: Limits, selection: Selection) -> Result<Program> {
        let mut instrumented = instrument(wasm, &limits, &selection)?;
        instrumented.layout.obstacles.extend(collected_heap(wasm));
        let memories = Arc::new(Memories::default());
        let engine = Engine::new(&config(memories.clone())).map_err(engine_error)?;
        let module = Module::from_binary(&engine, &instrumented.wasm).map_err(engine_error)?;
        let exports = Exports::of(&module)?;
        let (properties, stack) = (properties_of(wasm), ShadowStack::of(wasm));
        Ok(Program {
            engine,
            module,
            memories,
            instrumented,
            exports,
            properties,
            stack,
            bodies: bodies_of(wasm),
            limits,
            selection,
            hash: xxh3_128(wasm),
        })
    }

    /// A hash of the module as it came, before it was instrumented.
    pub fn hash(&self) -> u128 {
        self.hash
    }

    /// The edges that are counted.
    pub fn edges(&self) -> &EdgeMap {
        &self.instrumented.edges
    }

    /// What this module can change and no snapshot can hold; empty where snapshots work.
    pub fn obstacles(&self) -> &[Obstacle] {
        &self.instrumented.layout.obstacles
    }

    /// The selection that it was loaded with.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The limits that it was loaded with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

/// Instruments a module as [`Program::load`] does.
///
/// # Errors
/// A module that is malformed or that the instrumenter refuses.
pub fn instrument(wasm: &[u8], limits: &Limits, selection: &Selection) -> Result<Instrumented> {
    let options = Options {
        edges: selection.edges,
        dirty: true,
        budget: true,
        page_bytes: PAGE as u32,
        include: selection.include.clone(),
        exclude: selection.exclude.clone(),
        depth_max: limits.depth_max,
        memory_bytes_max: limits.memory_bytes_max,
    };
    spelunk_instrumenter::instrument(wasm, &options)
}

fn config(memories: Arc<Memories>) -> Config {
    let mut config = Config::new();
    config
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .wasm_memory64(true)
        .wasm_multi_memory(true)
        .wasm_tail_call(true)
        .wasm_function_references(true)
        .wasm_gc(true)
        .wasm_exceptions(true)
        .wasm_extended_const(true)
        .collector(Collector::DeferredReferenceCounting)
        .memory_may_move(false)
        .memory_init_cow(false)
        .max_wasm_stack(STACK_BYTES)
        .async_stack_size(STACK_BYTES + STACK_MARGIN)
        .with_host_memory(memories);
    config
}

fn engine_error(error: wasmtime::Error) -> anyhow::Error {
    anyhow!("{error:#}")
}

/// The declarations in the custom section `spelunk:properties`.
fn properties_of(wasm: &[u8]) -> Properties {
    let sections = wasmparser::Parser::new(0).parse_all(wasm).filter_map(Result::ok);
    let declared: Vec<u8> = sections
        .filter_map(|payload| match payload {
            wasmparser::Payload::CustomSection(section) if section.name() == "spelunk:properties" => {
                Some(section.data().to_vec())
            }
            _ => None,
        })
        .flatten()
        .collect();
    Properties::parse(&declared)
}

/// Where the body of each function begins.
fn bodies_of(wasm: &[u8]) -> Vec<Option<u32>> {
    let mut bodies = Vec::new();
    for payload in wasmparser::Parser::new(0).parse_all(wasm).filter_map(Result::ok) {
        match payload {
            wasmparser::Payload::ImportSection(imports) => {
                let is_function = |import: &wasmparser::Import<'_>| {
                    matches!(import.ty, wasmparser::TypeRef::Func(_) | wasmparser::TypeRef::FuncExact(_))
                };
                let functions = imports.into_imports().filter_map(Result::ok).filter(is_function);
                bodies.extend(functions.map(|_| None));
            }
            wasmparser::Payload::CodeSectionEntry(body) => bodies.push(Some(body.range().start as u32)),
            _ => {}
        }
    }
    bodies
}

/// What a module leaves on the garbage-collected heap stays there from one run to the next, and a later run may
/// find it full: the first instruction that allocates there.
fn collected_heap(wasm: &[u8]) -> Option<Obstacle> {
    let mut function = 0;
    for payload in wasmparser::Parser::new(0).parse_all(wasm).filter_map(Result::ok) {
        let wasmparser::Payload::CodeSectionEntry(body) = payload else { continue };
        let operators = body.get_operators_reader().ok()?.into_iter_with_offsets();
        for (operator, offset) in operators.filter_map(Result::ok) {
            use wasmparser::Operator::{
                ArrayNew, ArrayNewData, ArrayNewDefault, ArrayNewElem, ArrayNewFixed, StructNew,
                StructNewDefault,
            };
            if matches!(
                operator,
                StructNew { .. }
                    | StructNewDefault { .. }
                    | ArrayNew { .. }
                    | ArrayNewDefault { .. }
                    | ArrayNewFixed { .. }
                    | ArrayNewData { .. }
                    | ArrayNewElem { .. }
            ) {
                let what = "an object on the garbage-collected heap".to_string();
                return Some(Obstacle {
                    what,
                    function: Some(format!("func[{function}]")),
                    offset: offset as u32,
                });
            }
        }
        function += 1;
    }
    None
}

/// Runs `f` on a thread that has the stack which guests may use. On another thread a machine works too, but
/// makes itself a stack for every step, which takes most of the time.
pub fn on_guest_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(THREAD_STACK_BYTES).spawn_scoped(scope, f);
        let result = thread.expect("a thread can be started").join();
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A function of the guest, prepared to be called.
enum Call {
    Plain(TypedFunc<(), ()>),
    Checked(TypedFunc<(), i32>),
    General { func: Func, args: Vec<Val>, results: Vec<Val> },
}

/// What a machine calls, in the order of [`Exports`].
struct Calls {
    setup: Vec<Call>,
    teardown: Option<Call>,
    rules: Vec<Call>,
    faults: Vec<TypedFunc<i32, ()>>,
    preconditions: Vec<(u16, Call)>,
    invariants: Vec<Call>,
}

/// A running guest.
pub struct Machine {
    program: Arc<Program>,
    store: Store<Host>,
    state: State,
    calls: Calls,
    /// The state before setup.
    root: Snapshot,
    uses_snapshots: bool,
}

impl Machine {
    /// Instantiates the program.
    ///
    /// # Errors
    /// Imports that are not provided; a module that traps while it is instantiated.
    pub fn new(program: Arc<Program>) -> Result<Machine> {
        let Fresh { store, state, calls } = Fresh::new(&program)?;
        let uses_snapshots = program.obstacles().is_empty();
        let mut machine = Machine { root: state.nothing(), program, store, state, calls, uses_snapshots };
        machine.store.data_mut().properties = machine.program.properties.clone();
        machine.root = machine.state.save(&mut machine.store);
        Ok(machine)
    }

    /// Whether states are saved. Without snapshots every run is replayed from the start; no result changes.
    ///
    /// # Errors
    /// Where the module has state that no snapshot can hold they cannot be turned on.
    pub fn set_uses_snapshots(&mut self, uses_snapshots: bool) -> Result<()> {
        if uses_snapshots && let Some(obstacle) = self.program.obstacles().first() {
            bail!(
                "no snapshot can hold what this module changes: {} at {:#x}",
                obstacle.what,
                obstacle.offset
            );
        }
        self.uses_snapshots = uses_snapshots;
        Ok(())
    }

    /// The program it runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The properties and how often they were evaluated.
    pub fn properties(&self) -> &Properties {
        &self.store.data().properties
    }

    /// The hash that [`Target::state`] gives, computed from all of memory without trusting that every page
    /// that was written is marked.
    pub fn state_from_scratch(&mut self) -> u128 {
        self.state.mark_everything();
        self.state()
    }

    /// How often each event happened.
    pub fn events(&self) -> BTreeMap<String, u64> {
        let events = self.store.data().events.iter();
        events.map(|(text, count)| (String::from_utf8_lossy(text).into_owned(), *count)).collect()
    }

    /// Performs a step as [`Target::step`] does, and has the guest say what it does. The state afterwards is
    /// not the one that the step leads to: go back to a snapshot.
    pub fn tell(&mut self, action: Action, chooser: &mut Chooser) -> Told {
        self.store.data_mut().is_verbose = true;
        self.step(action, chooser);
        self.store.data_mut().is_verbose = false;
        let mut told = std::mem::take(&mut self.store.data_mut().told);
        if let Action::Rule(rule) = action {
            // What the host drew for parameters, it tells itself.
            let params = self.program.exports.rules[usize::from(rule)].params.len();
            let drawn = chooser.choices.iter().take(params).enumerate();
            let drawn = drawn.map(|(i, choice)| (format!("arg{i}"), choice.value.to_string()));
            told.args.splice(0..0, drawn);
        }
        told
    }

    fn perform(&mut self, action: Action) -> Outcome {
        self.state.begin(&self.program.limits);
        let store = &mut self.store;
        let result = match action {
            Action::Setup => self.calls.setup.iter_mut().try_for_each(|call| call.call(store).map(drop)),
            Action::Rule(rule) => self.calls.rules[usize::from(rule)].call(store).map(drop),
            Action::Fault(fault, on) => {
                store.data_mut().faults[usize::from(fault)] = on;
                self.calls.faults[usize::from(fault)].call(store, on.into())
            }
            Action::Teardown => match &mut self.calls.teardown {
                Some(call) => call.call(store).map(drop),
                None => Ok(()),
            },
        };
        if let Err(error) = result {
            return self.failed(error, Phase::Step(action));
        }
        // After teardown there may be nothing left to hold invariants of.
        if action == Action::Teardown { Outcome::Pass } else { self.check_invariants() }
    }

    fn check_invariants(&mut self) -> Outcome {
        for index in 0..self.calls.invariants.len() {
            match self.calls.invariants[index].call(&mut self.store) {
                Ok(Some(0)) => {
                    return Outcome::Fail(Box::new(failure::invariant_is_false(&self.program, index)));
                }
                Ok(_) => {}
                Err(error) => return self.failed(error, Phase::Invariant(index)),
            }
        }
        Outcome::Pass
    }

    fn failed(&mut self, error: wasmtime::Error, phase: Phase) -> Outcome {
        failure::outcome(&self.program, &mut self.state, error, phase)
    }

    /// Runs `f` where a guest has all the stack it may use.
    fn on_guest_stack<T>(&mut self, f: impl FnOnce(&mut Machine) -> T) -> T {
        let needed = STACK_BYTES + STACK_MARGIN;
        stacker::maybe_grow(needed, needed + STACK_MARGIN, || f(self))
    }
}

fn new_store(program: &Program) -> Store<Host> {
    let layout = &program.instrumented.layout;
    let host = Host {
        faults: vec![false; program.exports.faults.len()],
        fault_names: program.exports.faults.clone(),
        memory_export: layout.memories.first().map(|memory| memory.export.clone()),
        page_bytes: PAGE as u32,
        limits: Limiter { memory_bytes_max: program.limits.memory_bytes_max as usize },
        ..Host::default()
    };
    let mut store = Store::new(&program.engine, host);
    store.limiter(|host| &mut host.limits);
    store
}

/// A guest that was just instantiated.
struct Fresh {
    store: Store<Host>,
    state: State,
    calls: Calls,
}

impl Fresh {
    fn new(program: &Program) -> Result<Fresh> {
        let mut store = new_store(program);
        let mut linker = Linker::new(&program.engine);
        imports::link(&mut linker, &mut store, &program.module, program.limits.stub_imports)?;
        let needed = STACK_BYTES + STACK_MARGIN;
        let instance = stacker::maybe_grow(needed, needed + STACK_MARGIN, || {
            linker.instantiate(&mut store, &program.module)
        })
        .map_err(|e| {
            let at = failure::place(program, &e).map(|place| format!(", at {place}")).unwrap_or_default();
            anyhow!("the module cannot be instantiated: {}{at}", e.root_cause())
        })?;
        let state = State::of(&program.instrumented.layout, &program.memories, instance, &mut store)?;
        let calls = Calls::of(&program.exports, instance, &mut store)?;
        Ok(Fresh { store, state, calls })
    }
}

impl Calls {
    fn of(exports: &Exports, instance: Instance, store: &mut Store<Host>) -> Result<Calls> {
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
    fn call(&mut self, store: &mut Store<Host>) -> wasmtime::Result<Option<i32>> {
        match self {
            Call::Plain(func) => func.call(store, ()).map(|()| None),
            Call::Checked(func) => func.call(store, ()).map(Some),
            Call::General { func, args, results } => {
                for arg in args.iter_mut() {
                    draw_argument(arg, store);
                }
                func.call(store, args, results).map(|()| None)
            }
        }
    }
}

/// Draws one argument of a rule by its type.
fn draw_argument(arg: &mut Val, store: &mut Store<Host>) {
    let integer = |min, max| Kind::Integer { min, max, simplest: 0 };
    let float = Kind::Float { min: f64::NEG_INFINITY, max: f64::INFINITY, nan: true, infinite: true };
    let chooser = &mut store.data_mut().chooser;
    let kind = match arg {
        Val::I32(_) => integer(i32::MIN.into(), i32::MAX.into()),
        Val::I64(_) => integer(i64::MIN, i64::MAX),
        _ => float,
    };
    *arg = match (&*arg, chooser.choose(kind)) {
        (Val::I32(_), Value::Integer(v)) => Val::I32(*v as i32),
        (Val::I64(_), Value::Integer(v)) => Val::I64(*v),
        (Val::F32(_), Value::Float(v)) => Val::F32((*v as f32).to_bits()),
        (Val::F64(_), Value::Float(v)) => Val::F64(v.to_bits()),
        (arg, value) => unreachable!("{value:?} answers {arg:?}"),
    };
}

impl Target for Machine {
    type Snapshot = Snapshot;

    fn rules(&self) -> &[Rule] {
        &self.program.exports.rules
    }

    fn faults(&self) -> &[String] {
        &self.program.exports.faults
    }

    fn has_setup(&self) -> bool {
        !self.program.exports.setup.is_empty()
    }

    fn has_teardown(&self) -> bool {
        self.program.exports.teardown.is_some()
    }

    fn reset(&mut self) {
        if self.uses_snapshots {
            let root = self.root.clone();
            return self.restore(&root);
        }
        let before = std::mem::take(self.store.data_mut());
        let fresh =
            Fresh::new(&self.program).expect("a module that was instantiated once is instantiated again");
        Fresh { store: self.store, state: self.state, calls: self.calls } = fresh;
        let host = self.store.data_mut();
        // What was seen so far is not part of the state.
        host.properties = before.properties;
        host.events = before.events;
        host.labels = before.labels;
        host.scores = before.scores;
    }

    fn enabled(&mut self, rules: &mut Vec<u16>) -> Result<(), Box<Failure>> {
        rules.clear();
        rules.extend(0..self.calls.rules.len() as u16);
        if self.calls.preconditions.is_empty() {
            return Ok(());
        }
        self.on_guest_stack(|machine| {
            machine.store.data_mut().may_choose = false;
            for index in 0..machine.calls.preconditions.len() {
                machine.state.begin(&machine.program.limits);
                let (rule, call) = &mut machine.calls.preconditions[index];
                let rule = *rule;
                match call.call(&mut machine.store) {
                    Ok(Some(0)) => rules.retain(|enabled| *enabled != rule),
                    Ok(_) => {}
                    Err(error) => match machine.failed(error, Phase::Precondition(rule)) {
                        Outcome::Fail(failure) => return Err(failure),
                        // `assume` in a precondition: it does not hold.
                        _ => rules.retain(|enabled| *enabled != rule),
                    },
                }
            }
            Ok(())
        })
    }

    fn step(&mut self, action: Action, chooser: &mut Chooser) -> Outcome {
        std::mem::swap(chooser, &mut self.store.data_mut().chooser);
        self.store.data_mut().may_choose = true;
        self.store.data_mut().scores.clear();
        let outcome = self.on_guest_stack(|machine| machine.perform(action));
        std::mem::swap(chooser, &mut self.store.data_mut().chooser);
        outcome
    }

    fn set_counts(&mut self, counts: bool) {
        self.store.data_mut().counts = counts;
    }

    fn snapshot(&mut self) -> Option<Snapshot> {
        self.uses_snapshots.then(|| self.state.save(&mut self.store))
    }

    fn restore(&mut self, snapshot: &Snapshot) {
        self.state.load(&mut self.store, snapshot);
    }

    fn coverage(&mut self, seen: &mut EdgeSet) -> u32 {
        self.state.coverage(seen)
    }

    fn scores(&mut self, best: &mut Vec<f64>) -> u32 {
        let mut risen = 0;
        for (label, score) in self.store.data_mut().scores.drain(..) {
            if best.len() <= label {
                best.resize(label + 1, f64::NEG_INFINITY);
            }
            risen += u32::from(score > best[label]);
            best[label] = best[label].max(score);
        }
        risen
    }

    fn state(&mut self) -> u128 {
        self.state.save(&mut self.store).hash()
    }

    fn live_state(&mut self) -> Option<u128> {
        // What no snapshot holds may differ where all else is equal.
        let is_whole = self.program.obstacles().is_empty();
        is_whole.then(|| self.state.live_hash(&mut self.store, self.program.stack))
    }
}
