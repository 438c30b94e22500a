//! The file beside a module that says how its exports are called. Nobody has to name it: it can say nothing of this machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::Build;
use super::guess::{Guess, guessed};
use super::rename::{imports_and_exports, renamed};
use crate::disk;
use crate::file::{Described, Given, Signatures, nearest};
use crate::machine::is_component;
use crate::text::Few;

/// What the name of such a file ends in, in the place of `wasm`.
const EXTENSION: &str = "spelunk.toml";
/// Its name in the folder of a package.
const OF_FOLDER: &str = "signatures.spelunk.toml";
/// Bytes of it.
const BYTES_MAX: u64 = 1 << 20;

/// The module with the signatures of the file that is named, or else of the one that stands beside the target, or else those that are
/// guessed; a module that is linked with a harness has the first alone. A component with the values of such a file.
///
/// # Errors
/// A file that cannot be read or used; imports and exports that it names and the module does not have.
pub(super) fn described(
    target: &Path,
    wasm: Vec<u8>,
    build: &Build<'_>,
    status: &mut dyn FnMut(&str, &str),
) -> Result<Vec<u8>> {
    let beside = if target.is_dir() { target.join(OF_FOLDER) } else { target.with_extension(EXTENSION) };
    if is_component(&wasm) {
        let beside = beside.is_file().then_some(&*beside);
        let Some(file) = build.signatures.or(beside) else { return Ok(wasm) };
        let with = read(file).and_then(|text| Given::parse(&text)?.put_into(&wasm));
        return with.with_context(|| format!("in the values `{}`", file.display()));
    }
    let file: PathBuf = match build.signatures {
        Some(named) => named.to_path_buf(),
        None if build.link.is_some() => return Ok(wasm),
        None if beside.is_file() => beside,
        None => {
            let guess = move || guess(&wasm).map_or((wasm, None), |(with, said)| (with, Some(said)));
            let (wasm, said) = build.budget.compiling(guess)?;
            said.iter().for_each(|said| status("Guessed", said));
            return Ok(wasm);
        }
    };
    put(&file, &wasm).with_context(|| format!("in the signatures `{}`", file.display()))
}

/// The module with signatures that are guessed, where there are any, and what to say of them.
fn guess(wasm: &[u8]) -> Option<(Vec<u8>, String)> {
    if !matches!(Signatures::take_from(wasm), Ok((None, _))) {
        return None;
    }
    let Guess { signatures, left_out, has_room } = guessed(wasm)?;
    let with = signatures.put_into(wasm).ok()?;
    let mut text = match signatures.rules.len() {
        0 => "nothing from debug information and names".to_string(),
        1 => "how 1 export is called, from debug information and names".to_string(),
        many => format!("how {many} exports are called, from debug information and names"),
    };
    if !left_out.is_empty() {
        let why = match has_room {
            true => "that does not say how to call",
            false => "where texts and lists may be put is not known, since no allocator is: not called are",
        };
        text += &format!("; {why} {}", Few(&left_out));
    }
    let better = match has_room {
        true => "; a file of signatures would say it better",
        false => "; a file of signatures may name an `allocator`, or `\"region\"`",
    };
    Some((with, text + better))
}

fn read(file: &Path) -> Result<String> {
    let text = disk::read_at_most(file, BYTES_MAX).context("they cannot be read")?;
    String::from_utf8(text).context("they are not text")
}

fn put(file: &Path, wasm: &[u8]) -> Result<Vec<u8>> {
    let Described { signatures, imports, names } = Described::parse(&read(file)?)?;
    let wasm = renamed(wasm, &imports, &names)?;
    let (_, exports) = imports_and_exports(&wasm)?;
    let all: BTreeSet<&str> = exports.iter().map(String::as_str).collect();
    for name in signatures.names() {
        if !all.contains(name) {
            let near = nearest(name, exports.iter().map(String::as_str));
            bail!("the module exports nothing of the name `{name}`; {near}");
        }
    }
    signatures.put_into(&wasm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_beside_a_module_is_put_into_it_and_one_that_is_named_wins() {
        let here = tempfile::tempdir().unwrap();
        let target = here.path().join("a.min.wasm");
        let wasm = wat::parse_str(r#"(module (func (export "f") (param i32)) (func (export "g")))"#).unwrap();
        let check = |named: Option<&Path>, expected: Option<&[&str]>| {
            let build = Build { signatures: named, ..Build::default() };
            let with = described(&target, wasm.clone(), &build, &mut |_, _| {}).unwrap();
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
        let build = Build { signatures: Some(&other), ..Build::default() };
        let error = described(&target, wasm.clone(), &build, &mut |_, _| {}).unwrap_err();
        let expected = "the module exports nothing of the name `h`; did you mean `f`?";
        assert_eq!(error.root_cause().to_string(), expected);
    }

    #[test]
    fn a_file_beside_a_component_gives_it_values() {
        let here = tempfile::tempdir().unwrap();
        let target = here.path().join("a.wasm");
        let wasm = wat::parse_str("(component)").unwrap();
        let put = || described(&target, wasm.clone(), &Build::default(), &mut |_, _| {});
        assert_eq!(put().unwrap(), wasm);
        let file = here.path().join("a.spelunk.toml");
        std::fs::write(&file, "[exports.f.params]\nkey = '1'").unwrap();
        let with = put().unwrap();
        let (given, rest) = Given::take_from(&with).unwrap();
        assert_eq!((given.0["f"]["key"].as_slice(), &*rest), (&["1".to_string()][..], &*wasm));
        std::fs::write(&file, "[exports.f.params]\nkey = 1").unwrap();
        let expected = format!(
            "in the values `{}`: in `[exports.\"f\"]`: `key`: `1` is not text: a value is written in WAVE, between quotes",
            file.display()
        );
        assert_eq!(format!("{:#}", put().unwrap_err()), expected);
    }
}
