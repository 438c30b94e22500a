//! The functions that a guest may import from `spelunk`. `guest-sdk/ABI.md` is their specification.

use wasmtime::{AsContextMut, Caller, Error, Linker, Memory, Trap, WasmBacktrace};
use xxhash_rust::xxh3::xxh3_64;

use super::copies::{counts, is_beside, take_said};
use super::host::{Host, Private, Step, Stop, TOLD_BYTES_MAX, TOLD_MAX, pay};
use super::{PAGE, schedule};
use crate::choice::{Kind, Value, mix};
use crate::outcome::{Failure, FailureKind};
use crate::property::PropertyKind;

/// The module name that guests import from.
pub(super) const MODULE: &str = "spelunk";

/// Choices that a step may make.
const CHOICES_MAX: usize = 100_000;
/// Spans that a step may open.
const SPANS_MAX: usize = spelunk_instrumenter::SPANS_MAX as usize;
/// Bytes that a choice may draw, and all choices of a step together.
pub(super) const DRAWN_BYTES_MAX: usize = 1 << 20;
/// Different labels of scores that a step may give; further ones do not count.
const SCORES_MAX: usize = 1000;
/// Looking at one name among many counts as reading so many bytes.
const SEARCH_BYTES: usize = 4;
/// Bytes of a text that are kept; it says how long it was.
const TEXT_MAX: usize = 64 << 10;

type Answer<T> = wasmtime::Result<T>;

pub(super) fn stop<T>(kind: FailureKind, subject: Option<String>, message: impl Into<String>) -> Answer<T> {
    let failure = Failure { kind, subject, message: message.into(), place: None };
    Err(Error::from(Stop::Fail(failure)))
}

pub(super) fn define(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    define_choices(linker)?;
    define_spans(linker)?;
    define_outcomes(linker)?;
    define_properties(linker)?;
    define_liveness(linker)?;
    schedule::define(linker)?;
    linker.func_wrap(MODULE, "target", target)?;
    linker.func_wrap(MODULE, "observe", observe)?;
    linker.func_wrap(MODULE, "event", event)?;
    linker.func_wrap(MODULE, "fault", fault)?;
    linker.func_wrap(MODULE, "state", state)?;
    define_story(linker)
}

fn define_story(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker
        .func_wrap(MODULE, "verbose", |caller: Caller<'_, Host>| i32::from(caller.data().step.is_verbose))?;
    linker.func_wrap(
        MODULE,
        "describe",
        |mut caller: Caller<'_, Host>, n: u32, n_len: u32, v: u32, v_len: u32| {
            let arg = [told(&mut caller, n, n_len)?, told(&mut caller, v, v_len)?];
            let step = &mut caller.data_mut().step;
            if let [Some(name), Some(value)] = arg
                && step.told.args.len() < TOLD_MAX
            {
                step.told.args.push((name, value));
            }
            Answer::Ok(())
        },
    )?;
    linker.func_wrap(MODULE, "note", |mut caller: Caller<'_, Host>, t: u32, t_len: u32| {
        let note = told(&mut caller, t, t_len)?;
        let step = &mut caller.data_mut().step;
        if step.is_verbose && step.is_full() {
            step.leave_out(note);
        } else if let Some(note) = note {
            let stack = WasmBacktrace::force_capture(&caller);
            caller.data_mut().step.noted(note);
            caller.data_mut().step.noted_at(stack.frames());
        }
        Answer::Ok(())
    })?;
    Ok(())
}

/// A text that is reported, where the step is reported and has not said too much. Out of bounds is a trap in any case:
/// whether it is reported must not decide how a step ends.
fn told(caller: &mut Caller<'_, Host>, pointer: u32, len: u32) -> Answer<Option<String>> {
    let memory = memory_of(caller)?;
    slice(memory.data(&*caller), pointer, len)?;
    let step = &caller.data().step;
    if !step.is_verbose || step.told_bytes >= TOLD_BYTES_MAX {
        return Ok(None);
    }
    let text = text(caller, pointer, len)?;
    caller.data_mut().step.told_bytes += crate::text::shown_len(&text);
    Ok(Some(text))
}

