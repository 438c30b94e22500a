//! Values as text: WAVE, the syntax of the component model's tools. Handles, which that has none for, are `counter#1`.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use wasm_wave::value::{Type as WaveType, Value as WaveValue};
use wasm_wave::wasm::WasmValue;

use super::interface::{Interface, Sort, Ty, Type};
use super::value::{Value, canonical32, canonical64};
use super::wit;
use crate::text::line;

/// A value with its type.
#[derive(Clone, Debug)]
pub(crate) struct WitValue {
    interface: Arc<Interface>,
    ty: Ty,
    value: Value,
}

impl WitValue {
    pub(super) fn new(interface: &Arc<Interface>, ty: Ty, value: Value) -> WitValue {
        WitValue { interface: interface.clone(), ty, value }
    }
}

impl PartialEq for WitValue {
    /// Of two components that have the same type.
    fn eq(&self, other: &WitValue) -> bool {
        self.value == other.value
    }
}

impl fmt::Display for WitValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.interface, self.ty, &self.value))
    }
}

/// Bytes of the text of a value, of those that are shown.
const TEXT_MAX: usize = 4096;

/// Letters that are shown of a text that is none.
const SHOWN_MAX: usize = 64;

/// A value as it is shown.
pub(super) fn shown(interface: &Interface, ty: Ty, value: &Value) -> String {
    let mut handles = Vec::new();
    collect(interface, ty, value, &mut handles);
    let mut types = BTreeMap::new();
    let shown = wave(interface, (ty, value), &handles, &mut types);
    let shown = shown.and_then(|value| Ok(wasm_wave::to_string(&value)?));
    let mut text = shown.unwrap_or_else(|error| format!("a value that cannot be shown: {error}"));
    if text.len() > TEXT_MAX {
        text.truncate(text.floor_char_boundary(TEXT_MAX));
        text += " …";
    }
    text
}

/// A value of a type without handles, as it is written.
///
/// # Errors
/// Text that is no value of this type.
pub(super) fn read(interface: &Interface, ty: Ty, text: &str) -> Result<Value> {
    let wave = wave_type(interface, ty, &[])?;
    let read: Result<WaveValue, _> = wasm_wave::from_str(&wave, text);
    let read = read.map_err(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        let what = source.unwrap_or_else(|| match error.detail() {
            Some(detail) => format!("{}: {detail}", error.kind()),
            None => error.kind().to_string(),
        });
        let (text, what, ty) = (start_of(text), start_of(&what), wit::value(interface, ty));
        anyhow!("`{text}` is no value of the type {ty} in WAVE: {what}, at byte {}", error.span().start)
    });
    value_of(interface, ty, &read?)
}

/// The first letters of a text, as a part of one line.
fn start_of(text: &str) -> String {
    let start: String = text.chars().take(SHOWN_MAX).collect();
    format!("{}{}", line(&start), if start.len() < text.len() { "…" } else { "" })
}

fn value_of(interface: &Interface, ty: Ty, read: &WaveValue) -> Result<Value> {
    let inner = |ty: &Ty, value: &WaveValue| value_of(interface, *ty, value);
    Ok(match &interface.types[ty].ty {
        Type::Bool => Value::Bool(read.unwrap_bool()),
        Type::Integer(1, true) => Value::Signed(read.unwrap_s8().into()),
        Type::Integer(2, true) => Value::Signed(read.unwrap_s16().into()),
        Type::Integer(4, true) => Value::Signed(read.unwrap_s32().into()),
        Type::Integer(_, true) => Value::Signed(read.unwrap_s64()),
        Type::Integer(1, false) => Value::Unsigned(read.unwrap_u8().into()),
        Type::Integer(2, false) => Value::Unsigned(read.unwrap_u16().into()),
        Type::Integer(4, false) => Value::Unsigned(read.unwrap_u32().into()),
        Type::Integer(_, false) => Value::Unsigned(read.unwrap_u64()),
        Type::F32 => Value::F32(canonical32(read.unwrap_f32().to_bits())),
        Type::F64 => Value::F64(canonical64(read.unwrap_f64().to_bits())),
        Type::Char => Value::Char(read.unwrap_char()),
        Type::String => Value::text(read.unwrap_string()),
        Type::List(of) if interface.types[*of].ty == Type::Integer(1, false) => {
            Value::Bytes(read.unwrap_list().map(|byte| byte.unwrap_u8()).collect())
        }
        Type::List(of) => {
            Value::List(read.unwrap_list().map(|value| inner(of, &value)).collect::<Result<_>>()?)
        }
        Type::Record(fields) => {
            let read: BTreeMap<_, _> = read.unwrap_record().collect();
            let fields = fields.iter().map(|(name, ty)| {
                inner(ty, read.get(&**name).with_context(|| format!("the field `{name}` is missing"))?)
            });
            Value::Record(fields.collect::<Result<_>>()?)
        }
        Type::Tuple(types) => {
            let fields = types.iter().zip(read.unwrap_tuple()).map(|(ty, value)| inner(ty, &value));
            Value::Record(fields.collect::<Result<_>>()?)
        }
        Type::Variant(sort, cases) => {
            let (case, payload) = case_of(*sort, cases, read).context("there is no such case")?;
            let payload = cases[case].1.zip(payload).map(|(ty, value)| inner(&ty, &value)).transpose()?;
            Value::Variant(case as u32, payload.map(Box::new))
        }
        Type::Flags(names) => {
            let set: BTreeSet<_> = read.unwrap_flags().collect();
            let is_set = |name: &String| u32::from(set.contains(&**name));
            Value::Flags(names.iter().enumerate().map(|(index, name)| is_set(name) << index).sum())
        }
        Type::Handle(..) => bail!("no text stands for a resource"),
    })
}

