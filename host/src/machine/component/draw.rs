//! What is drawn for a value of a type of WIT: ordinary choices, in spans.

use super::super::Program;
use super::super::host::{Host, Stop};
use super::super::imports::{ask, drew_bytes, span_begin};
use super::super::signed::{LABEL, Pools, more};
use super::interface::{Interface, Sort, Ty, Type};
use super::value::{Value, canonical32, canonical64};
use crate::choice::{Kind, Value as Answer};

type Drawn<T> = wasmtime::Result<T>;

/// Elements of a list, and letters of a text, that are drawn.
const ELEMENTS_MAX: u32 = 32;
/// What a check is asked that would have to try more.
const MORE: Kind = Kind::Bytes { min: 0, max: 1 };
/// Bytes of a list of bytes.
const BYTES_MAX: u32 = 64;
/// One of so many texts is one that programs trip over.
const SPECIAL: f64 = 0.1;

/// What texts are made of, the simplest first.
const LETTERS: [&str; 48] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u",
    "v", "w", "x", "y", "z", "0", "1", "2", "9", "A", "B", "Z", " ", "-", "_", ".", "/", ":", "\"", "\\",
    "%", "\n", "\0", "é", "ß", "中", "🦀",
];

/// Texts that programs trip over: numbers out of range, paths, markup, letters that change their length or place with their case.
const SPECIALS: [&str; 26] = [
    "0",
    "-1",
    "1e999",
    "NaN",
    "null",
    "true",
    "../..",
    "/",
    ".",
    "a/../b",
    "' OR '1'='1",
    "<a>",
    "${a}",
    "%s",
    "%00",
    "\u{feff}a",
    "e\u{301}",
    "İ",
    "ﬀ",
    "ς",
    "\u{202e}a",
    "\u{10ffff}",
    "\u{d7ff}",
    "a\r\nb",
    "\u{85}",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

/// What the handles of a call are.
#[derive(Default)]
pub(super) struct Used {
    /// It is what an import returns: whoever provides it knows resources by any number.
    pub(super) is_import: bool,
    /// Those of the pools that it has drawn, and whether it gives them away.
    pub(super) drawn: Vec<(u32, bool)>,
}

/// Whether there is a value of this type, of handles in these pools; without pools there are handles of all types.
pub(super) fn is_there(interface: &Interface, ty: Ty, pools: Option<&Pools>) -> bool {
    let Some(known) = pools else { return true };
    let is = |ty: &Ty| is_there(interface, *ty, pools);
    if !interface.types[ty].has_handles {
        return true;
    }
    match &interface.types[ty].ty {
        Type::Handle(ty, _) => {
            interface.handles[*ty as usize].is_some_and(|of| !known.handles(of.resource as usize).is_empty())
        }
        Type::Record(fields) => fields.iter().all(|(_, ty)| is(ty)),
        Type::Tuple(types) => types.iter().all(is),
        Type::Variant(_, cases) => cases.iter().any(|(_, ty)| ty.as_ref().is_none_or(is)),
        _ => true,
    }
}

/// Draws a value.
pub(super) fn value(interface: &Interface, ty: Ty, host: &mut Host, used: &mut Used) -> Drawn<Value> {
    Ok(match &interface.types[ty].ty {
        Type::Bool => Value::Bool(boolean(host, 0.5)?),
        Type::Integer(bytes, is_signed) => integer(host, *bytes, *is_signed)?,
        Type::F32 => Value::F32(canonical32((float(host)? as f32).to_bits())),
        Type::F64 => Value::F64(canonical64(float(host)?.to_bits())),
        Type::Char => Value::Char(letter(host)?),
        Type::String => Value::String(text(host)?),
        Type::List(element) => list(interface, *element, host, used)?,
        Type::Record(fields) => {
            let fields = fields.iter().map(|(_, ty)| value(interface, *ty, host, used));
            Value::Record(fields.collect::<Drawn<_>>()?)
        }
        Type::Tuple(types) => {
            let fields = types.iter().map(|ty| value(interface, *ty, host, used));
            Value::Record(fields.collect::<Drawn<_>>()?)
        }
        Type::Variant(sort, cases) => variant(interface, (*sort, cases), host, used)?,
        Type::Flags(names) => {
            let mut bits = 0;
            for index in 0..names.len() {
                bits |= u32::from(boolean(host, 0.5)?) << index;
            }
            Value::Flags(bits)
        }
        Type::Handle(..) if used.is_import => Value::Handle(0),
        Type::Handle(ty, is_own) => {
            let pool = interface.handles[*ty as usize].map_or(usize::MAX, |of| of.resource as usize);
            Value::Handle(handle(host, pool, *is_own, used)?)
        }
    })
}

/// Draws one of these.
pub(super) fn one_of<'v>(values: &'v [Value], host: &mut Host) -> Drawn<&'v Value> {
    Ok(&values[index(host, values.len())?])
}

