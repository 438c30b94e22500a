//! Tables of TOML, whose keys are taken one by one: what nobody takes is refused.

use anyhow::{Context, Result, bail, ensure};
use toml::{Table, Value};

use crate::text;

/// A table, and the keys that it may have.
pub(super) struct Keys {
    table: Table,
    known: Vec<&'static str>,
}

impl Keys {
    pub(super) fn of(table: Table) -> Keys {
        Keys { table, known: Vec::new() }
    }

    /// The value of this key.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.table.remove(key)
    }

    pub(super) fn text(&mut self, key: &'static str) -> Result<Option<String>> {
        self.take(key).map(|value| text(value).with_context(|| format!("`{key}`"))).transpose()
    }

    pub(super) fn texts(&mut self, key: &'static str) -> Result<Option<Vec<String>>> {
        self.take(key).map(|value| texts(value).with_context(|| format!("`{key}`"))).transpose()
    }

    pub(super) fn boolean(&mut self, key: &'static str) -> Result<bool> {
        match self.take(key) {
            None => Ok(false),
            Some(Value::Boolean(value)) => Ok(value),
            Some(other) => bail!("`{key}`: `{other}` is neither true nor false"),
        }
    }

    pub(super) fn integer(&mut self, key: &'static str) -> Result<Option<i64>> {
        self.take(key).map(|value| integer(&value).with_context(|| format!("`{key}`"))).transpose()
    }

    /// A number of bytes, letters or handles.
    pub(super) fn count(&mut self, key: &'static str) -> Result<Option<u32>> {
        let Some(number) = self.integer(key)? else { return Ok(None) };
        let count = u32::try_from(number).ok();
        Ok(Some(count.with_context(|| format!("`{key}`: {number} is not in 0..={}", u32::MAX))?))
    }

    pub(super) fn table(&mut self, key: &'static str) -> Result<Table> {
        match self.take(key) {
            None => Ok(Table::new()),
            Some(value) => table(value).with_context(|| format!("`{key}`")),
        }
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Result<Option<T>> {
        self.text(key)?.map(|text| word(&text, words).with_context(|| format!("`{key}`"))).transpose()
    }

    /// Every key must have been taken.
    pub(super) fn end(self) -> Result<()> {
        let Some(key) = self.table.keys().next() else { return Ok(()) };
        bail!("`{key}` is no key here; {}", nearest(key, self.known))
    }
}

/// The value of a word, of those that there are.
pub(super) fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T> {
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    found.with_context(|| {
        format!("`{text}` is none of its words; {}", nearest(text, words.iter().map(|(word, _)| *word)))
    })
}

/// What to say of a name that there is not: the one that is most like it, or all.
pub(crate) fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    // Of names that are too long or too many none is like another.
    let is_compared = |name: &&str| name.len() <= COMPARED_BYTES_MAX;
    let mut known: Vec<&str> = known.into_iter().filter(is_compared).take(COMPARED_MAX).collect();
    if !is_compared(&name) {
        return "its name is too long".to_string();
    }
    known.sort_unstable();
    let near = known.iter().map(|other| (strsim::damerau_levenshtein(name, other), *other)).min();
    match near {
        Some((distance, near)) if distance <= 1 + name.chars().count() / 3 => {
            format!("did you mean `{}`?", text::line(near))
        }
        Some(_) if known.len() <= NAMED_MAX => {
            let names: Vec<String> = known.iter().map(|name| format!("`{}`", text::line(name))).collect();
            format!("there are {}", names.join(", "))
        }
        Some((_, near)) => format!("there are {}, the nearest is `{}`", known.len(), text::line(near)),
        None => "there are none".to_string(),
    }
}

/// Names that a wrong one is compared with, and bytes that they may have.
const COMPARED_MAX: usize = 10_000;
const COMPARED_BYTES_MAX: usize = 128;
/// Names that are listed where none is near.
const NAMED_MAX: usize = 16;

pub(super) fn text(value: Value) -> Result<String> {
    match value {
        Value::String(text) => Ok(text),
        other => bail!("`{other}` is not text"),
    }
}

pub(super) fn texts(value: Value) -> Result<Vec<String>> {
    list(value)?.into_iter().map(text).collect()
}

pub(super) fn list(value: Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(list) => Ok(list),
        other => bail!("`{other}` is not a list"),
    }
}

pub(super) fn integer(value: &Value) -> Result<i64> {
    value.as_integer().with_context(|| format!("`{value}` is not an integer"))
}

pub(super) fn table(value: Value) -> Result<Table> {
    match value {
        Value::Table(table) => Ok(table),
        other => bail!("`{other}` is not a table"),
    }
}

/// Text of one word and perhaps, after a colon, what it is of.
pub(super) fn kind_of(text: &str) -> (&str, Option<&str>) {
    text.split_once(':').map_or((text, None), |(kind, of)| (kind, Some(of)))
}

/// What stands after the colon.
pub(super) fn after_colon<'t>(kind: &str, of: Option<&'t str>, example: &str) -> Result<&'t str> {
    of.filter(|of| !of.is_empty()).with_context(|| format!("`{kind}` says of what: `{kind}:{example}`"))
}

/// Nothing may stand after it.
pub(super) fn no_colon(kind: &str, of: Option<&str>) -> Result<()> {
    ensure!(of.is_none(), "nothing can follow `{kind}`");
    Ok(())
}
