//! Values as they are shown: in WAVE, the syntax of the component model's tools. Handles, which that has none for, are `counter#1`.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::sync::Arc;

use wasm_wave::value::Type as WaveType;
use wasm_wave::wasm::{WasmTypeKind, WasmValue};
use wasm_wave::writer::Writer;

use super::interface::{Interface, Sort, Ty, Type};
use super::value::Value;

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

/// A value as it is shown. What is not shown is not looked at: a guest may make values of gigabytes.
pub(super) fn shown(interface: &Interface, ty: Ty, value: &Value) -> String {
    let mut writer = Writer::new(Beginning::default());
    let _ = writer.write_value(&Shown::Value(interface, ty, value));
    let Beginning { mut text, is_cut } = std::mem::take(writer.as_mut());
    if is_cut {
        text += " …";
    }
    text
}

/// The beginning of a text, beyond which nothing is written.
#[derive(Default)]
struct Beginning {
    text: String,
    is_cut: bool,
}

impl Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = TEXT_MAX - self.text.len();
        self.is_cut = text.len() > room;
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
        if self.is_cut { Err(fmt::Error) } else { Ok(()) }
    }
}

/// A value as the writer looks at it.
#[derive(Clone, Copy)]
enum Shown<'v> {
    Value(&'v Interface, Ty, &'v Value),
    Byte(u8),
}

impl<'v> Shown<'v> {
    fn list(interface: &'v Interface, ty: Ty, value: &'v Value) -> Box<dyn Iterator<Item = Shown<'v>> + 'v> {
        match (&interface.types[ty].ty, value) {
            (_, Value::Bytes(bytes)) => Box::new(bytes.iter().map(|byte| Shown::Byte(*byte))),
            (Type::List(of), Value::List(values)) => {
                Box::new(values.iter().map(|value| Shown::Value(interface, *of, value)))
            }
            (Type::Tuple(types), Value::Record(values)) => {
                let fields = types.iter().zip(values);
                Box::new(fields.map(|(ty, value)| Shown::Value(interface, *ty, value)))
            }
            _ => Box::new(std::iter::empty()),
        }
    }

    /// The name of the case that it is of, and what that has.
    fn case(&self) -> (Cow<'v, str>, Option<Cow<'v, Shown<'v>>>) {
        let Shown::Value(interface, ty, value) = *self else { return (UNKNOWN.into(), None) };
        match (&interface.types[ty].ty, value) {
            (Type::Variant(_, cases), Value::Variant(case, payload)) => {
                let Some((name, ty)) = cases.get(*case as usize) else { return (UNKNOWN.into(), None) };
                let payload = ty.zip(payload.as_deref());
                let payload = payload.map(|(ty, value)| Cow::Owned(Shown::Value(interface, ty, value)));
                (name.into(), payload)
            }
            (Type::Handle(ty, _), Value::Handle(handle)) => (name(interface, *ty, *handle).into(), None),
            _ => (UNKNOWN.into(), None),
        }
    }
}

/// What is shown of a value that is of another type than it should be.
const UNKNOWN: &str = "unknown";

fn name(interface: &Interface, ty: u32, handle: u32) -> String {
    let resource = interface.handles.get(ty as usize).copied().flatten();
    let resource = resource.and_then(|handle| interface.resources.get(handle.resource as usize));
    format!("{}#{handle}", resource.map_or("resource", |resource| &resource.name))
}

