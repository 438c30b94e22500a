//! A module, read, instrumented and compiled.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use spelunk_instrumenter::{EdgeMap, Instrumented, Obstacle, Origins};
use wasmtime::{Engine, ExternType, Module};
use xxhash_rust::xxh3::xxh3_128;

use super::against::{Other, Shared};
use super::cache::{Cache, Key};
use super::compile::{compiled, config, engine_error};
use super::component::{self, Interface};
use super::data::Data;
use super::emscripten::linking::Dynamic;
use super::exports::Exports;
use super::lens::Lens;
use super::memory::Memories;
use super::sections::{
    Compares, StateSays, custom_section, fairness_of, independent_of, liveness_of, sizes_memory,
};
use super::spelling::Called;
use super::stack::ShadowStack;
use super::texts::texts_of;
use super::watchdog::{CALL_MAX, Place};
use super::world::World;
use crate::budget::Budget;
use crate::file::{
    Against, BuildFlags, Conditions, Environment, Given, Image, Limits, Names, Parts, Selection, Signatures,
};
use crate::property::{Counts, Properties};
use crate::symbols::Symbols;
use crate::target::{Fairness, Liveness, Rule};

/// A module, instrumented and compiled. Machines are made from it.
pub struct Program {
    pub(super) budget: Budget,
    pub(super) engine: Engine,
    pub(super) module: Module,
    pub(super) memories: Arc<Memories>,
    pub(super) instrumented: Instrumented,
    pub(super) exports: Exports,
    pub(super) properties: Properties,
    pub(super) stack: Option<ShadowStack>,
    pub(super) data: Vec<Data>,
    /// Texts in the data of a guest that is one function.
    pub(super) texts: Arc<[Arc<[u8]>]>,
    /// What it needs, of a module that may be loaded anywhere.
    pub(super) dynamic: Option<Dynamic>,
    /// Pairs of rules that are declared independent, the lower index first.
    pub(super) independent: BTreeSet<(u16, u16)>,
    /// Rules that are not weakly fair, or in each way to answer their choices.
    pub(super) fairness: BTreeMap<u16, (Fairness, bool)>,
    pub(super) liveness: Vec<Liveness>,
    pub(super) state_says: StateSays,
    /// What the module as it came says of its source.
    pub(super) symbols: Symbols,
    /// The counters that each mark of functions that were entered stands for; none in a module that is not large.
    pub(super) entered: Vec<Range<u32>>,
    pub(super) limits: Limits,
    conditions: Conditions,
    pub(super) world: World,
    pub(super) hash: u128,
    pub(super) built: BuildFlags,
    /// It is compared with another, but for calls of these imports.
    pub(super) compared: Option<Arc<BTreeSet<String>>>,
    /// The other, of the first of the two.
    pub(super) against: Option<Box<Other>>,
    /// What a build that reports comparisons is made of; none of such a build, and of two that are compared.
    pub(super) lens: Option<Lens>,
    pub(super) ours: Ours,
}

/// Modules of ours that call the guest, each once it is needed.
#[derive(Default)]
pub(super) struct Ours {
    /// See [`super::drive`]; of a build in which the guest copies its states: that evaluates invariants after each step, and in each state.
    pub(super) drivers: [OnceLock<Option<Module>>; 2],
    /// See [`super::pointer`].
    pub(super) pointer: OnceLock<Option<Module>>,
}

/// What a program is made of beside its code.
#[derive(Clone, Copy)]
pub(super) struct Origin<'o> {
    pub(super) hash: u128,
    pub(super) image: &'o Image,
    pub(super) conditions: &'o Conditions,
    pub(super) cache: Option<&'o Cache>,
    pub(super) budget: &'o Budget,
}

/// What a module says of its source, which one that was linked leaves to its parts.
fn symbols(wasm: &[u8], parts: Option<Parts>, component: Option<FromComponent>) -> Symbols {
    match (parts, component) {
        (Some(Parts { origins, target, harness }), _) => {
            Symbols::of_parts(wasm, origins, vec![target, harness], "harness")
        }
        (None, Some(FromComponent { origins, modules, .. })) => {
            Symbols::of_parts(wasm, origins, modules, "another module's")
        }
        (None, None) => Symbols::of(wasm),
    }
}

