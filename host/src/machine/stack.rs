//! The shadow stack: the part of linear memory that compilers use as a call stack. Between steps no frame is
//! live, so everything below the stack pointer is left over, and two states that differ only there behave
//! alike (unless the guest reads memory that it never initialised).
//!
//! Memory that is called dead and is not makes a wrong *holds*. So nothing is dead but where the layout is that of
//! LLVM's linker, no code names an address in it, and the pointer is where a stack pointer may be.

use std::ops::Range;

use wasmparser::{
    Data, DataKind, ExternalKind, Global, KnownCustom, Name, Operator, Parser, Payload, TypeRef,
};

use super::addresses;

/// Where a module keeps its shadow stack, as LLVM's tools lay it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShadowStack {
    /// The index of the global `__stack_pointer`.
    pub(super) global: u32,
    /// The lowest address of the stack, in memory 0.
    pub(super) low: u32,
    /// The address that the stack begins at and grows down from.
    pub(super) top: u32,
}

/// Bytes at the beginning of memory that count always: a null pointer leads there, so a guest with a bug may keep
/// something in them.
const NULL_BYTES: u32 = 1024;

impl ShadowStack {
    /// Finds the shadow stack of a module; `None` where it cannot be told apart from data with certainty.
    pub(super) fn of(wasm: &[u8]) -> Option<ShadowStack> {
        let mut found = Found::default();
        for payload in Parser::new(0).parse_all(wasm) {
            found.read(payload.ok()?)?;
        }
        let stack = found.stack()?;
        // A cast of a number to a pointer, say.
        let is_named = addresses::are_in(wasm, stack.low..stack.top)?;
        (!is_named).then_some(stack)
    }

    /// What is left over where the stack pointer is here.
    pub(super) fn dead(&self, pointer: u32) -> Range<usize> {
        match (self.low..=self.top).contains(&pointer) {
            true => self.low as usize..pointer as usize,
            // It was moved to another stack, or is none.
            false => 0..0,
        }
    }
}

/// What the sections of a module say.
#[derive(Default)]
struct Found {
    globals_imported: u32,
    /// Of each defined global its initial value, where that is a constant i32, and whether it can change.
    globals: Vec<Option<(u32, bool)>>,
    global: Option<u32>,
    data_end: Option<u32>,
    /// What active data segments fill, from the lowest address to behind the highest.
    data: Option<(u32, u32)>,
    /// LLVM's tools say that they were here.
    is_of_llvm: bool,
}

impl Found {
    fn stack(&self) -> Option<ShadowStack> {
        let global = self.global?;
        let (top, true) = self.constant(global)? else { return None };
        let data_end = match self.data_end {
            Some(global) => Some(self.constant(global)?.0),
            None => None,
        };
        let low = match (data_end, self.data) {
            // The stack first: all data lies above it.
            (Some(end), data) if end > top && data.is_none_or(|(low, _)| low >= top) => 0,
            // Data first: the stack lies between it and the heap.
            (Some(end), data) if end <= top && data.is_none_or(|(_, data_end)| data_end <= end) => end,
            // Of no data at all, nothing says where it would lie.
            (None, Some((low, _))) if low >= top && self.is_of_llvm => 0,
            _ => return None,
        };
        let low = low.max(NULL_BYTES);
        (low <= top).then_some(ShadowStack { global, low, top })
    }

