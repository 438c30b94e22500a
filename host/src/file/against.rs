//! The module that another one is compared with. It travels in that one, in a section of its own, with what of the two is not
//! compared.

use std::borrow::Cow;
use std::fmt;

use anyhow::{Context, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};

use super::section;

/// The custom section that holds it.
const SECTION: &str = "spelunk:against";

/// What a module is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// The other module.
    pub wasm: Vec<u8>,
    /// What is not compared.
    pub ignored: Vec<Ignored>,
}

/// Something that two modules may do differently.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Ignored {
    /// What they write to standard output.
    Stdout,
    /// What they write to standard error.
    Stderr,
    /// Their files.
    Files,
    /// What failures say, where both fail.
    Messages,
    /// Calls of an import of this name.
    Import(String),
    /// What the rule of this name returns; or all of it, where only one of them has it.
    Rule(String),
}

impl Ignored {
    /// The words that stand for more than a rule, as they are given.
    pub const WORDS: [&str; 4] = ["stdout", "stderr", "files", "messages"];

    /// What a name stands for; `rule:NAME` is the rule whatever it is called.
    pub fn named(name: &str) -> Ignored {
        match (name, name.split_once(':')) {
            ("stdout", _) => Ignored::Stdout,
            ("stderr", _) => Ignored::Stderr,
            ("files", _) => Ignored::Files,
            ("messages", _) => Ignored::Messages,
            (_, Some(("import", name))) => Ignored::Import(name.to_string()),
            (_, Some(("rule", name))) => Ignored::Rule(name.to_string()),
            _ => Ignored::Rule(name.to_string()),
        }
    }
}

impl fmt::Display for Ignored {
    /// As it is given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ignored::Stdout => f.write_str("stdout"),
            Ignored::Stderr => f.write_str("stderr"),
            Ignored::Files => f.write_str("files"),
            Ignored::Messages => f.write_str("messages"),
            Ignored::Import(name) => write!(f, "import:{name}"),
            Ignored::Rule(name) => f.write_str(name),
        }
    }
}

impl Against {
    /// Whether a module is to be compared with another.
    ///
    /// # Errors
    /// It says so more than once.
    pub fn is_in(wasm: &[u8]) -> Result<bool> {
        Ok(section::held(wasm, SECTION)?.is_some())
    }

    /// The module with what it is compared with.
    ///
    /// # Errors
    /// More than a section can hold.
    pub fn put_into(&self, wasm: &[u8]) -> Result<Vec<u8>> {
        let held = postcard::to_allocvec(self).context("a module is a list of bytes")?;
        let bytes = wasm.len().checked_add(held.len());
        ensure!(
            bytes.is_some_and(|bytes| bytes < u32::MAX as usize),
            "the two modules are too large: they have more than 4 GiB together"
        );
        Ok(section::put(wasm, SECTION, &held))
    }

    /// What a module is compared with, and the module without it.
    ///
    /// # Errors
    /// A section that [`Against::put_into`] did not make.
    pub fn take_from(wasm: &[u8]) -> Result<(Option<Against>, Cow<'_, [u8]>)> {
        let Some(held) = section::held(wasm, SECTION)? else { return Ok((None, wasm.into())) };
        let taken = postcard::take_from_bytes(held);
        let (against, rest): (Against, _) =
            taken.map_err(|error| anyhow!("the section `{SECTION}` cannot be read: {error}"))?;
        ensure!(rest.is_empty(), "{} bytes follow the module in the section `{SECTION}`", rest.len());
        ensure!(
            !Against::is_in(&against.wasm)?,
            "the module in the section `{SECTION}` is to be compared with a third one"
        );
        Ok((Some(against), section::without(wasm, SECTION)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_what_they_say() {
        for text in ["stdout", "stderr", "files", "messages", "import:log", "add", "a:b"] {
            assert_eq!(Ignored::named(text).to_string(), text);
        }
        assert!(Ignored::WORDS.iter().all(|word| !matches!(Ignored::named(word), Ignored::Rule(_))));
        assert_eq!(Ignored::named("rule:stdout"), Ignored::Rule("stdout".to_string()));
    }

    #[test]
    fn a_module_goes_into_another_and_comes_out_again() {
        let [one, other] =
            [r#"(module (func (export "f")))"#, "(module)"].map(|text| wat::parse_str(text).unwrap());
        let against =
            Against { wasm: other, ignored: vec![Ignored::Stderr, Ignored::Import("a".to_string())] };
        let with = against.put_into(&one).unwrap();
        assert!(Against::is_in(&with).unwrap() && !Against::is_in(&one).unwrap());
        let (found, rest) = Against::take_from(&with).unwrap();
        assert_eq!((found, &*rest), (Some(against.clone()), &*one));
        assert_eq!(Against::take_from(&one).unwrap(), (None, Cow::Borrowed(&*one)));
        // However often it is done, there is one other.
        let nested = Against { wasm: with, ignored: Vec::new() }.put_into(&one).unwrap();
        let error = Against::take_from(&nested).unwrap_err().to_string();
        assert_eq!(error, "the module in the section `spelunk:against` is to be compared with a third one");
    }

    #[test]
    fn a_section_that_somebody_else_made_is_refused() {
        let check = |held: &[u8], expected: &str| {
            let with = section::put(&wat::parse_str("(module)").unwrap(), SECTION, held);
            assert_eq!(Against::take_from(&with).unwrap_err().to_string(), expected);
        };
        check(&[0, 0, 7], "1 bytes follow the module in the section `spelunk:against`");
        check(
            &[0xff; 4],
            "the section `spelunk:against` cannot be read: Hit the end of buffer, expected more data",
        );
    }
}
