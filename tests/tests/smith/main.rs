//! Random modules behave the same instrumented as plain, and everything they change is told.
//!
//! For each module and each call of each exported function: equal results or traps, equal memories, globals and
//! tables; every changed byte lies on a page that is marked (or in the fringe after one), every changed table is
//! marked; and where the layout names no obstacle, putting back what it lists puts the module back to where it
//! was.

mod linked;
mod snapshot;
mod suspended;
mod writers;

use arbitrary::Unstructured;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use snapshot::Snapshot;
use spelunk_instrumenter::{Edges, Instrumented, Options, instrument};
use wasmtime::{
    Config, Engine, Extern, Func, Instance, Linker, Memory, Module, Mutability, OptLevel, Store, Trap, Val,
    ValType,
};
use writers::{write, writers};

const MODULES: u64 = 700;
/// How much work a module does in one call before it traps; in both forms, by its own code.
const FUEL: u32 = 500;
/// What is enough for it.
const STEPS: i64 = 1 << 24;

#[test]
fn random_modules_behave_the_same() {
    let work = || {
        let mut tally = Tally::default();
        for seed in 0..MODULES {
            let all = Options { memory_bytes_max: 4 << 20, ..Options::default() };
            let options = match seed % 7 {
                0 | 1 => Options { edges: Edges::Hashed, page_bytes: 512, ..all },
                2 => Options { page_bytes: 512, ..all },
                3 => Options { page_bytes: 65536, depth_max: 100_000, ..all },
                // As the second build is made.
                4 | 5 => Options { edges: Edges::None, compares: true, ..all },
                _ => all,
            };
            check(seed, &options, &mut tally);
        }
        tally
    };
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(work).unwrap();
    let tally = thread.join().unwrap();
    println!("{tally:?}");
    assert_eq!(
        tally,
        Tally { modules: MODULES as usize, calls: 5_156, returned: 1_344, changed_pages: 3, restored: 2_132 }
    );
}

/// Every operator that writes, with operands that matter: around pages and the ends of memories and segments.
#[test]
fn every_write_is_marked_and_undone() {
    let mut tally = Tally::default();
    for (index, page_bytes) in [512, 4096, 65536].into_iter().enumerate() {
        let options = Options { page_bytes, memory_bytes_max: 4 << 20, ..Options::default() };
        let mut rng = random(index as u64);
        let wasm = wat::parse_str(writers()).unwrap();
        compare("writers", &wasm, &options, &mut tally, |machine| {
            let mut calls = Vec::new();
            for _ in 0..4000 {
                calls.push(write(machine, &mut rng, i64::from(page_bytes)));
            }
            calls
        });
    }
    println!("{tally:?}");
    assert_eq!(
        tally,
        Tally { modules: 3, calls: 12_000, returned: 7_010, changed_pages: 10_108, restored: 12_000 }
    );
}

#[derive(Debug, Default, PartialEq)]
struct Tally {
    modules: usize,
    calls: usize,
    returned: usize,
    changed_pages: usize,
    restored: usize,
}

