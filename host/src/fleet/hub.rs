//! What all workers of a campaign share: values by key, each with a revision, parts of states by hash, and objects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;

/// Bytes that a message takes beside its key and its value, about.
const MESSAGE_BYTES: u64 = 64;

/// A value, and the revision at which it was written. Revisions of all values grow together, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// What was written.
    pub bytes: Vec<u8>,
    /// When, among all writes.
    pub revision: u64,
    /// Seconds since it was written, by the clock of the server, about.
    pub age: u64,
}

/// What was written since some revision: of each key the last value.
#[derive(Debug, Default)]
pub struct Changes {
    /// In the order of their revisions.
    pub values: Vec<(String, Value)>,
    /// How many more there were, about, when these were read.
    pub left: u64,
}

/// Bytes that went to the server and came from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Traffic {
    /// To the server.
    pub sent: u64,
    /// From it.
    pub received: u64,
}

impl Traffic {
    /// Counts a message to the server.
    pub fn sent(&mut self, key: &str, bytes: &[u8]) {
        self.sent += (key.len() + bytes.len()) as u64 + MESSAGE_BYTES;
    }

    /// Counts a message from it.
    pub fn received(&mut self, key: &str, bytes: &[u8]) {
        self.received += (key.len() + bytes.len()) as u64 + MESSAGE_BYTES;
    }
}

/// How much the server holds of a campaign, and may.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Held {
    /// Bytes of values.
    pub values: u64,
    /// Bytes of parts of states.
    pub parts: u64,
    /// The most bytes of those; the oldest go first. `None` is any.
    pub parts_max: Option<u64>,
    /// Seconds since the oldest part was written.
    pub oldest_part: Option<u64>,
    /// Bytes of objects: the module.
    pub objects: u64,
}

/// Where workers of a campaign meet. Every method may fail since the server cannot be reached, refuses, or has no room; the error
/// names it and says what to do. What returned was acknowledged, and stays.
#[allow(clippy::missing_errors_doc)]
pub trait Hub: Send + Sync {
    /// Names it and the campaign for a reader.
    fn name(&self) -> String;

    /// The value of a key.
    fn get(&self, key: &str) -> Result<Option<Value>>;

    /// Writes a value in place of the one with this revision, or of none with 0; its revision, or `None` where another stands there.
    fn replace(&self, key: &str, bytes: &[u8], revision: u64) -> Result<Option<u64>>;

    /// Writes a value in place of any.
    fn put(&self, key: &str, bytes: &[u8]) -> Result<u64>;

    /// Removes a value.
    fn remove(&self, key: &str) -> Result<()>;

    /// The values whose keys begin with one of these and a dot that were written after a revision, up to about so many bytes.
    fn changes(&self, prefixes: &[&str], after: u64, bytes_max: u64) -> Result<Changes>;

    /// How many keys begin with this and a dot.
    fn count(&self, prefix: &str) -> Result<u64>;

    /// Keeps parts of states by their hashes, all of them or an error.
    fn put_parts(&self, parts: &[(u128, Vec<u8>)]) -> Result<()>;

    /// Parts by their hashes, in order; `None` of those that are not there any more.
    fn parts(&self, hashes: &[u128]) -> Result<Vec<Option<Vec<u8>>>>;

    /// Drops the parts for which this does not hold; how many.
    fn retain_parts(&self, is_kept: &dyn Fn(u128) -> bool) -> Result<u64>;