/// What a core module was linked of.
struct FromComponent {
    interface: Arc<Interface>,
    origins: Origins,
    modules: Vec<Vec<u8>>,
}

/// A smaller component is linked as fast as it is read.
const KEPT_BYTES_MIN: usize = 1 << 20;

/// The core module that a component becomes, within the budget or out of the cache; a module as it is.
fn linked<'w>(
    bytes: Cow<'w, [u8]>,
    cache: Option<&Cache>,
    budget: &Budget,
) -> Result<(Cow<'w, [u8]>, Option<FromComponent>)> {
    if !component::is_component(&bytes) {
        return Ok((bytes, None));
    }
    let cache = cache.filter(|_| bytes.len() >= KEPT_BYTES_MIN);
    let kept = cache.and_then(|cache| Some((cache, Key::of_linked(&bytes)?)));
    let linked = match kept.and_then(|(cache, key)| cache.load_linked(key, &bytes)) {
        Some(linked) => linked,
        None => {
            let component = bytes.to_vec();
            let link = move || component::link(&component);
            let linked = budget.compiling(link)?.context("the component cannot be linked")?;
            if let Some((cache, key)) = kept {
                cache.save_linked(key, &linked, &bytes);
            }
            linked
        }
    };
    let component::LinkedComponent { wasm, interface, origins, modules } = linked;
    Ok((wasm.into(), Some(FromComponent { interface: Arc::new(interface), origins, modules })))
}

/// What is called, of a module or of the component that it was linked from.
fn exports_of(
    module: &Module,
    interface: Option<&Arc<Interface>>,
    given: &Given,
    called: &Called<'_>,
    conditions: &Conditions,
) -> Result<Exports> {
    match interface {
        Some(interface) => Exports::of_component(interface, &conditions.environment, given),
        None => {
            ensure!(given.0.is_empty(), "values are given to a component, and this is a module");
            Exports::of(module, conditions.limits.input_bytes_max, called)
        }
    }
}

/// The slots of the functions that each mark stands for, so many together; none where there are no marks.
fn marked_slots(map: &EdgeMap, together: u32) -> Vec<Range<u32>> {
    if together == 0 {
        return Vec::new();
    }
    let functions: Vec<usize> =
        map.edges.chunk_by(|one, other| one.function == other.function).map(<[_]>::len).collect();
    let mut slot = 0;
    let slots = functions.chunks(together as usize).map(|edges| {
        let first = slot;
        slot += edges.iter().sum::<usize>() as u32;
        first..slot
    });
    slots.collect()
}

impl Program {
    /// Instruments and compiles a module in the binary format.
    ///
    /// # Errors
    /// A module that is malformed, that the instrumenter refuses, that has nothing to explore, or that declares
    /// something of a rule that it does not have.
    pub fn load(wasm: &[u8], limits: Limits, selection: Selection) -> Result<Program> {
        Program::load_with(wasm, limits, selection, None, &Budget::unlimited())
    }

    /// As [`Program::load_in`], with the default environment.
    ///
    /// # Errors
    /// As there.
    pub fn load_with(
        wasm: &[u8],
        limits: Limits,
        selection: Selection,
        cache: Option<&Cache>,
        budget: &Budget,
    ) -> Result<Program> {
        let conditions = Conditions { limits, selection, environment: Environment::default() };
        Program::load_in(wasm, conditions, cache, budget)
    }

    /// As [`Program::load`], for a guest in an environment. What was compiled is kept in the cache, and taken from
    /// there the next time. The budget ends compiling, and then whatever machines of this program do.
    ///
    /// # Errors
    /// As [`Program::load`]; compiling that does not end within the budget. It goes on then on a thread of its own, which
    /// does not keep the process from ending.
    pub fn load_in(
        wasm: &[u8],
        conditions: Conditions,
        cache: Option<&Cache>,
        budget: &Budget,
    ) -> Result<Program> {
        let hash = xxh3_128(wasm);
        let (built, rest) = BuildFlags::take_from(wasm)?;
        let (image, rest) = Image::take_from(&rest)?;
        let (against, rest) = Against::take_from(&rest)?;
        let origin = Origin { hash, image: &image, conditions: &conditions, cache, budget };
        let mut program = match against {
            Some(against) => Program::pair(&rest, against, origin)?,
            None => {
                let lens = (!conditions.selection.compares).then(|| Lens::of(wasm, cache));
                Program { lens, ..Program::load_one(&rest, origin, None)? }
            }
        };
        program.built = built;
        Ok(program)
    }

