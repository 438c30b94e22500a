//! The page store: what a memory held, as a persistent table of reference-counted pages.
//!
//! A table shares every page that did not change with the table it was made from. The machine remembers
//! which table is resident in the memory, so going to any other table copies the pages that were written
//! since and those in which the two tables differ, and nothing else.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

use super::keyed;

/// Bytes in a page. With 512 the marks to be looked at cost more than the bytes that need not be copied; with 4096
/// checks took 1.2 times as long.
pub const PAGE: usize = 1024;
/// A store may begin on one page, which is marked, and reach this many bytes into the next, which is not.
const FRINGE: usize = spelunk_instrumenter::FRINGE_BYTES as usize;
/// Marks that are looked at together: first so many, then by the line where any of them is set.
const LINES: usize = 4 * LINE;
const LINE: usize = 64;
/// Bytes that are hashed together: most stores change few of a page's.
const BLOCK: usize = keyed::BLOCK;
/// Blocks in a page.
const BLOCKS: usize = PAGE / BLOCK;
/// Pages in a leaf of the table.
pub(super) const LEAF: usize = 64;
/// Bytes of what names a leaf's pages: the hash of each one's bytes.
pub(super) const NAMES: usize = LEAF * size_of::<u128>();

/// Bytes that saved states hold, those of all machines, but for what threads have not told yet.
static SAVED: AtomicIsize = AtomicIsize::new(0);
/// Bytes of which a thread does not tell before there are as many.
const UNTOLD_MAX: isize = 64 << 10;
/// Pages, and leaves, that a thread keeps for the next states that it saves.
const SPARE_MAX: usize = 16384;

thread_local! {
    static LOCAL: RefCell<Local> = const { RefCell::new(Local { untold: 0, spare: Vec::new(), leaves: Vec::new() }) };
}

/// What a thread keeps to itself, since threads that share a counter or an allocator wait for one another.
struct Local {
    /// Bytes that it saved, less those that it let go.
    untold: isize,
    /// Pages that nothing refers to.
    spare: Vec<Arc<Page>>,
    /// Leaves without pages that nothing refers to.
    leaves: Vec<Arc<Leaf>>,
}

