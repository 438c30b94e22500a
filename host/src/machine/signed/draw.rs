//! What is drawn for the parameters of an export: ordinary choices, in a span for each parameter.

use wasmtime::{Store, Val, ValType};

use super::super::host::{Host, Step, Stop};
use super::super::imports::{ask, drew_bytes, span_begin};
use super::super::link::{drawn, drawn_kind};
use super::plan::{Plan, Slot};
use crate::choice::{Kind, Value};
use crate::file::{Content, Named, What};

/// What is passed for one parameter.
pub(super) enum Drawn {
    Number(Val),
    /// By their address.
    Bytes(Vec<u8>),
    /// The address of so many zero bytes.
    Room(u32),
}

/// The length that the labels of these spans have, which no text in memory has.
pub(in super::super) const LABEL: u32 = u32::MAX;

/// The parameter that a span is of, where it is one of these.
pub(crate) fn label_of((param, len): (u32, u32)) -> Option<usize> {
    (len == LABEL && param != u32::MAX).then_some(param as usize)
}

/// Draws all parameters. `given` is the handle that is passed, where the export is called for each.
pub(super) fn all(plan: &Plan, store: &mut Store<Host>, given: Option<i64>) -> wasmtime::Result<Vec<Drawn>> {
    let mut all: Vec<Drawn> = Vec::new();
    let mut used = Vec::new();
    for (index, slot) in plan.slots.iter().enumerate() {
        if matches!(slot.param.what, What::LengthOf(_)) {
            // Once it is known.
            all.push(Drawn::Number(Val::I32(0)));
            continue;
        }
        span_begin(&mut store.data_mut().step, (index as u32, LABEL))?;
        let (passed, shown) = one(plan, slot, store, (given, &mut used))?;
        store.data_mut().step.chooser.span_end(false);
        if let Some(shown) = shown {
            store.data_mut().step.describe(|| (slot.param.name.clone(), shown));
        }
        all.push(passed);
    }
    for (index, slot) in plan.slots.iter().enumerate() {
        if let What::LengthOf(of) = slot.param.what {
            let len = match &all[of as usize] {
                Drawn::Bytes(bytes) => bytes.len() as i64,
                Drawn::Room(len) => i64::from(*len),
                Drawn::Number(_) => unreachable!("a number has no length"),
            };
            all[index] = Drawn::Number(value(&slot.ty, len));
        }
    }
    Ok(all)
}

/// What is passed, and how it is shown, where the step is reported and it is not always the same.
fn one(
    plan: &Plan,
    slot: &Slot,
    store: &mut Store<Host>,
    (given, used): (Option<i64>, &mut Vec<(usize, i64)>),
) -> wasmtime::Result<(Drawn, Option<String>)> {
    let is_verbose = store.data().step.is_verbose;
    let integer = |number: i64, name: Option<&String>| {
        let shown = is_verbose.then(|| name.cloned().unwrap_or_else(|| number.to_string()));
        (Drawn::Number(value(&slot.ty, number)), shown)
    };
    Ok(match &slot.param.what {
        What::Any => {
            let kind = drawn_kind(&slot.ty).expect("it was found to be a number");
            number(slot, store, kind)?
        }
        What::Integer(min, max) => {
            number(slot, store, Kind::Integer { min: *min, max: *max, simplest: 0.clamp(*min, *max) })?
        }
        What::Float(min, max) => {
            number(slot, store, Kind::Float { min: *min, max: *max, nan: false, infinite: false })?
        }
        What::Boolean => {
            let is_true = boolean(store, 0.5)?;
            (Drawn::Number(value(&slot.ty, is_true.into())), is_verbose.then(|| is_true.to_string()))
        }
        What::Constant(number) => (Drawn::Number(value(&slot.ty, *number)), None),
        What::OneOf(values) => {
            let Named { name, value } = &values[index(store, values.len())?];
            integer(*value, name.as_ref())
        }
        What::Flags(values) => flags(slot, store, values)?,
        What::Buffer(buffer) => {
            let bytes = bytes(&buffer.content, store)?;
            let is_text = !matches!(buffer.content, Content::Bytes(..) | Content::Values(_));
            let shown = is_verbose.then(|| match is_text {
                true => format!("{:?}", String::from_utf8_lossy(&bytes)),
                false => format!("b\"{}\"", bytes.escape_ascii()),
            });
            (Drawn::Bytes(bytes), shown)
        }
        What::LengthOf(_) => unreachable!("it is known once all else is drawn"),
        What::Out(len) => (Drawn::Room(*len), None),
        What::OutHandle(..) => (Drawn::Room(8), None),
        What::Handle(..) => match given {
            // It is called beside the step, which says nothing of it.
            Some(handle) => (Drawn::Number(value(&slot.ty, handle)), None),
            None => integer(handle(plan, slot, store, used)?, None),
        },
    })
}

