//! Pages and leaves of page tables. Those that nothing refers to any more are kept for the next ones.

use std::cell::RefCell;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use super::account::Held;
use super::hashing::{Hashing, Once, hash_of};
use super::{LEAF, NAMES, PAGE};

/// Pages, and leaves, that a thread keeps for the next states that it saves.
const SPARE_MAX: usize = 16384;

thread_local! {
    static SPARE: RefCell<Spare> = const { RefCell::new(Spare { pages: Vec::new(), leaves: Vec::new() }) };
}

/// What a thread keeps to itself, since threads that share an allocator wait for one another.
struct Spare {
    /// Pages that nothing refers to.
    pages: Vec<Arc<Page>>,
    /// Leaves without pages that nothing refers to.
    leaves: Vec<Arc<Leaf>>,
}

/// Does something with what this thread keeps; nothing once the thread has ended.
fn spare<T>(f: impl FnOnce(&mut Spare) -> T) -> Option<T> {
    SPARE.try_with(|spare| f(&mut spare.borrow_mut())).ok()
}

/// The saved bytes of one page.
pub(in crate::machine) struct Page {
    held: Held,
    hash: Once,
    /// The hash of the bytes, wherever they stand.
    name: Once,
    pub(in crate::machine) bytes: [u8; PAGE],
}

/// Some pages that follow one another.
pub(in crate::machine) struct Leaf {
    /// The sum of the hashes of its pages, portable and keyed.
    hashes: [Once; 2],
    /// The hash of the names of its pages.
    name: Once,
    /// `None` is a page of zeros.
    pub(in crate::machine) pages: [Option<Arc<Page>>; LEAF],
}

impl Leaf {
    pub(in crate::machine) fn zeros() -> Leaf {
        Leaf { hashes: Default::default(), name: Once::default(), pages: [const { None }; LEAF] }
    }

    /// A leaf that can be changed, in the place of `leaf`.
    pub(in crate::machine) fn own(leaf: &mut Arc<Leaf>) -> &mut Leaf {
        if Arc::get_mut(leaf).is_none() {
            let mut copy = Leaf::again();
            let fresh = Arc::get_mut(&mut copy).expect("nothing refers to a leaf that was let go");
            fresh.pages.clone_from(&leaf.pages);
            *leaf = copy;
        }
        let leaf = Arc::get_mut(leaf).expect("nothing else refers to it");
        (leaf.hashes, leaf.name) = Default::default();
        leaf
    }

    /// As [`Leaf::zeros`], in the place of one that was let go where there is one.
    pub(in crate::machine) fn again() -> Arc<Leaf> {
        let leaf = spare(|spare| spare.leaves.pop()).flatten();
        leaf.unwrap_or_else(|| Arc::new(Leaf::zeros()))
    }

    /// Keeps a leaf for [`Leaf::again`] that nothing else refers to.
    pub(super) fn let_go(mut leaf: Arc<Leaf>) {
        if Arc::strong_count(&leaf) > 1 {
            return;
        }
        let Some(alone) = Arc::get_mut(&mut leaf) else { return };
        alone.pages.iter_mut().filter_map(Option::take).for_each(Page::let_go);
        (alone.hashes, alone.name) = Default::default();
        spare(|spare| {
            if spare.leaves.len() < SPARE_MAX {
                spare.leaves.push(leaf);
            }
        });
    }

    /// The names of its pages, 0 of one of zeros.
    pub(in crate::machine) fn names(&self) -> [u8; NAMES] {
        let mut names = [0; NAMES];
        for (name, page) in names.as_chunks_mut().0.iter_mut().zip(&self.pages) {
            *name = page.as_ref().map_or(0, |page| page.name()).to_le_bytes();
        }
        names
    }

    /// The hash of the names of its pages; 0 where all are of zeros.
    pub(in crate::machine) fn name(&self) -> u128 {
        let is_zero = || self.pages.iter().all(Option::is_none);
        self.name.get_or_init(|| if is_zero() { 0 } else { xxh3_128(&self.names()) })
    }

    /// The sum of the hashes of its pages, see [`PageTable::hash`](super::PageTable::hash).
    pub(in crate::machine) fn hash(&self, memory: usize, leaf: usize, hashing: Hashing) -> u128 {
        let page = |(slot, page): (usize, &Option<Arc<Page>>)| {
            page.as_ref().map_or(0, |page| page.hash(memory, leaf * LEAF + slot, hashing))
        };
        let sum = || self.pages.iter().enumerate().map(page).fold(0, u128::wrapping_add);
        self.hashes[hashing as usize].get_or_init(sum)
    }
}

impl Drop for Leaf {
    fn drop(&mut self) {
        self.pages.iter_mut().filter_map(Option::take).for_each(Page::let_go);
    }
}

impl Page {
    pub(in crate::machine) fn new(bytes: &[u8; PAGE]) -> Page {
        let held = Held::new(size_of::<Page>());
        Page { held, hash: Once::default(), name: Once::default(), bytes: *bytes }
    }

    /// As [`Page::new`], in the place of one that was let go where there is one.
    pub(super) fn again(bytes: &[u8; PAGE]) -> Arc<Page> {
        let Some(mut page) = spare(|spare| spare.pages.pop()).flatten() else {
            return Arc::new(Page::new(bytes));
        };
        let fresh = Arc::get_mut(&mut page).expect("nothing refers to a page that was let go");
        fresh.held = Held::new(size_of::<Page>());
        (fresh.hash, fresh.name) = Default::default();
        fresh.bytes = *bytes;
        page
    }

    /// The bytes of a page that can be changed, in the place of `page`.
    pub(in crate::machine) fn own(page: &mut Option<Arc<Page>>) -> &mut [u8; PAGE] {
        let own = match page.take() {
            Some(mut shared) => match Arc::get_mut(&mut shared) {
                Some(alone) => {
                    (alone.hash, alone.name) = Default::default();
                    shared
                }
                None => Page::again(&shared.bytes),
            },
            None => Page::again(&[0; PAGE]),
        };
        &mut Arc::get_mut(page.insert(own)).expect("nothing else refers to it").bytes
    }

    /// Keeps a page for [`Page::again`] that nothing else refers to.
    pub(super) fn let_go(mut page: Arc<Page>) {
        if Arc::strong_count(&page) > 1 {
            return;
        }
        let Some(alone) = Arc::get_mut(&mut page) else { return };
        alone.held = Held(0);
        spare(|spare| {
            if spare.pages.len() < SPARE_MAX {
                spare.pages.push(page);
            }
        });
    }

    /// The hash of the bytes, wherever they stand.
    pub(in crate::machine) fn name(&self) -> u128 {
        self.name.get_or_init(|| xxh3_128(&self.bytes))
    }

    pub(super) fn hash(&self, memory: usize, index: usize, hashing: Hashing) -> u128 {
        match hashing {
            Hashing::Portable => self.hash.get_or_init(|| hash_of(&self.bytes, memory, index, hashing)),
            // It is seldom asked for: a check knows the sum of all pages, and how it changes.
            Hashing::Keyed => hash_of(&self.bytes, memory, index, hashing),
        }
    }
}