impl Local {
    fn count(&mut self, bytes: isize) {
        self.untold += bytes;
        if self.untold.abs() >= UNTOLD_MAX {
            SAVED.fetch_add(std::mem::take(&mut self.untold), Ordering::Relaxed);
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        SAVED.fetch_add(self.untold, Ordering::Relaxed);
    }
}

/// Does something with what this thread keeps; nothing once the thread has ended.
fn local<T>(f: impl FnOnce(&mut Local) -> T) -> Option<T> {
    LOCAL.try_with(|local| f(&mut local.borrow_mut())).ok()
}

/// Bytes that saved states hold now, those of all machines; about.
pub(super) fn saved_bytes() -> usize {
    usize::try_from(SAVED.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Bytes that are counted as saved while this lives.
pub(super) struct Held(usize);

impl Held {
    pub(super) fn new(bytes: usize) -> Held {
        Held::count(bytes as isize);
        Held(bytes)
    }

    fn count(bytes: isize) {
        if local(|local| local.count(bytes)).is_none() {
            SAVED.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl Clone for Held {
    fn clone(&self) -> Held {
        Held::new(self.0)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.0 > 0 {
            Held::count(-(self.0 as isize));
        }
    }
}

/// What a hash is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hashing {
    /// To be compared with one of another process: what anybody can compute.
    Portable,
    /// To take two states for one, be it that a guest wants them to be taken so: see [`keyed`].
    Keyed,
}

/// A hash that is computed once. In halves, since a page with a `u128` takes a tenth more room than its bytes.
#[derive(Default)]
struct Once(OnceLock<[u64; 2]>);

impl Once {
    fn get_or_init(&self, hash: impl FnOnce() -> u128) -> u128 {
        let [low, high] = *self.0.get_or_init(|| {
            let hash = hash();
            [hash as u64, (hash >> 64) as u64]
        });
        u128::from(high) << 64 | u128::from(low)
    }
}

/// The saved bytes of one page.
pub(super) struct Page {
    held: Held,
    hash: Once,
    /// The hash of the bytes, wherever they stand.
    name: Once,
    pub(super) bytes: [u8; PAGE],
}

/// Some pages that follow one another.
pub(super) struct Leaf {
    /// The sum of the hashes of its pages, portable and keyed.
    hashes: [Once; 2],
    /// The hash of the names of its pages.
    name: Once,
    /// `None` is a page of zeros.
    pub(super) pages: [Option<Arc<Page>>; LEAF],
}

impl Leaf {
    pub(super) fn zeros() -> Leaf {
        Leaf { hashes: Default::default(), name: Once::default(), pages: [const { None }; LEAF] }
    }

    /// A leaf that can be changed, in the place of `leaf`.
    fn own(leaf: &mut Arc<Leaf>) -> &mut Leaf {
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
    fn again() -> Arc<Leaf> {
        let spare = local(|local| local.leaves.pop()).flatten();
        spare.unwrap_or_else(|| Arc::new(Leaf::zeros()))
    }

    /// Keeps a leaf for [`Leaf::again`] that nothing else refers to.
    fn let_go(mut leaf: Arc<Leaf>) {
        if Arc::strong_count(&leaf) > 1 {
            return;
        }
        let Some(alone) = Arc::get_mut(&mut leaf) else { return };
        alone.pages.iter_mut().filter_map(Option::take).for_each(Page::let_go);
        (alone.hashes, alone.name) = Default::default();
        local(|local| {
            if local.leaves.len() < SPARE_MAX {
                local.leaves.push(leaf);
            }
        });
    }

    /// The names of its pages, 0 of one of zeros.
    pub(super) fn names(&self) -> [u8; NAMES] {
        let mut names = [0; NAMES];
        for (name, page) in names.as_chunks_mut().0.iter_mut().zip(&self.pages) {
            *name = page.as_ref().map_or(0, |page| page.name()).to_le_bytes();
        }
        names
    }

    /// The hash of the names of its pages; 0 where all are of zeros.
    pub(super) fn name(&self) -> u128 {
        let is_zero = || self.pages.iter().all(Option::is_none);
        self.name.get_or_init(|| if is_zero() { 0 } else { xxh3_128(&self.names()) })
    }

    /// See [`PageTable::hash`].
    fn hash(&self, memory: usize, leaf: usize, hashing: Hashing) -> u128 {
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
    pub(super) fn new(bytes: &[u8; PAGE]) -> Page {
        let held = Held::new(size_of::<Page>());
        Page { held, hash: Once::default(), name: Once::default(), bytes: *bytes }
    }

    /// As [`Page::new`], in the place of one that was let go where there is one.
    fn again(bytes: &[u8; PAGE]) -> Arc<Page> {
        let Some(mut page) = local(|local| local.spare.pop()).flatten() else {
            return Arc::new(Page::new(bytes));
        };
        let fresh = Arc::get_mut(&mut page).expect("nothing refers to a page that was let go");
        fresh.held = Held::new(size_of::<Page>());
        (fresh.hash, fresh.name) = Default::default();
        fresh.bytes = *bytes;
        page
    }

    /// Keeps a page for [`Page::again`] that nothing else refers to.
    fn let_go(mut page: Arc<Page>) {
        if Arc::strong_count(&page) > 1 {
            return;
        }
        let Some(alone) = Arc::get_mut(&mut page) else { return };
        alone.held = Held(0);
        local(|local| {
            if local.spare.len() < SPARE_MAX {
                local.spare.push(page);
            }
        });
    }

    /// The hash of the bytes, wherever they stand.
    pub(super) fn name(&self) -> u128 {
        self.name.get_or_init(|| xxh3_128(&self.bytes))
    }

    fn hash(&self, memory: usize, index: usize, hashing: Hashing) -> u128 {
        match hashing {
            Hashing::Portable => self.hash.get_or_init(|| hash_of(&self.bytes, memory, index, hashing)),
            // It is seldom asked for: a check knows the sum of all pages, and how it changes.
            Hashing::Keyed => hash_of(&self.bytes, memory, index, hashing),
        }
    }
}

/// The hash of a page: the sum of those of its blocks.
fn hash_of(bytes: &[u8; PAGE], memory: usize, index: usize, hashing: Hashing) -> u128 {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let hashes = blocks.iter().enumerate();
    let hashes = hashes.map(|(at, block)| hash_of_block(block, memory, index * BLOCKS + at, hashing));
    hashes.fold(0, u128::wrapping_add)
}

/// The hash of a block, which covers its place; 0 of one that is all zeros.
fn hash_of_block(block: &[u8; BLOCK], memory: usize, at: usize, hashing: Hashing) -> u128 {
    let place = (memory as u64) << 48 | at as u64;
    match hashing {
        Hashing::Keyed => keyed::hash_of_block(block, place),
        Hashing::Portable if *block == [0; BLOCK] => 0,
        Hashing::Portable => xxh3_128_with_seed(block, place),
    }
}

/// The hashes of blocks of one table of one memory, those that were asked for lately: what follows a state differs from
/// it in few blocks, and often in the same ones.
#[derive(Default)]
pub(crate) struct Blocks(Vec<(usize, Hashing, u128)>);

/// Blocks whose hashes are kept.
const BLOCKS_MAX: usize = 16;

impl Blocks {
    /// To be called where the table changes.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    fn hash(&mut self, block: &[u8; BLOCK], memory: usize, at: usize, hashing: Hashing) -> u128 {
        if let Some((.., hash)) = self.0.iter().find(|(known, how, _)| *known == at && *how == hashing) {
            return *hash;
        }
        let hash = hash_of_block(block, memory, at, hashing);
        if self.0.len() < BLOCKS_MAX {
            self.0.push((at, hashing, hash));
        }
        hash
    }
}

/// How the hash of a page changes between two contents, of both of which the bytes in `dead` count as zeros. The hashes of
/// blocks of the first are kept in `known`.
fn hash_change(
    (from, to): (&[u8; PAGE], &[u8; PAGE]),
    dead: &Range<usize>,
    (memory, index): (usize, usize),
    known: &mut Blocks,
    hashing: Hashing,
) -> u128 {
    let (from, _) = from.as_chunks::<BLOCK>();
    let (to, _) = to.as_chunks::<BLOCK>();
    let mut change = 0u128;
    for at in 0..BLOCKS {
        if is_same(&from[at], &to[at]) {
            continue;
        }
        let clamp = |byte: usize| byte.clamp(at * BLOCK, (at + 1) * BLOCK) - at * BLOCK;
        let dead = clamp(dead.start)..clamp(dead.end);
        if dead.len() == BLOCK {
            continue;
        }
        if dead.is_empty() {
            change = change.wrapping_add(hash_of_block(&to[at], memory, index * BLOCKS + at, hashing));
            change = change.wrapping_sub(known.hash(&from[at], memory, index * BLOCKS + at, hashing));
            continue;
        }
        let live = |block: &[u8; BLOCK]| {
            let mut live = *block;
            live[dead.clone()].fill(0);
            hash_of_block(&live, memory, index * BLOCKS + at, hashing)
        };
        change = change.wrapping_add(live(&to[at])).wrapping_sub(live(&from[at]));
    }
    change
}

/// Whether two blocks are equal; written for the vectoriser.
fn is_same(a: &[u8; BLOCK], b: &[u8; BLOCK]) -> bool {
    let (a, _) = a.as_chunks::<16>();
    let (b, _) = b.as_chunks::<16>();
    let differing = |(a, b): (&[u8; 16], &[u8; 16])| u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b);
    a.iter().zip(b).map(differing).fold(0, |any, bits| any | bits) == 0
}

/// What a memory held. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct PageTable {
    /// Bytes in the memory; always whole pages.
    pub(crate) size: usize,
    leaves: Arc<Leaves>,
}

/// The leaves of a table; `None` is one of zero pages.
#[derive(Default)]
struct Leaves {
    list: Vec<Option<Arc<Leaf>>>,
    /// The sum of the hashes of all pages, portable and keyed, where some bytes count as zeros: that range, and the sum.
    hashes: [OnceLock<(Range<usize>, u128)>; 2],
}

impl Drop for Leaves {
    fn drop(&mut self) {
        self.list.drain(..).flatten().for_each(Leaf::let_go);
    }
}

impl Clone for Leaves {
    /// To be changed, which its hash does not survive.
    fn clone(&self) -> Leaves {
        Leaves { list: self.list.clone(), hashes: Default::default() }
    }
}

impl Leaves {
    /// See [`PageTable::hash`].
    fn hash(&self, memory: usize, dead: &Range<usize>, hashing: Hashing) -> u128 {
        let sum = || (dead.clone(), self.sum(memory, dead, hashing));
        let (known, hash) = self.hashes[hashing as usize].get_or_init(sum);
        if known == dead { *hash } else { self.sum(memory, dead, hashing) }
    }

    fn sum(&self, memory: usize, dead: &Range<usize>, hashing: Hashing) -> u128 {
        let mut sum = 0u128;
        for (leaf, pages) in self.list.iter().enumerate() {
            let Some(pages) = pages else { continue };
            let (first, end) = (leaf * LEAF, (leaf + 1) * LEAF);
            if dead.start <= first * PAGE && dead.end >= end * PAGE {
                continue;
            }
            sum = sum.wrapping_add(pages.hash(memory, leaf, hashing));
            for index in first.max(dead.start / PAGE)..end.min(dead.end.div_ceil(PAGE)) {
                let Some(page) = &pages.pages[index % LEAF] else { continue };
                sum = sum.wrapping_sub(page.hash(memory, index, hashing));
                let dead = within(dead, index);
                if dead.len() < PAGE {
                    let mut live = page.bytes;
                    live[dead].fill(0);
                    sum = sum.wrapping_add(hash_of(&live, memory, index, hashing));
                }
            }
        }
        sum
    }
}

impl PageTable {
    /// A memory of `size` zero bytes.
    pub(crate) fn zeros(size: usize) -> PageTable {
        PageTable { size, leaves: Arc::default() }
    }

    /// A memory of `size` bytes with these leaves, the first ones; `None` is one of zeros.
    pub(super) fn of(size: usize, list: Vec<Option<Arc<Leaf>>>) -> PageTable {
        PageTable { size, leaves: Arc::new(Leaves { list, hashes: Default::default() }) }
    }

    /// The leaves that are not all zeros, and their indices.
    pub(super) fn leaves(&self) -> impl Iterator<Item = (usize, &Leaf)> {
        let leaves = self.leaves.list.iter().enumerate();
        leaves
            .filter_map(|(index, leaf)| Some((index, &**leaf.as_ref()?)))
            .filter(|(_, leaf)| leaf.name() != 0)
    }

    /// How many pages this table and another hold once for both.
    pub(super) fn shared_with(&self, other: &PageTable) -> usize {
        let is_shared = |index: &usize| match (self.page(*index), other.page(*index)) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        (0..self.size / PAGE).filter(is_shared).count()
    }

    /// The pages from this one on that are not all zeros.
    pub(super) fn pages_from(&self, first: usize) -> impl Iterator<Item = u32> {
        let leaves = self.leaves.list.iter().enumerate().skip(first / LEAF);
        let leaves = leaves.filter_map(|(at, leaf)| leaf.as_ref().map(|leaf| (at, leaf)));
        let pages = leaves.flat_map(|(at, leaf)| (at * LEAF..).zip(&leaf.pages));
        pages.filter(move |(index, page)| *index >= first && page.is_some()).map(|(index, _)| index as u32)
    }

    /// Whether this is a clone of the other.
    pub(super) fn is(&self, other: &PageTable) -> bool {
        self.size == other.size && Arc::ptr_eq(&self.leaves, &other.leaves)
    }

    fn page(&self, index: usize) -> Option<&Arc<Page>> {
        self.leaves.list.get(index / LEAF)?.as_ref()?.pages[index % LEAF].as_ref()
    }

    /// What the page held; `None` where it is all zeros.
    fn bytes(&self, index: usize) -> Option<&[u8; PAGE]> {
        self.page(index).map(|page| &page.bytes)
    }

    /// Takes the dirty pages into this table, that of a memory which holds `bytes`. Only the leaves that hold them are made
    /// anew. `known` has hashes of blocks of this table as it was.
    pub(crate) fn save(&mut self, memory: usize, (bytes, dirty): (&[u8], &[u32]), known: &mut Blocks) {
        self.size = bytes.len();
        let count = (bytes.len() / PAGE).div_ceil(LEAF);
        if dirty.is_empty() && count >= self.leaves.list.len() {
            return;
        }
        // Where the hash is known, that of what comes after it is too, by what changes.
        let is_longer = count >= self.leaves.list.len();
        let known_hash = |hash: &OnceLock<_>| hash.get().filter(|_| is_longer).cloned();
        let mut hashes = self.leaves.hashes.each_ref().map(known_hash);
        let changed = Arc::make_mut(&mut self.leaves);
        let leaves = &mut changed.list;
        leaves.resize(count, None);
        for pages in dirty.chunk_by(|a, b| *a as usize / LEAF == *b as usize / LEAF) {
            let leaf = leaves[pages[0] as usize / LEAF].get_or_insert_with(Leaf::again);
            let now = |index: u32| -> &[u8; PAGE] {
                bytes[index as usize * PAGE..][..PAGE].try_into().expect("a whole page")
            };
            let differs = |leaf: &Leaf, index: u32| match &leaf.pages[index as usize % LEAF] {
                Some(old) => old.bytes != *now(index),
                None => *now(index) != [0; PAGE],
            };
            // It is made one's own once, and only where something changed.
            let Some(first) = pages.iter().position(|index| differs(leaf, *index)) else { continue };
            let leaf = Leaf::own(leaf);
            for &index in &pages[first..] {
                if !differs(leaf, index) {
                    continue;
                }
                let now = now(index);
                let index = index as usize;
                let old = leaf.pages[index % LEAF].take();
                for (hash, hashing) in hashes.iter_mut().zip([Hashing::Portable, Hashing::Keyed]) {
                    let Some((dead, sum)) = hash else { continue };
                    let before = old.as_ref().map_or(&[0; PAGE], |old| &old.bytes);
                    let dead = within(dead, index);
                    let change = hash_change((before, now), &dead, (memory, index), known, hashing);
                    *sum = sum.wrapping_add(change);
                }
                leaf.pages[index % LEAF] = (*now != [0; PAGE]).then(|| Page::again(now));
                old.into_iter().for_each(Page::let_go);
            }
        }
        changed.hashes = hashes.map(|hash| hash.map_or_else(OnceLock::new, OnceLock::from));
        known.clear();
    }

    /// Makes `memory`, which holds `resident` but for the `dirty` pages and has been set to this table's
    /// size, hold this table.
    pub(crate) fn load(&self, resident: &PageTable, memory: &mut [u8], dirty: &[u32]) {
        let pages = memory.len() / PAGE;
        for &index in dirty {
            if (index as usize) < pages {
                self.load_page(memory, index as usize);
            }
        }
        if Arc::ptr_eq(&self.leaves, &resident.leaves) {
            return;
        }
        let (to_leaves, from_leaves) = (&self.leaves.list, &resident.leaves.list);
        for leaf in 0..to_leaves.len().max(from_leaves.len()) {
            let to = to_leaves.get(leaf).and_then(Option::as_ref);
            let from = from_leaves.get(leaf).and_then(Option::as_ref);
            match (to, from) {
                (None, None) => continue,
                (Some(to), Some(from)) if Arc::ptr_eq(to, from) => continue,
                _ => {}
            }
            for index in leaf * LEAF..((leaf + 1) * LEAF).min(pages) {
                let is_same = match (self.page(index), resident.page(index)) {
                    (None, None) => true,
                    (Some(to), Some(from)) => Arc::ptr_eq(to, from),
                    _ => false,
                };
                if !is_same {
                    self.load_page(memory, index);
                }
            }
        }
    }

    fn load_page(&self, memory: &mut [u8], index: usize) {
        let to = &mut memory[index * PAGE..][..PAGE];
        match self.bytes(index) {
            Some(bytes) => to.copy_from_slice(bytes),
            None => to.fill(0),
        }
    }

    /// The sum of the pages' hashes, each of which covers the page's place: which pages were hashed before
    /// does not matter, and a page of zeros counts nothing. The bytes in `dead` count as zeros.
    pub(crate) fn hash(&self, memory: usize, dead: &Range<usize>) -> u128 {
        self.hash_with(memory, dead, (&[], &[]), &mut Blocks::default(), Hashing::Portable)
    }

    /// The hash of a memory of this table's pages but for those in `dirty`, in order, which are as in `bytes`. The hashes
    /// of some of its blocks are kept in `known`.
    pub(crate) fn hash_with(
        &self,
        memory: usize,
        dead: &Range<usize>,
        (bytes, dirty): (&[u8], &[u32]),
        known: &mut Blocks,
        hashing: Hashing,
    ) -> u128 {
        let size = if bytes.is_empty() { self.size } else { bytes.len() };
        let mut sum = xxh3_128_with_seed(&(size as u64).to_le_bytes(), !(memory as u64));
        sum = sum.wrapping_add(self.leaves.hash(memory, dead, hashing));
        for &index in dirty {
            let index = index as usize;
            let dead = within(dead, index);
            if dead.len() == PAGE {
                continue;
            }
            let now: &[u8; PAGE] = bytes[index * PAGE..][..PAGE].try_into().expect("a whole page");
            let before = self.bytes(index).unwrap_or(&[0; PAGE]);
            sum = sum.wrapping_add(hash_change((before, now), &dead, (memory, index), known, hashing));
        }
        sum
    }
}

/// The part of `range` that lies on a page, relative to it.
fn within(range: &Range<usize>, page: usize) -> Range<usize> {
    let clamp = |at: usize| at.clamp(page * PAGE, (page + 1) * PAGE) - page * PAGE;
    clamp(range.start)..clamp(range.end)
}

/// Adds the pages of `memory` that may differ from `resident` to `dirty`, which is in order, and clears the marks.
///
/// A mark stands for the page in which a store began; what it wrote may reach into the next page by
/// [`FRINGE`] bytes, so these are compared.
pub(crate) fn take_dirty(marks: &mut [u8], memory: &[u8], resident: &PageTable, dirty: &mut Vec<u32>) {
    let known = dirty.len();
    let pages = memory.len() / PAGE;
    let marked = pages.min(marks.len());
    let (lines, rest) = marks[..marked].as_chunks_mut::<LINES>();
    for (i, lines) in lines.iter_mut().enumerate() {
        if is_any(lines) {
            take_lines(lines, (i * LINES) as u32, dirty);
        }
    }
    take_lines(rest, (lines.len() * LINES) as u32, dirty);
    if known > 0 && dirty.len() > known {
        dirty.sort_unstable();
        dirty.dedup();
    }
    add_fringes(memory, resident, dirty);
}

/// Whether any of these marks is set; written for the vectoriser.
fn is_any<const N: usize>(marks: &[u8; N]) -> bool {
    let (parts, _) = marks.as_chunks::<16>();
    parts.iter().fold(0, |any, part| any | u128::from_ne_bytes(*part)) != 0
}

/// Takes marks, each of which is 0 or 1; `first` is the page of the first.
fn take_lines(marks: &mut [u8], first: u32, dirty: &mut Vec<u32>) {
    let (lines, rest) = marks.as_chunks_mut::<LINE>();
    for (i, line) in (0..).zip(lines.iter_mut()) {
        if is_any(line) {
            for (j, word) in (0..).zip(line.as_chunks_mut::<8>().0) {
                take_marks(word, first + i * LINE as u32 + j * 8, dirty);
            }
        }
    }
    for (i, mark) in (lines.len() as u32 * LINE as u32..).zip(rest) {
        if std::mem::take(mark) != 0 {
            dirty.push(first + i);
        }
    }
}

/// Takes eight marks, each of which is 0 or 1; `first` is the page of the first.
fn take_marks(marks: &mut [u8; 8], first: u32, dirty: &mut Vec<u32>) {
    let mut word = u64::from_le_bytes(std::mem::take(marks));
    while word != 0 {
        dirty.push(first + word.trailing_zeros() / 8);
        word &= word - 1;
    }
}

fn add_fringes(memory: &[u8], resident: &PageTable, dirty: &mut Vec<u32>) {
    let pages = memory.len() / PAGE;
    let marked = dirty.len();
    for at in 0..marked {
        let next = dirty[at] as usize + 1;
        if next >= pages || (at + 1 < marked && dirty[at + 1] as usize == next) {
            continue;
        }
        // Of a size that is known, so that no call compares them.
        let now = memory[next * PAGE..].first_chunk::<FRINGE>();
        let before = resident.bytes(next).unwrap_or(&[0; PAGE]).first_chunk::<FRINGE>();
        let is_same = now == before;
        if !is_same {
            dirty.push(next as u32);
        }
    }
    if dirty.len() > marked {
        dirty.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    /// Random stores, growth, snapshots and restores, beside full copies of the memory.
    #[test]
    fn it_holds_what_a_full_copy_holds() {
        for seed in 0..20 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut memory = vec![0u8; 65536];
            let mut marks = vec![0u8; 8 * 65536 / PAGE];
            let mut resident = PageTable::zeros(memory.len());
            let mut dirty = Vec::new();
            let mut saved: Vec<(PageTable, Vec<u8>)> = vec![(resident.clone(), memory.clone())];
            for _ in 0..300 {
                match rng.random_range(0..10) {
                    0..6 => {
                        let len = rng.random_range(1..=16);
                        let at = rng.random_range(0..=memory.len() - len);
                        memory[at..at + len].fill(rng.random_range(0..3));
                        marks[at / PAGE] = 1;
                    }
                    6 if memory.len() < 8 * 65536 => memory.resize(memory.len() + 65536, 0),
                    7 => {
                        take_dirty(&mut marks, &memory, &resident, &mut dirty);
                        let dead = rng.random_range(0..30_000)..rng.random_range(30_000..60_000);
                        let hash = |table: &PageTable, written: (&[u8], &[u32])| {
                            let mut blocks = Blocks::default();
                            [Hashing::Portable, Hashing::Keyed]
                                .map(|hashing| table.hash_with(0, &dead, written, &mut blocks, hashing))
                        };
                        let hashes = hash(&resident, (&memory, &dirty));
                        resident.save(0, (&memory, &dirty), &mut Blocks::default());
                        assert_eq!(hashes, hash(&resident, (&[], &[])));
                        let mut fresh = PageTable::zeros(0);
                        let all: Vec<u32> = (0..(memory.len() / PAGE) as u32).collect();
                        fresh.save(0, (&memory, &all), &mut Blocks::default());
                        assert_eq!(hashes, hash(&fresh, (&[], &[])));
                        dirty.clear();
                        saved.push((resident.clone(), memory.clone()));
                    }
                    // What is known to be written is kept until it is saved or restored.
                    8 => take_dirty(&mut marks, &memory, &resident, &mut dirty),
                    _ => {
                        let (table, copy) = saved[rng.random_range(0..saved.len())].clone();
                        take_dirty(&mut marks, &memory, &resident, &mut dirty);
                        memory.resize(table.size, 0);
                        table.load(&resident, &mut memory, &dirty);
                        resident = table;
                        dirty.clear();
                        assert!(memory == copy);
                    }
                }
            }
            for (table, copy) in &saved {
                let mut fresh = PageTable::zeros(0);
                let all: Vec<u32> = (0..(copy.len() / PAGE) as u32).collect();
                fresh.save(0, (copy, &all), &mut Blocks::default());
                assert_eq!(table.hash(0, &(0..0)), fresh.hash(0, &(0..0)));
                assert_ne!(table.hash(0, &(0..0)), fresh.hash(1, &(0..0)));
            }
        }
    }

    #[test]
    fn dead_bytes_count_as_zeros() {
        let mut memory = vec![0u8; 65536];
        memory[3 * PAGE..5 * PAGE].fill(9);
        let hash = |memory: &[u8], dead: Range<usize>| {
            let mut table = PageTable::zeros(memory.len());
            let all: Vec<u32> = (0..(memory.len() / PAGE) as u32).collect();
            table.save(0, (memory, &all), &mut Blocks::default());
            table.hash(0, &dead)
        };
        let dead = 100..4 * PAGE + 7;
        let before = hash(&memory, dead.clone());
        memory[4 * PAGE + 6] = 1;
        memory[PAGE] = 1;
        assert_eq!(hash(&memory, dead.clone()), before);
        memory[4 * PAGE + 7] = 1;
        assert_ne!(hash(&memory, dead.clone()), before);
        memory[4 * PAGE + 7] = 9;
        memory[dead.clone()].fill(0);
        assert_eq!(hash(&memory, 0..0), before);
    }

    #[test]
    fn what_was_let_go_leaves_nothing_behind() {
        let ones = vec![1u8; 65536];
        let zeros = vec![0u8; 65536];
        let all: Vec<u32> = (0..64).collect();
        let mut table = PageTable::zeros(65536);
        let nothing = table.hash(0, &(0..0));
        table.save(0, (&ones, &all), &mut Blocks::default());
        assert_ne!(table.hash(0, &(0..0)), nothing);
        assert_eq!(table.leaves().count(), 1);
        drop(table);
        let mut table = PageTable::zeros(65536);
        table.save(0, (&zeros, &all), &mut Blocks::default());
        assert_eq!((table.hash(0, &(0..0)), table.leaves().count()), (nothing, 0));
        table.save(0, (&ones, &[7]), &mut Blocks::default());
        assert!((0..64).all(|index| table.bytes(index).is_some() == (index == 7)));
        let mut fresh = PageTable::zeros(65536);
        let mut memory = zeros;
        memory[7 * PAGE..8 * PAGE].fill(1);
        fresh.save(0, (&memory, &[7]), &mut Blocks::default());
        assert_eq!(table.hash(0, &(0..0)), fresh.hash(0, &(0..0)));
    }

    #[test]
    fn a_table_shares_the_pages_that_did_not_change() {
        let mut memory = vec![1u8; 4 * 65536];
        let mut first = PageTable::zeros(memory.len());
        first.save(0, (&memory, &(0..64).collect::<Vec<_>>()), &mut Blocks::default());
        memory[5 * PAGE] = 2;
        let mut second = first.clone();
        second.save(0, (&memory, &[5, 6]), &mut Blocks::default());
        let shared = (0..64).filter(|i| match (first.page(*i), second.page(*i)) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        });
        assert_eq!(shared.count(), 63);
    }
}