    /// Keeps an object.
    fn put_object(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// An object.
    fn object(&self, name: &str) -> Result<Option<Vec<u8>>>;

    /// How much is held.
    fn held(&self) -> Result<Held>;

    /// What went to and fro through this.
    fn traffic(&self) -> Traffic;

    /// Writes a value now, and then now and again for as long as this lives and the process does, until another takes its place.
    fn keep_writing(&self, key: &str, bytes: Vec<u8>);
}

/// A hub in this process. Clones share what it holds, and each counts its own traffic.
#[derive(Default)]
pub struct Local {
    shared: Arc<Mutex<Shelf>>,
    traffic: Mutex<Traffic>,
}

#[derive(Default)]
struct Shelf {
    revision: u64,
    values: BTreeMap<String, Value>,
    parts: BTreeMap<u128, Vec<u8>>,
    objects: BTreeMap<String, Vec<u8>>,
}

impl Clone for Local {
    fn clone(&self) -> Local {
        Local { shared: self.shared.clone(), traffic: Mutex::default() }
    }
}

impl Local {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counted(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of a part.
pub(super) fn part_key(hash: u128) -> String {
    format!("{hash:032x}")
}

/// Whether a key begins with one of these and a dot.
fn is_below(key: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| key.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.')))
}

impl Hub for Local {
    fn name(&self) -> String {
        "this process".to_string()
    }

    fn get(&self, key: &str) -> Result<Option<Value>> {
        let value = self.shelf().values.get(key).cloned();
        let mut traffic = self.counted();
        traffic.sent(key, &[]);
        traffic.received(key, value.as_ref().map_or(&[], |value| &value.bytes));
        Ok(value)
    }

    fn replace(&self, key: &str, bytes: &[u8], revision: u64) -> Result<Option<u64>> {
        self.counted().sent(key, bytes);
        let mut shelf = self.shelf();
        if shelf.values.get(key).map_or(0, |value| value.revision) != revision {
            return Ok(None);
        }
        Ok(Some(shelf.write(key, bytes)))
    }

    fn put(&self, key: &str, bytes: &[u8]) -> Result<u64> {
        self.counted().sent(key, bytes);
        Ok(self.shelf().write(key, bytes))
    }

    fn remove(&self, key: &str) -> Result<()> {
        self.counted().sent(key, &[]);
        self.shelf().values.remove(key);
        Ok(())
    }

    fn changes(&self, prefixes: &[&str], after: u64, bytes_max: u64) -> Result<Changes> {
        let shelf = self.shelf();
        let is_new = |(key, value): &(&String, &Value)| value.revision > after && is_below(key, prefixes);
        let mut new: Vec<_> = shelf.values.iter().filter(is_new).collect();
        new.sort_by_key(|(_, value)| value.revision);
        let (mut changes, mut bytes) = (Changes::default(), 0);
        let mut traffic = self.counted();
        for (key, value) in new {
            if bytes >= bytes_max {
                changes.left += 1;
                continue;
            }
            bytes += value.bytes.len() as u64;
            traffic.received(key, &value.bytes);
            changes.values.push((key.clone(), value.clone()));
        }
        Ok(changes)
    }

    fn count(&self, prefix: &str) -> Result<u64> {
        Ok(self.shelf().values.keys().filter(|key| is_below(key, &[prefix])).count() as u64)
    }

    fn put_parts(&self, parts: &[(u128, Vec<u8>)]) -> Result<()> {
        for (hash, bytes) in parts {
            self.counted().sent(&part_key(*hash), bytes);
            self.shelf().parts.insert(*hash, bytes.clone());
        }
        Ok(())
    }

    fn parts(&self, hashes: &[u128]) -> Result<Vec<Option<Vec<u8>>>> {
        let parts: Vec<_> = hashes.iter().map(|hash| self.shelf().parts.get(hash).cloned()).collect();
        for (hash, part) in hashes.iter().zip(&parts) {
            self.counted().received(&part_key(*hash), part.as_deref().unwrap_or_default());
        }
        Ok(parts)
    }

    fn retain_parts(&self, is_kept: &dyn Fn(u128) -> bool) -> Result<u64> {
        let mut shelf = self.shelf();
        let before = shelf.parts.len();
        shelf.parts.retain(|hash, _| is_kept(*hash));
        Ok((before - shelf.parts.len()) as u64)
    }

    fn put_object(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.counted().sent(name, bytes);
        self.shelf().objects.insert(name.to_string(), bytes.to_vec());
        Ok(())
    }

    fn object(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let object = self.shelf().objects.get(name).cloned();
        self.counted().received(name, object.as_deref().unwrap_or_default());
        Ok(object)
    }

    fn held(&self) -> Result<Held> {
        let shelf = self.shelf();
        let sum = |lens: &mut dyn Iterator<Item = usize>| lens.sum::<usize>() as u64;
        Ok(Held {
            values: sum(&mut shelf.values.values().map(|value| value.bytes.len())),
            parts: sum(&mut shelf.parts.values().map(Vec::len)),
            parts_max: None,
            oldest_part: None,
            objects: sum(&mut shelf.objects.values().map(Vec::len)),
        })
    }

    fn traffic(&self) -> Traffic {
        *self.counted()
    }

    fn keep_writing(&self, key: &str, bytes: Vec<u8>) {
        self.counted().sent(key, &bytes);
        self.shelf().write(key, &bytes);
    }
}

impl Shelf {
    fn write(&mut self, key: &str, bytes: &[u8]) -> u64 {
        self.revision += 1;
        let value = Value { bytes: bytes.to_vec(), revision: self.revision, age: 0 };
        self.values.insert(key.to_string(), value);
        self.revision
    }
}
