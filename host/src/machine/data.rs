//! What of the memories of a fresh instance is not zero.

use std::ops::Range;

use wasmparser::{DataKind, Operator, Parser, Payload};

/// What an active data segment writes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Data {
    /// The index of the memory.
    pub(super) memory: u32,
    /// Where; `None` where that is not written in the module, but computed from what it imports.
    pub(super) range: Option<Range<u64>>,
}

impl Data {
    /// All active segments of a module.
    pub(super) fn of(wasm: &[u8]) -> Vec<Data> {
        let mut all = Vec::new();
        for payload in Parser::new(0).parse_all(wasm).filter_map(Result::ok) {
            let Payload::DataSection(section) = payload else { continue };
            for segment in section.into_iter().filter_map(Result::ok) {
                let DataKind::Active { memory_index: memory, offset_expr } = segment.kind else { continue };
                let mut operators = offset_expr.get_operators_reader().into_iter().filter_map(Result::ok);
                let start = match (operators.next(), operators.next()) {
                    (Some(Operator::I32Const { value }), Some(Operator::End)) => {
                        Some(u64::from(value as u32))
                    }
                    (Some(Operator::I64Const { value }), Some(Operator::End)) => Some(value as u64),
                    _ => None,
                };
                let range = start.map(|start| start..start.saturating_add(segment.data.len() as u64));
                all.push(Data { memory, range });
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_segments_are_found() {
        let source = r#"(module (import "a" "b" (global $base i32)) (memory 1) (memory i64 1)
          (data "passive") (data (i32.const 70) "abc") (data (memory 1) (i64.const 5) "de")
          (data (global.get $base) "f") (data (i32.add (i32.const 1) (i32.const 2)) "g"))"#;
        let all = Data::of(&wat::parse_str(source).unwrap());
        let of = |memory, range| Data { memory, range };
        assert_eq!(all, [of(0, Some(70..73)), of(1, Some(5..7)), of(0, None), of(0, None)]);
    }
}
