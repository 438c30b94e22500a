//! A log-structured key-value store.
//!
//! Every change is a record at the end of the active segment, and on disk before it is acknowledged. A
//! segment that is full is sealed and a new one begun. The manifest names the segments, oldest first; where
//! several records are about one key, the newest counts. An index in memory says where that is, and is made
//! anew from the segments when the store is opened.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use spelunk_guest::prelude::*;

use crate::record::{Record, records};

/// From this length on a segment is sealed.
const SEGMENT_LEN: usize = 96;
const MANIFEST: FileId = 0;

/// The name of a file.
pub type FileId = u32;

/// What the store asks of a disk.
pub trait Disk {
    /// All files, in order.
    fn files(&self) -> Vec<FileId>;

    /// What was written to a file; nothing if it does not exist.
    fn read(&self, file: FileId) -> &[u8];

    /// Adds to the end of a file, which is created if need be. Until [`Disk::sync`] a power loss may undo all
    /// of it or a part.
    fn append(&mut self, file: FileId, bytes: &[u8]) -> Result<(), PowerLost>;

    /// Makes what was appended to a file last.
    fn sync(&mut self, file: FileId) -> Result<(), PowerLost>;

    /// Replaces a file as a whole, or not at all. It lasts.
    fn replace(&mut self, file: FileId, bytes: &[u8]) -> Result<(), PowerLost>;

    /// Removes a file.
    fn remove(&mut self, file: FileId) -> Result<(), PowerLost>;
}

/// The machine is off. The store is to be opened again; what was asked for last has happened or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLost;

/// The store on a disk.
#[derive(Debug)]
pub struct Store<D> {
    disk: D,
    /// Oldest first; the last one is active.
    segments: Vec<FileId>,
    index: BTreeMap<Vec<u8>, Place>,
    /// For encoding, so that a change allocates nothing.
    buffer: Vec<u8>,
}

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    segment: FileId,
    offset: usize,
    len: usize,
}

impl<D: Disk> Store<D> {
    /// Opens what is on the disk, whatever happened to it before.
    ///
    /// # Errors
    /// The disk comes back if it loses power, to try again.
    pub fn open(disk: D) -> Result<Store<D>, (PowerLost, D)> {
        let segments: Vec<FileId> = manifest(disk.read(MANIFEST));
        let mut store = Store { disk, segments, index: BTreeMap::new(), buffer: Vec::new() };
        match store.recover() {
            Ok(()) => Ok(store),
            Err(error) => Err((error, store.disk)),
        }
    }

    /// The disk, for the store to be opened again.
    pub fn close(self) -> D {
        self.disk
    }

