//! The functions that a guest may import from `spelunk`. `guest-sdk/ABI.md` is their specification.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use anyhow::{Result, bail};
use wasmtime::{
    AsContextMut, Caller, Error, ExternType, FuncType, ImportType, Instance, Linker, Memory, Module,
    ResourceLimiter, Store, Trap,
};

use xxhash_rust::xxh3::xxh3_64;

use super::keyed::Hasher;
use crate::choice::{Chooser, Kind, Value};
use crate::outcome::{Failure, FailureKind};
use crate::property::{Properties, PropertyKind};

/// The module name that guests import from.
pub(super) const MODULE: &str = "spelunk";

/// The host's side of a store.
#[derive(Default)]
pub(crate) struct Host {
    /// Answers the choices of the current step.
    pub(crate) chooser: Chooser,
    /// Choices may be made now; not so in preconditions.
    pub(crate) may_choose: bool,
    /// The guest is one function, and it was called.
    pub(crate) has_run: bool,
    /// What the guest says its state is, while it is asked.
    pub(crate) state: Option<Hasher>,
    /// The current step is being told.
    pub(crate) is_verbose: bool,
    pub(crate) told: Told,
    /// Which faults are on.
    pub(crate) faults: Vec<bool>,
    pub(crate) fault_names: Vec<String>,
    pub(crate) properties: Properties,
    /// What the guest says of properties and events counts now.
    pub(crate) counts: bool,
    /// How often each event happened, by its text's bytes.
    pub(crate) events: BTreeMap<Vec<u8>, u64>,
    /// A property or an event was counted since the counts were taken.
    pub(crate) has_counted: bool,
    /// The hashes of the labels of scores.
    pub(crate) labels: BTreeSet<u64>,
    /// The scores given since they were last looked at: the hash of the label, and the score.
    pub(crate) scores: Vec<(u64, f64)>,
    /// Where a property's name stands in guest memory, and which property it is.
    pub(crate) property_at: HashMap<(u32, u32), usize>,
    /// The export of memory 0.
    pub(crate) memory_export: Option<String>,
    /// Memory 0, once the module is instantiated.
    pub(crate) memory: Option<Memory>,
    /// The private memory and the offset in it of memory 0's dirty marks.
    pub(crate) marks: Option<(Memory, u32)>,
    pub(crate) page_bytes: u32,
    pub(crate) limits: Limiter,
}

/// What a step said of itself while it was told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Name and value of each argument.
    pub args: Vec<(String, String)>,
    /// Notes, one a line.
    pub notes: Vec<String>,
}

/// Why a host function does not return to the guest.
#[derive(Debug)]
pub(crate) enum Stop {
    Reject,
    Fail(Failure),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Reject => f.write_str("reject"),
            Stop::Fail(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for Stop {}

/// Caps what a guest may allocate; growth beyond fails as the guest's own limit would.
#[derive(Default)]
pub(crate) struct Limiter {
    pub(crate) memory_bytes_max: usize,
}

/// Elements a table may grow to.
const TABLE_ELEMENTS_MAX: usize = 1 << 20;

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= self.memory_bytes_max)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS_MAX)
    }
}

/// Choices that a step may make.
const CHOICES_MAX: usize = 100_000;
/// Spans that a step may open.
const SPANS_MAX: usize = 200_000;
/// Bytes that one choice may draw.
const BYTES_MAX: u32 = 1 << 20;
/// Arguments, and notes, that are told of a step; the others are left out.
const TOLD_MAX: usize = 1000;
/// Bytes of a text that are kept; it says how long it was.
const TEXT_MAX: usize = 64 << 10;
/// Different events, labels of scores and properties, each, that are told apart. Further ones do not count: what
/// came before is not part of a run, so it must not decide how a run ends.
const NAMES_MAX: usize = 10_000;

type Answer<T> = wasmtime::Result<T>;

pub(super) fn stop<T>(kind: FailureKind, subject: Option<String>, message: impl Into<String>) -> Answer<T> {
    let failure = Failure { kind, subject, message: message.into(), place: None };
    Err(Error::from(Stop::Fail(failure)))
}

