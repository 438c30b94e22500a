//! The file beside a module that says how its exports are called. Nobody has to name it: it can say nothing of this machine.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::rename::{imports_and_exports, renamed};
use crate::disk;
use crate::file::{Described, nearest};

/// What the name of such a file ends in, in the place of `wasm`.
const EXTENSION: &str = "spelunk.toml";
/// Its name in the folder of a package.
const OF_FOLDER: &str = "signatures.spelunk.toml";
/// Bytes of it.
const BYTES_MAX: u64 = 1 << 20;

/// The module with the signatures of the file that is named, or else of the one that stands beside the target, if that is
/// looked for.
///
/// # Errors
/// A file that cannot be read or used; imports and exports that it names and the module does not have.
pub(super) fn described(
    target: &Path,
    wasm: Vec<u8>,
    named: Option<&Path>,
    looks_beside: bool,
) -> Result<Vec<u8>> {
    let beside = if target.is_dir() { target.join(OF_FOLDER) } else { target.with_extension(EXTENSION) };
    let file: PathBuf = match named {
        Some(named) => named.to_path_buf(),
        None if looks_beside && beside.is_file() => beside,
        None => return Ok(wasm),
    };
    put(&file, &wasm).with_context(|| format!("in the signatures `{}`", file.display()))
}

fn put(file: &Path, wasm: &[u8]) -> Result<Vec<u8>> {
    let text = disk::read_at_most(file, BYTES_MAX).context("they cannot be read")?;
    let text = String::from_utf8(text).context("they are not text")?;
    let Described { signatures, imports, names } = Described::parse(&text)?;
    let wasm = renamed(wasm, &imports, &names)?;
    let (_, exports) = imports_and_exports(&wasm)?;
    for name in signatures.names() {
        if !exports.iter().any(|export| export == name) {
            let near = nearest(name, exports.iter().map(String::as_str));
            bail!("the module exports nothing of the name `{name}`; {near}");
        }
    }
    signatures.put_into(&wasm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Signatures;

    #[test]
    fn a_file_beside_a_module_is_put_into_it_and_one_that_is_named_wins() {
        let here = tempfile::tempdir().unwrap();
        let target = here.path().join("a.min.wasm");
        let wasm = wat::parse_str(r#"(module (func (export "f") (param i32)) (func (export "g")))"#).unwrap();
        let check = |named: Option<&Path>, expected: Option<&[&str]>| {
            let with = described(&target, wasm.clone(), named, true).unwrap();
            let (found, rest) = Signatures::take_from(&with).unwrap();
            assert_eq!(*rest, *wasm);
            let rules = found.map(|found| found.rules);
            assert_eq!(rules, expected.map(|names| names.iter().map(ToString::to_string).collect()));
        };
        check(None, None);
        std::fs::write(here.path().join("a.min.spelunk.toml"), "rules = ['f']").unwrap();
        check(None, Some(&["f"]));
        let other = here.path().join("other.toml");
        std::fs::write(&other, "rules = ['g', 'f']").unwrap();
        check(Some(&other), Some(&["g", "f"]));
        std::fs::write(&other, "rules = ['h']").unwrap();
        let error = described(&target, wasm.clone(), Some(&other), true).unwrap_err();
        let expected = "the module exports nothing of the name `h`; did you mean `f`?";
        assert_eq!(error.root_cause().to_string(), expected);
    }
}
