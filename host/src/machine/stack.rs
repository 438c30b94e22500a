//! The shadow stack: the part of linear memory that compilers use as a call stack. Between steps no frame is
//! live, so everything below the stack pointer is left over, and two states that differ only there behave
//! alike (unless the guest reads memory that it never initialised).

use wasmparser::{ConstExpr, DataKind, ExternalKind, KnownCustom, Name, Operator, Parser, Payload, TypeRef};

/// Where a module keeps its shadow stack, as LLVM's tools lay it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShadowStack {
    /// The index of the global `__stack_pointer`.
    pub(super) global: u32,
    /// The lowest address of the stack, in memory 0.
    pub(super) low: u32,
}

impl ShadowStack {
    /// Finds the shadow stack of a module; `None` where it cannot be told apart from data with certainty.
    pub(super) fn of(wasm: &[u8]) -> Option<ShadowStack> {
        let mut found = Found::default();
        for payload in Parser::new(0).parse_all(wasm) {
            found.read(payload.ok()?)?;
        }
        let global = found.global?;
        let top = found.constant(global)?;
        let data_end = found.data_end.and_then(|global| found.constant(global));
        let low = match data_end {
            // Data first: the stack lies between it and the heap.
            Some(end) if end <= top => end,
            // The stack first: all data lies above it.
            Some(_) => 0,
            None if found.data_low? >= top => 0,
            None => return None,
        };
        Some(ShadowStack { global, low })
    }
}

/// What the sections of a module say.
#[derive(Default)]
struct Found {
    globals_imported: u32,
    /// The initial value of each defined global, where it is a constant i32.
    constants: Vec<Option<u32>>,
    global: Option<u32>,
    data_end: Option<u32>,
    /// The lowest address that an active data segment fills.
    data_low: Option<u32>,
}

impl Found {
    fn read(&mut self, payload: Payload<'_>) -> Option<()> {
        match payload {
            Payload::ImportSection(imports) => {
                let globals = imports.into_imports().filter_map(Result::ok);
                self.globals_imported = globals.filter(|i| matches!(i.ty, TypeRef::Global(_))).count() as u32;
            }
            Payload::GlobalSection(globals) => {
                for global in globals {
                    self.constants.push(constant(&global.ok()?.init_expr));
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports.into_iter().filter_map(Result::ok) {
                    match export.name {
                        "__stack_pointer" if export.kind == ExternalKind::Global => {
                            self.global = Some(export.index)
                        }
                        "__data_end" if export.kind == ExternalKind::Global => {
                            self.data_end = Some(export.index)
                        }
                        _ => {}
                    }
                }
            }
            Payload::DataSection(data) => {
                for segment in data {
                    if let DataKind::Active { memory_index: 0, offset_expr } = segment.ok()?.kind {
                        let at = constant(&offset_expr)?;
                        self.data_low = Some(self.data_low.map_or(at, |low| low.min(at)));
                    }
                }
            }
            Payload::CustomSection(section) => {
                if let KnownCustom::Name(names) = section.as_known() {
                    let globals = names.into_iter().filter_map(Result::ok).filter_map(|name| match name {
                        Name::Global(map) => Some(map),
                        _ => None,
                    });
                    for naming in globals.flatten().filter_map(Result::ok) {
                        if naming.name == "__stack_pointer" {
                            self.global.get_or_insert(naming.index);
                        }
                    }
                }
            }
            _ => {}
        }
        Some(())
    }

    fn constant(&self, global: u32) -> Option<u32> {
        *self.constants.get(global.checked_sub(self.globals_imported)? as usize)?
    }
}

fn constant(expression: &ConstExpr<'_>) -> Option<u32> {
    match expression.get_operators_reader().read().ok()? {
        Operator::I32Const { value } => Some(value as u32),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wat: &str, expected: Option<(u32, u32)>) {
        let wasm = wat::parse_str(format!("(module (memory 2) {wat})")).unwrap();
        assert_eq!(ShadowStack::of(&wasm).map(|stack| (stack.global, stack.low)), expected, "{wat}");
    }

    const POINTER: &str =
        "(global $other i32 (i32.const 1)) (global $__stack_pointer (mut i32) (i32.const 65536))";

    #[test]
    fn it_is_found_where_the_layout_is_known() {
        check(&format!(r#"{POINTER} (data (i32.const 65536) "x")"#), Some((1, 0)));
        check(&format!(r#"{POINTER} (data (i32.const 1024) "x")"#), None);
        check(POINTER, None);
        let data_first = r#"(global $end i32 (i32.const 2048)) (export "__data_end" (global $end))"#;
        check(&format!(r#"{POINTER} {data_first} (data (i32.const 1024) "x")"#), Some((1, 2048)));
        let stack_first = r#"(global $end i32 (i32.const 70000)) (export "__data_end" (global $end))"#;
        check(&format!("{POINTER} {stack_first}"), Some((1, 0)));
        check(r#"(global (mut i32) (i32.const 65536)) (data (i32.const 65536) "x")"#, None);
    }
}
