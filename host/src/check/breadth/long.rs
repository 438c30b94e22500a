//! A list of which only the last part is in memory.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::check::{Bytes, lock};

/// Elements that are read at once, and how many times that many stay in memory once they were read.
const BLOCK: usize = 256;
const BLOCKS: usize = 256;
/// Blocks that are written at once.
const WRITTEN: usize = 256;

/// What is written in so many bytes.
pub(super) trait Fixed: Copy {
    const WIDTH: usize;
    fn write(self, bytes: &mut Vec<u8>);
    /// From as many bytes.
    fn read(bytes: &[u8]) -> Self;
}

/// The number of a block, and its elements.
type Block<T> = (usize, Box<[T]>);

/// A list that grows at its end. The oldest elements may be elsewhere.
pub(super) struct Long<T> {
    /// How many are elsewhere, in whole blocks, and those that follow.
    moved: usize,
    tail: Vec<T>,
    place: Option<Box<dyn Bytes>>,
    /// Blocks that were read, by the remainder of their numbers.
    read: Mutex<BTreeMap<usize, Block<T>>>,
    is_broken: AtomicBool,
}

impl<T: Fixed> Long<T> {
    pub(super) fn new() -> Long<T> {
        Long {
            moved: 0,
            tail: Vec::new(),
            place: None,
            read: Mutex::default(),
            is_broken: AtomicBool::new(false),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.moved + self.tail.len()
    }

    pub(super) fn push(&mut self, element: T) {
        self.tail.push(element);
    }

    pub(super) fn extend(&mut self, elements: impl IntoIterator<Item = T>) {
        self.tail.extend(elements);
    }

    /// An element; nothing where there is none, or it cannot be read, of which the latter is told from then on.
    pub(super) fn get(&self, at: usize) -> Option<T> {
        match at.checked_sub(self.moved) {
            Some(at) => self.tail.get(at).copied(),
            None => self.get_moved(at),
        }
    }

    fn get_moved(&self, at: usize) -> Option<T> {
        let (block, at) = (at / BLOCK, at % BLOCK);
        let mut read = lock(&self.read);
        if read.get(&(block % BLOCKS)).is_none_or(|(known, _)| *known != block) {
            let mut bytes = vec![0; BLOCK * T::WIDTH];
            let place = self.place.as_ref().filter(|_| !self.is_broken());
            if !place.is_some_and(|place| place.read((block * bytes.len()) as u64, &mut bytes)) {
                self.is_broken.store(true, Ordering::Relaxed);
                return None;
            }
            read.insert(block % BLOCKS, (block, bytes.chunks_exact(T::WIDTH).map(T::read).collect()));
        }
        read.get(&(block % BLOCKS)).map(|(_, elements)| elements[at])
    }

    /// Those from some place on that was not moved.
    pub(super) fn since(&self, at: usize) -> &[T] {
        &self.tail[at - self.moved..]
    }

    /// Whether some could not be read.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// Moves those before `end` to a place of their own, which is made where there is none yet, in whole blocks. Whether that went well:
    /// if not, all is as it was.
    pub(super) fn move_before(&mut self, end: usize, make: impl FnOnce() -> Option<Box<dyn Bytes>>) -> bool {
        let count = end.saturating_sub(self.moved).min(self.tail.len()) / BLOCK * BLOCK;
        if count == 0 {
            return true;
        }
        self.place = self.place.take().or_else(make);
        let Some(place) = &self.place else { return false };
        let mut bytes = Vec::new();
        for (number, some) in self.tail[..count].chunks(WRITTEN * BLOCK).enumerate() {
            bytes.clear();
            some.iter().for_each(|element| element.write(&mut bytes));
            let at = self.moved + number * WRITTEN * BLOCK;
            if !place.write((at * T::WIDTH) as u64, &bytes) {
                return false;
            }
        }
        self.tail = self.tail.split_off(count);
        self.moved += count;
        true
    }

    /// Bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        (self.tail.capacity() + lock(&self.read).len() * BLOCK) * size_of::<T>()
    }
}

impl Fixed for (u32, u32) {
    const WIDTH: usize = 8;

    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.0.to_le_bytes());
        bytes.extend(self.1.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> (u32, u32) {
        let (one, other) = bytes.split_at(4);
        (number(one), number(other))
    }
}

/// Four bytes as a number.
pub(super) fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("there are four bytes"))
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Bytes that can be written and read so often.
    struct Elsewhere(Mutex<Vec<u8>>, AtomicUsize, AtomicUsize);

    fn is_left(count: &AtomicUsize) -> bool {
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    impl Bytes for Elsewhere {
        fn write(&self, at: u64, bytes: &[u8]) -> bool {
            let mut all = lock(&self.0);
            assert!(at as usize <= all.len());
            all.truncate(at as usize);
            all.extend(bytes);
            is_left(&self.1)
        }

        fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
            bytes.copy_from_slice(&lock(&self.0)[at as usize..][..bytes.len()]);
            is_left(&self.2)
        }
    }

    pub(in crate::check) fn elsewhere(writes: usize, reads: usize) -> Option<Box<dyn Bytes>> {
        let [writes, reads] = [writes, reads].map(AtomicUsize::new);
        Some(Box::new(Elsewhere(Mutex::default(), writes, reads)))
    }

    fn element(at: usize) -> (u32, u32) {
        (at as u32, at as u32 * 7)
    }

    #[test]
    fn what_is_elsewhere_is_still_there() {
        let mut long = Long::new();
        for (pushed, end) in
            [(0, 10), (1000, 1000), (100, 1100), (200_000, 150_000), (5, 300_000), (700_000, 900_000)]
        {
            let len = long.len();
            long.extend((len..len + pushed).map(element));
            assert!(long.move_before(end, || elsewhere(usize::MAX, usize::MAX)));
            let end = end.min(long.len());
            assert!(long.since(end) == &(end..long.len()).map(element).collect::<Vec<_>>()[..]);
            assert!((0..long.len()).all(|at| long.get(at) == Some(element(at))));
            // In blocks that take the place of one another.
            assert!(
                (0..long.len())
                    .step_by(BLOCK * BLOCKS / 2 + 1)
                    .rev()
                    .all(|at| long.get(at) == Some(element(at)))
            );
            assert_eq!(long.get(long.len()), None);
        }
        assert!(!long.is_broken() && long.moved == 900_000 / BLOCK * BLOCK);
        assert!(long.bytes() < 4 << 20, "{}", long.bytes());
    }

    #[test]
    fn what_cannot_be_moved_stays_and_what_cannot_be_read_is_told() {
        let mut long = Long::new();
        long.extend((0..3 * BLOCK).map(element));
        assert!(!long.move_before(BLOCK, || None));
        assert!(!long.move_before(BLOCK, || elsewhere(0, 0)));
        assert_eq!((long.moved, long.get(0)), (0, Some((0, 0))));
        let mut long = Long::new();
        long.extend((0..3 * BLOCK).map(element));
        assert!(long.move_before(2 * BLOCK, || elsewhere(1, 1)));
        assert_eq!((long.get(5), long.is_broken()), (Some(element(5)), false));
        assert_eq!((long.get(BLOCK), long.is_broken()), (None, true));
    }
}
