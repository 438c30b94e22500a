//! The entries of a directory in an order that stays the same while entries come and go.

use xxhash_rust::xxh3::xxh3_64;

use super::errno::Answer;
use super::files::{Files, Ino};

/// Looking at one entry costs as much as reading so many bytes.
pub(crate) const LISTED_BYTES: usize = 64;
/// The place of the first entry that has a name of its own: before it are `.` and `..`.
pub(crate) const FIRST_PLACE: u64 = 2;

impl Files {
    /// So many entries of a directory from a place on, in order: each with its place, which is a hash of its name, so that it
    /// stays while others come and go.
    pub(crate) fn listed(&self, directory: Ino, from: u64, most: usize) -> Answer<Vec<(u64, &str, Ino)>> {
        let place = |name: &str| FIRST_PLACE + (xxh3_64(name.as_bytes()) >> 2);
        let named = self.entries(directory)?.iter().map(|(name, ino)| (place(name), &**name, *ino));
        let all = [(0, ".", directory), (1, "..", self.parent(directory))].into_iter().chain(named);
        let mut entries: Vec<(u64, &str, Ino)> = all.filter(|(place, ..)| *place >= from).collect();
        // The others need no order.
        if most < entries.len() {
            entries.select_nth_unstable(most);
            entries.truncate(most);
        }
        entries.sort_unstable();
        Ok(entries)
    }
}
