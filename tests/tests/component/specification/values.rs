//! Values of test files, in WAVE.

use wasmtime::component::wasm_wave::{self, value::Value};
use wast::component::WastVal;

/// A value as Spelunk shows it.
pub(crate) fn wave(value: &WastVal<'_>) -> String {
    let leaf = |value: Value| wasm_wave::to_string(&value).unwrap();
    let list = |values: &[WastVal<'_>]| values.iter().map(wave).collect::<Vec<_>>().join(", ");
    let with = |name: &str, payload: &Option<Box<WastVal<'_>>>| match payload {
        Some(payload) => format!("{name}({})", wave(payload)),
        None => name.to_string(),
    };
    match value {
        WastVal::Bool(is) => is.to_string(),
        WastVal::U8(number) => number.to_string(),
        WastVal::S8(number) => number.to_string(),
        WastVal::U16(number) => number.to_string(),
        WastVal::S16(number) => number.to_string(),
        WastVal::U32(number) => number.to_string(),
        WastVal::S32(number) => number.to_string(),
        WastVal::U64(number) => number.to_string(),
        WastVal::S64(number) => number.to_string(),
        WastVal::F32(bits) => leaf(Value::from(f32::from_bits(bits.bits))),
        WastVal::F64(bits) => leaf(Value::from(f64::from_bits(bits.bits))),
        WastVal::Char(letter) => leaf(Value::from(*letter)),
        WastVal::String(text) => leaf(Value::from(*text)),
        WastVal::List(values) => format!("[{}]", list(values)),
        WastVal::Tuple(values) => format!("({})", list(values)),
        WastVal::Record(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{}: {}", label(name), wave(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        WastVal::Variant(name, payload) => with(&label(name), payload),
        WastVal::Enum(name) => label(name),
        WastVal::Option(None) => "none".to_string(),
        WastVal::Option(some) => with("some", some),
        WastVal::Result(Ok(payload)) => with("ok", payload),
        WastVal::Result(Err(payload)) => with("err", payload),
        WastVal::Flags(names) => {
            format!("{{{}}}", names.iter().map(|name| label(name)).collect::<Vec<_>>().join(", "))
        }
    }
}

/// A name, which is told from a word of WAVE by a mark.
fn label(name: &str) -> String {
    let is_word = ["true", "false", "some", "none", "ok", "err", "inf", "nan"].contains(&name);
    if is_word { format!("%{name}") } else { name.to_string() }
}