    pub fn disk_mut(&mut self) -> &mut D {
        &mut self.disk
    }

    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let Place { segment, offset, len } = *self.index.get(key)?;
        let (record, _) =
            Record::read(&self.disk.read(segment)[offset..][..len]).expect("the index knows whole records");
        record.value
    }

    /// How many keys there are.
    pub fn keys_len(&self) -> usize {
        self.index.len()
    }

    /// All keys with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.index.keys().filter_map(|key| Some((key.as_slice(), self.get(key)?)))
    }

    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), PowerLost> {
        let place = self.write(Record { key, value: Some(value) })?;
        self.index.insert(key.to_vec(), place);
        Ok(())
    }

    pub fn delete(&mut self, key: &[u8]) -> Result<(), PowerLost> {
        if self.index.contains_key(key) {
            self.write(Record { key, value: None })?;
            self.index.remove(key);
        }
        Ok(())
    }

    /// How many segments hold records or may do so: those that can be compacted.
    pub fn segments_len(&self) -> usize {
        self.segments.len()
    }

    /// Merges neighbouring segments, counted from the oldest, into one that holds only what is still needed.
    pub fn compact(&mut self, range: RangeInclusive<usize>) -> Result<(), PowerLost> {
        if *range.end() == self.segments.len() - 1 {
            self.begin_segment()?;
        }
        let merged = self.next_file();
        let includes_oldest = *range.start() == 0;
        let (bytes, places) = self.merge(&self.segments[range.clone()], merged, includes_oldest);
        self.disk.append(merged, &bytes)?;
        self.disk.sync(merged)?;

        let replaced: Vec<FileId> = self.segments.splice(range, [merged]).collect();
        self.write_manifest()?;
        self.index.extend(places);
        for segment in replaced {
            self.disk.remove(segment)?;
        }
        reachable!("compaction ran");
        Ok(())
    }

    /// What is still needed of these segments, and where it will be in the file `merged`.
    fn merge(
        &self,
        segments: &[FileId],
        merged: FileId,
        includes_oldest: bool,
    ) -> (Vec<u8>, BTreeMap<Vec<u8>, Place>) {
        let mut newest = BTreeMap::new();
        for &segment in segments {
            for (record, offset, len) in records(self.disk.read(segment)) {
                newest.insert(record.key, (record, Place { segment, offset, len }));
            }
        }

        let mut bytes = Vec::new();
        let mut places = BTreeMap::new();
        for (key, (record, place)) in newest {
            let offset = bytes.len();
            if record.value.is_some() {
                if self.index.get(key) != Some(&place) {
                    continue;
                }
                record.write(&mut bytes);
                places.insert(key.to_vec(), Place { segment: merged, offset, len: bytes.len() - offset });
            } else if must_keep_tombstone(includes_oldest) {
                record.write(&mut bytes);
            }
        }
        (bytes, places)
    }

    fn write(&mut self, record: Record) -> Result<Place, PowerLost> {
        if self.active_len() >= SEGMENT_LEN {
            self.begin_segment()?;
        }
        self.buffer.clear();
        record.write(&mut self.buffer);
        let segment = self.active();
        let place = Place { segment, offset: self.active_len(), len: self.buffer.len() };
        self.disk.append(segment, &self.buffer)?;
        self.disk.sync(segment)?;
        Ok(place)
    }

    fn recover(&mut self) -> Result<(), PowerLost> {
        // A compaction that was interrupted leaves its result, or what that replaced.
        for file in self.disk.files() {
            if file != MANIFEST && !self.segments.contains(&file) {
                reachable!("recovery removed a file");
                self.disk.remove(file)?;
            }
        }
        for &segment in &self.segments {
            let bytes = self.disk.read(segment);
            let mut whole_len = 0;
            for (record, offset, len) in records(bytes) {
                match record.value {
                    Some(_) => self.index.insert(record.key.to_vec(), Place { segment, offset, len }),
                    None => self.index.remove(record.key),
                };
                whole_len = offset + len;
            }
            sometimes!(whole_len < bytes.len(), "recovery found a torn record");
        }
        // Nothing may follow a torn record, so what comes next goes into a segment of its own.
        if self.segments.is_empty() || self.active_len() > 0 {
            self.begin_segment()?;
        }
        Ok(())
    }

    fn active(&self) -> FileId {
        *self.segments.last().expect("there is always an active segment")
    }

    fn active_len(&self) -> usize {
        self.disk.read(self.active()).len()
    }

    fn begin_segment(&mut self) -> Result<(), PowerLost> {
        self.segments.push(self.next_file());
        self.write_manifest()
    }

    fn next_file(&self) -> FileId {
        self.segments.iter().copied().fold(MANIFEST, FileId::max) + 1
    }

    fn write_manifest(&mut self) -> Result<(), PowerLost> {
        self.buffer.clear();
        self.buffer.extend(self.segments.iter().flat_map(|segment| segment.to_le_bytes()));
        self.disk.replace(MANIFEST, &self.buffer)
    }
}

/// A tombstone hides the records of its key in older segments, and is needed for as long as there are any.
fn must_keep_tombstone(includes_oldest: bool) -> bool {
    if cfg!(feature = "bug") {
        // The bug: after the next opening, what was deleted is there again.
        return false;
    }
    sometimes!(includes_oldest, "compaction dropped a tombstone");
    sometimes!(!includes_oldest, "compaction kept a tombstone");
    !includes_oldest
}

fn manifest(bytes: &[u8]) -> Vec<FileId> {
    let (segments, _) = bytes.as_chunks();
    segments.iter().copied().map(FileId::from_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::FakeDisk;

    fn store() -> Store<FakeDisk> {
        Store::open(FakeDisk::default()).unwrap()
    }

    fn check(store: &Store<FakeDisk>, expected: &[(&str, &str)]) {
        let found: Vec<_> = store.iter().collect();
        let expected: Vec<_> =
            expected.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_newest_record_counts() {
        let mut store = store();
        store.put(b"a", b"1").unwrap();
        store.put(b"b", b"2").unwrap();
        store.put(b"a", b"3").unwrap();
        store.delete(b"b").unwrap();
        check(&store, &[("a", "3")]);
        check(&Store::open(store.close()).unwrap(), &[("a", "3")]);
    }

    #[test]
    fn segments_are_sealed_when_full() {
        let mut store = store();
        for _ in 0..11 {
            store.put(b"a", b"1").unwrap();
        }
        assert_eq!(store.segments_len(), 2);
        store.compact(0..=1).unwrap();
        check(&store, &[("a", "1")]);
        assert_eq!(store.segments_len(), 2);
    }

    #[test]
    #[cfg(not(feature = "bug"))]
    fn a_tombstone_outlives_the_compaction_of_newer_segments() {
        let mut store = store();
        store.put(b"a", b"1").unwrap();
        store.compact(0..=0).unwrap();
        store.delete(b"a").unwrap();
        store.compact(1..=1).unwrap();
        check(&Store::open(store.close()).unwrap(), &[]);
    }
}
