//! Values that users write: in WAVE, the syntax of the component model's tools.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, anyhow, bail};
use wasm_wave::value::{Type as WaveType, Value as WaveValue};
use wasm_wave::wasm::WasmValue;

use super::interface::{Interface, Sort, Ty, Type};
use super::value::{Value, canonical32, canonical64};
use super::wit;
use crate::text::line;

/// Letters that are shown of a text that is none.
const SHOWN_MAX: usize = 64;

/// A value of a type without handles, as it is written.
///
/// # Errors
/// Text that is no value of this type.
pub(super) fn read(interface: &Interface, ty: Ty, text: &str) -> Result<Value> {
    let wave = wave_type(interface, ty)?;
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

/// The type, which has no handles.
fn wave_type(interface: &Interface, ty: Ty) -> Result<WaveType> {
    let inner = |ty: &Ty| wave_type(interface, *ty);
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
        Type::Handle(..) => bail!("no text stands for a resource"),
    };
    Ok(ty)
}