/// The case that a value is of, and what it has.
fn case_of<'v>(
    sort: Sort,
    cases: &[(String, Option<Ty>)],
    read: &'v WaveValue,
) -> Option<(usize, Option<Cow<'v, WaveValue>>)> {
    let of = |name: &str| cases.iter().position(|(case, _)| case == name);
    Some(match sort {
        Sort::Variant => {
            let (name, payload) = read.unwrap_variant();
            (of(&name)?, payload)
        }
        Sort::Enum => (of(&read.unwrap_enum())?, None),
        Sort::Option => read.unwrap_option().map_or((0, None), |payload| (1, Some(payload))),
        Sort::Result => match read.unwrap_result() {
            Ok(payload) => (0, payload),
            Err(payload) => (1, payload),
        },
    })
}

fn name(interface: &Interface, ty: u32, handle: u32) -> String {
    let resource = interface.handles.get(ty as usize).copied().flatten();
    let resource = resource.and_then(|handle| interface.resources.get(handle.resource as usize));
    format!("{}#{handle}", resource.map_or("resource", |resource| &resource.name))
}

/// What the handles in a value are called.
fn collect(interface: &Interface, ty: Ty, value: &Value, names: &mut Vec<String>) {
    match (&interface.types[ty].ty, value) {
        (Type::Handle(ty, _), Value::Handle(handle)) => names.push(name(interface, *ty, *handle)),
        (Type::List(ty), Value::List(values)) => {
            values.iter().for_each(|value| collect(interface, *ty, value, names));
        }
        (Type::Record(fields), Value::Record(values)) => {
            let fields = fields.iter().zip(values);
            fields.for_each(|((_, ty), value)| collect(interface, *ty, value, names));
        }
        (Type::Tuple(types), Value::Record(values)) => {
            let fields = types.iter().zip(values);
            fields.for_each(|(ty, value)| collect(interface, *ty, value, names));
        }
        (Type::Variant(_, cases), Value::Variant(case, Some(value))) => {
            if let Some((_, Some(ty))) = cases.get(*case as usize) {
                collect(interface, *ty, value, names);
            }
        }
        _ => {}
    }
}

/// The type, where all handles are among these.
fn wave_type(interface: &Interface, ty: Ty, handles: &[String]) -> Result<WaveType> {
    let inner = |ty: &Ty| wave_type(interface, *ty, handles);
    let case = |ty: &Option<Ty>| ty.as_ref().map(inner).transpose();
    let ty = match &interface.types[ty].ty {
        Type::Bool => WaveType::BOOL,
        Type::Integer(1, true) => WaveType::S8,
        Type::Integer(1, false) => WaveType::U8,
        Type::Integer(2, true) => WaveType::S16,
        Type::Integer(2, false) => WaveType::U16,
        Type::Integer(4, true) => WaveType::S32,
        Type::Integer(4, false) => WaveType::U32,
        Type::Integer(_, true) => WaveType::S64,
        Type::Integer(_, false) => WaveType::U64,
        Type::F32 => WaveType::F32,
        Type::F64 => WaveType::F64,
        Type::Char => WaveType::CHAR,
        Type::String => WaveType::STRING,
        Type::List(ty) => WaveType::list(inner(ty)?),
        Type::Record(fields) => {
            let fields: Result<Vec<_>> =
                fields.iter().map(|(name, ty)| Ok((name.clone(), inner(ty)?))).collect();
            WaveType::record(fields?).context("a record has fields")?
        }
        Type::Tuple(types) => {
            let types: Result<Vec<_>> = types.iter().map(inner).collect();
            WaveType::tuple(types?).context("a tuple has fields")?
        }
        Type::Variant(Sort::Variant, cases) => {
            let cases: Result<Vec<_>> =
                cases.iter().map(|(name, ty)| Ok((name.clone(), case(ty)?))).collect();
            WaveType::variant(cases?).context("a variant has cases")?
        }
        Type::Variant(Sort::Enum, cases) => {
            WaveType::enum_ty(cases.iter().map(|(name, _)| name.clone())).context("an enum has cases")?
        }
        Type::Variant(Sort::Option, cases) => {
            WaveType::option(case(&cases[1].1)?.context("an option has a type")?)
        }
        Type::Variant(Sort::Result, cases) => WaveType::result(case(&cases[0].1)?, case(&cases[1].1)?),
        Type::Flags(names) => WaveType::flags(names.iter().cloned()).context("flags have names")?,
        Type::Handle(..) => {
            let names = if handles.is_empty() { &["#".to_string()][..] } else { handles };
            WaveType::enum_ty(names.iter().cloned()).context("there are handles")?
        }
    };
    Ok(ty)
}

