//! What it takes until a program can be explored: instrumenting, compiling, and starting the next time.

use super::{build, row, timed};
use std::time::Duration;

use anyhow::{Result, ensure};
use spelunk::machine::{Cache, Limits, Program, Selection, instrument};
use wasmparser::{Parser, Payload};

/// Instrumenting the largest modules that are built here, and one of 30 MiB made from the functions of one of them.
pub(crate) fn instrumenting() -> Result<()> {
    let (programs, store) = (build("guests/programs")?, build("../examples/kv")?);
    let large = grown(&store, 30 << 20)?;
    let mut first = 0.0;
    for (name, wasm) in [("the programs", &programs), ("kv", &store), ("kv 30 times and more", &large)] {
        let mut edges = 0;
        let took = shortest(5, || {
            let instrumented = instrument(wasm, &Limits::default(), &Selection::default());
            edges = instrumented.map_or(0, |instrumented| instrumented.edges.edges.len());
        });
        ensure!(edges > 0, "{name} cannot be instrumented");
        let mib = without_debug(wasm)? as f64 / f64::from(1 << 20);
        let speed = mib / took.as_secs_f64();
        first = if first == 0.0 { speed } else { first };
        let beside = format!("{mib:.1} MiB, {edges} edges, {} ms", took.as_millis());
        row(&format!("instrumenting {name}"), &format!("{speed:.1} MiB/s"), &beside, speed / first);
    }
    Ok(())
}

/// The second start of a program, from the cache, beside the first.
pub(crate) fn starting() -> Result<()> {
    let store = build("../examples/kv")?;
    let folder = tempfile::tempdir()?;
    let cache = Cache::new(folder.path().to_path_buf());
    for wasm in [&store, &grown(&store, 5 << 20)?] {
        let load = || drop(Program::load_with(wasm, Limits::default(), Selection::default(), Some(&cache)));
        let first = timed(load);
        let second = shortest(5, load);
        let ms = |duration: Duration| format!("{:.1} ms", duration.as_secs_f64() * 1e3);
        let mib = without_debug(wasm)? as f64 / f64::from(1 << 20);
        row(
            &format!("second start, {mib:.1} MiB"),
            &ms(second),
            &format!("{} the first", ms(first)),
            second.as_secs_f64() / first.as_secs_f64(),
        );
    }
    Ok(())
}

fn shortest(times: usize, mut f: impl FnMut()) -> Duration {
    (0..times).map(|_| timed(&mut f)).min().unwrap_or_default()
}

/// The bytes of a module but for debug sections, which are left out.
fn without_debug(wasm: &[u8]) -> Result<usize> {
    let mut bytes = wasm.len();
    for payload in Parser::new(0).parse_all(wasm) {
        if let Payload::CustomSection(section) = payload?
            && section.name().starts_with(".debug")
        {
            bytes -= section.data().len();
        }
    }
    Ok(bytes)
}

/// The module with copies of all its functions, until its code has so many bytes: as compiled code is, but more of it.
/// Copies call what they are copies of calls, and nothing calls them.
fn grown(wasm: &[u8], bytes: usize) -> Result<Vec<u8>> {
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
