//! Text that goes from the memory of one instance to that of another, which may write it in another way.
//!
//! Adapters between instances call this, as the Component Model's `CanonicalABI.md` splits the work: they reserve room, and ask again
//! where it was not enough.

use std::sync::Arc;

use wasmtime::{AsContextMut, Caller, Func, FuncType, Store, Trap, Val};

use super::super::host::{Host, pay};
use super::abi::{UTF16, broken, mark};
use super::imports::linked;
use super::interface::{Interface, Transcode};

/// What was written: the bytes, units read, and what the adapter is told as their length.
struct Written {
    bytes: Vec<u8>,
    read: usize,
    len: u32,
}

/// What rewrites text of one memory for another.
pub(super) fn function(
    store: &mut Store<Host>,
    ty: FuncType,
    interface: &Arc<Interface>,
    (how, from, to): (Transcode, u32, u32),
) -> Func {
    let interface = interface.clone();
    Func::new(store, ty, move |mut caller, args, results| {
        let args: Vec<u32> = args.iter().map(|arg| arg.unwrap_i32() as u32).collect();
        let answers = call(&interface, &mut caller, (how, from, to), &args)?;
        for (result, answer) in results.iter_mut().zip(answers) {
            *result = Val::I32(answer as i32);
        }
        Ok(())
    })
}

fn call(
    interface: &Interface,
    caller: &mut Caller<'_, Host>,
    (how, from, to): (Transcode, u32, u32),
    args: &[u32],
) -> wasmtime::Result<Vec<u32>> {
    use Transcode::*;
    let linked = linked(interface, caller)?;
    let (Some((source, _)), Some((target, marks))) = (linked.memory(from), linked.memory(to)) else {
        return Err(Trap::MemoryOutOfBounds.into());
    };
    let &[at, len, to, ..] = args else {
        return broken("text is passed as an address, a length and an address");
    };
    let is_wide = matches!(
        how,
        CopyUtf16 | Utf16ToCompactProbablyUtf16 | Utf16ToCompactUtf16 | Utf16ToLatin1 | Utf16ToUtf8
    );
    let bytes = len as usize * if is_wide { 2 } else { 1 };
    let text = source.data(&*caller).get(at as usize..).and_then(|text| text.get(..bytes));
    let text = text.ok_or(Trap::MemoryOutOfBounds)?.to_vec();
    pay(caller, 2 * text.len())?;
    let room = args.get(3).copied().unwrap_or(u32::MAX) as usize;
    let more = args.get(4).copied().unwrap_or(0);
    let before = target.data(&*caller).get(to as usize..).and_then(|at| at.get(..more as usize));
    let written = rewritten(how, text, (room, more), before)?;
    let place = target.data_mut(&mut *caller).get_mut(to as usize..);
    let place =
        place.and_then(|place| place.get_mut(..written.bytes.len())).ok_or(Trap::MemoryOutOfBounds)?;
    place.copy_from_slice(&written.bytes);
    mark(&mut caller.as_context_mut(), marks, (to, written.bytes.len()));
    Ok(match how {
        CopyUtf8 | CopyLatin1 | CopyUtf16 | Latin1ToUtf16 => Vec::new(),
        Latin1ToUtf8 | Utf16ToUtf8 | Utf8ToLatin1 | Utf16ToLatin1 => {
            vec![written.read as u32, written.bytes.len() as u32]
        }
        _ => vec![written.len],
    })
}

