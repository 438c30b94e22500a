//! What a guest or a file says, made fit for a terminal.
//!
//! Names, messages, notes and values come from whoever wrote the module. Written raw, an escape sequence in them could
//! move the cursor and forge what stands above, and a line break could forge a line of ours. Where a workflow of GitHub reads
//! what is printed, a line that begins with `::`, and `##[` anywhere, would be a command.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// As a part of one line: control characters, line breaks too, and what changes the direction of text are escaped.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unfit)
}

/// Bytes of a text as it is printed, or more: what is escaped takes up to ten.
pub(crate) fn shown_len(text: &str) -> usize {
    text.len() + 9 * text.chars().filter(|c| is_unfit(*c)).count()
}

/// As some lines, each after the first begins with `indent`.
pub fn block(text: &str, indent: &str) -> String {
    let lines = text.lines().map(|text| uncommanding(&line(text)).into_owned());
    lines.collect::<Vec<_>>().join(&format!("\n{indent}"))
}

/// The first so many bytes, and how many more there are.
pub fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    let first = &text[..text.floor_char_boundary(bytes_max)];
    match text.len() - first.len() {
        0 => Cow::Borrowed(text),
        beyond => Cow::Owned(format!("{first}… and {beyond} more bytes")),
    }
}

/// Names as a part of one line, of many only the first.
pub struct Few<'n>(pub &'n [String]);

impl fmt::Display for Few<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 4;
        let shown: Vec<String> = self.0.iter().take(SHOWN).map(|name| format!("`{}`", line(name))).collect();
        f.write_str(&shown.join(", "))?;
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// What we print, of which parts may be a guest's: as [`line`], but for line breaks, which are ours by now.
pub fn printable(text: &str) -> Cow<'_, str> {
    let text = escaped(text, |c| c != '\n' && is_unfit(c));
    if !text.contains("::") && !text.contains(COMMAND) {
        return text;
    }
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(uncommanding).collect();
    Cow::Owned(lines.join("\n"))
}

/// What begins a command of a workflow, anywhere in a line.
const COMMAND: &str = "##[";

/// A line that is no command of a workflow.
fn uncommanding(line: &str) -> Cow<'_, str> {
    let begins = line.trim_start().starts_with("::");
    if !begins && !line.contains(COMMAND) {
        return Cow::Borrowed(line);
    }
    let line = if begins { line.replacen("::", "\\u{3a}:", 1) } else { line.to_string() };
    Cow::Owned(line.replace(COMMAND, "#\\u{23}["))
}

fn escaped(text: &str, is_unfit: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_unfit) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            _ if !is_unfit(c) => escaped.push(c),
            '\n' | '\r' | '\t' => write!(escaped, "{}", c.escape_debug()).expect("writing to a string works"),
            _ => write!(escaped, "{}", c.escape_unicode()).expect("writing to a string works"),
        }
    }
    Cow::Owned(escaped)
}

/// Control characters, separators of lines and paragraphs, marks that turn text around or are invisible, and what is no character.
fn is_unfit(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// JSON as a terminal may be given it: the control characters that JSON lets stand are escaped too.
pub fn json(text: &str) -> Cow<'_, str> {
    let is_unfit = |c: char| !c.is_ascii() && is_unfit(c) || c == '\x7f';
    if text.contains(COMMAND) {
        return Cow::Owned(json(&text.replace(COMMAND, "#\\u0023[")).into_owned());
    }
    if !text.contains(is_unfit) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::new();
    for c in text.chars() {
        match is_unfit(c) {
            true => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| write!(escaped, "\\u{unit:04x}").expect("writing to a string works")),
            false => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_no_longer_than_is_counted() {
        for c in ('\0'..='\u{300}').chain('\u{2000}'..='\u{2070}').chain('\u{e0000}'..='\u{e0010}') {
            let text = format!("a{c}b");
            assert!(line(&text).len() <= shown_len(&text), "{text:?}");
        }
        assert_eq!(shown_len("plain, \u{e4}"), 9);
    }

    #[test]
    fn what_is_long_is_cut() {
        assert_eq!(cut("four", 4), "four");
        assert_eq!(cut("aébc", 2), "a… and 4 more bytes");
    }

    #[test]
    fn nothing_that_moves_the_cursor_gets_through() {
        assert_eq!(line("plain é 漢"), "plain é 漢");
        assert_eq!(line("a\x1b[2Kholds\u{9b}\r\n\t"), r"a\u{1b}[2Kholds\u{9b}\r\n\t");
        assert_eq!(line("\u{202e}evil\u{2028}\u{feff}"), r"\u{202e}evil\u{2028}\u{feff}");
        assert_eq!(block("left: 1\nright: 2\x07", "    "), "left: 1\n    right: 2\\u{7}");
        assert_eq!(printable("two\nlines\x1b"), "two\nlines\\u{1b}");
    }

    #[test]
    fn nothing_is_a_command_of_a_workflow() {
        let text = "a::b\n  ::error::x\n::stop-commands::t\n##[add-mask]y ##[x";
        let expected = "a::b\n  \\u{3a}:error::x\n\\u{3a}:stop-commands::t\n#\\u{23}[add-mask]y #\\u{23}[x";
        assert_eq!(printable(text), expected);
        assert_eq!(block(text, ""), expected);
        let value = serde_json::json!({ "a": "##[x]\u{9b}::" });
        let text = value.to_string();
        let escaped = json(&text);
        assert!(!escaped.contains("##["));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }

    #[test]
    fn json_stays_what_it_says() {
        let value = serde_json::json!({ "a\x1b": "\u{9b}\x7f\u{202e}é" });
        let text = value.to_string();
        let escaped = json(&text);
        assert_eq!(escaped, r#"{"a\u001b":"\u009b\u007f\u202eé"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }
}