/// Makes every import of `module` available, or says which cannot be.
///
/// # Errors
/// Imports that are not of this ABI, unless they are to be stubbed.
pub(crate) fn link(
    linker: &mut Linker<Host>,
    store: &mut Store<Host>,
    module: &Module,
    stub_imports: bool,
) -> Result<()> {
    define(linker).map_err(|e| anyhow::anyhow!("{e:#}"))?;
    let mut unknown = Vec::new();
    for import in module.imports() {
        if is_provided(linker, store, &import) {
            continue;
        }
        let name = import.name();
        if import.module() != MODULE {
            unknown.push(format!("`{name}` from `{}`", import.module()));
            continue;
        }
        match (known_type(linker, store, name), import.ty()) {
            (Some(known), ExternType::Func(ty)) => {
                bail!(
                    "the module imports `{name}` from `{MODULE}` as {}; it is {}",
                    shown(&ty),
                    shown(&known)
                )
            }
            (Some(known), _) => bail!("`{name}` from `{MODULE}` is a function, {}", shown(&known)),
            (None, _) => bail!("the module imports `{name}` from `{MODULE}`, which has nothing of that name"),
        }
    }
    if unknown.is_empty() {
        return Ok(());
    }
    if !stub_imports {
        bail!(
            "the module imports what Spelunk does not provide: {}; build it without them, or pass \
             --stub-imports to have every such function return zero",
            unknown.join(", ")
        );
    }
    stub_memories(linker, store, module)
        .and_then(|()| linker.define_unknown_imports_as_default_values(store, module))
        .map_err(|e| anyhow::anyhow!("an import cannot be stubbed: {e:#}"))
}

/// Imported memories are those of a module made for them, since only a module's own memories can be saved.
fn stub_memories(
    linker: &mut Linker<Host>,
    store: &mut Store<Host>,
    module: &Module,
) -> wasmtime::Result<()> {
    for import in module.imports() {
        let ExternType::Memory(ty) = import.ty() else { continue };
        let index = if ty.is_64() { "i64" } else { "" };
        let max = ty.maximum().map(|max| max.to_string()).unwrap_or_default();
        let text = format!(r#"(module (memory (export "") {index} {} {max}))"#, ty.minimum());
        let maker = Module::new(module.engine(), wat::parse_str(text).map_err(Error::from)?)?;
        let memory = Instance::new(&mut *store, &maker, &[])?.get_memory(&mut *store, "");
        if let Some(memory) = memory {
            linker.define(&*store, import.module(), import.name(), memory)?;
        }
    }
    Ok(())
}

/// Whether the ABI has this import, with this type.
fn is_provided(linker: &Linker<Host>, store: &mut Store<Host>, import: &ImportType<'_>) -> bool {
    let provided = linker.get_by_import(&mut *store, import).map(|item| item.ty(&*store));
    match (provided, import.ty()) {
        (Some(ExternType::Func(provided)), ExternType::Func(wanted)) => FuncType::eq(&provided, &wanted),
        _ => false,
    }
}

/// The type that the ABI gives the import `name`, where it has one.
fn known_type(linker: &Linker<Host>, store: &mut Store<Host>, name: &str) -> Option<FuncType> {
    let func = linker.get(&mut *store, MODULE, name).ok()?.into_func()?;
    Some(func.ty(&*store))
}

/// A function type as `(i32, i32) -> i64`.
pub(super) fn shown(ty: &FuncType) -> String {
    let list = |types: Vec<String>| match &types[..] {
        [one] => one.clone(),
        many => format!("({})", many.join(", ")),
    };
    let params: Vec<String> = ty.params().map(|ty| ty.to_string()).collect();
    format!("({}) -> {}", params.join(", "), list(ty.results().map(|ty| ty.to_string()).collect()))
}

fn define(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    define_choices(linker)?;
    define_spans(linker)?;
    define_outcomes(linker)?;
    define_properties(linker)?;
    linker.func_wrap(MODULE, "target", target)?;
    linker.func_wrap(MODULE, "event", event)?;
    linker.func_wrap(MODULE, "fault", fault)?;
    linker.func_wrap(MODULE, "state", state)?;
    linker.func_wrap(MODULE, "verbose", |caller: Caller<'_, Host>| i32::from(caller.data().is_verbose))?;
    linker.func_wrap(
        MODULE,
        "describe",
        |mut caller: Caller<'_, Host>, n: u32, n_len: u32, v: u32, v_len: u32| {
            if caller.data().is_verbose && caller.data().told.args.len() < TOLD_MAX {
                let arg = (text(&mut caller, n, n_len)?, text(&mut caller, v, v_len)?);
                caller.data_mut().told.args.push(arg);
            }
            Answer::Ok(())
        },
    )?;
    linker.func_wrap(MODULE, "note", |mut caller: Caller<'_, Host>, t: u32, t_len: u32| {
        if caller.data().is_verbose && caller.data().told.notes.len() < TOLD_MAX {
            let note = text(&mut caller, t, t_len)?;
            caller.data_mut().told.notes.push(note);
        }
        Answer::Ok(())
    })?;
    Ok(())
}

