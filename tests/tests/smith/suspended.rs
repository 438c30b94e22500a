//! Random functions that suspend in random places come to what they come to without, and leave nothing behind.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use spelunk_instrumenter::{Edges, Instrumented, Options, SUSPEND_BYTES, instrument};
use walrus::ir::{BinaryOp, Call, LoadKind, MemArg, StoreKind, dfs_in_order};
use walrus::{
    ConstExpr, ElementItems, ElementKind, ExportItem, FunctionBuilder, FunctionId, GlobalId, LocalFunction,
    MemoryId, Module, RefType, ValType,
};
use wasm_smith::Config;
use wasmtime::Val;

use super::{Machine, calls, engine, generate_as, random, refuel};

const MODULES: u64 = 600;

/// Where the record of the thread is: entry, argument, low end, stack pointer, end of what is written down.
const RECORD: i32 = 32;
const LOW: i32 = 64;
const TOP: i32 = 60_000;

#[test]
fn random_functions_that_suspend_come_to_the_same() {
    let work = || {
        let mut tally = Tally::default();
        (0..MODULES).for_each(|seed| check(seed, &mut tally));
        tally
    };
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(work).unwrap();
    let tally = thread.join().unwrap();
    println!("{tally:?}");
    assert_eq!(tally, Tally { modules: 600, calls: 4_768, returned: 1_136, suspended: 163_699 });
}

#[derive(Debug, Default, PartialEq)]
struct Tally {
    modules: usize,
    calls: usize,
    returned: usize,
    suspended: usize,
}

/// A module without references and memories of its own.
fn plain(seed: u64) -> Vec<u8> {
    generate_as(seed, |config| Config {
        gc_enabled: false,
        exceptions_enabled: false,
        reference_types_enabled: false,
        tail_call_enabled: false,
        memory64_enabled: false,
        max_imports: 0,
        max_memories: 0,
        min_memories: 0,
        min_data_segments: 0,
        max_data_segments: 0,
        max_tables: 0,
        ..config
    })
}

fn check(seed: u64, tally: &mut Tally) {
    let wasm = plain(seed);
    let suspending = suspending(&wasm, &mut random(seed ^ 0x5059));
    let budget = seed.is_multiple_of(2);
    let edges = if budget { Edges::Static } else { Edges::None };
    let bounds = Options { budget_initial: 1 << 40, memory_bytes_max: 4 << 20, ..Options::default() };
    let done = instrument(&suspending, &Options { edges, budget, ..bounds });
    let done = done.unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
    tally.modules += 1;
    let engine = engine();
    let (Ok(mut plain), Ok(mut machine)) = (Machine::new(&engine, &wasm), Machine::new(&engine, &done.wasm))
    else {
        return;
    };
    for (name, args) in calls(&mut plain, &mut random(seed ^ 0x11ed)) {
        // References are not passed on.
        if machine.instance.get_func(&mut machine.store, &format!("run:{name}")).is_none() {
            continue;
        }
        let what = format!("seed {seed}, {name} {args:?}");
        refuel(&mut plain);
        refuel_of(&mut machine, &plain);
        let expected = plain.call(&name, &args);
        assert_eq!(machine.call(&format!("run:{name}"), &args), expected, "{what}");
        let state = plain.state();
        let found: Vec<String> = machine.state().into_iter().filter(|item| state.contains(item)).collect();
        assert_eq!(found, state, "{what}: state after");
        tally.calls += 1;
        tally.returned += usize::from(expected.is_ok());
        clean(&mut machine, &done, expected.is_ok(), &what);
        let count = machine.call("count", &[]).unwrap();
        tally.suspended +=
            count[0].trim_start_matches("I32(").trim_end_matches(')').parse::<usize>().unwrap();
    }
}

/// A thread that has ended leaves nothing. After a trap it is done what a host does, since no thread survives that.
fn clean(machine: &mut Machine, done: &Instrumented, has_ended: bool, what: &str) {
    let memory = machine.memory("the memory");
    if has_ended {
        let data = &memory.data(&machine.store)[LOW as usize..TOP as usize];
        assert!(data.iter().all(|byte| *byte == 0), "{what}: something is left");
        return;
    }
    memory.data_mut(&mut machine.store).fill(0);
    let at = done.layout.suspend.unwrap() as usize;
    let private = machine.memory(done.layout.private.as_ref().unwrap());
    private.data_mut(&mut machine.store)[at..][..SUSPEND_BYTES as usize].fill(0);
}

/// The same globals as [`refuel`] sets in the other.
fn refuel_of(machine: &mut Machine, plain: &Machine) {
    let names: Vec<String> = {
        let module = plain.instance.module(&plain.store);
        module
            .exports()
            .filter(|export| export.ty().global().is_some())
            .map(|export| export.name().to_string())
            .collect()
    };
    for name in names {
        let global = machine.instance.get_global(&mut machine.store, &name).unwrap();
        let ty = global.ty(&machine.store);
        if ty.mutability() == wasmtime::Mutability::Var && matches!(ty.content(), wasmtime::ValType::I32) {
            global.set(&mut machine.store, Val::I32(super::FUEL as i32)).unwrap();
        }
    }
}

