//! The WIT package `spelunk:guest`, through which components choose, and say what must hold. `guest-sdk/wit/guest.wit` is its text.

use std::sync::Arc;

use anyhow::{Result, bail};
use wasmtime::WasmBacktrace;
use xxhash_rust::xxh3::xxh3_64;

use super::super::host::{Host, Stop};
use super::super::imports::{DRAWN_BYTES_MAX, ask, drew_bytes, score, span_begin, stop};
use super::super::signed::LABEL;
use super::interface::{Import, Interface};
use super::provided::{Answer, Provided};
use super::value::Value;
use super::wit;
use crate::choice::{Kind, Value as Chosen};
use crate::outcome::FailureKind;
use crate::property::PropertyKind;

/// What its interfaces begin with.
const PACKAGE: &str = "spelunk:guest/";

type Done = wasmtime::Result<Answer>;
/// Answers a call with values of the types that the function takes.
type Function = fn(&mut Host, &[Value]) -> Done;

/// Interface and function, type, and what answers.
const FUNCTIONS: [(&str, &str, Function); 20] = [
    ("choices#boolean", "func(probability: f64) -> bool", boolean),
    ("choices#index", "func(count: u32) -> u32", index),
    ("choices#integer", "func(min: s64, max: s64) -> s64", integer),
    ("choices#float", "func(min: f64, max: f64) -> f64", float),
    ("choices#bytes", "func(min: u32, max: u32) -> list<u8>", bytes),
    ("choices#begin-span", "func()", |host, _| span_begin(&mut host.step, (u32::MAX, LABEL)).map(|()| None)),
    ("choices#end-span", "func(discarded: bool)", |host, args| {
        match host.step.chooser.span_end(args == [Value::Bool(true)]) {
            true => Ok(None),
            false => stop(FailureKind::Abi, None, "end-span without a span that is open"),
        }
    }),
    ("choices#reject", "func()", |_, _| Err(Stop::Reject.into())),
    ("properties#always", "func(holds: bool, name: string)", always),
    ("properties#sometimes", "func(holds: bool, name: string)", |host, args| {
        host.tally.reach(PropertyKind::Sometimes, text(args, 1).as_bytes(), args[0] == Value::Bool(true));
        Ok(None)
    }),
    ("properties#reachable", "func(name: string)", |host, args| {
        host.tally.reach(PropertyKind::Reachable, text(args, 0).as_bytes(), true);
        Ok(None)
    }),
    ("properties#unreachable", "func(name: string)", |host, args| {
        host.tally.reach(PropertyKind::Unreachable, text(args, 0).as_bytes(), true);
        stop(FailureKind::Unreachable, Some(text(args, 0).to_string()), "it was reached")
    }),
    ("properties#fail", "func(message: string)", |_, args| stop(FailureKind::Fail, None, text(args, 0))),
    ("properties#target", "func(score: f64, label: string)", |host, args| {
        let Value::F64(bits) = args[0] else { unreachable!("it is a float") };
        score(&mut host.step, f64::from_bits(bits), xxh3_64(text(args, 1).as_bytes()));
        Ok(None)
    }),
    ("properties#observe", "func(number: s64, name: string)", |host, args| {
        let Value::Signed(number) = args[0] else { unreachable!("it is a number") };
        host.step.observed.push(xxh3_64(text(args, 1).as_bytes()), number);
        Ok(None)
    }),
    ("properties#event", "func(text: string)", |host, args| {
        host.tally.event(text(args, 0).as_bytes());
        Ok(None)
    }),
    ("story#is-told", "func() -> bool", |host, _| Ok(Some(Value::Bool(host.step.is_verbose)))),
    ("story#describe", "func(name: string, value: string)", |host, args| {
        host.step.describe(|| (text(args, 0).to_string(), text(args, 1).to_string()));
        Ok(None)
    }),
    ("story#note", "func(text: string)", |host, args| {
        host.step.note(|| text(args, 0).to_string());
        Ok(None)
    }),
    ("faults#is-on", "func(name: string) -> bool", |host, args| {
        let guest = &host.guest;
        match guest.fault_names.iter().position(|known| known == text(args, 0)) {
            Some(index) => Ok(Some(Value::Bool(guest.faults[index]))),
            None => {
                let name = text(args, 0);
                stop(FailureKind::Abi, None, format!("fault `{name}`: no export `fault-{name}` declares it"))
            }
        }
    }),
];

/// Bytes of a name, which is kept.
const NAME_MAX: usize = 64 << 10;