fn define_choices(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "boolean", |mut caller: Caller<'_, Host>, probability: f64| {
        // NaN is never true.
        let probability = if probability > 0.0 { probability.min(1.0) } else { 0.0 };
        let value = choose(&mut caller, Kind::Boolean { probability })?;
        Answer::Ok(i32::from(*value == Value::Boolean(true)))
    })?;
    linker.func_wrap(MODULE, "index", |mut caller: Caller<'_, Host>, n: u32| {
        if n == 0 {
            return stop(FailureKind::Deadlock, None, "a choice among nothing: no alternative is left");
        }
        match choose(&mut caller, Kind::Index { n })? {
            Value::Index(v) => Answer::Ok(*v),
            other => unreachable!("{other:?} answers an index"),
        }
    })?;
    linker.func_wrap(
        MODULE,
        "integer",
        |mut caller: Caller<'_, Host>, min: i64, max: i64, simplest: i64| {
            if min > max {
                return stop(FailureKind::Abi, None, format!("integer: the range {min}..={max} is empty"));
            }
            match choose(&mut caller, Kind::Integer { min, max, simplest: simplest.clamp(min, max) })? {
                Value::Integer(v) => Answer::Ok(*v),
                other => unreachable!("{other:?} answers an integer"),
            }
        },
    )?;
    linker.func_wrap(
        MODULE,
        "unsigned",
        |mut caller: Caller<'_, Host>, min: u64, max: u64, simplest: u64| {
            if min > max {
                return stop(FailureKind::Abi, None, format!("unsigned: the range {min}..={max} is empty"));
            }
            match choose(&mut caller, Kind::Unsigned { min, max, simplest: simplest.clamp(min, max) })? {
                Value::Unsigned(v) => Answer::Ok(*v),
                other => unreachable!("{other:?} answers an unsigned"),
            }
        },
    )?;
    linker.func_wrap(MODULE, "float", float)?;
    linker.func_wrap(MODULE, "bytes", bytes)?;
    Ok(())
}

fn choose<'a>(caller: &'a mut Caller<'_, Host>, kind: Kind) -> Answer<&'a Value> {
    let host = caller.data();
    if !host.may_choose {
        let message =
            "a choice was made in a precondition or a start function; draw in setup or in a rule instead";
        return stop(FailureKind::Abi, None, message);
    }
    if host.chooser.choices.len() >= CHOICES_MAX {
        return stop(FailureKind::Abi, None, format!("the step made more than {CHOICES_MAX} choices"));
    }
    // The chooser remembers why there is no answer; whoever made the step asks it.
    caller.data_mut().chooser.ask(kind).ok_or_else(|| Error::from(Stop::Reject))
}

fn float(mut caller: Caller<'_, Host>, min: f64, max: f64, flags: i32) -> Answer<f64> {
    let (nan, infinite) = (flags & 1 != 0, flags & 2 != 0);
    let has_finite = min <= f64::MAX && max >= f64::MIN;
    // Not `min > max`: a bound that is NaN must not pass.
    let is_range = min <= max && (infinite || has_finite);
    if !is_range {
        return stop(FailureKind::Abi, None, format!("float: there is no value in {min}..={max}"));
    }
    let (min, max) = if infinite { (min, max) } else { (min.max(f64::MIN), max.min(f64::MAX)) };
    match choose(&mut caller, Kind::Float { min, max, nan, infinite })? {
        Value::Float(v) => Ok(*v),
        other => unreachable!("{other:?} answers a float"),
    }
}

fn bytes(mut caller: Caller<'_, Host>, pointer: u32, min: u32, max: u32) -> Answer<u32> {
    if min > max {
        return stop(FailureKind::Abi, None, format!("bytes: the range of lengths {min}..={max} is empty"));
    }
    if max > BYTES_MAX {
        return stop(
            FailureKind::Abi,
            None,
            format!("bytes: more than {BYTES_MAX} bytes are asked for at once"),
        );
    }
    let memory = memory_of(&mut caller)?;
    if u64::from(pointer) + u64::from(max) > memory.data_size(&caller) as u64 {
        return Err(Trap::MemoryOutOfBounds.into());
    }
    let Value::Bytes(value) = choose(&mut caller, Kind::Bytes { min, max })?.clone() else {
        unreachable!("bytes are answered by bytes")
    };
    write(&mut caller, pointer, &value)?;
    Ok(value.len() as u32)
}

