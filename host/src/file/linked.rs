//! The two modules that a module was linked of, as they came. They travel in it, in a section of their own, since their debug
//! information tells of no other.

use std::borrow::Cow;

use anyhow::{Context, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};
use spelunk_instrumenter::Origins;

use super::section;

/// The custom section that holds them.
const SECTION: &str = "spelunk:linked";

/// What a module was linked of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// Where its code comes from.
    pub origins: Origins,
    /// The target.
    pub target: Vec<u8>,
    /// The harness.
    pub harness: Vec<u8>,
}

impl Parts {
    /// Whether a module was linked.
    ///
    /// # Errors
    /// It says so more than once.
    pub fn are_in(wasm: &[u8]) -> Result<bool> {
        Ok(section::held(wasm, SECTION)?.is_some())
    }

    /// The module with its parts.
    ///
    /// # Errors
    /// More of them than a section can hold.
    pub fn put_into(&self, wasm: &[u8]) -> Result<Vec<u8>> {
        Ok(section::put(wasm, SECTION, &postcard::to_allocvec(self).context("parts are lists of bytes")?))
    }

    /// The parts of a module, where it was linked, and the module without them.
    ///
    /// # Errors
    /// A section that [`Parts::put_into`] did not make.
    pub fn take_from(wasm: &[u8]) -> Result<(Option<Parts>, Cow<'_, [u8]>)> {
        let Some(held) = section::held(wasm, SECTION)? else { return Ok((None, wasm.into())) };
        let taken = postcard::take_from_bytes(held);
        let (parts, rest): (Parts, _) =
            taken.map_err(|error| anyhow!("the section `{SECTION}` cannot be read: {error}"))?;
        ensure!(rest.is_empty(), "{} bytes follow the modules in the section `{SECTION}`", rest.len());
        Ok((Some(parts), section::without(wasm, SECTION)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_go_into_a_module_and_come_out_again() {
        let wasm = wat::parse_str(r#"(module (func (export "f")))"#).unwrap();
        let parts = Parts { origins: Origins::default(), target: vec![1, 2], harness: vec![3] };
        let with = parts.put_into(&wasm).unwrap();
        assert!(Parts::are_in(&with).unwrap() && !Parts::are_in(&wasm).unwrap());
        let (found, rest) = Parts::take_from(&with).unwrap();
        assert_eq!((found, &*rest), (Some(parts), &*wasm));
        assert_eq!(Parts::take_from(&wasm).unwrap(), (None, Cow::Borrowed(&*wasm)));
    }

    #[test]
    fn a_section_that_somebody_else_made_is_refused() {
        let check = |held: &[u8], expected: &str| {
            let with = section::put(&wat::parse_str("(module)").unwrap(), SECTION, held);
            assert_eq!(Parts::take_from(&with).unwrap_err().to_string(), expected);
        };
        check(&[0, 0, 0, 0, 0, 7], "1 bytes follow the modules in the section `spelunk:linked`");
        check(
            &[0xff; 4],
            "the section `spelunk:linked` cannot be read: Hit the end of buffer, expected more data",
        );
    }
}
