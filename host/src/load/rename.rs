//! Imports and exports under other names, as tools that minify modules take them away. All else of the module stays as it is,
//! byte by byte.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, anyhow, bail, ensure};
use wasm_encoder::reencode::{Reencode, RoundtripReencoder};
use wasm_encoder::{EntityType, ExportSection, ImportSection, Section};
use wasmparser::{Parser, Payload};

use crate::file::nearest;

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
        if let Some(unknown) = names.keys().find(|name| !known.contains(name)) {
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
        match &payload {
            Payload::ImportSection(section) => imports_of(section.clone(), imports)?.append_to(&mut out),
            Payload::ExportSection(section) => exports_of(section.clone(), exports)?.append_to(&mut out),
            other => {
                if let Some((id, range)) = other.as_section() {
                    wasm_encoder::RawSection { id, data: &wasm[range] }.append_to(&mut out);
                }
            }
        }
    }
    Ok(out)
}

fn imports_of(
    section: wasmparser::ImportSectionReader<'_>,
    names: &BTreeMap<String, String>,
) -> Result<ImportSection> {
    let mut imports = ImportSection::new();
    for import in section.into_imports() {
        let import = import?;
        let ty: EntityType =
            RoundtripReencoder.entity_type(import.ty).map_err(|error| anyhow!("an import: {error}"))?;
        match names.get(&format!("{}.{}", import.module, import.name)) {
            None => imports.import(import.module, import.name, ty),
            Some(to) => {
                let split =
                    to.split_once('.').filter(|(module, name)| !module.is_empty() && !name.is_empty());
                let (module, name) =
                    split.with_context(|| format!("an import is named MODULE.NAME, and not `{to}`"))?;
                imports.import(module, name, ty)
            }
        };
    }
    Ok(imports)
}

fn exports_of(
    section: wasmparser::ExportSectionReader<'_>,
    names: &BTreeMap<String, String>,
) -> Result<ExportSection> {
    let mut exports = ExportSection::new();
    for export in section {
        let export = export?;
        let kind =
            RoundtripReencoder.export_kind(export.kind).map_err(|error| anyhow!("an export: {error}"))?;
        exports.export(names.get(export.name).map_or(export.name, |name| name), kind, export.index);
    }
    Ok(exports)
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
        check(&[("a.b", "env")], &[], Err("an import is named MODULE.NAME, and not `env`"));
        check(&[], &[("c", "f")], Err("two exports would have the name `f`"));
    }
}