/// A handle of a pool. Where the call takes one of them away, no two parameters get the same.
fn handle(
    plan: &Plan,
    slot: &Slot,
    store: &mut Store<Host>,
    used: &mut Vec<(usize, i64)>,
) -> wasmtime::Result<i64> {
    let pool = slot.pool.expect("a handle is of a pool");
    let mut handles = store.data().guest.pools.handles(pool).to_vec();
    if plan.takes_of(pool) {
        handles.retain(|handle| !used.contains(&(pool, *handle)));
    }
    if handles.is_empty() {
        // A rule is not called then; what is called in setup may have to do without.
        return Err(Stop::Reject.into());
    }
    let handle = handles[index(store, handles.len())?];
    used.push((pool, handle));
    Ok(handle)
}

fn flags(
    slot: &Slot,
    store: &mut Store<Host>,
    values: &[Named],
) -> wasmtime::Result<(Drawn, Option<String>)> {
    let (mut bits, mut shown) = (0, Vec::new());
    for Named { name, value } in values {
        if boolean(store, 0.5)? {
            bits |= value;
            shown.push(name.clone().unwrap_or_else(|| value.to_string()));
        }
    }
    let shown = store.data().step.is_verbose.then(|| match shown.is_empty() {
        true => "0".to_string(),
        false => shown.join("|"),
    });
    Ok((Drawn::Number(value(&slot.ty, bits)), shown))
}

fn number(slot: &Slot, store: &mut Store<Host>, kind: Kind) -> wasmtime::Result<(Drawn, Option<String>)> {
    let step = &mut store.data_mut().step;
    let is_verbose = step.is_verbose;
    let answer = ask(step, kind)?;
    let shown = is_verbose.then(|| answer.to_string());
    let like = Val::default_for_ty(&slot.ty).expect("a number has a default");
    Ok((Drawn::Number(drawn(&like, answer)), shown))
}

fn boolean(store: &mut Store<Host>, probability: f64) -> wasmtime::Result<bool> {
    let answer = ask(&mut store.data_mut().step, Kind::Boolean { probability })?;
    Ok(*answer == Value::Boolean(true))
}

/// One of so many. Of one there is nothing to choose.
fn index(store: &mut Store<Host>, count: usize) -> wasmtime::Result<usize> {
    match ask(&mut store.data_mut().step, Kind::Index { n: count as u32 })? {
        Value::Index(index) => Ok(*index as usize),
        other => unreachable!("{other:?} answers an index"),
    }
}

fn bytes(content: &Content, store: &mut Store<Host>) -> wasmtime::Result<Vec<u8>> {
    Ok(match content {
        Content::Bytes(min, max) => {
            let answer = ask(&mut store.data_mut().step, Kind::Bytes { min: *min, max: *max })?;
            let Value::Bytes(bytes) = answer.clone() else { unreachable!("bytes answer bytes") };
            drew_bytes(&mut store.data_mut().step, bytes.len())?;
            bytes.to_vec()
        }
        Content::Texts(texts) => texts[index(store, texts.len())?].clone().into_bytes(),
        Content::Values(values) => values[index(store, values.len())?].clone(),
        Content::Text(alphabet, min, max) => text(store, alphabet, (*min, *max))?,
    })
}

/// Letters of an alphabet, drawn as the SDK draws text: before each a boolean says that there is one more, and both lie in a
/// span, so that to delete the span deletes the letter.
fn text(store: &mut Store<Host>, alphabet: &[String], (min, max): (u32, u32)) -> wasmtime::Result<Vec<u8>> {
    let mut text = Vec::new();
    for count in 0..=max {
        if min == max && count == max {
            break;
        }
        span_begin(&mut store.data_mut().step, (u32::MAX, LABEL))?;
        let more = more(&mut store.data_mut().step, count, (min, max))?;
        if more {
            text.extend_from_slice(alphabet[index(store, alphabet.len())?].as_bytes());
        }
        store.data_mut().step.chooser.span_end(false);
        if !more {
            break;
        }
    }
    Ok(text)
}

/// Whether there is one more, after so many of at least `min` and at most `max`: a boolean, but where there are always as many.
pub(in super::super) fn more(step: &mut Step, count: u32, (min, max): (u32, u32)) -> wasmtime::Result<bool> {
    if min == max && max > 0 {
        return Ok(count < max);
    }
    let probability = match count {
        count if count < min => 1.0,
        count if count >= max => 0.0,
        _ => probability_of_more(min, max),
    };
    Ok(*ask(step, Kind::Boolean { probability })? == Value::Boolean(true))
}

/// As the SDK has it: the mean length is twice the least and at least 5 more than it, but no more than the middle.
fn probability_of_more(min: u32, max: u32) -> f64 {
    let (min, max) = (f64::from(min), f64::from(max));
    let mean = (2.0 * min).max(min + 5.0).min(0.5 * (min + max));
    1.0 - 1.0 / (1.0 + mean - min)
}

pub(super) fn value(ty: &ValType, number: i64) -> Val {
    if ty.is_i64() { Val::I64(number) } else { Val::I32(number as i32) }
}

/// The integer that a value is.
pub(super) fn number_of(value: &Val) -> i64 {
    match value {
        Val::I32(number) => i64::from(*number),
        Val::I64(number) => *number,
        _ => unreachable!("a handle is an integer"),
    }
}
