//! Random modules behave the same instrumented as plain, and everything they change is told.
//!
//! For each module and each call of each exported function: equal results or traps, equal memories, globals and
//! tables; every changed byte lies on a page that is marked (or in the fringe after one), every changed table is
//! marked; and where the layout names no obstacle, putting back what it lists puts the module back to where it
//! was.

use arbitrary::Unstructured;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use spelunk_instrumenter::{Edges, Instrumented, Options, StateLayout, instrument};
use wasmtime::{
    Config, Engine, Extern, Func, Instance, Linker, Memory, Module, Mutability, OptLevel, Ref, Store, Table,
    Trap, Val, ValType,
};

const MODULES: u64 = 700;
/// How much work a module does in one call before it traps; in both forms, by its own code.
const FUEL: u32 = 500;

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
                _ => all,
            };
            check(seed, &options, &mut tally);
        }
        tally
    };
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(work).unwrap();
    let tally = thread.join().unwrap();
    println!("{tally:?}");
    assert_eq!(tally.modules, MODULES as usize);
    assert!(tally.calls > 5_000, "{tally:?}");
    assert!(tally.returned > 1_000, "{tally:?}");
    assert!(tally.restored > 2_000, "{tally:?}");
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
    assert_eq!((tally.modules, tally.calls), (3, 12_000));
    assert!(tally.returned > 4_000, "{tally:?}");
    assert!(tally.changed_pages > 4_000, "{tally:?}");
    assert!(tally.restored > 10_000, "{tally:?}");
}