fn variant(
    interface: &Interface,
    (sort, cases): (Sort, &[(String, Option<Ty>)]),
    host: &mut Host,
    used: &mut Used,
) -> Drawn<Value> {
    let pools = (!used.is_import).then_some(&host.guest.pools);
    let possible: Vec<usize> = (0..cases.len())
        .filter(|case| cases[*case].1.is_none_or(|ty| is_there(interface, ty, pools)))
        .collect();
    let case = match (sort, &possible[..]) {
        (_, []) => return Err(Stop::Reject.into()),
        (Sort::Option, [none, some]) => {
            if boolean(host, 0.5)? {
                *some
            } else {
                *none
            }
        }
        (_, possible) => possible[index(host, possible.len())?],
    };
    let payload = cases[case].1.map(|ty| value(interface, ty, host, used)).transpose()?;
    Ok(Value::Variant(case as u32, payload.map(Box::new)))
}

fn list(interface: &Interface, element: Ty, host: &mut Host, used: &mut Used) -> Drawn<Value> {
    if interface.types[element].ty == Type::Integer(1, false) {
        let step = &mut host.step;
        let Answer::Bytes(bytes) = ask(step, Kind::Bytes { min: 0, max: BYTES_MAX })? else {
            unreachable!("it was asked for bytes")
        };
        let bytes = bytes.to_vec();
        drew_bytes(step, bytes.len())?;
        return Ok(Value::Bytes(bytes));
    }
    let mut elements = Vec::new();
    for count in 0..=ELEMENTS_MAX {
        // What there is none of makes the list end.
        let pools = (!used.is_import).then_some(&host.guest.pools);
        let max = if is_there(interface, element, pools) { ELEMENTS_MAX } else { 0 };
        span_begin(&mut host.step, (u32::MAX, LABEL))?;
        let more = more(&mut host.step, count, (0, max))?;
        if more {
            elements.push(value(interface, element, host, used)?);
        }
        host.step.chooser.span_end(false);
        if !more {
            break;
        }
    }
    bound(host, elements.len() as u32)?;
    Ok(Value::List(elements))
}

fn text(host: &mut Host) -> Drawn<String> {
    if boolean(host, SPECIAL)? {
        return special(host);
    }
    let (mut text, mut letters) = (String::new(), 0);
    for count in 0..=ELEMENTS_MAX {
        span_begin(&mut host.step, (u32::MAX, LABEL))?;
        let more = more(&mut host.step, count, (0, ELEMENTS_MAX))?;
        if more {
            text += LETTERS[index(host, LETTERS.len())?];
            letters += 1;
        }
        host.step.chooser.span_end(false);
        if !more {
            break;
        }
    }
    bound(host, letters)?;
    Ok(text)
}