fn define_choices(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "boolean", |mut caller: Caller<'_, Host>, probability: f64| {
        // NaN is never true.
        let probability = if probability > 0.0 { probability.min(1.0) } else { 0.0 };
        let value = drawn(&mut caller, Kind::Boolean { probability })?;
        Answer::Ok(i32::from(*value == Value::Boolean(true)))
    })?;
    linker.func_wrap(MODULE, "index", |mut caller: Caller<'_, Host>, n: u32| {
        if n == 0 {
            return stop(FailureKind::Deadlock, None, "a choice among nothing: no alternative is left");
        }
        match drawn(&mut caller, Kind::Index { n })? {
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
            match drawn(&mut caller, Kind::Integer { min, max, simplest: simplest.clamp(min, max) })? {
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
            match drawn(&mut caller, Kind::Unsigned { min, max, simplest: simplest.clamp(min, max) })? {
                Value::Unsigned(v) => Answer::Ok(*v),
                other => unreachable!("{other:?} answers an unsigned"),
            }
        },
    )?;
    linker.func_wrap(MODULE, "float", float)?;
    linker.func_wrap(MODULE, "bytes", bytes)?;
    Ok(())
}

/// Asks for an answer.
pub(super) fn choose<'a>(caller: &'a mut Caller<'_, Host>, kind: Kind) -> Answer<&'a Value> {
    if is_beside(caller) {
        return not_here();
    }
    ask(&mut caller.data_mut().step, kind)
}

/// As [`choose`], for the guest itself.
fn drawn<'a>(caller: &'a mut Caller<'_, Host>, kind: Kind) -> Answer<&'a Value> {
    choose(caller, kind)?;
    let step = &mut caller.data_mut().step;
    step.chose();
    Ok(&step.chooser.choices.last().expect("it was just made").value)
}

/// Asks for an index below `n`; if it is drawn it is `preferred`.
pub(super) fn choose_index(step: &mut Step, n: u32, preferred: Option<u32>) -> Answer<u32> {
    may_choose(step)?;
    match step.chooser.ask_index(n, preferred) {
        Some(Value::Index(index)) => Ok(*index),
        Some(other) => unreachable!("{other:?} answers an index"),
        None => Err(Error::from(Stop::Reject)),
    }
}

/// As [`choose`], of a step that is at hand.
pub(super) fn ask(step: &mut Step, kind: Kind) -> Answer<&Value> {
    may_choose(step)?;
    // The chooser remembers why there is no answer; whoever made the step asks it.
    step.chooser.ask(kind).ok_or_else(|| Error::from(Stop::Reject))
}

fn may_choose(step: &Step) -> Answer<()> {
    if !step.may_choose {
        return not_here();
    }
    if step.chooser.choices.len() >= CHOICES_MAX {
        return stop(FailureKind::Abi, None, format!("the step made more than {CHOICES_MAX} choices"));
    }
    Ok(())
}

fn not_here<T>() -> Answer<T> {
    let message = "a choice was made in a precondition, a start function, or as the guest said what its state \
        is; draw in setup or in a rule instead";
    stop(FailureKind::Abi, None, message)
}

/// A step drew so many bytes.
pub(super) fn drew_bytes(step: &mut Step, len: usize) -> Answer<()> {
    step.drawn_bytes += len;
    match step.drawn_bytes > DRAWN_BYTES_MAX {
        true => stop(FailureKind::Abi, None, format!("the step drew more than {DRAWN_BYTES_MAX} bytes")),
        false => Ok(()),
    }
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
    match drawn(&mut caller, Kind::Float { min, max, nan, infinite })? {
        Value::Float(v) => Ok(*v),
        other => unreachable!("{other:?} answers a float"),
    }
}

fn bytes(mut caller: Caller<'_, Host>, pointer: u32, min: u32, max: u32) -> Answer<u32> {
    if min > max {
        return stop(FailureKind::Abi, None, format!("bytes: the range of lengths {min}..={max} is empty"));
    }
    if max as usize > DRAWN_BYTES_MAX {
        let message = format!("bytes: more than {DRAWN_BYTES_MAX} bytes are asked for at once");
        return stop(FailureKind::Abi, None, message);
    }
    let memory = memory_of(&mut caller)?;
    if u64::from(pointer) + u64::from(max) > memory.data_size(&caller) as u64 {
        return Err(Trap::MemoryOutOfBounds.into());
    }
    let Value::Bytes(value) = drawn(&mut caller, Kind::Bytes { min, max })?.clone() else {
        unreachable!("bytes are answered by bytes")
    };
    write(&mut caller, pointer, &value)?;
    drew_bytes(&mut caller.data_mut().step, value.len())?;
    pay(&mut caller, value.len())?;
    Ok(value.len() as u32)
}