    /// A module by itself, or one of two that are compared: with what both have, and imports whose calls are not compared.
    pub(super) fn load_one(
        wasm: &[u8],
        Origin { hash, image, conditions, cache, budget }: Origin<'_>,
        both: Option<(&Shared, &Arc<BTreeSet<String>>)>,
    ) -> Result<Program> {
        let (limits, selection) = (conditions.limits, conditions.selection.clone());
        let (signatures, rest) = Signatures::take_from(wasm)?;
        let (parts, rest) = Parts::take_from(&rest)?;
        let (given, code) = Given::take_from(&rest)?;
        let (code, component) = linked(code, cache, budget)?;
        // With other files, or called in another way, it is the same code.
        let wasm = &*code;
        let memories = Arc::new(Memories::new(budget.clone()));
        let engine = Engine::new(&config(memories.clone(), selection.copies)).map_err(engine_error)?;
        let interface = component.as_ref().map(|component| &component.interface);
        let (instrumented, module) =
            compiled((wasm, interface), (limits, selection), &engine, cache, budget)?;
        let state_says = StateSays::of(&custom_section(wasm, "spelunk:state"))?;
        let called = Called {
            entry: conditions.environment.entry.as_deref(),
            signatures: signatures.as_ref(),
            has_memory: !instrumented.layout.memories.is_empty(),
            sizes_memory: signatures.is_some() && sizes_memory(wasm),
            state: state_says.clone(),
        };
        let mut exports = exports_of(&module, interface, &given, &called, conditions)?;
        both.map_or(Ok(()), |(shared, _)| exports.share(shared))?;
        let obstacles = &instrumented.layout.obstacles;
        let world = World::of(&module, (&conditions.environment, image), &exports, obstacles)?;
        let independent = independent_of(&custom_section(wasm, "spelunk:reduction"), &exports.rules)?;
        let properties = Properties::parse(&custom_section(wasm, "spelunk:properties"));
        Ok(Program {
            budget: budget.clone(),
            fairness: fairness_of(&custom_section(wasm, "spelunk:fairness"), &exports.rules)?,
            liveness: liveness_of(&properties)?,
            entered: marked_slots(&instrumented.edges, instrumented.layout.entered_functions),
            engine,
            module,
            memories,
            instrumented,
            texts: if exports.is_function { texts_of(wasm) } else { Arc::default() },
            exports,
            properties,
            stack: ShadowStack::of(wasm),
            data: Data::of(wasm),
            dynamic: Dynamic::of(wasm),
            independent,
            state_says,
            symbols: symbols(wasm, parts, component),
            limits,
            conditions: conditions.clone(),
            world,
            hash,
            built: BuildFlags::default(),
            compared: both.map(|(_, ignored)| ignored.clone()),
            against: None,
            lens: None,
            ours: Ours::default(),
        })
    }

    /// The interface of the component that the guest is, where it is one.
    pub(super) fn interface(&self) -> Option<&Arc<Interface>> {
        self.exports.component.as_ref().map(|component| &component.interface)
    }

    /// What ends whatever machines of this program do.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The longest that a call into the guest may take.
    pub(super) fn call_max(&self) -> Duration {
        CALL_MAX * self.limits.step_budget.div_ceil(Limits::default().step_budget)
    }

    /// Where the step budget of a start function is, while the module is instantiated.
    pub(super) fn place_of_start(&self) -> Place {
        match (self.private_bytes(), self.instrumented.layout.budget) {
            (Some(size), Some(at)) => Place::Among(self.memories.clone(), size, at as usize),
            _ => Place::None,
        }
    }

