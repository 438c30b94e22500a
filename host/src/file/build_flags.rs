//! How a package was built, where flags say so: a finding of one build that passes in another is not fixed. It travels in the module.

use std::borrow::Cow;

use anyhow::{Context, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};

use super::{differing, section};

/// The custom section that says it.
const SECTION: &str = "spelunk:built";

/// What the flags of a build are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BuildFlags {
    /// `--guest-features`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// `--guest-profile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// `--guest-target`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl BuildFlags {
    /// Whether there are no such flags.
    pub fn is_default(&self) -> bool {
        *self == BuildFlags::default()
    }

    /// The flags by which it differs from another one.
    pub fn flags_beside(&self, other: &BuildFlags) -> Vec<&'static str> {
        let parts = [
            ("--guest-features", self.features == other.features),
            ("--guest-profile", self.profile == other.profile),
            ("--guest-target", self.target == other.target),
        ];
        differing(parts)
    }

    /// The module with what is said of its build.
    ///
    /// # Errors
    /// More of that than a section can hold.
    pub fn put_into(&self, wasm: &[u8]) -> Result<Vec<u8>> {
        Ok(section::put(wasm, SECTION, &serde_json::to_vec(self).context("flags are texts")?))
    }

    /// What is said of a module's build, and the module without it.
    ///
    /// # Errors
    /// A section that [`BuildFlags::put_into`] did not make.
    pub fn take_from(wasm: &[u8]) -> Result<(BuildFlags, Cow<'_, [u8]>)> {
        let Some(held) = section::held(wasm, SECTION)? else {
            return Ok((BuildFlags::default(), wasm.into()));
        };
        ensure!(held.len() <= BYTES_MAX, "the section `{SECTION}` has {} bytes", held.len());
        let built = serde_json::from_slice(held);
        let built = built.map_err(|error| anyhow!("the section `{SECTION}` cannot be read: {error}"))?;
        Ok((built, section::without(wasm, SECTION)))
    }
}

/// Bytes that flags may have.
const BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_travel_in_the_module() {
        let built =
            BuildFlags { features: vec!["a".into(), "b".into()], profile: None, target: Some("t".into()) };
        let module = wat::parse_str("(module)").unwrap();
        let with = built.put_into(&module).unwrap();
        let (taken, rest) = BuildFlags::take_from(&with).unwrap();
        assert_eq!((&taken, &*rest), (&built, &*module));
        assert_eq!(BuildFlags::default().flags_beside(&built), ["--guest-features", "--guest-target"]);
        assert_eq!(BuildFlags::take_from(&module).unwrap().0, BuildFlags::default());
        let damaged = section::put(&module, SECTION, b"{\"features\": 1}");
        let error = BuildFlags::take_from(&damaged).unwrap_err().to_string();
        assert!(error.starts_with("the section `spelunk:built` cannot be read: "), "{error}");
    }
}