/// A module with a function for each operator that writes.
fn writers() -> String {
    let mut functions = String::new();
    let mut add = |params: &str, body: String| {
        functions
            .push_str(&format!("  (func (export \"{}\") (param {params}) {body})\n", body.replace('"', "")));
    };
    for (memory, address) in [("$small", "i32"), ("$large", "i64")] {
        for offset in [0, 1, 511, 4093, 65530] {
            for (operator, ty) in [
                ("i32.store", "i32"),
                ("i32.store8", "i32"),
                ("i32.store16", "i32"),
                ("i64.store", "i64"),
                ("i64.store8", "i64"),
                ("i64.store16", "i64"),
                ("i64.store32", "i64"),
                ("f32.store", "f32"),
                ("f64.store", "f64"),
                ("v128.store", "v128"),
            ] {
                let body = format!("({operator} {memory} offset={offset} (local.get 0) (local.get 1))");
                add(&format!("{address} {ty}"), body);
            }
            for lane in [8, 16, 32, 64] {
                let body =
                    format!("(v128.store{lane}_lane {memory} offset={offset} 1 (local.get 0) (local.get 1))");
                add(&format!("{address} v128"), body);
            }
        }
        let body = format!("(memory.fill {memory} (local.get 0) (local.get 1) (local.get 2))");
        add(&format!("{address} i32 {address}"), body);
        for segment in ["$d", "$e"] {
            let body = format!("(memory.init {memory} {segment} (local.get 0) (local.get 1) (local.get 2))");
            add(&format!("{address} i32 i32"), body);
        }
        for (from, other) in [("$small", "i32"), ("$large", "i64")] {
            let length = if address == other { address } else { "i32" };
            let body = format!("(memory.copy {memory} {from} (local.get 0) (local.get 1) (local.get 2))");
            add(&format!("{address} {other} {length}"), body);
        }
    }
    for first in [0, 3, 8] {
        for second in 0..24 {
            let pair = format!(
                "(i64.store offset={first} (local.get 0) (local.get 1)) \
                 (i32.store offset={second} (local.get 0) (local.get 2))"
            );
            add("i32 i64 i32", pair.clone());
            let moved = "(local.set 0 (i32.add (local.get 0) (i32.const 9)))";
            add("i32 i64 i32", format!("{pair} {moved} {pair}"));
        }
    }
    for (table, address) in [("$t", "i32"), ("$u", "i64")] {
        add(address, format!("(table.set {table} (local.get 0) (ref.func $f))"));
        let body = format!("(table.fill {table} (local.get 0) (ref.null func) (local.get 1))");
        add(&format!("{address} {address}"), body);
        for segment in ["$s", "$r"] {
            let body = format!("(table.init {table} {segment} (local.get 0) (local.get 1) (local.get 2))");
            add(&format!("{address} i32 i32"), body);
        }
        add(
            &format!("{address} {address} {address}"),
            format!("(table.copy {table} {table} (local.get 0) (local.get 1) (local.get 2))"),
        );
    }
    add("", "(data.drop $d)".into());
    add("", "(elem.drop $s)".into());
    add("i32", "(global.set $g (i32.add (local.get 0) (i32.const 1)))".into());
    format!(
        "(module (memory $small (export \"m\") 3 3) (memory $large (export \"n\") i64 3 3)
          (table $t (export \"t\") 20 funcref) (table $u (export \"u\") i64 20 funcref) (func $f) (global $g (mut i32) (i32.const 0))
          (data $d \"{}\") (data $e \"hello\") (elem $s func $f $f) (elem $r func $f)\n{functions})",
        "segment ".repeat(200)
    )
}

/// A call of one of them.
fn write(machine: &mut Machine, rng: &mut Xoshiro256PlusPlus, page_bytes: i64) -> (String, Vec<Val>) {
    let functions: Vec<(String, Func)> = machine
        .instance
        .exports(&mut machine.store)
        .filter_map(|export| Some((export.name().to_string(), export.into_func()?)))
        .collect();
    let rare = rng.random_bool(0.02);
    let (name, function) = loop {
        let (name, function) = &functions[rng.random_range(0..functions.len())];
        let is_bulk = !name.contains("store");
        if name.contains(".drop") == rare && (is_bulk || rng.random_bool(0.1)) {
            break (name, function);
        }
    };
    let is_table = name.contains("table");
    let mut number = || match rng.random_range(0..8) {
        _ if is_table => rng.random_range(0..12),
        0 => rng.random(),
        1 => 3 * 65536 - rng.random_range(0..20),
        2 => rng.random_range(0..3),
        3 => rng.random_range(0..3 * 65536),
        4 => rng.random_range(0..2000),
        _ => page_bytes * rng.random_range(0..5) + rng.random_range(-20..20),
    };
    let params = function.ty(&machine.store).params().collect::<Vec<_>>();
    let args = params.iter().map(|ty| match ty {
        ValType::I32 => Val::I32(number() as i32),
        ValType::I64 => Val::I64(number()),
        ValType::F32 => Val::F32(number() as u32 | 1),
        ValType::F64 => Val::F64(number() as u64 | 1),
        _ => Val::V128(((number() as u128 * 0x1_0001_0001_0001) | 1).into()),
    });
    (name.clone(), args.collect())
}

#[derive(Debug, Default)]
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
    let mut rng = random(seed);
    loop {
        let bytes: Vec<u8> = (0..rng.random_range(2_000..30_000)).map(|_| rng.random()).collect();
        let config = wasm_smith::Config {
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
        };
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

/// What a host does before each call, and clears all marks.
fn reset(machine: &mut Machine, done: &Instrumented) {
    let Some(name) = &done.layout.private else { return };
    let memory = machine.memory(name);
    let data = memory.data_mut(&mut machine.store);
    if let Some(budget) = done.layout.budget {
        data[budget as usize..][..8].copy_from_slice(&256_000i64.to_le_bytes());
    }
    if let Some(depth) = done.layout.depth {
        data[depth as usize..][..4].fill(0);
    }
    for range in done.layout.memories.iter().map(|memory| &memory.dirty).chain([&done.layout.table_marks]) {
        data[range.start as usize..range.end as usize].fill(0);
    }
}

/// All state that a layout lists.
struct Snapshot {
    memories: Vec<Vec<u8>>,
    globals: Vec<Val>,
    tables: Vec<Vec<Ref>>,
    dropped: Vec<u8>,
}

impl Snapshot {
    fn take(machine: &mut Machine, layout: &StateLayout) -> Self {
        let memories =
            layout.memories.iter().map(|memory| machine.memory(&memory.export).data(&machine.store).to_vec());
        let memories = memories.collect();
        let globals = layout.globals.iter().map(|global| {
            let global = machine.instance.get_global(&mut machine.store, &global.export).unwrap();
            global.get(&mut machine.store)
        });
        let globals = globals.collect();
        let tables = layout.tables.iter().map(|table| {
            let table = machine.instance.get_table(&mut machine.store, &table.export).unwrap();
            (0..table.size(&machine.store))
                .map(|index| table.get(&mut machine.store, index).unwrap())
                .collect()
        });
        let tables = tables.collect();
        let dropped = match &layout.private {
            Some(private) => machine.memory(private).data(&machine.store)[range(&layout.dropped)].to_vec(),
            None => Vec::new(),
        };
        Self { memories, globals, tables, dropped }
    }

    /// Every change since is marked; how many pages changed.
    fn check_marks(
        &self,
        machine: &mut Machine,
        layout: &StateLayout,
        options: &Options,
        what: &str,
    ) -> usize {
        let Some(private) = &layout.private else { return 0 };
        let private = machine.memory(private).data(&machine.store).to_vec();
        let mut changed_pages = 0;
        for (before, memory) in self.memories.iter().zip(&layout.memories) {
            let dirty = &private[range(&memory.dirty)];
            let after = machine.memory(&memory.export).data(&machine.store).to_vec();
            let page_bytes = options.page_bytes as usize;
            for (page, bytes) in after.chunks(page_bytes).enumerate() {
                let at = |byte: usize| before.get(page * page_bytes + byte).copied().unwrap_or(0);
                let changed: Vec<usize> = (0..bytes.len()).filter(|&byte| bytes[byte] != at(byte)).collect();
                changed_pages += usize::from(!changed.is_empty());
                let fringe = page > 0 && dirty[page - 1] != 0;
                let is_told = dirty[page] != 0 || changed.iter().all(|&byte| fringe && byte < 15);
                assert!(is_told, "{what}: page {page} of {} changed", memory.export);
            }
        }
        for ((before, table), mark) in self.tables.iter().zip(&layout.tables).zip(layout.table_marks.clone())
        {
            let table = machine.instance.get_table(&mut machine.store, &table.export).unwrap();
            let is_same = table.size(&machine.store) == before.len() as u64
                && before.iter().enumerate().all(|(index, before)| {
                    table.get(&mut machine.store, index as u64).unwrap().is_null() == before.is_null()
                });
            assert!(is_same || private[mark as usize] == 1, "{what}: a table changed");
        }
        changed_pages
    }

    /// Puts everything back; not if a memory has grown, which takes more than this interface.
    fn restore(&self, machine: &mut Machine, layout: &StateLayout) -> bool {
        for (before, memory) in self.memories.iter().zip(&layout.memories) {
            if machine.memory(&memory.export).data_size(&machine.store) != before.len() {
                return false;
            }
        }
        for (before, memory) in self.memories.iter().zip(&layout.memories) {
            machine.memory(&memory.export).data_mut(&mut machine.store).copy_from_slice(before);
        }
        for (before, global) in self.globals.iter().zip(&layout.globals) {
            let global = machine.instance.get_global(&mut machine.store, &global.export).unwrap();
            global.set(&mut machine.store, *before).unwrap();
        }
        for (before, table) in self.tables.iter().zip(&layout.tables) {
            let table: Table = machine.instance.get_table(&mut machine.store, &table.export).unwrap();
            for (index, before) in before.iter().enumerate() {
                table.set(&mut machine.store, index as u64, before.clone()).unwrap();
            }
        }
        if let Some(private) = &layout.private {
            let memory = machine.memory(private);
            memory.data_mut(&mut machine.store)[range(&layout.dropped)].copy_from_slice(&self.dropped);
        }
        true
    }
}

fn range(range: &std::ops::Range<u32>) -> std::ops::Range<usize> {
    range.start as usize..range.end as usize
}