    fn read(&mut self, payload: Payload<'_>) -> Option<()> {
        match payload {
            Payload::ImportSection(imports) => {
                let globals = imports.into_imports().filter_map(Result::ok);
                self.globals_imported = globals.filter(|i| matches!(i.ty, TypeRef::Global(_))).count() as u32;
            }
            Payload::GlobalSection(globals) => {
                for global in globals {
                    let Global { ty, init_expr } = global.ok()?;
                    self.globals.push(constant(&init_expr).map(|value| (value, ty.mutable)));
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
                    self.read_segment(&segment.ok()?)?;
                }
            }
            Payload::CustomSection(section) => {
                self.is_of_llvm |= matches!(section.name(), "producers" | "target_features");
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

    fn read_segment(&mut self, segment: &Data<'_>) -> Option<()> {
        if let DataKind::Active { memory_index: 0, offset_expr } = &segment.kind {
            let low = constant(offset_expr)?;
            let end = low.checked_add(segment.data.len() as u32)?;
            let (known_low, known_end) = self.data.unwrap_or((low, end));
            self.data = Some((known_low.min(low), known_end.max(end)));
        }
        Some(())
    }

    /// The initial value of a global, and whether it can change.
    fn constant(&self, global: u32) -> Option<(u32, bool)> {
        *self.globals.get(global.checked_sub(self.globals_imported)? as usize)?
    }
}

fn constant(expression: &wasmparser::ConstExpr<'_>) -> Option<u32> {
    let mut reader = expression.get_operators_reader();
    match (reader.read().ok()?, reader.read().ok()?) {
        (Operator::I32Const { value }, Operator::End) => Some(value as u32),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wat: &str, expected: Option<(u32, u32, u32)>) {
        let wasm = wat::parse_str(format!("(module (memory 2) {wat})")).unwrap();
        let stack = ShadowStack::of(&wasm);
        assert_eq!(stack.map(|stack| (stack.global, stack.low, stack.top)), expected, "{wat}");
    }

    const POINTER: &str =
        "(global $other i32 (i32.const 1)) (global $__stack_pointer (mut i32) (i32.const 65536))";
    const LLVM: &str = r#"(@custom "target_features" "")"#;
    const STACK_FIRST: &str = r#"(global $end i32 (i32.const 70000)) (export "__data_end" (global $end))"#;
    const DATA_FIRST: &str = r#"(global $end i32 (i32.const 2048)) (export "__data_end" (global $end))"#;
    const FOUND: Option<(u32, u32, u32)> = Some((1, NULL_BYTES, 65536));

    #[test]
    fn it_is_found_where_the_layout_is_known() {
        check(&format!(r#"{POINTER} {LLVM} (data (i32.const 65536) "x")"#), FOUND);
        check(&format!(r#"{POINTER} {LLVM} (data (i32.const 1024) "x")"#), None);
        check(&format!("{POINTER} {LLVM}"), None);
        check(&format!(r#"{POINTER} {DATA_FIRST} (data (i32.const 1024) "x")"#), Some((1, 2048, 65536)));
        check(&format!("{POINTER} {STACK_FIRST}"), FOUND);
        check(r#"(global (mut i32) (i32.const 65536)) (data (i32.const 65536) "x")"#, None);
    }

    /// Anybody may name a global so, and keep what they like below it.
    #[test]
    fn a_name_alone_proves_nothing() {
        check(&format!(r#"{POINTER} (data (i32.const 65536) "x")"#), None);
        check(&format!(r#"{POINTER} {STACK_FIRST} (data (i32.const 1024) "x")"#), None);
        check(&format!(r#"{POINTER} {DATA_FIRST} (data (i32.const 2047) "xx")"#), None);
        check(&format!(r#"{POINTER} {LLVM} (data (i32.add (i32.const 65535) (i32.const -9)) "x")"#), None);
        let constant = "(global $__stack_pointer i32 (i32.const 65536))";
        check(&format!("(global i32 (i32.const 1)) {constant} {STACK_FIRST}"), None);
        let small = "(global i32 (i32.const 1)) (global $__stack_pointer (mut i32) (i32.const 1000))";
        check(&format!("{small} {STACK_FIRST}"), None);
    }

    #[test]
    fn code_that_names_an_address_in_it_keeps_something_there() {
        let with = |body: &str| format!("{POINTER} {STACK_FIRST} (func (param i32) (local i32) {body})");
        check(&with("(i32.store (i32.const 65536) (i32.const 4096))"), FOUND);
        check(&with("(i32.store offset=4096 (local.get 0) (i32.const 1))"), FOUND);
        check(&with("(i32.store (i32.const 4096) (i32.mul (local.get 0) (i32.const 3)))"), None);
        check(&with("(i32.store8 offset=65535 (i32.const 0) (local.get 0))"), None);
        check(&with("(drop (i64.load (i32.const 1024)))"), None);
        check(&with("(drop (i64.load (i32.const 1016)))"), FOUND);
        check(&with("(memory.fill (i32.const 9000) (i32.const 0) (local.get 0))"), None);
        check(&with("(memory.copy (i32.const 70000) (i32.const 9000) (i32.const 4))"), None);
        check(&with("(local.set 1 (i32.const 4096)) (i32.store (local.get 1) (i32.const 1))"), None);
        check(
            &with("(block (result i32) (i32.const 4096)) (if (local.get 0) (then)) (i32.const 1) i32.store"),
            FOUND,
        );
        check(&with("(i32.const 4096) (if (local.get 0) (then)) (i32.const 1) i32.store"), None);
    }

    #[test]
    fn only_between_its_ends_is_anything_left_over() {
        let stack = ShadowStack { global: 0, low: 2048, top: 65536 };
        assert_eq!(stack.dead(2048), 2048..2048);
        assert_eq!(stack.dead(4096), 2048..4096);
        assert_eq!(stack.dead(65536), 2048..65536);
        for outside in [0, 2047, 65537, u32::MAX] {
            assert_eq!(stack.dead(outside), 0..0);
        }
    }
}