/// What is written. `more` says whether it is the first time, or how much was written as Latin-1 `before`.
fn rewritten(
    how: Transcode,
    text: Vec<u8>,
    (room, more): (usize, u32),
    before: Option<&[u8]>,
) -> wasmtime::Result<Written> {
    use Transcode::*;
    Ok(match how {
        CopyUtf8 => Written { read: 0, len: 0, bytes: utf8(&text)?.as_bytes().to_vec() },
        CopyLatin1 => Written { read: 0, len: 0, bytes: text },
        CopyUtf16 => Written { read: 0, len: 0, bytes: wide(utf16(&text)?.chars()) },
        Latin1ToUtf16 => Written { read: 0, len: 0, bytes: wide(latin1(&text)) },
        Utf8ToUtf16 => all(wide(utf8(&text)?.chars()), 2),
        Latin1ToUtf8 => to_utf8(latin1(&text).map(Ok), room, more != 0)?,
        Utf16ToUtf8 => to_utf8(units(&text), room, more != 0)?,
        Utf8ToLatin1 => to_latin1(up_to(&text).chars(), char::len_utf8),
        Utf16ToLatin1 => {
            let units = text.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
            to_latin1(units.map_while(|unit| char::from_u32(unit.into())), |_| 1)
        }
        Utf16ToCompactProbablyUtf16 => {
            let text = utf16(&text)?;
            match text.chars().map(u8::try_from).collect::<Result<Vec<u8>, _>>() {
                Ok(narrow) => all(narrow, 1),
                Err(_) => {
                    let written = all(wide(text.chars()), 2);
                    Written { len: written.len | UTF16, ..written }
                }
            }
        }
        Utf8ToCompactUtf16 | Utf16ToCompactUtf16 => {
            // What was written as Latin-1 so far gets as wide.
            let before = wide(latin1(before.ok_or(Trap::MemoryOutOfBounds)?));
            let rest = if how == Utf8ToCompactUtf16 { utf8(&text)?.to_string() } else { utf16(&text)? };
            all([before, wide(rest.chars())].concat(), 2)
        }
    })
}

/// All of a text, in units of so many bytes.
fn all(bytes: Vec<u8>, unit: usize) -> Written {
    Written { read: 0, len: (bytes.len() / unit) as u32, bytes }
}

fn utf8(text: &[u8]) -> wasmtime::Result<&str> {
    match std::str::from_utf8(text) {
        Ok(text) => Ok(text),
        Err(_) => broken("a text is not UTF-8"),
    }
}

/// As much of it as is UTF-8.
fn up_to(text: &[u8]) -> &str {
    match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).expect("so far it is"),
    }
}

fn units(text: &[u8]) -> impl Iterator<Item = Result<char, std::char::DecodeUtf16Error>> {
    char::decode_utf16(text.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit)))
}

fn utf16(text: &[u8]) -> wasmtime::Result<String> {
    match units(text).collect() {
        Ok(text) => Ok(text),
        Err(_) => broken("a text is not UTF-16"),
    }
}

fn latin1(text: &[u8]) -> impl Iterator<Item = char> {
    text.iter().map(|byte| char::from(*byte))
}

fn wide(text: impl Iterator<Item = char>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for letter in text {
        letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| bytes.extend(unit.to_le_bytes()));
    }
    bytes
}

/// As much as there is room for, and at first only up to what takes more than a byte. Latin-1 has one unit for each letter.
fn to_utf8(
    text: impl Iterator<Item = Result<char, std::char::DecodeUtf16Error>>,
    room: usize,
    is_first: bool,
) -> wasmtime::Result<Written> {
    let mut written = Written { bytes: Vec::new(), read: 0, len: 0 };
    for letter in text {
        let Ok(letter) = letter else { return broken("a text is not UTF-16") };
        if is_first && !letter.is_ascii() || room - written.bytes.len() < letter.len_utf8() {
            break;
        }
        written.read += letter.len_utf16();
        written.bytes.extend(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Ok(written)
}

/// Up to the first letter that is not of Latin-1.
fn to_latin1(text: impl Iterator<Item = char>, units: fn(char) -> usize) -> Written {
    let mut written = Written { bytes: Vec::new(), read: 0, len: 0 };
    for letter in text {
        let Ok(byte) = u8::try_from(letter) else { break };
        written.read += units(letter);
        written.bytes.push(byte);
    }
    written
}