/// A module whose functions suspend here and there, with a function `run:NAME` for each export `NAME`, which lets a thread call it.
fn suspending(wasm: &[u8], rng: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut module = Module::from_buffer(wasm).unwrap();
    let none = module.types.add(&[], &[]);
    let (suspend, _) = module.add_import_func("spelunk", "suspend", none);
    let of_resume = module.types.add(&[ValType::I32], &[ValType::I32]);
    let (resume, _) = module.add_import_func("spelunk", "resume", of_resume);
    for (_, function) in module.funcs.iter_local_mut() {
        interrupt(function, suspend, rng);
    }
    let memory = module.memories.add_local(false, false, 1, Some(1), None);
    module.exports.add("the memory", memory);
    let variable = |module: &mut Module, ty: ValType| module.globals.add_local(ty, true, false, zero(ty));
    let pointer = variable(&mut module, ValType::I32);
    module.globals.get_mut(pointer).name = Some("__stack_pointer".to_string());
    let count = variable(&mut module, ValType::I32);
    let exported: Vec<(String, FunctionId)> = module
        .exports
        .iter()
        .filter_map(|export| match export.item {
            ExportItem::Function(id) => Some((export.name.clone(), id)),
            _ => None,
        })
        .collect();
    let mut entries = Vec::new();
    for (name, id) in exported {
        let (params, results) = {
            let ty = module.types.get(module.funcs.get(id).ty());
            (ty.params().to_vec(), ty.results().to_vec())
        };
        if params.iter().chain(&results).any(|ty| matches!(ty, ValType::Ref(_))) {
            continue;
        }
        let values: Vec<GlobalId> = params.iter().map(|ty| variable(&mut module, *ty)).collect();
        let answers: Vec<GlobalId> = results.iter().map(|ty| variable(&mut module, *ty)).collect();
        entries.push(entry(&mut module, id, &values, &answers));
        let of = Runner { memory, resume, count, entry: entries.len() as i32 - 1, values, answers };
        let run = of.function(&mut module, &params, &results);
        module.exports.add(&format!("run:{name}"), run);
    }
    let size = entries.len() as u64;
    let table = module.tables.add_local(false, size, Some(size), RefType::FUNCREF);
    let offset = ConstExpr::Value(walrus::ir::Value::I32(0));
    let segment =
        module.elements.add(ElementKind::Active { table, offset }, ElementItems::Functions(entries));
    module.tables.get_mut(table).elem_segments.insert(segment);
    let mut counting = FunctionBuilder::new(&mut module.types, &[], &[ValType::I32]);
    counting.func_body().global_get(count).i32_const(0).global_set(count);
    let counting = counting.finish(Vec::new(), &mut module.funcs);
    module.exports.add("count", counting);
    module.emit_wasm()
}

fn zero(ty: ValType) -> ConstExpr {
    ConstExpr::Value(match ty {
        ValType::I32 => walrus::ir::Value::I32(0),
        ValType::I64 => walrus::ir::Value::I64(0),
        ValType::F32 => walrus::ir::Value::F32(0.0),
        ValType::F64 => walrus::ir::Value::F64(0.0),
        _ => walrus::ir::Value::V128(0),
    })
}

/// Calls `suspend` at one place in ten.
fn interrupt(function: &mut LocalFunction, suspend: FunctionId, rng: &mut Xoshiro256PlusPlus) {
    struct Sequences(Vec<walrus::ir::InstrSeqId>);

    impl<'a> walrus::ir::Visitor<'a> for Sequences {
        fn start_instr_seq(&mut self, sequence: &'a walrus::ir::InstrSeq) {
            self.0.push(sequence.id());
        }
    }

    let mut sequences = Sequences(Vec::new());
    dfs_in_order(&mut sequences, function, function.entry_block());
    for seq in sequences.0 {
        let mut code = Vec::new();
        for instr in std::mem::take(&mut function.block_mut(seq).instrs) {
            if rng.random_bool(0.1) {
                code.push((Call { func: suspend }.into(), Default::default()));
            }
            code.push(instr);
        }
        function.block_mut(seq).instrs = code;
    }
}

/// What a thread calls first.
fn entry(module: &mut Module, called: FunctionId, values: &[GlobalId], answers: &[GlobalId]) -> FunctionId {
    let mut builder = FunctionBuilder::new(&mut module.types, &[ValType::I32, ValType::F32], &[]);
    let args = vec![module.locals.add(ValType::I32), module.locals.add(ValType::F32)];
    let mut body = builder.func_body();
    for value in values {
        body.global_get(*value);
    }
    body.call(called);
    for answer in answers.iter().rev() {
        body.global_set(*answer);
    }
    builder.finish(args, &mut module.funcs)
}

/// What runs a thread to its end.
struct Runner {
    memory: MemoryId,
    resume: FunctionId,
    count: GlobalId,
    entry: i32,
    values: Vec<GlobalId>,
    answers: Vec<GlobalId>,
}

impl Runner {
    fn function(&self, module: &mut Module, params: &[ValType], results: &[ValType]) -> FunctionId {
        let args: Vec<_> = params.iter().map(|ty| module.locals.add(*ty)).collect();
        let mut builder = FunctionBuilder::new(&mut module.types, params, results);
        let mut body = builder.func_body();
        for (arg, value) in args.iter().zip(&self.values) {
            body.local_get(*arg).global_set(*value);
        }
        for (word, value) in (0u64..).zip([self.entry, 0, LOW, TOP, LOW]) {
            let at = MemArg { align: 4, offset: 4 * word };
            body.i32_const(RECORD).i32_const(value).store(self.memory, StoreKind::I32 { atomic: false }, at);
        }
        body.loop_(None, |again| {
            again.global_get(self.count).i32_const(RECORD).call(self.resume).binop(BinaryOp::I32Add);
            again.global_set(self.count).i32_const(RECORD);
            let at = MemArg { align: 4, offset: 16 };
            again
                .load(self.memory, LoadKind::I32 { atomic: false }, at)
                .i32_const(LOW)
                .binop(BinaryOp::I32Ne);
            let id = again.id();
            again.br_if(id);
        });
        for answer in &self.answers {
            body.global_get(*answer);
        }
        builder.finish(args, &mut module.funcs)
    }
}