/// Writes into memory 0, and marks the pages that it writes.
pub(super) fn write(store: &mut impl AsContextMut<Data = Host>, pointer: u32, bytes: &[u8]) -> Answer<()> {
    let mut store = store.as_context_mut();
    let memory = store.data().memory.ok_or(Trap::MemoryOutOfBounds)?;
    let place = memory.data_mut(&mut store).get_mut(pointer as usize..);
    let place = place.and_then(|place| place.get_mut(..bytes.len())).ok_or(Trap::MemoryOutOfBounds)?;
    place.copy_from_slice(bytes);
    if let Some((private, marks)) = store.data().marks
        && !bytes.is_empty()
    {
        let page_bytes = store.data().page_bytes;
        let (first, last) = (pointer / page_bytes, (pointer + (bytes.len() as u32 - 1)) / page_bytes);
        private.data_mut(&mut store)[(marks + first) as usize..=(marks + last) as usize].fill(1);
    }
    Ok(())
}

fn define_spans(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "span_begin", |mut caller: Caller<'_, Host>, label: u32, len: u32| {
        if caller.data().chooser.spans.len() >= SPANS_MAX {
            return stop(FailureKind::Abi, None, format!("the step opened more than {SPANS_MAX} spans"));
        }
        caller.data_mut().chooser.span_begin((label, len));
        Answer::Ok(())
    })?;
    linker.func_wrap(MODULE, "span_end", |mut caller: Caller<'_, Host>, discarded: i32| {
        if !caller.data_mut().chooser.span_end(discarded != 0) {
            return stop(FailureKind::Abi, None, "span_end without a span that is open");
        }
        Answer::Ok(())
    })?;
    Ok(())
}

fn define_outcomes(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "reject", || Answer::<()>::Err(Error::from(Stop::Reject)))?;
    linker.func_wrap(MODULE, "fail", |mut caller: Caller<'_, Host>, message: u32, len: u32| {
        let message = text(&mut caller, message, len)?;
        stop::<()>(FailureKind::Fail, None, message)
    })?;
    linker.func_wrap(
        MODULE,
        "panic",
        |mut caller: Caller<'_, Host>, m: u32, m_len: u32, f: u32, f_len: u32, line: u32, column: u32| {
            let message = text(&mut caller, m, m_len)?;
            let place = Some(format!("{}:{line}:{column}", text(&mut caller, f, f_len)?));
            let failure = Failure { kind: FailureKind::Panic, subject: None, message, place };
            Answer::<()>::Err(Error::from(Stop::Fail(failure)))
        },
    )?;
    linker.func_wrap(MODULE, "unreachable", |mut caller: Caller<'_, Host>, name: u32, len: u32| {
        let name = text(&mut caller, name, len)?;
        property(&mut caller, PropertyKind::Unreachable, &name, true);
        stop::<()>(FailureKind::Unreachable, Some(name), "it was reached")
    })?;
    Ok(())
}

fn define_properties(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "always", |mut caller: Caller<'_, Host>, name: u32, len: u32, holds: i32| {
        reach(&mut caller, PropertyKind::Always, (name, len), holds != 0)?;
        if holds == 0 {
            let name = text(&mut caller, name, len)?;
            return stop(FailureKind::Always, Some(name), "the condition does not hold");
        }
        Answer::Ok(())
    })?;
    linker.func_wrap(
        MODULE,
        "sometimes",
        |mut caller: Caller<'_, Host>, name: u32, len: u32, holds: i32| {
            reach(&mut caller, PropertyKind::Sometimes, (name, len), holds != 0)
        },
    )?;
    linker.func_wrap(MODULE, "reachable", |mut caller: Caller<'_, Host>, name: u32, len: u32| {
        reach(&mut caller, PropertyKind::Reachable, (name, len), true)
    })?;
    Ok(())
}

/// Counts that the property whose name stands at `at` was reached. The name is looked up once for each
/// place it stands at, and compared afterwards.
fn reach(caller: &mut Caller<'_, Host>, kind: PropertyKind, at: (u32, u32), holds: bool) -> Answer<()> {
    let memory = memory_of(caller)?;
    let (data, host) = memory.data_and_store_mut(&mut *caller);
    let bytes = name_in(data, at.0, at.1)?;
    if let Some(index) = host.property_at.get(&at) {
        let property = host.properties.at(*index);
        if property.kind == kind && property.name.as_bytes() == bytes {
            if host.counts {
                property.count(holds);
                host.has_counted = true;
            }
            return Ok(());
        }
    }
    if host.properties.iter().count() >= NAMES_MAX {
        return Ok(());
    }
    let name = String::from_utf8_lossy(bytes).into_owned();
    let index = property(caller, kind, &name, holds);
    caller.data_mut().property_at.insert(at, index);
    Ok(())
}

