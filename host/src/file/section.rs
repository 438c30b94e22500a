//! What travels in a module: custom sections of ours, so that whatever names or keeps a module, by its hash or as a whole,
//! does so with what they hold.

use std::borrow::Cow;
use std::ops::Range;

use anyhow::{Result, bail};
use wasmparser::{Parser, Payload};

/// The module with a section of this name that holds these bytes, in place of those of this name that it has.
pub(super) fn put(wasm: &[u8], name: &str, held: &[u8]) -> Vec<u8> {
    let mut with = without(wasm, name).into_owned();
    let mut content = Vec::new();
    push_number(&mut content, name.len());
    content.extend_from_slice(name.as_bytes());
    with.push(0);
    push_number(&mut with, content.len() + held.len());
    with.extend(content);
    with.extend_from_slice(held);
    with
}

/// What the section of this name holds, where there is one.
///
/// # Errors
/// There are several.
pub(super) fn held<'w>(wasm: &'w [u8], name: &str) -> Result<Option<&'w [u8]>> {
    match sections(wasm, name).as_slice() {
        [] => Ok(None),
        [(_, held)] => Ok(Some(&wasm[held.clone()])),
        _ => bail!("the module has more than one section `{name}`"),
    }
}

/// The module without its sections of this name.
pub(super) fn without<'w>(wasm: &'w [u8], name: &str) -> Cow<'w, [u8]> {
    let sections = sections(wasm, name);
    if sections.is_empty() {
        return Cow::Borrowed(wasm);
    }
    let mut rest = Vec::new();
    let mut at = 0;
    for (whole, _) in sections {
        rest.extend_from_slice(&wasm[at..whole.start]);
        at = whole.end;
    }
    rest.extend_from_slice(&wasm[at..]);
    Cow::Owned(rest)
}

/// Where the sections of this name are, and what they hold.
fn sections(wasm: &[u8], name: &str) -> Vec<(Range<usize>, Range<usize>)> {
    let mut found = Vec::new();
    // Where the section ends that was read last, and in how many modules of a component the reader is.
    let (mut end, mut within) = (8, 0);
    // What is wrong with the module otherwise is said by who reads all of it.
    for payload in Parser::new(0).parse_all(wasm).map_while(Result::ok) {
        match &payload {
            Payload::CustomSection(section) if within == 0 && section.name() == name => {
                found.push((end..section.range().end, section.data_offset()..section.range().end));
            }
            Payload::End(_) if within > 0 => within -= 1,
            _ => {}
        }
        if let Some((_, range)) = payload.as_section().filter(|_| within == 0) {
            end = range.end;
        }
        if matches!(payload, Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) {
            within += 1;
        }
    }
    found
}

pub(crate) fn push_number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