/// Writes into memory 0, and marks the pages that it writes.
pub(super) fn write(store: &mut impl AsContextMut<Data = Host>, pointer: u32, bytes: &[u8]) -> Answer<()> {
    fill(store, (pointer, bytes.len() as u32), |_, place| place.copy_from_slice(bytes))
}

/// Has so many bytes at a place in memory 0 filled from what the host has, and marks the pages.
pub(super) fn fill(
    store: &mut impl AsContextMut<Data = Host>,
    (pointer, len): (u32, u32),
    fill: impl FnOnce(&Host, &mut [u8]),
) -> Answer<()> {
    let mut store = store.as_context_mut();
    let memory = store.data().guest.memory.ok_or(Trap::MemoryOutOfBounds)?;
    let (data, host) = memory.data_and_store_mut(&mut store);
    let place = data.get_mut(pointer as usize..).and_then(|place| place.get_mut(..len as usize));
    fill(host, place.ok_or(Trap::MemoryOutOfBounds)?);
    mark(&mut store, pointer, len);
    Ok(())
}

/// Marks the pages of `len` bytes of memory 0 that were written, which are there.
pub(super) fn mark(store: &mut impl AsContextMut<Data = Host>, pointer: u32, len: u32) {
    let mut store = store.as_context_mut();
    if let Some(Private { memory: private, marks, .. }) = store.data().guest.private
        && len > 0
    {
        let (first, last) = (pointer / PAGE as u32, (pointer + (len - 1)) / PAGE as u32);
        private.data_mut(&mut store)[(marks + first) as usize..=(marks + last) as usize].fill(1);
    }
}

/// Begins a span of a step.
pub(super) fn span_begin(step: &mut Step, label: (u32, u32)) -> Answer<()> {
    if step.chooser.spans.len() >= SPANS_MAX {
        return stop(FailureKind::Abi, None, format!("the step opened more than {SPANS_MAX} spans"));
    }
    step.chooser.span_begin(label);
    Ok(())
}

fn define_spans(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "span_begin", |mut caller: Caller<'_, Host>, label: u32, len: u32| {
        span_begin(&mut caller.data_mut().step, (label, len))
    })?;
    linker.func_wrap(MODULE, "span_end", |mut caller: Caller<'_, Host>, discarded: i32| {
        if !caller.data_mut().step.chooser.span_end(discarded != 0) {
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
        caller.data_mut().tally.reach(PropertyKind::Unreachable, name.as_bytes(), true);
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

fn define_liveness(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    for (name, kind) in
        [("eventually", PropertyKind::Eventually), ("always_eventually", PropertyKind::AlwaysEventually)]
    {
        linker.func_wrap(
            MODULE,
            name,
            move |mut caller: Caller<'_, Host>, name: u32, len: u32, to: i32| {
                live(&mut caller, kind, (name, len), [false, to != 0])
            },
        )?;
    }
    let has_claims = |caller: Caller<'_, Host>| i32::from(caller.data().guest.has_claims);
    linker.func_wrap(MODULE, "claims", has_claims)?;
    linker.func_wrap(
        MODULE,
        "leads_to",
        |mut caller: Caller<'_, Host>, name: u32, len: u32, from: i32, to: i32| {
            live(&mut caller, PropertyKind::LeadsTo, (name, len), [from != 0, to != 0])
        },
    )?;
    linker.func_wrap(MODULE, "way", way).map(drop)
}

/// The step is this one among those of its rule.
fn way(mut caller: Caller<'_, Host>, way: u64) {
    if is_beside(&mut caller) {
        return;
    }
    let step = &mut caller.data_mut().step;
    step.way = Some(mix(step.way.unwrap_or_default(), way));
}

/// Notes what the state says of the property whose name stands at `at`.
fn live(
    caller: &mut Caller<'_, Host>,
    kind: PropertyKind,
    at: (u32, u32),
    [from, to]: [bool; 2],
) -> Answer<()> {
    if is_beside(caller) {
        return Ok(());
    }
    let (name, host) = named(caller, at.0, at.1)?;
    let Some(number) = host.tally.live(kind, name, to) else {
        let name = String::from_utf8_lossy(name).into_owned();
        let message = format!("a custom section `spelunk:properties` must declare it: `{kind} {name}`");
        return stop(FailureKind::Abi, Some(name), message);
    };
    if !host.step.says(number, [from, to]) {
        let name = String::from_utf8_lossy(name).into_owned();
        let message = "it is said twice in one step, and not the same: claim it of each under another name, or once of all";
        return stop(FailureKind::Abi, Some(name), message.to_string());
    }
    Ok(())
}