/// A text that programs trip over. It makes the choices that letters make, one by one, so that as many letters are simpler, and
/// are what remains where they do as well.
fn special(host: &mut Host) -> Drawn<String> {
    boolean(host, 1.0)?;
    let text = SPECIALS[index(host, SPECIALS.len())?];
    for _ in text.chars().skip(1) {
        boolean(host, 1.0)?;
        index(host, 1)?;
    }
    boolean(host, 0.0)?;
    Ok(text.to_string())
}

/// Nothing is drawn that has more parts, though there is more. A check learns that by a choice that it cannot try all answers to.
fn bound(host: &mut Host, parts: u32) -> Drawn<()> {
    if parts == ELEMENTS_MAX {
        ask(&mut host.step, MORE)?;
    }
    Ok(())
}

impl Program {
    /// Whether this choice says that a list or a text may have more parts than a check tries.
    pub(crate) fn has_more_parts(&self, choice: Kind) -> bool {
        self.exports.component.is_some() && choice == MORE
    }
}

/// A letter of a text, or any.
fn letter(host: &mut Host) -> Drawn<char> {
    if !boolean(host, SPECIAL)? {
        let letter = LETTERS[index(host, LETTERS.len())?];
        return Ok(letter.chars().next().expect("a letter"));
    }
    let code = number(host, (0, i64::from(u32::from(char::MAX)) - 0x800, 0x61))? as u32;
    // Without the surrogates, which are no characters.
    let code = if code < 0xd800 { code } else { code + 0x800 };
    Ok(char::from_u32(code).expect("it is no surrogate"))
}

fn integer(host: &mut Host, bytes: u8, is_signed: bool) -> Drawn<Value> {
    let bits = 8 * u32::from(bytes);
    if is_signed {
        let max = i64::MAX >> (64 - bits);
        return Ok(Value::Signed(number(host, (-max - 1, max, 0))?));
    }
    let number = match bits {
        // As its bits, of which the small ones are numbers that are no less than 0.
        64 => number(host, (i64::MIN, i64::MAX, 0))? as u64,
        _ => number(host, (0, (1 << bits) - 1, 0))? as u64,
    };
    Ok(Value::Unsigned(number))
}

fn number(host: &mut Host, (min, max, simplest): (i64, i64, i64)) -> Drawn<i64> {
    match ask(&mut host.step, Kind::Integer { min, max, simplest })? {
        Answer::Integer(number) => Ok(*number),
        other => unreachable!("{other:?} answers an integer"),
    }
}

fn float(host: &mut Host) -> Drawn<f64> {
    let kind = Kind::Float { min: f64::NEG_INFINITY, max: f64::INFINITY, nan: true, infinite: true };
    match ask(&mut host.step, kind)? {
        Answer::Float(number) => Ok(*number),
        other => unreachable!("{other:?} answers a float"),
    }
}

fn boolean(host: &mut Host, probability: f64) -> Drawn<bool> {
    Ok(*ask(&mut host.step, Kind::Boolean { probability })? == Answer::Boolean(true))
}

fn index(host: &mut Host, n: usize) -> Drawn<usize> {
    match ask(&mut host.step, Kind::Index { n: n as u32 })? {
        Answer::Index(index) => Ok(*index as usize),
        other => unreachable!("{other:?} answers an index"),
    }
}

/// A handle of a pool. What a call gives away it passes nowhere else.
pub(super) fn handle(host: &mut Host, pool: usize, is_own: bool, used: &mut Used) -> Drawn<u32> {
    let handles = host.guest.pools.handles(pool).iter().map(|handle| *handle as u32);
    let is_free =
        |handle: &u32| !used.drawn.iter().any(|(other, given)| other == handle && (is_own || *given));
    let free: Vec<u32> = handles.filter(is_free).collect();
    if free.is_empty() {
        return Err(Stop::Reject.into());
    }
    let handle = free[index(host, free.len())?];
    used.drawn.push((handle, is_own));
    Ok(handle)
}