impl WasmValue for Shown<'_> {
    type Type = WaveType;

    fn kind(&self) -> WasmTypeKind {
        let Shown::Value(interface, ty, value) = *self else { return WasmTypeKind::U8 };
        match (&interface.types[ty].ty, value) {
            (_, Value::Bool(_)) => WasmTypeKind::Bool,
            (_, Value::Signed(_)) => WasmTypeKind::S64,
            (_, Value::Unsigned(_)) => WasmTypeKind::U64,
            (_, Value::F32(_)) => WasmTypeKind::F32,
            (_, Value::F64(_)) => WasmTypeKind::F64,
            (_, Value::Char(_)) => WasmTypeKind::Char,
            (_, Value::String(_)) => WasmTypeKind::String,
            (_, Value::Bytes(_)) | (Type::List(_), Value::List(_)) => WasmTypeKind::List,
            (Type::Record(_), Value::Record(_)) => WasmTypeKind::Record,
            (Type::Tuple(_), Value::Record(_)) => WasmTypeKind::Tuple,
            (Type::Variant(Sort::Variant, _), Value::Variant(..)) => WasmTypeKind::Variant,
            (Type::Variant(Sort::Option, _), Value::Variant(..)) => WasmTypeKind::Option,
            (Type::Variant(Sort::Result, _), Value::Variant(..)) => WasmTypeKind::Result,
            (Type::Flags(_), Value::Flags(_)) => WasmTypeKind::Flags,
            _ => WasmTypeKind::Enum,
        }
    }

    fn unwrap_bool(&self) -> bool {
        matches!(self, Shown::Value(_, _, Value::Bool(true)))
    }

    fn unwrap_u8(&self) -> u8 {
        if let Shown::Byte(byte) = *self { byte } else { 0 }
    }

    fn unwrap_s64(&self) -> i64 {
        if let Shown::Value(_, _, Value::Signed(number)) = *self { *number } else { 0 }
    }

    fn unwrap_u64(&self) -> u64 {
        if let Shown::Value(_, _, Value::Unsigned(number)) = *self { *number } else { 0 }
    }

    fn unwrap_f32(&self) -> f32 {
        if let Shown::Value(_, _, Value::F32(bits)) = *self { f32::from_bits(*bits) } else { 0.0 }
    }

    fn unwrap_f64(&self) -> f64 {
        if let Shown::Value(_, _, Value::F64(bits)) = *self { f64::from_bits(*bits) } else { 0.0 }
    }

    fn unwrap_char(&self) -> char {
        if let Shown::Value(_, _, Value::Char(letter)) = *self { *letter } else { char::default() }
    }

    fn unwrap_string(&self) -> Cow<'_, str> {
        let Shown::Value(_, _, Value::String(text)) = *self else { return UNKNOWN.into() };
        text.into()
    }

    fn unwrap_list(&self) -> Box<dyn Iterator<Item = Cow<'_, Self>> + '_> {
        let Shown::Value(interface, ty, value) = *self else { return Box::new(std::iter::empty()) };
        Box::new(Shown::list(interface, ty, value).map(Cow::Owned))
    }

    fn unwrap_tuple(&self) -> Box<dyn Iterator<Item = Cow<'_, Self>> + '_> {
        self.unwrap_list()
    }

    fn unwrap_record(&self) -> Box<dyn Iterator<Item = (Cow<'_, str>, Cow<'_, Self>)> + '_> {
        let Shown::Value(interface, ty, Value::Record(values)) = *self else {
            return Box::new(std::iter::empty());
        };
        let Type::Record(fields) = &interface.types[ty].ty else { return Box::new(std::iter::empty()) };
        let fields = fields.iter().zip(values);
        Box::new(fields.map(move |((name, ty), value)| {
            (Cow::from(name), Cow::Owned(Shown::Value(interface, *ty, value)))
        }))
    }

    fn unwrap_variant(&self) -> (Cow<'_, str>, Option<Cow<'_, Self>>) {
        self.case()
    }

    fn unwrap_enum(&self) -> Cow<'_, str> {
        self.case().0
    }

    fn unwrap_option(&self) -> Option<Cow<'_, Self>> {
        self.case().1
    }

    fn unwrap_result(&self) -> Result<Option<Cow<'_, Self>>, Option<Cow<'_, Self>>> {
        let payload = self.case().1;
        if matches!(self, Shown::Value(_, _, Value::Variant(0, _))) { Ok(payload) } else { Err(payload) }
    }

    fn unwrap_flags(&self) -> Box<dyn Iterator<Item = Cow<'_, str>> + '_> {
        let Shown::Value(interface, ty, Value::Flags(bits)) = *self else {
            return Box::new(std::iter::empty());
        };
        let Type::Flags(names) = &interface.types[ty].ty else { return Box::new(std::iter::empty()) };
        let set = names.iter().enumerate().filter(move |(index, _)| bits & (1 << index) != 0);
        Box::new(set.map(|(_, name)| Cow::from(name)))
    }
}
