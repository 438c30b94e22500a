//! Modules of sizes that compiled code has.

use anyhow::Result;
use wasmparser::{Parser, Payload};

/// The module with copies of all its functions, until its code has so many bytes: as compiled code is, but more of it.
/// Copies call what they are copies of calls, and nothing calls them.
///
/// # Errors
/// A module that is malformed.
pub fn grown(wasm: &[u8], bytes: usize) -> Result<Vec<u8>> {
    let (mut types, mut bodies): (Vec<u32>, Vec<&[u8]>) = (Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::FunctionSection(functions) => types = functions.into_iter().collect::<Result<_, _>>()?,
            Payload::CodeSectionEntry(body) => bodies.push(body.as_bytes()),
            _ => {}
        }
    }
    let copies = bytes.div_ceil(bodies.iter().map(|body| body.len()).sum());
    let count = (types.len() * copies) as u32;
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload?;
        let mut content = Vec::new();
        match &payload {
            Payload::CustomSection(section) if section.name().starts_with(".debug") => continue,
            Payload::FunctionSection(_) => {
                push(&mut content, count);
                (0..copies).flat_map(|_| &types).for_each(|ty| push(&mut content, *ty));
            }
            Payload::CodeSectionStart { .. } => {
                push(&mut content, count);
                for body in (0..copies).flat_map(|_| &bodies) {
                    push(&mut content, body.len() as u32);
                    content.extend_from_slice(body);
                }
            }
            other => match other.as_section() {
                Some((_, range)) => content.extend_from_slice(&wasm[range]),
                None => continue,
            },
        }
        let Some((id, _)) = payload.as_section() else { continue };
        module.push(id);
        push(&mut module, content.len() as u32);
        module.extend(content);
    }
    Ok(module)
}

/// Appends a number as WebAssembly writes it.
fn push(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
