//! Imports and exports under other names, as tools that minify modules take them away. All else of the module stays as it is,
//! byte by byte.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use wasmparser::{ExportSectionReader, ImportSectionReader, Imports, Parser, Payload};

use crate::file::{DRAWN, ZERO, nearest, push_number};

/// The names of imports, `MODULE.NAME`, and of exports.
pub(super) fn imports_and_exports(wasm: &[u8]) -> Result<(Vec<String>, Vec<String>)> {
    let (mut imported, mut exported) = (Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.context("it is no module that can be read")? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import?;
                    imported.push(format!("{}.{}", import.module, import.name));
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    exported.push(export?.name.to_string());
                }
            }
            _ => {}
        }
    }
    Ok((imported, exported))
}

/// The module with other names: of imports, `MODULE.NAME` each, and of exports.
///
/// # Errors
/// A name that the module does not have, or that two would have; a new name of an import without a dot.
pub(super) fn renamed(
    wasm: &[u8],
    imports: &BTreeMap<String, String>,
    exports: &BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    if imports.is_empty() && exports.is_empty() {
        return Ok(wasm.to_vec());
    }
    let (imported, exported) = imports_and_exports(wasm)?;
    for (what, names, known) in [("imports", imports, &imported), ("exports", exports, &exported)] {
        let all: BTreeSet<&str> = known.iter().map(String::as_str).collect();
        if let Some(unknown) = names.keys().find(|name| !all.contains(name.as_str())) {
            let near = nearest(unknown, known.iter().map(String::as_str));
            bail!("the module {what} nothing of the name `{unknown}`, which is to be renamed; {near}");
        }
    }
    let mut seen = BTreeSet::new();
    for name in &exported {
        let name = exports.get(name).unwrap_or(name);
        ensure!(seen.insert(name), "two exports would have the name `{name}`");
    }
    let mut out = b"\0asm\x01\0\0\0".to_vec();
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload?;
        let Some((id, range)) = payload.as_section() else { continue };
        let content: Cow<'_, [u8]> = match payload {
            Payload::ImportSection(section) => imports_of(wasm, section, imports)?.into(),
            Payload::ExportSection(section) => exports_of(wasm, section, exports)?.into(),
            _ => wasm[range].into(),
        };
        out.push(id);
        push_number(&mut out, content.len());
        out.extend_from_slice(&content);
    }
    Ok(out)
}

/// What a section of imports holds, under other names.
fn imports_of(
    wasm: &[u8],
    section: ImportSectionReader<'_>,
    names: &BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    let (count, end) = (section.count(), section.range().end);
    let mut imports = Vec::new();
    for entry in section.into_iter_with_offsets() {
        match entry? {
            (at, Imports::Single(_, import)) => imports.push((at, import.module, import.name)),
            _ => bail!("the module has imports in the compact form, which cannot be renamed"),
        }
    }
    let mut out = Vec::new();
    push_number(&mut out, count as usize);
    let ends = imports.iter().skip(1).map(|(at, ..)| *at).chain([end]);
    for ((at, module, name), end) in imports.iter().zip(ends) {
        let (new_module, new_name) = match names.get(&format!("{module}.{name}")) {
            None => (module.to_string(), name.to_string()),
            Some(to) => new_name_of(to, &format!("{module}.{name}"))?,
        };
        push_text(&mut out, &new_module);
        push_text(&mut out, &new_name);
        out.extend_from_slice(after_text(after_text(&wasm[*at..end], module), name));
    }
    Ok(out)
}

/// The module and the name that an import gets: those that are given, or a stub.
fn new_name_of(given: &str, import: &str) -> Result<(String, String)> {
    let stub = match given {
        "zero" => Some(ZERO),
        "drawn" => Some(DRAWN),
        _ => None,
    };
    if let Some(module) = stub {
        return Ok((module.to_string(), import.to_string()));
    }
    let split = given.split_once('.').filter(|(module, name)| !module.is_empty() && !name.is_empty());
    let (module, name) = split.with_context(|| {
        format!("an import is named MODULE.NAME, or answered with `zero` or `drawn`, and not `{given}`")
    })?;
    Ok((module.to_string(), name.to_string()))
}

/// What a section of exports holds, under other names.
fn exports_of(
    wasm: &[u8],
    section: ExportSectionReader<'_>,
    names: &BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    let (count, end) = (section.count(), section.range().end);
    let exports: wasmparser::Result<Vec<_>> = section.into_iter_with_offsets().collect();
    let exports = exports?;
    let mut out = Vec::new();
    push_number(&mut out, count as usize);
    let ends = exports.iter().skip(1).map(|(at, _)| *at).chain([end]);
    for ((at, export), end) in exports.iter().zip(ends) {
        push_text(&mut out, names.get(export.name).map_or(export.name, |name| name));
        out.extend_from_slice(after_text(&wasm[*at..end], export.name));
    }
    Ok(out)
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    push_number(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// What follows a text that is there, after its length, which may be written in more bytes than it needs.
fn after_text<'w>(bytes: &'w [u8], text: &str) -> &'w [u8] {
    let length = bytes.iter().take_while(|byte| **byte & 0x80 != 0).count() + 1;
    &bytes[length + text.len()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(names: &[(&str, &str)]) -> BTreeMap<String, String> {
        names.iter().map(|(from, to)| (from.to_string(), to.to_string())).collect()
    }

    fn check(imports: &[(&str, &str)], exports: &[(&str, &str)], expected: Result<&str, &str>) {
        let text = |import: &str, export: &str| {
            format!(
                r#"(module (import {import} (func (param i32) (result i64))) (memory (export {export}) 1)
                   (func (export "f") (result i64) (call 0 (i32.const 3))) (data (i32.const 1) "d") (@custom "c" "x"))"#
            )
        };
        let wasm = wat::parse_str(text(r#""a" "b""#, r#""c""#)).unwrap();
        let found = renamed(&wasm, &map(imports), &map(exports)).map_err(|error| error.to_string());
        let expected = expected.map(|names| {
            let (import, export) = names.split_once(';').unwrap();
            wat::parse_str(text(import, export)).unwrap()
        });
        assert_eq!(found, expected.map_err(str::to_string));
    }

    #[test]
    fn names_change_and_nothing_else() {
        check(&[], &[], Ok(r#""a" "b";"c""#));
        check(&[("a.b", "env.x.y")], &[("c", "memory")], Ok(r#""env" "x.y";"memory""#));
        check(
            &[("a.c", "env.x")],
            &[],
            Err("the module imports nothing of the name `a.c`, which is to be renamed; did you mean `a.b`?"),
        );
        check(
            &[],
            &[("memory", "m")],
            Err(
                "the module exports nothing of the name `memory`, which is to be renamed; there are `c`, `f`",
            ),
        );
        let error = "an import is named MODULE.NAME, or answered with `zero` or `drawn`, and not `env`";
        check(&[("a.b", "env")], &[], Err(error));
        check(&[("a.b", "zero")], &[], Ok(r#""spelunk:zero" "a.b";"c""#));
        check(&[("a.b", "drawn")], &[], Ok(r#""spelunk:drawn" "a.b";"c""#));
        check(&[], &[("c", "f")], Err("two exports would have the name `f`"));
    }
}