fn random(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// A random module whose functions all end.
fn generate(seed: u64) -> Vec<u8> {
    generate_as(seed, |config| config)
}

/// As [`generate`], with other settings.
fn generate_as(seed: u64, settings: impl Fn(wasm_smith::Config) -> wasm_smith::Config) -> Vec<u8> {
    let mut rng = random(seed);
    loop {
        let bytes: Vec<u8> = (0..rng.random_range(2_000..30_000)).map(|_| rng.random()).collect();
        let config = settings(wasm_smith::Config {
            export_everything: true,
            threads_enabled: false,
            gc_enabled: seed.is_multiple_of(3),
            max_imports: if seed.is_multiple_of(5) { 10 } else { 0 },
            max_memories: 3,
            min_memories: 1,
            max_tables: 3,
            max_instructions: 400,
            max_types: 12,
            max_globals: 8,
            max_tags: 3,
            max_elements: 8,
            max_element_segments: 6,
            max_data_segments: 4,
            max_type_size: 50,
            max_values: 4,
            max_exports: 20,
            max_memory32_bytes: 4 << 16,
            max_memory64_bytes: 4 << 16,
            memory_max_size_required: true,
            table_max_size_required: true,
            disallow_traps: !seed.is_multiple_of(4),
            max_table_elements: 100,
            min_funcs: 4,
            min_data_segments: 1,
            max_funcs: 12,
            ..Default::default()
        });
        let Ok(mut module) = wasm_smith::Module::new(config, &mut Unstructured::new(&bytes)) else {
            continue;
        };
        if module.ensure_termination(FUEL).is_ok() {
            return module.to_bytes();
        }
    }
}

fn engine() -> Engine {
    let mut config = Config::new();
    config
        .wasm_gc(true)
        .wasm_function_references(true)
        .wasm_exceptions(true)
        .wasm_memory64(true)
        .wasm_multi_memory(true)
        .wasm_tail_call(true)
        .wasm_relaxed_simd(true)
        .relaxed_simd_deterministic(true)
        .cranelift_nan_canonicalization(true)
        .cranelift_opt_level(OptLevel::Speed)
        .max_wasm_stack(32 << 20)
        .async_stack_size(48 << 20);
    Engine::new(&config).unwrap()
}

/// An instance in a store of its own.
struct Machine {
    store: Store<()>,
    instance: Instance,
}

/// How a call, or making an instance, went: values, or what trapped.
type Answer<T> = Result<T, String>;

fn reason(error: wasmtime::Error) -> String {
    match error.downcast_ref::<Trap>() {
        Some(trap) => format!("{trap:?}"),
        None => error.root_cause().to_string(),
    }
}

impl Machine {
    fn new(engine: &Engine, wasm: &[u8]) -> Answer<Self> {
        let module = Module::new(engine, wasm).unwrap();
        let mut store = Store::new(engine, ());
        let mut linker = Linker::new(engine);
        linker.define_unknown_imports_as_default_values(&mut store, &module).map_err(reason)?;
        let instance = linker.instantiate(&mut store, &module).map_err(reason)?;
        Ok(Self { store, instance })
    }

    fn memory(&mut self, name: &str) -> Memory {
        self.instance.get_memory(&mut self.store, name).unwrap()
    }

    fn call(&mut self, name: &str, args: &[Val]) -> Answer<Vec<String>> {
        let function = self.instance.get_func(&mut self.store, name).unwrap();
        let mut results = vec![Val::I32(0); function.ty(&self.store).results().len()];
        function.call(&mut self.store, args, &mut results).map_err(reason)?;
        Ok(results.iter().map(show).collect())
    }

    /// Everything the module itself exports, as text.
    fn state(&mut self) -> Vec<String> {
        let exports: Vec<(String, Extern)> = self
            .instance
            .exports(&mut self.store)
            .filter(|export| !export.name().starts_with("__spelunk"))
            .map(|export| (export.name().to_string(), export.into_extern()))
            .collect();
        let mut state = Vec::new();
        for (name, item) in exports {
            let shown = match item {
                Extern::Memory(memory) => {
                    let data = memory.data(&self.store);
                    let sum = data
                        .iter()
                        .fold(data.len() as u64, |sum, &byte| sum.rotate_left(5) ^ u64::from(byte));
                    format!("{sum:x}")
                }
                Extern::Global(global) => show(&global.get(&mut self.store)),
                Extern::Table(table) => (0..table.size(&self.store))
                    .map(|index| table.get(&mut self.store, index).unwrap().is_null().to_string())
                    .collect(),
                _ => continue,
            };
            state.push(format!("{name}={shown}"));
        }
        state
    }
}

/// References are compared by whether they are null.
fn show(value: &Val) -> String {
    match value {
        Val::FuncRef(None) | Val::ExternRef(None) | Val::AnyRef(None) | Val::ExnRef(None) => "null".into(),
        Val::FuncRef(_) | Val::ExternRef(_) | Val::AnyRef(_) | Val::ExnRef(_) => "reference".into(),
        Val::V128(value) => format!("{:x}", value.as_u128()),
        other => format!("{other:?}"),
    }
}

fn check(seed: u64, options: &Options, tally: &mut Tally) {
    let mut rng = random(seed ^ 0x5eed);
    let wasm = generate(seed);
    compare(&format!("seed {seed}"), &wasm, options, tally, |machine| calls(machine, &mut rng));
}

/// Makes the same calls of a module and of its instrumented form.
fn compare(
    what: &str,
    wasm: &[u8],
    options: &Options,
    tally: &mut Tally,
    calls: impl FnOnce(&mut Machine) -> Vec<(String, Vec<Val>)>,
) {
    let done = instrument(wasm, options).unwrap_or_else(|error| panic!("{what}: {error:#}"));
    tally.modules += 1;
    let engine = engine();
    let (plain, instrumented) = (Machine::new(&engine, wasm), Machine::new(&engine, &done.wasm));
    let (mut plain, mut instrumented) = match (plain, instrumented) {
        (Ok(plain), Ok(instrumented)) => (plain, instrumented),
        (Err(plain), Err(instrumented)) => {
            assert_eq!(plain, instrumented, "{what}");
            return;
        }
        (plain, instrumented) => panic!("{what}: {:?}, {:?}", plain.err(), instrumented.err()),
    };
    assert_eq!(plain.state(), instrumented.state(), "{what} at first");
    for (name, args) in calls(&mut plain) {
        let what = format!("{what}, {name} {args:?}");
        refuel(&mut plain);
        refuel(&mut instrumented);
        let before = Snapshot::take(&mut instrumented, &done.layout);
        reset(&mut instrumented, &done);
        let expected = plain.call(&name, &args);
        let found = instrumented.call(&name, &args);
        assert_eq!(expected, found, "{what}");
        assert!(steps_left(&mut instrumented, &done) >= 0, "{what} used up its steps");
        let after = instrumented.state();
        assert_eq!(plain.state(), after, "{what}: state after");
        tally.changed_pages += before.check_marks(&mut instrumented, &done.layout, options, &what);
        tally.calls += 1;
        tally.returned += usize::from(found.is_ok());
        if done.layout.obstacles.is_empty() && before.restore(&mut instrumented, &done.layout) {
            reset(&mut instrumented, &done);
            assert_eq!(instrumented.call(&name, &args), expected, "{what}: again");
            assert_eq!(instrumented.state(), after, "{what}: state after again");
            tally.restored += 1;
        }
    }
}

/// A few calls of each exported function that can be called from here.
fn calls(machine: &mut Machine, rng: &mut Xoshiro256PlusPlus) -> Vec<(String, Vec<Val>)> {
    let functions: Vec<(String, Func)> = machine
        .instance
        .exports(&mut machine.store)
        .filter_map(|export| Some((export.name().to_string(), export.into_func()?)))
        .collect();
    let mut calls = Vec::new();
    for (name, function) in functions {
        for _ in 0..4 {
            let params = function.ty(&machine.store).params().collect::<Vec<_>>();
            if let Some(args) = params.into_iter().map(|ty| argument(&ty, rng)).collect() {
                calls.push((name.clone(), args));
            }
        }
    }
    calls
}

fn argument(ty: &ValType, rng: &mut Xoshiro256PlusPlus) -> Option<Val> {
    let small = rng.random_range(-3..70_000i64);
    let bits = if rng.random_bool(0.7) { small } else { rng.random() };
    Some(match ty {
        ValType::I32 => Val::I32(bits as i32),
        ValType::I64 => Val::I64(bits),
        ValType::F32 => Val::F32((bits as f32).to_bits()),
        ValType::F64 => Val::F64((bits as f64).to_bits()),
        ValType::V128 => Val::V128(u128::from(bits as u64).into()),
        ValType::Ref(ty) if ty.is_nullable() => Val::null_ref(ty.heap_type()),
        ValType::Ref(_) => return None,
    })
}

/// Gives a module its own fuel back: the last global, which the generator added.
fn refuel(machine: &mut Machine) {
    let globals: Vec<_> = machine
        .instance
        .exports(&mut machine.store)
        .filter(|export| !export.name().starts_with("__spelunk"))
        .filter_map(|export| export.into_global())
        .collect();
    for global in globals {
        let ty = global.ty(&machine.store);
        if ty.mutability() == Mutability::Var && matches!(ty.content(), ValType::I32) {
            global.set(&mut machine.store, Val::I32(FUEL as i32)).unwrap();
        }
    }
}

/// The steps that a call has left; it traps where it wants more.
fn steps_left(machine: &mut Machine, done: &Instrumented) -> i64 {
    let Some((name, budget)) = done.layout.private.as_ref().zip(done.layout.budget) else { return 0 };
    let memory = machine.memory(name);
    i64::from_le_bytes(memory.data(&machine.store)[budget as usize..][..8].try_into().unwrap())
}

/// What a host does before each call, and clears all marks.
fn reset(machine: &mut Machine, done: &Instrumented) {
    let Some(name) = &done.layout.private else { return };
    let memory = machine.memory(name);
    let data = memory.data_mut(&mut machine.store);
    if let Some(budget) = done.layout.budget {
        data[budget as usize..][..8].copy_from_slice(&STEPS.to_le_bytes());
    }
    if let Some(depth) = done.layout.depth {
        data[depth as usize..][..4].fill(0);
    }
    let others = [&done.layout.table_marks, &done.layout.compares];
    for range in done.layout.memories.iter().map(|memory| &memory.dirty).chain(others) {
        data[range.start as usize..range.end as usize].fill(0);
    }
}
