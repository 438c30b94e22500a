//! Values that the parameters of a component's functions are given, as text in WAVE. What a user writes down beside the component
//! travels in it, as signatures do in a module.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};
use toml::Value;

use super::super::section;
use super::BYTES_MAX;
use super::check::check_name;
use super::table::{Keys, table, text};

/// The custom section that holds them.
const SECTION: &str = "spelunk:values";

/// Values of WAVE: by the function as it is reported, and its parameter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Given(pub BTreeMap<String, BTreeMap<String, Vec<String>>>);

impl Given {
    /// Reads the file beside a component; `docs/components.md` describes it.
    ///
    /// # Errors
    /// Text that is not TOML; a key that there is not; no values. Whether the values are of their types is found out with these.
    pub fn parse(text: &str) -> Result<Given> {
        let mut keys = Keys::of(text.parse()?);
        let mut given = Given::default();
        for (function, value) in keys.table("exports")? {
            let params = params(value).with_context(|| format!("in `[exports.\"{function}\"]`"))?;
            given.0.insert(function, params);
        }
        keys.end().context("a component says itself how it is called, but for the values of parameters")?;
        given.check()?;
        Ok(given)
    }

    /// The component with these values, in place of those that it has.
    ///
    /// # Errors
    /// Values that are too many; a parameter without any.
    pub fn put_into(&self, wasm: &[u8]) -> Result<Vec<u8>> {
        self.check()?;
        if self.0.is_empty() {
            return Ok(section::without(wasm, SECTION).into_owned());
        }
        let held = postcard::to_allocvec(self).context("values are lists")?;
        ensure!(held.len() as u64 <= BYTES_MAX, "the values have more than {} KiB", BYTES_MAX >> 10);
        Ok(section::put(wasm, SECTION, &held))
    }

    /// The values of a component, and the component without them.
    ///
    /// # Errors
    /// A section that [`Given::put_into`] did not make.
    pub fn take_from(wasm: &[u8]) -> Result<(Given, Cow<'_, [u8]>)> {
        let Some(held) = section::held(wasm, SECTION)? else { return Ok((Given::default(), wasm.into())) };
        let given = Given::decode(held).with_context(|| format!("the section `{SECTION}` cannot be used"))?;
        Ok((given, section::without(wasm, SECTION)))
    }

    fn decode(held: &[u8]) -> Result<Given> {
        ensure!(held.len() as u64 <= BYTES_MAX, "it has more than {} KiB", BYTES_MAX >> 10);
        let given: Given = postcard::from_bytes(held).map_err(|error| anyhow!("{error}"))?;
        let again = postcard::to_allocvec(&given).context("values are lists")?;
        ensure!(again == held && !given.0.is_empty(), "it is not encoded as Spelunk does");
        given.check()?;
        Ok(given)
    }

    fn check(&self) -> Result<()> {
        for (function, params) in &self.0 {
            check_name(function)?;
            for (param, values) in params {
                check_name(param).with_context(|| format!("in `[exports.\"{function}\"]`"))?;
                ensure!(!values.is_empty(), "in `[exports.\"{function}\"]`: `{param}` has no values");
            }
        }
        Ok(())
    }
}

fn params(described: Value) -> Result<BTreeMap<String, Vec<String>>> {
    let mut keys = Keys::of(table(described)?);
    let mut params = BTreeMap::new();
    for (param, values) in keys.table("params")? {
        let values = values_of(values).with_context(|| format!("`{param}`"))?;
        params.insert(param, values);
    }
    keys.end()?;
    Ok(params)
}

/// One, or a list of some.
fn values_of(values: Value) -> Result<Vec<String>> {
    let value = |value: Value| match value {
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {
            bail!("`{value}` is not text: a value is written in WAVE, between quotes")
        }
        other => text(other).context("a value is written in WAVE, between quotes"),
    };
    match values {
        Value::Array(values) => values.into_iter().map(value).collect(),
        one => Ok(vec![value(one)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        Given::parse(text).map_or_else(|error| format!("{error:#}"), |given| format!("{:?}", given.0))
    }

    #[test]
    fn values_are_read_and_what_is_none_is_refused() {
        let one = "[exports.'a#b'.params]\nkey = ['\"x\"', '\"\"']\nmany = '5'";
        assert_eq!(parsed(one), r#"{"a#b": {"key": ["\"x\"", "\"\""], "many": ["5"]}}"#);
        assert_eq!(parsed(""), "{}");
        for (text, error) in [
            (
                "[exports.f.params]\nkey = 5",
                "in `[exports.\"f\"]`: `key`: `5` is not text: a value is written in WAVE, between quotes",
            ),
            ("[exports.f.params]\nkey = []", "in `[exports.\"f\"]`: `key` has no values"),
            (
                "rules = ['f']",
                "a component says itself how it is called, but for the values of parameters: `rules` is no key here; there are `exports`",
            ),
            (
                "[exports.f]\nparam = 'a'",
                "in `[exports.\"f\"]`: `param` is no key here; did you mean `params`?",
            ),
        ] {
            assert_eq!(parsed(text), error);
        }
    }

    #[test]
    fn they_travel_in_the_component_and_only_as_they_are_written() {
        let wasm = wat::parse_str("(component)").unwrap();
        let given = Given::parse("[exports.f.params]\na = '1'\nb = '2'").unwrap();
        let with = given.put_into(&wasm).unwrap();
        assert_eq!(Given::take_from(&with).unwrap(), (given, wasm.as_slice().into()));
        assert_eq!(Given::take_from(&wasm).unwrap(), (Given::default(), wasm.as_slice().into()));
        assert_eq!(Given::default().put_into(&with).unwrap(), wasm);
        // The same value twice, names in another order, and no value at all.
        for held in [
            &[1, 1, b'f', 2, 1, b'b', 1, 1, b'2', 1, b'a', 1, 1, b'1'][..],
            &[0],
            &[1, 1, b'f', 1, 1, b'a', 0],
        ] {
            assert!(Given::take_from(&section::put(&wasm, SECTION, held)).is_err());
        }
    }
}
