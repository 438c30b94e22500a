//! What a check has met long ago, in files, where it takes no memory: the hashes of states, sorted, of which one in [`BLOCK`] stays in
//! memory, and the steps to them.

use std::borrow::Borrow;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::check::{Bytes, Hashes};

/// Hashes that are read at once.
const BLOCK: usize = 256;
/// Bytes of a hash. The first one counts most, so that they are ordered as they are read.
const WIDTH: usize = size_of::<u128>();

/// Hashes in a file without a name, which ends with the process: in ascending order, and each once.
pub(super) struct Sorted {
    /// Where the file is, and that of more, and how many bytes one may have.
    folder: PathBuf,
    bytes_max: u64,
    /// Once there are any.
    file: Option<File>,
    len: usize,
    /// The first of each block.
    firsts: Vec<u128>,
}

impl Sorted {
    pub(super) fn new(folder: PathBuf, bytes_max: u64) -> Sorted {
        Sorted { folder, bytes_max, file: None, len: 0, firsts: Vec::new() }
    }

    /// These with more, which ascend, in another file, as long as it `goes_on`.
    fn merged(&self, more: &mut dyn Iterator<Item = u128>, goes_on: &dyn Fn() -> bool) -> io::Result<Sorted> {
        let file = tempfile::tempfile_in(&self.folder)?;
        let mut out = BufWriter::with_capacity(1 << 16, &file);
        let (mut len, mut firsts) = (0usize, Vec::new());
        let (mut before, mut more) = (self.all().peekable(), more.peekable());
        loop {
            if let Some(Err(error)) = before.next_if(Result::is_err) {
                return Err(error);
            }
            let old = before.peek().and_then(|old| old.as_ref().ok()).copied();
            let new = more.peek().copied();
            let Some(state) = old.into_iter().chain(new).min() else { break };
            before.next_if(|_| old == Some(state));
            more.next_if(|_| new == Some(state));
            if len.is_multiple_of(BLOCK) {
                firsts.push(state);
                if !goes_on() {
                    return Err(ErrorKind::Interrupted.into());
                }
                if ((len + BLOCK) * WIDTH) as u64 > self.bytes_max {
                    return Err(ErrorKind::FileTooLarge.into());
                }
            }
            out.write_all(&state.to_be_bytes())?;
            len += 1;
        }
        out.flush()?;
        drop(out);
        let (folder, bytes_max) = (self.folder.clone(), self.bytes_max);
        Ok(Sorted { folder, bytes_max, file: Some(file), len, firsts })
    }

    fn find(&self, state: u128) -> io::Result<bool> {
        let block = self.firsts.partition_point(|first| *first <= state).checked_sub(1);
        let (Some(file), Some(block)) = (&self.file, block) else { return Ok(false) };
        let first = block * BLOCK;
        let mut bytes = [0; BLOCK * WIDTH];
        let bytes = &mut bytes[..BLOCK.min(self.len - first) * WIDTH];
        file.read_exact_at(bytes, (first * WIDTH) as u64)?;
        let (hashes, _) = bytes.as_chunks::<WIDTH>();
        Ok(hashes.binary_search(&state.to_be_bytes()).is_ok())
    }

    /// All of them, in order.
    fn all(&self) -> impl Iterator<Item = io::Result<u128>> {
        let file = self.file.as_ref().map(|file| BufReader::with_capacity(1 << 16, At { file, at: 0 }));
        let len = self.len;
        file.into_iter().flat_map(move |mut file| {
            (0..len).map(move |_| {
                let mut bytes = [0; WIDTH];
                file.read_exact(&mut bytes)?;
                Ok(u128::from_be_bytes(bytes))
            })
        })
    }
}

impl Hashes for Sorted {
    fn add(&mut self, more: &mut dyn Iterator<Item = u128>, goes_on: &dyn Fn() -> bool) -> bool {
        match self.merged(more, goes_on) {
            Ok(merged) => *self = merged,
            Err(_) => return false,
        }
        true
    }

    fn contains(&self, state: u128) -> Option<bool> {
        self.find(state).ok()
    }

    fn bytes(&self) -> usize {
        self.firsts.capacity() * WIDTH
    }
}

/// Bytes in a file without a name, and how many it may have.
pub(super) struct Unnamed(File, u64);

impl Unnamed {
    pub(super) fn new(folder: &Path, bytes_max: u64) -> io::Result<Unnamed> {
        Ok(Unnamed(tempfile::tempfile_in(folder)?, bytes_max))
    }
}

impl Bytes for Unnamed {
    fn write(&self, at: u64, bytes: &[u8]) -> bool {
        at + bytes.len() as u64 <= self.1 && self.0.write_all_at(bytes, at).is_ok()
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        self.0.read_exact_at(bytes, at).is_ok()
    }
}

/// Reads a file from a place of its own on.
pub(super) struct At<F> {
    pub(super) file: F,
    pub(super) at: u64,
}

impl<F: Borrow<File>> Read for At<F> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.borrow().read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::choice::mix;

    #[test]
    fn it_holds_what_a_set_holds() {
        let hash = |i: u64| u128::from(mix(i, 1)) << 64 | u128::from(mix(i, 2));
        let folder = tempfile::tempdir().unwrap();
        let (mut set, mut sorted) = (BTreeSet::new(), Sorted::new(folder.path().to_path_buf(), u64::MAX));
        for size in [0, 1, 255, 256, 1, 2000, 0, 513] {
            let start = set.len() as u64;
            // Some of them are there already.
            let more: BTreeSet<u128> = (start.saturating_sub(3)..start + size).map(hash).collect();
            set.extend(&more);
            assert!(sorted.add(&mut more.into_iter(), &|| true));
            assert_eq!(sorted.all().map(Result::unwrap).collect::<Vec<_>>(), Vec::from_iter(set.clone()));
            let asked = (0..start + size + 1000).map(hash).chain([0, u128::MAX]);
            asked.for_each(|state| assert_eq!(sorted.contains(state), Some(set.contains(&state))));
        }
        assert!(sorted.bytes() <= 16 * WIDTH);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "the file has no name");
    }

    #[test]
    fn what_cannot_be_added_changes_nothing_and_what_cannot_be_read_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut sorted = Sorted::new(folder.path().to_path_buf(), 8192);
        assert!(sorted.add(&mut (0..10), &|| true));
        assert!(!sorted.add(&mut (10..20), &|| false));
        assert!(!sorted.add(&mut (10..600), &|| true), "it takes more than it may");
        let bytes = Unnamed::new(folder.path(), 20).unwrap();
        assert!(bytes.write(0, &[7; 20]) && !bytes.write(10, &[8; 11]));
        let mut read = [0; 5];
        assert!(bytes.read(15, &mut read) && read == [7; 5] && !bytes.read(16, &mut read));
        drop(folder);
        assert!(!sorted.add(&mut (10..20), &|| true));
        assert_eq!((sorted.contains(9), sorted.contains(10)), (Some(true), Some(false)));
        let folder = tempfile::tempdir().unwrap();
        sorted.folder = folder.path().to_path_buf();
        sorted.file.as_ref().unwrap().set_len(100).unwrap();
        assert_eq!(sorted.contains(3), None);
        assert!(!sorted.add(&mut (10..20), &|| true));
    }
}
