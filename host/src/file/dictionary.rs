//! A dictionary: tokens that are put into inputs, in the format that AFL and libFuzzer read.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::disk;

/// Bytes of a file.
const BYTES_MAX: u64 = 1 << 20;
/// Different tokens of a file.
const TOKENS_MAX: usize = 1 << 14;
/// Bytes of a token.
const TOKEN_BYTES_MAX: usize = 1024;

/// Different tokens, in the order of the file.
///
/// A line is `"VALUE"`, `NAME="VALUE"` or `NAME@LEVEL="VALUE"`; names and levels count for nothing. In a value `\\`, `\"`, `\n`,
/// `\r`, `\t`, `\0` and `\xNN` stand for one byte. Empty lines and those that begin with `#` are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dictionary(pub Arc<[Arc<[u8]>]>);

impl Dictionary {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads files: the tokens of all of them.
    ///
    /// # Errors
    /// One cannot be read; as [`Dictionary::parse`].
    pub fn read(paths: &[PathBuf]) -> Result<Dictionary> {
        let mut all = Vec::new();
        for path in paths {
            let text = disk::read_at_most(path, BYTES_MAX);
            let text = text.with_context(|| format!("cannot read the dictionary `{}`", path.display()))?;
            let read = Dictionary::parse(&text);
            let read = read.with_context(|| format!("in the dictionary `{}`", path.display()))?;
            all.extend(read.0.iter().map(|token| Ok(token.to_vec())));
        }
        Dictionary::of(all.into_iter())
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// A line that is none of a dictionary, by its number; too many tokens.
    pub fn parse(text: &[u8]) -> Result<Dictionary> {
        let lines = (1..).zip(text.split(|byte| *byte == b'\n'));
        let lines = lines.map(|(number, line)| (number, line.trim_ascii()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && line[0] != b'#');
        Dictionary::of(lines.map(|(number, line)| token_of(line).with_context(|| format!("line {number}"))))
    }

    fn of(tokens: impl Iterator<Item = Result<Vec<u8>>>) -> Result<Dictionary> {
        let (mut known, mut all) = (BTreeSet::new(), Vec::new());
        for token in tokens {
            let token: Arc<[u8]> = token?.into();
            if known.insert(token.clone()) {
                all.push(token);
            }
            ensure!(all.len() <= TOKENS_MAX, "there are more than {TOKENS_MAX} tokens");
        }
        Ok(Dictionary(all.into()))
    }
}

/// The token of a line.
fn token_of(line: &[u8]) -> Result<Vec<u8>> {
    let first = line.iter().position(|byte| *byte == b'"');
    let first = first.context("a token stands in quotes: \"value\" or name=\"value\"")?;
    let name = line[..first].trim_ascii();
    if !name.is_empty() {
        let name = name.strip_suffix(b"=").context("there is no `=` between the name and the value")?;
        let mut parts = name.trim_ascii().splitn(2, |byte| *byte == b'@');
        let is_name = |name: &[u8]| !name.is_empty() && name.iter().all(|byte| !byte.is_ascii_whitespace());
        let is_level = |level: &[u8]| !level.is_empty() && level.iter().all(u8::is_ascii_digit);
        ensure!(parts.next().is_some_and(is_name), "before the `=` stands one word, the name");
        ensure!(parts.next().is_none_or(is_level), "after the `@` stands a number, the level");
    }
    let value = line[first + 1..].strip_suffix(b"\"").context("the line does not end in a quote")?;
    let token = unescaped(value)?;
    ensure!(!token.is_empty(), "the token is empty");
    ensure!(
        token.len() <= TOKEN_BYTES_MAX,
        "the token has {} bytes, and {TOKEN_BYTES_MAX} are the most",
        token.len()
    );
    Ok(token)
}

fn unescaped(value: &[u8]) -> Result<Vec<u8>> {
    let mut token = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        ensure!(
            !byte.is_ascii_control() || *byte == b'\t',
            "the byte {byte:#04x} must be written as \\x{byte:02x}"
        );
        if *byte != b'\\' {
            token.push(*byte);
            continue;
        }
        let Some((escape, after)) = rest.split_first() else {
            bail!("the line does not end in a quote: \\\" stands for one in the token");
        };
        rest = after;
        token.push(match escape {
            b'\\' | b'"' | b'\'' => *escape,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'0' => 0,
            b'x' => {
                let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
                let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
                let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                rest = rest.get(2..).unwrap_or_default();
                byte.context("after \\x stand two hexadecimal digits")?
            }
            other => bail!("there is no escape \\{}", other.escape_ascii()),
        });
    }
    Ok(token)
}

/// As a list of what stands in the quotes.
impl Serialize for Dictionary {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|token| token.escape_ascii().to_string()))
    }
}