    /// The size of the instrumenter's own memory, where there is one.
    fn private_bytes(&self) -> Option<usize> {
        let name = self.instrumented.layout.private.as_ref()?;
        match self.module.get_export(name)? {
            ExternType::Memory(private) => Some((private.minimum() << 16) as usize),
            _ => None,
        }
    }

    /// Bytes that the guest's memories have from the start.
    pub(super) fn memory_bytes_min(&self) -> u64 {
        let layout = &self.instrumented.layout;
        let guests = layout.memories.len() - usize::from(layout.sanitizer.is_some());
        let types =
            layout.memories[..guests].iter().filter_map(|memory| self.module.get_export(&memory.export));
        let bytes =
            types.filter_map(|ty| Some(ty.memory()?.minimum().saturating_mul(ty.memory()?.page_size())));
        bytes.fold(0, u64::saturating_add)
    }

    /// Bytes that all memories may have together: the guest's, and the instrumenter's own.
    pub(super) fn memory_bytes_max(&self) -> usize {
        self.limits.memory_bytes_max as usize + self.private_bytes().unwrap_or(0)
    }

    /// What the shadow of memory 0 may grow to, where there is one.
    pub(super) fn shadow_bytes_max(&self) -> Option<usize> {
        let layout = &self.instrumented.layout;
        let shadow = layout.sanitizer.as_ref().and(layout.memories.last())?;
        Some((shadow.pages_max? << 16) as usize)
    }

    /// A hash of the module as it came, before it was instrumented.
    pub fn hash(&self) -> u128 {
        self.hash
    }

    /// The properties that the guest declares.
    pub fn declared(&self) -> Counts {
        Counts::new(self.properties.clone())
    }

    /// The edges that are counted.
    pub fn edges(&self) -> &EdgeMap {
        self.against.as_ref().map_or(&self.instrumented.edges, |other| &other.edges)
    }

    /// The edges and blocks that are counted, without those of what it is compared with.
    pub fn own_edges(&self) -> &EdgeMap {
        &self.instrumented.edges
    }

    /// What the module as it came says of its source.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Whether it is two modules that are given the same calls.
    pub fn is_pair(&self) -> bool {
        self.against.is_some()
    }

    /// What this module can change and no snapshot can hold; empty where snapshots work.
    pub fn obstacles(&self) -> &[Obstacle] {
        match &self.against {
            Some(other) if self.instrumented.layout.obstacles.is_empty() => other.program.obstacles(),
            _ => &self.instrumented.layout.obstacles,
        }
    }

    /// Whether the guest is one function, which is called once in a run.
    pub fn is_function(&self) -> bool {
        self.exports.is_function
    }

    /// What a check compares of two states.
    pub fn compares(&self) -> Compares<'_> {
        match &self.state_says {
            _ if self.exports.state.is_none() => Compares::Memory,
            StateSays::Content { name, .. } => Compares::Content(name),
            _ => Compares::Declared,
        }
    }

    /// Whether the guest declares rules that are independent of one another.
    pub fn has_independent_rules(&self) -> bool {
        !self.independent.is_empty()
    }

    /// Whether it is a failure that the guest ends itself with a code other than 0.
    pub(super) fn fails_on_exit(&self) -> bool {
        self.world.environment.fails_on_exit.unwrap_or(!self.exports.is_command)
    }

    /// Whether it is a failure that no rule may be called, where the guest does not say that the state is terminal.
    pub(super) fn fails_in_deadlock(&self) -> bool {
        !(self.exports.is_function || self.compared.is_some() || self.world.environment.allows_deadlock)
    }

    /// What it was loaded with.
    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// The limits that it was loaded with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

impl Names for Program {
    fn rules(&self) -> &[Rule] {
        &self.exports.rules
    }

    fn faults(&self) -> &[String] {
        &self.exports.faults
    }

    fn has_setup(&self) -> bool {
        self.exports.has_setup()
    }

    fn implies_setup(&self) -> bool {
        self.exports.implies_setup()
    }

    fn has_teardown(&self) -> bool {
        !self.exports.teardown.is_empty()
    }

    fn liveness(&self) -> &[Liveness] {
        &self.liveness
    }
}