/// Counts that the property whose name stands at `at` was reached.
fn reach(caller: &mut Caller<'_, Host>, kind: PropertyKind, at: (u32, u32), holds: bool) -> Answer<()> {
    let (name, host) = named(caller, at.0, at.1)?;
    host.tally.reach(kind, name, holds);
    Ok(())
}

fn target(mut caller: Caller<'_, Host>, score: f64, label: u32, len: u32) -> Answer<()> {
    let known = caller.data().step.scores.len();
    pay(&mut caller, known * SEARCH_BYTES)?;
    let (label, host) = named(&mut caller, label, len)?;
    if score.is_nan() {
        return Ok(());
    }
    let label = xxh3_64(label);
    self::score(&mut host.step, score, label);
    Ok(())
}

/// Scores under a label, by its hash; the highest of each counts.
pub(super) fn score(step: &mut Step, score: f64, label: u64) {
    let scores = &mut step.scores;
    // The last one is mostly given again.
    match scores.iter().rposition(|(known, _)| *known == label) {
        Some(at) => scores[at].1 = scores[at].1.max(score),
        None if scores.len() < SCORES_MAX && !score.is_nan() => scores.push((label, score)),
        None => {}
    }
}

fn observe(mut caller: Caller<'_, Host>, number: i64, name: u32, len: u32) -> Answer<()> {
    let (name, host) = named(&mut caller, name, len)?;
    let name = xxh3_64(name);
    host.step.observed.push(name, number);
    Ok(())
}

fn event(mut caller: Caller<'_, Host>, text: u32, len: u32) -> Answer<()> {
    let (name, host) = named(&mut caller, text, len)?;
    host.tally.event(name);
    Ok(())
}

fn fault(mut caller: Caller<'_, Host>, name: u32, len: u32) -> Answer<i32> {
    let faults = caller.data().guest.faults.len();
    pay(&mut caller, faults * SEARCH_BYTES)?;
    let (name, host) = named(&mut caller, name, len)?;
    let guest = &host.guest;
    match guest.fault_names.iter().position(|known| known.as_bytes() == name) {
        Some(index) => Ok(i32::from(guest.faults[index])),
        None => {
            let name = String::from_utf8_lossy(name);
            stop(FailureKind::Abi, None, format!("fault `{name}`: no export `fault:{name}` declares it"))
        }
    }
}

fn state(mut caller: Caller<'_, Host>, pointer: u32, len: u32) -> Answer<()> {
    let memory = memory_of(&mut caller)?;
    take_said(&mut caller);
    let (data, host) = memory.data_and_store_mut(&mut caller);
    let bytes = slice(data, pointer, len)?;
    let Some(hasher) = &mut host.step.state else {
        return stop(FailureKind::Abi, None, "state: it may be handed over in the export `state` only");
    };
    // With the length, so that it matters where one part ends and the next begins.
    hasher.update(&u64::from(len).to_le_bytes());
    hasher.update(bytes);
    pay(&mut caller, len as usize)
}

/// Memory 0. While a module is instantiated it is known by its export only.
pub(super) fn memory_of(caller: &mut Caller<'_, Host>) -> Answer<Memory> {
    if let Some(memory) = caller.data().guest.memory {
        return Ok(memory);
    }
    let export = caller.data().guest.memory_export.clone();
    let memory = export.and_then(|name| caller.get_export(&name)).and_then(wasmtime::Extern::into_memory);
    memory.ok_or_else(|| Trap::MemoryOutOfBounds.into())
}

/// A name, which may be kept: a long one is a failure.
fn named<'a>(caller: &'a mut Caller<'_, Host>, pointer: u32, len: u32) -> Answer<(&'a [u8], &'a mut Host)> {
    if len as usize > TEXT_MAX {
        return stop(FailureKind::Abi, None, format!("a name of {len} bytes; {TEXT_MAX} are the most"));
    }
    counts(caller);
    let memory = memory_of(caller)?;
    pay(caller, len as usize)?;
    let (data, host) = memory.data_and_store_mut(caller);
    Ok((slice(data, pointer, len)?, host))
}

pub(super) fn slice(data: &[u8], pointer: u32, len: u32) -> Answer<&[u8]> {
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
