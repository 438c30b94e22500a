//! The files that a run begins with. They travel in the module, in a section of their own, so that whatever names or keeps
//! a module, by its hash or as a whole, does so with its files.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};

use super::section;

/// The custom section that holds them.
const SECTION: &str = "spelunk:files";

/// Files, directories and links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// The paths of folders that are open from the start, besides `/`.
    pub folders: Vec<String>,
    /// By their paths below `/`, which does not stand before them.
    pub entries: BTreeMap<String, Entry>,
}

/// One of an [`Image`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Entry {
    /// It holds what further entries say.
    Directory,
    /// A file with these bytes.
    File(Vec<u8>),
    /// A symbolic link to this path.
    Link(String),
}

impl Image {
    /// The paths of folders that are open from the start: those that were named, and `/`.
    pub fn preopens(&self) -> impl Iterator<Item = &str> {
        let root = (!self.folders.iter().any(|folder| folder == "/")).then_some("/");
        self.folders.iter().map(String::as_str).chain(root)
    }

    /// The module with these files, in place of those that it has.
    ///
    /// # Errors
    /// More of them than a section can hold.
    pub fn put_into(&self, wasm: &[u8]) -> Result<Vec<u8>> {
        Ok(section::put(wasm, SECTION, &postcard::to_allocvec(self).context("files are lists of bytes")?))
    }

    /// The files of a module, and the module without them.
    ///
    /// # Errors
    /// A section that [`Image::put_into`] did not make.
    pub fn take_from(wasm: &[u8]) -> Result<(Image, Cow<'_, [u8]>)> {
        let Some(held) = section::held(wasm, SECTION)? else { return Ok((Image::default(), wasm.into())) };
        let taken = postcard::take_from_bytes(held);
        let (image, rest) =
            taken.map_err(|error| anyhow!("the section `{SECTION}` cannot be read: {error}"))?;
        ensure!(rest.is_empty(), "{} bytes follow the files in the section `{SECTION}`", rest.len());
        Ok((image, section::without(wasm, SECTION)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_into_a_module_and_come_out_again() {
        let wasm = wat::parse_str(r#"(module (func (export "f")) (@custom "other" "bytes"))"#).unwrap();
        let file = |text: &str| Entry::File(text.as_bytes().to_vec());
        let image = |text: &str| Image {
            folders: vec!["data".into()],
            entries: BTreeMap::from([
                ("data/a".into(), file(text)),
                ("data/l".into(), Entry::Link("a".into())),
            ]),
        };
        let with = image("one").put_into(&wasm).unwrap();
        let (found, rest) = Image::take_from(&with).unwrap();
        assert_eq!((found, &*rest), (image("one"), &*wasm));
        let again = image("two").put_into(&with).unwrap();
        let (found, rest) = Image::take_from(&again).unwrap();
        assert_eq!((found, &*rest), (image("two"), &*wasm));
        assert_eq!(Image::take_from(&wasm).unwrap(), (Image::default(), Cow::Borrowed(&*wasm)));
    }

    #[test]
    fn other_bytes_are_refused() {
        let check = |wat: &str, expected: &str| {
            let wasm = wat::parse_str(wat).unwrap();
            assert_eq!(Image::take_from(&wasm).unwrap_err().to_string(), expected);
        };
        let two = r#"(module (@custom "spelunk:files" "\00\00") (@custom "spelunk:files" "\00\00"))"#;
        check(two, "the module has more than one section `spelunk:files`");
        let more = r#"(module (@custom "spelunk:files" "\00\00\00"))"#;
        check(more, "1 bytes follow the files in the section `spelunk:files`");
        let less = r#"(module (@custom "spelunk:files" "\00"))"#;
        check(less, "the section `spelunk:files` cannot be read: Hit the end of buffer, expected more data");
    }
}