/// What answers an import, where it is of this package.
///
/// # Errors
/// There is no such function, or it has another type.
pub(super) fn provided(interface: &Interface, import: &Import) -> Result<Option<Provided>> {
    let Import::Function { interface: within, name, params, result, .. } = import else { return Ok(None) };
    let Some(own) = within.strip_prefix(PACKAGE) else { return Ok(None) };
    let own = format!("{}#{name}", own.split('@').next().unwrap_or(own));
    let Some((_, ty, function)) = FUNCTIONS.iter().find(|(known, ..)| *known == own) else {
        bail!("the component imports `{within}#{name}`, and `spelunk:guest` has nothing of that name");
    };
    let wanted = wit::function(interface, params, *result);
    if wanted != *ty {
        bail!("the component imports `{within}#{name}` as `{wanted}`; it is `{ty}`");
    }
    Ok(Some(Arc::new(|caller, args| {
        if args.iter().any(|arg| matches!(arg, Value::String(text) if text.len() > NAME_MAX)) {
            return stop(FailureKind::Abi, None, format!("a text of more than {NAME_MAX} bytes"));
        }
        let notes = caller.data().step.told.notes.len();
        let answer = function(caller.data_mut(), &args);
        if caller.data().step.told.notes.len() > notes {
            let stack = WasmBacktrace::force_capture(&caller);
            caller.data_mut().step.noted_at(stack.frames());
        }
        answer
    })))
}

fn text(args: &[Value], index: usize) -> &str {
    match &args[index] {
        Value::String(text) => text,
        other => unreachable!("{other:?} is no text"),
    }
}

fn boolean(host: &mut Host, args: &[Value]) -> Done {
    let Value::F64(bits) = args[0] else { unreachable!("it is a float") };
    // NaN is never true.
    let probability = Some(f64::from_bits(bits)).filter(|probability| *probability > 0.0);
    let probability = probability.map_or(0.0, |probability| probability.min(1.0));
    let chosen = *ask(&mut host.step, Kind::Boolean { probability })? == Chosen::Boolean(true);
    Ok(Some(Value::Bool(chosen)))
}

fn index(host: &mut Host, args: &[Value]) -> Done {
    let Value::Unsigned(n) = args[0] else { unreachable!("it is a number") };
    if n == 0 {
        return stop(FailureKind::Deadlock, None, "a choice among nothing: no alternative is left");
    }
    match ask(&mut host.step, Kind::Index { n: n as u32 })? {
        Chosen::Index(index) => Ok(Some(Value::Unsigned((*index).into()))),
        other => unreachable!("{other:?} answers an index"),
    }
}

fn integer(host: &mut Host, args: &[Value]) -> Done {
    let [Value::Signed(min), Value::Signed(max)] = *args else { unreachable!("they are numbers") };
    if min > max {
        return stop(FailureKind::Abi, None, format!("integer: the range {min}..={max} is empty"));
    }
    match ask(&mut host.step, Kind::Integer { min, max, simplest: 0.clamp(min, max) })? {
        Chosen::Integer(number) => Ok(Some(Value::Signed(*number))),
        other => unreachable!("{other:?} answers an integer"),
    }
}

fn float(host: &mut Host, args: &[Value]) -> Done {
    let [Value::F64(min), Value::F64(max)] = *args else { unreachable!("they are floats") };
    let (min, max) = (f64::from_bits(min), f64::from_bits(max));
    // Not `min > max`: a bound that is NaN must not pass.
    let is_range = min <= max && min <= f64::MAX && max >= f64::MIN;
    if !is_range {
        return stop(FailureKind::Abi, None, format!("float: there is no value in {min}..={max}"));
    }
    let (min, max) = (min.max(f64::MIN), max.min(f64::MAX));
    match ask(&mut host.step, Kind::Float { min, max, nan: false, infinite: false })? {
        Chosen::Float(number) => Ok(Some(Value::F64(number.to_bits()))),
        other => unreachable!("{other:?} answers a float"),
    }
}

fn bytes(host: &mut Host, args: &[Value]) -> Done {
    let [Value::Unsigned(min), Value::Unsigned(max)] = *args else { unreachable!("they are numbers") };
    if min > max || max as usize > DRAWN_BYTES_MAX {
        let message = format!("bytes: {min}..={max} is no range of lengths up to {DRAWN_BYTES_MAX}");
        return stop(FailureKind::Abi, None, message);
    }
    let Chosen::Bytes(bytes) = ask(&mut host.step, Kind::Bytes { min: min as u32, max: max as u32 })? else {
        unreachable!("bytes are answered by bytes")
    };
    let bytes = bytes.to_vec();
    drew_bytes(&mut host.step, bytes.len())?;
    Ok(Some(Value::Bytes(bytes)))
}

fn always(host: &mut Host, args: &[Value]) -> Done {
    let (holds, name) = (args[0] == Value::Bool(true), text(args, 1));
    host.tally.reach(PropertyKind::Always, name.as_bytes(), holds);
    if holds {
        return Ok(None);
    }
    stop(FailureKind::Always, Some(name.to_string()), "the condition does not hold")
}
