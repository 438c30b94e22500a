//! How a module is instrumented and compiled.

use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use spelunk_instrumenter::{Instrumented, Options};
use wasmtime::{Collector, Config, Engine, Linker, Module, Store};

use super::cache::{Cache, Key};
use super::component::{self, Interface};
use super::emscripten::linking::{self, Dynamic};
use super::host::Host;
use super::link::link;
use super::memory::{GUARD, INDEXED, Memories};
use super::sections::collected_heap;
use super::{PAGE, STACK_BYTES, STACK_MARGIN};
use crate::budget::Budget;
use crate::file::{Limits, Sanitizer, Selection, StubImports};
use crate::symbols::STACK_MAX;

/// The code of a module: out of the cache, where it is there.
pub(super) fn compiled(
    (wasm, interface): (&[u8], Option<&Arc<Interface>>),
    (limits, selection): (Limits, Selection),
    engine: &Engine,
    cache: Option<&Cache>,
    budget: &Budget,
) -> Result<(Instrumented, Module)> {
    let kept = cache.and_then(|cache| Some((cache, Key::new(wasm, &limits, &selection, engine)?)));
    if let Some(loaded) = kept.and_then(|(cache, key)| cache.load(key, engine)) {
        // It may have been kept where they were answered otherwise.
        refuse_imports(wasm, engine, (limits.stub_imports, interface))?;
        return Ok(loaded);
    }
    let (bytes, engine, interface) = (wasm.to_vec(), engine.clone(), interface.cloned());
    let compile = move || compile((&bytes, interface.as_ref()), &limits, &selection, &engine);
    let compiled = budget.compiling(compile)??;
    if let Some((cache, key)) = kept {
        cache.save(key, &compiled.0, &compiled.1);
    }
    Ok(compiled)
}

/// Instruments a module as [`Program::load`] does.
///
/// # Errors
/// A module that is malformed or that the instrumenter refuses.
pub fn instrument(wasm: &[u8], limits: &Limits, selection: &Selection) -> Result<Instrumented> {
    let options = Options {
        edges: selection.edges.into(),
        dirty: !selection.copies,
        budget: true,
        page_bytes: PAGE as u32,
        include: selection.include.clone(),
        exclude: selection.exclude.clone(),
        budget_initial: limits.steps(),
        depth_max: limits.depth_max,
        memory_bytes_max: limits.memory_bytes_max,
        heap: selection.sanitize.contains(&Sanitizer::Heap),
        stack: selection.sanitize.contains(&Sanitizer::Stack),
        compares: selection.compares,
        inside: selection.copies,
    };
    if component::is_component(wasm) {
        let linked = component::link(wasm).context("the component cannot be linked")?;
        return spelunk_instrumenter::instrument(&linked.wasm, &options);
    }
    spelunk_instrumenter::instrument(wasm, &options)
}

/// As [`instrument`], of a module that may take long.
///
/// # Errors
/// As those of [`instrument`]; what does not come to its end within the budget.
pub fn instrument_within(
    wasm: &[u8],
    (limits, selection): (&Limits, &Selection),
    budget: &Budget,
) -> Result<Instrumented> {
    let (wasm, limits, selection) = (wasm.to_vec(), *limits, selection.clone());
    budget.compiling(move || instrument(&wasm, &limits, &selection))?
}

/// An engine as guests run in, to measure beside another.
///
/// # Errors
/// This machine is one that the engine does not run on.
pub fn engine() -> Result<Engine> {
    Engine::new(&config(Arc::default(), false)).map_err(engine_error)
}

/// Refuses imports that nobody provides, of a module that may take long to compile: of one that has its types and imports
/// alone.
fn refuse_imports(wasm: &[u8], engine: &Engine, stubs: (StubImports, Option<&Arc<Interface>>)) -> Result<()> {
    let mut head = b"\0asm\x01\0\0\0".to_vec();
    for payload in wasmparser::Parser::new(0).parse_all(wasm).filter_map(Result::ok) {
        use wasmparser::Payload::{ImportSection, TypeSection};
        if let (TypeSection(_) | ImportSection(_), Some((id, range))) = (&payload, payload.as_section()) {
            let content = &wasm[range];
            head.push(id);
            let mut len = content.len();
            while len >= 0x80 {
                head.push(len as u8 | 0x80);
                len >>= 7;
            }
            head.push(len as u8);
            head.extend_from_slice(content);
        }
    }
    // What is wrong with the module itself is said by who reads all of it.
    let Ok(module) = Module::from_binary(engine, &head) else { return Ok(()) };
    let mut store = Store::new(engine, Host::default());
    link(&mut Linker::new(engine), &mut store, &module, stubs, Dynamic::of(wasm).as_ref())
}

/// Instruments and compiles a module whose imports there are. The instrumented bytes are not needed once they are compiled.
fn compile(
    (wasm, interface): (&[u8], Option<&Arc<Interface>>),
    limits: &Limits,
    selection: &Selection,
    engine: &Engine,
) -> Result<(Instrumented, Module)> {
    refuse_imports(wasm, engine, (limits.stub_imports, interface))?;
    let mut instrumented = instrument(wasm, limits, selection)?;
    instrumented.layout.obstacles.extend(collected_heap(wasm));
    instrumented.layout.obstacles.extend(linking::obstacle(wasm, &instrumented.layout));
    let bytes = std::mem::take(&mut instrumented.wasm);
    let module = Module::from_binary(engine, &bytes).map_err(engine_error)?;
    Ok((instrumented, module))
}

/// How guests are compiled. The memory of one that copies its states is never set back, so that code that knows where it stands is faster.
pub(super) fn config(memories: Arc<Memories>, copies: bool) -> Config {
    let mut config = Config::new();
    match copies {
        true => config.memory_may_move(false).memory_reservation(INDEXED).memory_guard_size(GUARD - INDEXED),
        // Where nothing is reserved every memory that can grow may move, and with this guard no bounds are checked.
        false => config.memory_may_move(true).memory_reservation(0).memory_guard_size(GUARD),
    };
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
        // Only unwinders that are not ours read it, and it is registered for the whole process.
        .native_unwind_info(cfg!(windows))
        .collector(Collector::DeferredReferenceCounting)
        .memory_init_cow(false)
        .max_wasm_stack(STACK_BYTES)
        .wasm_backtrace_max_frames(NonZeroUsize::new(STACK_MAX))
        .async_stack_size(STACK_BYTES + STACK_MARGIN)
        .with_host_memory(memories);
    config
}

pub(super) fn engine_error(error: wasmtime::Error) -> anyhow::Error {
    anyhow!("{error:#}")
}
