//! What was seen by anybody, in shards that are merged: each a set, which only grows.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::hub::Value;
use crate::coverage::SHOWN;
use crate::store::pack::{packed, unpacked};

/// So many that few who found something at the same time write the same one.
pub(super) const SHARDS: usize = 16;
/// The prefix of their keys.
pub(super) const PREFIX: &str = "k";
/// Bits of the number of a bucket below that of a slot.
const BUCKET_BITS: u32 = 5;
/// Bytes that a shard may have once it is unpacked.
const BYTES_MAX: usize = 64 << 20;

/// A feature: the slot of its edge and how often that was gone through, as the store numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Item(u64);

impl Item {
    pub(super) fn new(slot: u32, bucket: u32) -> Item {
        Item(u64::from(slot) << BUCKET_BITS | u64::from(bucket))
    }

    pub(super) fn slot(self) -> u32 {
        (self.0 >> BUCKET_BITS) as u32
    }

    pub(super) fn bucket(self) -> u32 {
        (self.0 & ((1 << BUCKET_BITS) - 1)) as u32
    }

    /// The shard that it belongs to: neighbours share one, since they compress well.
    fn shard(self) -> usize {
        (self.slot() >> 8) as usize % SHARDS
    }
}

/// A shard as it is known here.
#[derive(Clone, Debug, Default)]
pub(super) struct Shard {
    pub(super) items: BTreeSet<Item>,
    pub(super) revision: u64,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Coverage {
    /// Each holds at least what stood there at its revision.
    pub(super) shards: [Shard; SHARDS],
    /// What was told with a checkpoint, and may not stand in a shard.
    told: BTreeSet<Item>,
}

impl Coverage {
    /// Whether it is known to be there.
    pub(super) fn has(&self, item: Item) -> bool {
        self.shards[item.shard()].items.contains(&item)
    }

    /// Whether it was told.
    pub(super) fn is_told(&self, item: Item) -> bool {
        self.has(item) || self.told.contains(&item)
    }

    /// It was told with a checkpoint.
    pub(super) fn tell(&mut self, item: Item) {
        self.told.insert(item);
    }

    /// How many edges of the module were seen.
    pub(super) fn edges(&self) -> u64 {
        let slots = self.shards.iter().flat_map(|shard| shard.items.iter().map(|item| item.slot()));
        slots.filter(|slot| *slot < SHOWN).collect::<BTreeSet<_>>().len() as u64
    }

    /// Takes over what stands there now; what is new of it.
    pub(super) fn read(&mut self, key: &str, value: &Value) -> Result<Vec<Item>> {
        let index = key.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('.')?.parse().ok());
        let index: usize = index.with_context(|| format!("`{key}` is no shard"))?;
        let shard = self.shards.get_mut(index).with_context(|| format!("there is no shard {index}"))?;
        let items = items_of(&value.bytes)?;
        ensure!(items.iter().all(|item| item.shard() == index), "the shard {index} holds what is of another");
        shard.revision = shard.revision.max(value.revision);
        let told = &self.told;
        Ok(items.into_iter().filter(|item| shard.items.insert(*item) && !told.contains(item)).collect())
    }

    /// The new items by shard.
    pub(super) fn by_shard(&self, new: impl Iterator<Item = Item>) -> Vec<(usize, BTreeSet<Item>)> {
        let mut shards = vec![BTreeSet::new(); SHARDS];
        for item in new.filter(|item| !self.has(*item)) {
            shards[item.shard()].insert(item);
        }
        shards.into_iter().enumerate().filter(|(_, items)| !items.is_empty()).collect()
    }
}

pub(super) fn key_of(shard: usize) -> String {
    format!("{PREFIX}.{shard}")
}

/// Items as bytes: what each is more than the one before, seven bits a byte.
pub(super) fn bytes_of<'i>(items: impl Iterator<Item = &'i Item>) -> Vec<u8> {
    let (mut bytes, mut before) = (Vec::new(), 0);
    for Item(item) in items {
        let mut more = item - before;
        before = *item;
        while more >= 0x80 {
            bytes.push(more as u8 | 0x80);
            more >>= 7;
        }
        bytes.push(more as u8);
    }
    packed(&bytes)
}

pub(super) fn items_of(bytes: &[u8]) -> Result<Vec<Item>> {
    let (len, _) = lz4_flex::block::uncompressed_size(bytes)?;
    ensure!(len <= BYTES_MAX, "a shard claims to have {len} bytes");
    let (mut items, mut before, mut more, mut shift) = (Vec::new(), 0u64, 0u64, 0);
    for byte in unpacked(bytes)? {
        ensure!(shift < 63, "a number is too long");
        more |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            ensure!(more > 0 || items.is_empty(), "a number is there twice");
            before = before.checked_add(more).context("a number is too large")?;
            ensure!(before < 1 << (32 + BUCKET_BITS), "a number is too large");
            items.push(Item(before));
            (more, shift) = (0, 0);
        }
    }
    ensure!(shift == 0, "the last number has no end");
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::mix;

    #[test]
    fn a_shard_holds_what_was_put_into_it() {
        let items: BTreeSet<Item> =
            (0..3000).map(|i| Item::new(mix(i, 1) as u32 >> (i % 20), mix(i, 2) as u32 % 32)).collect();
        let bytes = bytes_of(items.iter());
        assert_eq!(items_of(&bytes).unwrap(), items.iter().copied().collect::<Vec<_>>());
        let mut coverage = Coverage::default();
        let by_shard = coverage.by_shard(items.iter().copied());
        for (index, new) in &by_shard {
            let value = Value { bytes: bytes_of(new.iter()), revision: 7, age: 0 };
            assert_eq!(coverage.read(&key_of(*index), &value).unwrap().len(), new.len());
            assert_eq!(coverage.read(&key_of(*index), &value).unwrap(), []);
        }
        assert!(coverage.by_shard(items.into_iter()).is_empty());
    }

    #[test]
    fn what_is_no_shard_is_refused() {
        let mut coverage = Coverage::default();
        let mut check = |key: &str, bytes: &[u8]| {
            let value = Value { bytes: bytes.to_vec(), revision: 1, age: 0 };
            assert!(coverage.read(key, &value).is_err(), "{key} {bytes:?}");
        };
        let one = bytes_of([Item::new(1, 0)].iter());
        check("k.16", &one);
        check("k.x", &one);
        check("c.0", &one);
        check("k.1", &one);
        check("k.0", &[]);
        check("k.0", &[0xff, 0xff, 0xff, 0xff, 0]);
        check("k.0", &packed(&[0x80]));
        check("k.0", &packed(&[0xff; 20]));
    }
}
