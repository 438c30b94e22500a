//! Texts that stand in a module, which a program may look for in its input: keywords, names, messages.

use std::collections::HashSet;
use std::sync::Arc;

use wasmparser::{Parser, Payload};

/// Letters of a text.
const LETTERS: std::ops::RangeInclusive<usize> = 3..=32;
/// Texts that are kept.
const KEPT_MAX: usize = 4096;
/// Different texts that are looked at: a module may be nothing else.
const TEXTS_MAX: usize = 1 << 16;

/// Runs of printable characters in the data of a module, as far as they are neither short nor long, each once and in their order;
/// of longer ones the words. Where there are too many, some of all.
pub(super) fn texts_of(wasm: &[u8]) -> Arc<[Arc<[u8]>]> {
    let (mut known, mut all) = (HashSet::new(), Vec::new());
    let mut add = |text: &[u8]| {
        if LETTERS.contains(&text.len()) && known.len() < TEXTS_MAX && !known.contains(text) {
            let text: Arc<[u8]> = text.into();
            all.push(text.clone());
            known.insert(text);
        }
    };
    for payload in Parser::new(0).parse_all(wasm).filter_map(Result::ok) {
        let Payload::DataSection(section) = payload else { continue };
        for segment in section.into_iter().filter_map(Result::ok) {
            for run in segment.data.split(|byte| !is_text(*byte)) {
                match run.len() <= *LETTERS.end() {
                    true => add(run),
                    false => run.split(|byte| !is_word(*byte)).for_each(&mut add),
                }
            }
        }
    }
    let step = all.len().div_ceil(KEPT_MAX).max(1);
    all.into_iter().step_by(step).collect()
}

fn is_text(byte: u8) -> bool {
    byte == b' ' || byte.is_ascii_graphic()
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wat: &str, expected: &[&str]) {
        let texts = texts_of(&wat::parse_str(wat).unwrap());
        let texts: Vec<String> = texts.iter().map(|text| text.escape_ascii().to_string()).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn texts_are_found_between_other_bytes() {
        check(
            r#"(module (memory 1) (data "one\00two\00\01no\ff<!ENTITY\nfour five")
              (data (i32.const 0) "\00two\00six") (data (i32.const 0) "a sentence_of more than thirty-two letters"))"#,
            &[
                "one",
                "two",
                "<!ENTITY",
                "four five",
                "six",
                "sentence_of",
                "more",
                "than",
                "thirty",
                "letters",
            ],
        );
        check(r#"(module (memory 1) (data (i32.const 0) "\00\01\02"))"#, &[]);
    }

    #[test]
    fn some_of_many_are_kept() {
        let data: String = (0..10_000).map(|number| format!("{number:05}\\00")).collect();
        let texts = texts_of(&wat::parse_str(format!(r#"(module (data "{data}"))"#)).unwrap());
        assert_eq!((texts.len(), &*texts[1], &*texts[3333]), (3334, &b"00003"[..], &b"09999"[..]));
    }
}