impl<'de> Deserialize<'de> for Dictionary {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Dictionary, D::Error> {
        let texts: Vec<String> = Vec::deserialize(from)?;
        let tokens = texts.iter().map(|text| token_of(format!("\"{text}\"").as_bytes()));
        Dictionary::of(tokens).map_err(|error| de::Error::custom(format!("{error:#}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], expected: Result<&[&[u8]], &str>) {
        let found = Dictionary::parse(text).map_err(|error| format!("{error:#}"));
        let expected: Result<Vec<Arc<[u8]>>, String> = match expected {
            Ok(tokens) => Ok(tokens.iter().map(|token| Arc::from(*token)).collect()),
            Err(error) => Err(error.to_string()),
        };
        assert_eq!(found.map(|found| found.0.to_vec()), expected, "{}", text.escape_ascii());
    }

    #[test]
    fn a_line_is_a_token() {
        check(b"", Ok(&[]));
        check(b"# none\n\n  # none\n", Ok(&[]));
        check(b"\"one\"\nname=\"two\"\r\n two_2@3 = \"three\" ", Ok(&[b"one", b"two", b"three"]));
        check(b"\"b\"\n\"a\"\nagain=\"b\"", Ok(&[b"b", b"a"]));
        // As AFL and libFuzzer have it, the last quote ends the token.
        check(b"\"say \"hi\" # no comment\"", Ok(&[b"say \"hi\" # no comment"]));
    }

    #[test]
    fn escapes_stand_for_bytes() {
        check(br#""\\\"\n\r\t\0\x00\xfF\x41z""#, Ok(&[b"\\\"\n\r\t\0\0\xffAz"]));
        check("\"ä\"".as_bytes(), Ok(&["ä".as_bytes()]));
    }

    #[test]
    fn a_wrong_line_is_named() {
        check(b"# x\nword", Err("line 2: a token stands in quotes: \"value\" or name=\"value\""));
        check(b"word \"x\"", Err("line 1: there is no `=` between the name and the value"));
        check(b"two words=\"x\"", Err("line 1: before the `=` stands one word, the name"));
        check(b"=\"x\"", Err("line 1: before the `=` stands one word, the name"));
        check(b"a@b=\"x\"", Err("line 1: after the `@` stands a number, the level"));
        check(b"\"a\"\n\n\"x", Err("line 3: the line does not end in a quote"));
        check(b"\"", Err("line 1: the line does not end in a quote"));
        check(b"\"x\\\"", Err("line 1: the line does not end in a quote: \\\" stands for one in the token"));
        check(b"\"x\" # y", Err("line 1: the line does not end in a quote"));
        check(b"\"\"", Err("line 1: the token is empty"));
        check(b"\"\\q\"", Err("line 1: there is no escape \\q"));
        check(b"\"\\x4\"", Err("line 1: after \\x stand two hexadecimal digits"));
        check(b"\"\\x+1\"", Err("line 1: after \\x stand two hexadecimal digits"));
        check(b"\"a\x01\"", Err("line 1: the byte 0x01 must be written as \\x01"));
        let long = format!("\"{}\"", "x".repeat(1025));
        check(long.as_bytes(), Err("line 1: the token has 1025 bytes, and 1024 are the most"));
        let many: String = (0..=TOKENS_MAX).map(|number| format!("\"{number}\"\n")).collect();
        check(many.as_bytes(), Err("there are more than 16384 tokens"));
    }

    #[test]
    fn what_is_stored_is_read_again() {
        let all: Vec<u8> = (0..=255).collect();
        let one = Dictionary([&all[..], b"\"", b"\\x"].map(Arc::from).into());
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<Dictionary>(&text).unwrap(), one);
        assert!(serde_json::from_str::<Dictionary>(r#"["\\q"]"#).is_err());
        assert!(serde_json::from_str::<Dictionary>(r#"[""]"#).is_err());
    }
}
