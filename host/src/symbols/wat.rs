//! Instructions as text.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use wasmprinter::{Config, Print};

use super::Symbols;

/// Bytes of the text of an instruction; a table of branches has more.
const TEXT_MAX: usize = 120;

impl Symbols {
    /// The instructions at these offsets of the file, as text. Of what cannot be read there is none.
    pub fn instruction_texts(&self, offsets: &BTreeSet<u32>) -> BTreeMap<u32, String> {
        let mut texts = Texts { offsets, at: None, texts: BTreeMap::new() };
        if !offsets.is_empty() {
            // As far as it can be read. What it panics at is what others wrote.
            let _ = catch_unwind(AssertUnwindSafe(|| Config::new().print(&self.wasm, &mut texts)));
        }
        // The last `end` of a function is the end of its list.
        texts.texts.values_mut().filter(|text| *text == ")").for_each(|text| *text = "end".to_string());
        texts.texts
    }
}

/// Keeps the lines that are wanted of a module that is printed.
struct Texts<'o> {
    offsets: &'o BTreeSet<u32>,
    /// That of the line that is being printed, if it is wanted.
    at: Option<u32>,
    texts: BTreeMap<u32, String>,
}

impl Print for Texts<'_> {
    fn write_str(&mut self, text: &str) -> io::Result<()> {
        if let Some(at) = self.at {
            let line = self.texts.entry(at).or_default();
            let text = if line.is_empty() { text.trim_start() } else { text };
            let room = TEXT_MAX.saturating_sub(line.len());
            line.push_str(&text[..text.floor_char_boundary(room)]);
        }
        Ok(())
    }

    fn newline(&mut self) -> io::Result<()> {
        self.at = None;
        Ok(())
    }

    fn start_line(&mut self, offset: Option<usize>) {
        let offset = offset.and_then(|offset| u32::try_from(offset).ok());
        self.at = offset.filter(|offset| self.offsets.contains(offset) && !self.texts.contains_key(offset));
    }
}