fn wave(
    interface: &Interface,
    (ty, value): (Ty, &Value),
    handles: &[String],
    types: &mut BTreeMap<u32, WaveType>,
) -> Result<WaveValue> {
    // A list has many elements of one type.
    let of = match types.entry(ty.0) {
        Entry::Occupied(known) => known.get().clone(),
        Entry::Vacant(place) => place.insert(wave_type(interface, ty, handles)?).clone(),
    };
    let mut inner = |ty: Ty, value: &Value| wave(interface, (ty, value), handles, types);
    let value = match (&interface.types[ty].ty, value) {
        (_, Value::Bool(is)) => WaveValue::make_bool(*is),
        (Type::Integer(bytes, _), value @ (Value::Signed(_) | Value::Unsigned(_))) => integer(value, *bytes),
        (_, Value::F32(bits)) => WaveValue::make_f32(f32::from_bits(*bits)),
        (_, Value::F64(bits)) => WaveValue::make_f64(f64::from_bits(*bits)),
        (_, Value::Char(letter)) => WaveValue::make_char(*letter),
        (_, Value::String(text)) => WaveValue::make_string(text.into()),
        (_, Value::Bytes(bytes)) => {
            WaveValue::make_list(&of, bytes.iter().map(|byte| WaveValue::make_u8(*byte)))?
        }
        (Type::List(ty), Value::List(values)) => {
            let values: Result<Vec<_>> = values.iter().map(|value| inner(*ty, value)).collect();
            WaveValue::make_list(&of, values?)?
        }
        (Type::Record(fields), Value::Record(values)) => {
            let values: Result<Vec<_>> = fields
                .iter()
                .zip(values)
                .map(|((name, ty), value)| Ok((name.as_str(), inner(*ty, value)?)))
                .collect();
            WaveValue::make_record(&of, values?)?
        }
        (Type::Tuple(types), Value::Record(values)) => {
            let values: Result<Vec<_>> =
                types.iter().zip(values).map(|(ty, value)| inner(*ty, value)).collect();
            WaveValue::make_tuple(&of, values?)?
        }
        (Type::Variant(sort, cases), Value::Variant(case, payload)) => {
            let (name, ty) = cases.get(*case as usize).context("there is such a case")?;
            let payload = ty.zip(payload.as_deref()).map(|(ty, value)| inner(ty, value)).transpose()?;
            match sort {
                Sort::Variant => WaveValue::make_variant(&of, name, payload)?,
                Sort::Enum => WaveValue::make_enum(&of, name)?,
                Sort::Option => WaveValue::make_option(&of, payload)?,
                Sort::Result if *case == 0 => WaveValue::make_result(&of, Ok(payload))?,
                Sort::Result => WaveValue::make_result(&of, Err(payload))?,
            }
        }
        (Type::Flags(names), Value::Flags(bits)) => WaveValue::make_flags(&of, set_of(names, *bits))?,
        (Type::Handle(ty, _), Value::Handle(handle)) => {
            WaveValue::make_enum(&of, &name(interface, *ty, *handle))?
        }
        (ty, value) => return Err(anyhow!("{value:?} is no {ty:?}")),
    };
    Ok(value)
}

/// Names of the flags that are set.
fn set_of(names: &[String], bits: u32) -> impl Iterator<Item = &str> {
    let is_set = move |(index, _): &(usize, &String)| bits & (1 << index) != 0;
    names.iter().enumerate().filter(is_set).map(|(_, name)| name.as_str())
}

fn integer(value: &Value, bytes: u8) -> WaveValue {
    match (value, bytes) {
        (Value::Signed(number), 1) => WaveValue::make_s8(*number as i8),
        (Value::Signed(number), 2) => WaveValue::make_s16(*number as i16),
        (Value::Signed(number), 4) => WaveValue::make_s32(*number as i32),
        (Value::Signed(number), _) => WaveValue::make_s64(*number),
        (Value::Unsigned(number), 1) => WaveValue::make_u8(*number as u8),
        (Value::Unsigned(number), 2) => WaveValue::make_u16(*number as u16),
        (Value::Unsigned(number), 4) => WaveValue::make_u32(*number as u32),
        (Value::Unsigned(number), _) => WaveValue::make_u64(*number),
        (other, _) => unreachable!("{other:?} is no integer"),
    }
}