fn property(caller: &mut Caller<'_, Host>, kind: PropertyKind, name: &str, holds: bool) -> usize {
    let Host { properties, counts, has_counted, .. } = caller.data_mut();
    let index = properties.declare(kind, name);
    if *counts {
        properties.at(index).count(holds);
        *has_counted = true;
    }
    index
}

fn target(mut caller: Caller<'_, Host>, score: f64, label: u32, len: u32) -> Answer<()> {
    let memory = memory_of(&mut caller)?;
    let (data, host) = memory.data_and_store_mut(&mut caller);
    let label = name_in(data, label, len)?;
    if score.is_nan() {
        return Ok(());
    }
    let label = xxh3_64(label);
    if !host.labels.contains(&label) {
        if host.labels.len() >= NAMES_MAX {
            return Ok(());
        }
        host.labels.insert(label);
    }
    host.scores.push((label, score));
    Ok(())
}

fn event(mut caller: Caller<'_, Host>, text: u32, len: u32) -> Answer<()> {
    let memory = memory_of(&mut caller)?;
    let (data, host) = memory.data_and_store_mut(&mut caller);
    let name = name_in(data, text, len)?;
    if !host.counts {
        return Ok(());
    }
    host.has_counted = true;
    if let Some(count) = host.events.get_mut(name) {
        *count += 1;
        return Ok(());
    }
    let is_full = host.events.len() >= NAMES_MAX;
    let name = if is_full { b"(all others)" } else { name };
    *host.events.entry(name.to_vec()).or_default() += 1;
    Ok(())
}

fn fault(mut caller: Caller<'_, Host>, name: u32, len: u32) -> Answer<i32> {
    let memory = memory_of(&mut caller)?;
    let (data, host) = memory.data_and_store_mut(&mut caller);
    let name = slice(data, name, len)?;
    match host.fault_names.iter().position(|known| known.as_bytes() == name) {
        Some(index) => Ok(i32::from(host.faults[index])),
        None => {
            let name = String::from_utf8_lossy(name);
            stop(FailureKind::Abi, None, format!("fault `{name}`: no export `fault:{name}` declares it"))
        }
    }
}

fn state(mut caller: Caller<'_, Host>, pointer: u32, len: u32) -> Answer<()> {
    let memory = memory_of(&mut caller)?;
    let (data, host) = memory.data_and_store_mut(&mut caller);
    let bytes = slice(data, pointer, len)?;
    let Some(hasher) = &mut host.state else {
        return stop(FailureKind::Abi, None, "state: it may be handed over in the export `state` only");
    };
    // With the length, so that it matters where one part ends and the next begins.
    hasher.update(&u64::from(len).to_le_bytes());
    hasher.update(bytes);
    Ok(())
}

/// Memory 0. While a module is instantiated it is known by its export only.
fn memory_of(caller: &mut Caller<'_, Host>) -> Answer<Memory> {
    if let Some(memory) = caller.data().memory {
        return Ok(memory);
    }
    let export = caller.data().memory_export.clone();
    let memory = export.and_then(|name| caller.get_export(&name)).and_then(wasmtime::Extern::into_memory);
    memory.ok_or_else(|| Trap::MemoryOutOfBounds.into())
}

/// A name, which is kept: a long one is a failure.
fn name_in(data: &[u8], pointer: u32, len: u32) -> Answer<&[u8]> {
    if len as usize > TEXT_MAX {
        return stop(FailureKind::Abi, None, format!("a name of {len} bytes; {TEXT_MAX} are the most"));
    }
    slice(data, pointer, len)
}

fn slice(data: &[u8], pointer: u32, len: u32) -> Answer<&[u8]> {
    let from = data.get(pointer as usize..).and_then(|data| data.get(..len as usize));
    from.ok_or_else(|| Trap::MemoryOutOfBounds.into())
}

fn text(caller: &mut Caller<'_, Host>, pointer: u32, len: u32) -> Answer<String> {
    let memory = memory_of(caller)?;
    let bytes = slice(memory.data(&*caller), pointer, len)?;
    if bytes.len() <= TEXT_MAX {
        return Ok(String::from_utf8_lossy(bytes).into_owned());
    }
    let shown = String::from_utf8_lossy(&bytes[..TEXT_MAX]);
    Ok(format!("{shown} … ({} bytes in all)", bytes.len()))
}
