//! Random operations, after which the memory is compared with what its blocks alone say.

use std::collections::BTreeMap;

use super::*;

/// Groups that lie in two places, as they may in a guest.
struct Bytes {
    bytes: Vec<u8>,
    groups: Vec<usize>,
}

impl Bytes {
    fn new(groups: usize) -> Bytes {
        let groups: Vec<usize> =
            (0..groups).map(|index| index * GROUP + if index < 2 { PAGE } else { 3 * PAGE }).collect();
        Bytes { bytes: vec![0; groups.last().unwrap() + GROUP], groups }
    }
}

impl Memory for Bytes {
    fn group(&mut self, index: usize) -> Option<usize> {
        self.groups.get(index).copied()
    }

    fn group_of(&self, at: usize) -> usize {
        *self.groups.iter().rfind(|group| **group <= at).unwrap()
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes[at]
    }

    fn set_byte(&mut self, at: usize, byte: u8) {
        self.bytes[at] = byte;
    }

    fn word(&self, at: usize) -> u64 {
        assert!(at.is_multiple_of(8));
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    fn set_word(&mut self, at: usize, word: u64) {
        self.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    fn more(&mut self, len: usize) -> Option<std::ops::Range<usize>> {
        let start = self.bytes.len();
        self.bytes.resize(start + len, 0xee);
        Some(start..start + len)
    }

    fn wipe(&mut self, at: usize, len: usize) {
        self.bytes[at..at + len].fill(0);
    }
}

/// Length, alignment and contents of each live block by its address.
type Blocks = BTreeMap<usize, (usize, usize, u8)>;

/// Which granules of a group are live, those of its header included; by the definition.
fn live_granules(group: usize, blocks: &Blocks) -> Vec<bool> {
    let mut live = vec![false; GROUP / GRANULE];
    live[..HEADER_GRANULES].fill(true);
    for (at, (len, align, _)) in blocks.range(group..group + GROUP) {
        let len = match Size::of(*len, *align) {
            Size::Granules(count) => count * GRANULE,
            Size::Pages(count) => count * PAGE,
            Size::Groups(_) => continue,
        };
        let first = (at - group) / GRANULE;
        live[first..first + len / GRANULE].fill(true);
    }
    live
}

/// The bytes that a memory holds with these blocks, from nothing but the blocks.
fn expected(groups: &[usize], blocks: &Blocks) -> Vec<u8> {
    let mut bytes = vec![0; groups.last().unwrap() + GROUP];
    let mut skip = 0;
    for &group in groups {
        if skip > 0 {
            skip -= 1;
            continue;
        }
        let huge = blocks.get(&(group + PAGE)).map(|(len, align, _)| Size::of(*len, *align));
        if let Some(Size::Groups(count)) = huge {
            bytes[group + TAKEN..][..8].fill(255);
            bytes[group + LEAST] = 255;
            bytes[group + HUGE] = count as u8;
            skip = count - 1;
            continue;
        }
        let live = live_granules(group, blocks);
        let mut levels = Vec::new();
        for (page, live) in live.chunks(PAGE_GRANULES).enumerate() {
            let runs = live.split(|live| *live).map(<[bool]>::len);
            levels.push(level_of(runs.max().unwrap()));
            bytes[group + LEVELS + page] = levels[page] - if page == 0 { FIRST_LEVEL } else { 0 };
            if page > 0 && levels[page] > 0 {
                bytes[group + TAKEN + page / 8] |= 1 << (page % 8);
            }
        }
        bytes[group + LEAST] = *levels.iter().min().unwrap();
        for (at, (len, align, _)) in blocks.range(group..group + GROUP) {
            let Size::Granules(count) = Size::of(*len, *align) else { continue };
            let first = (at - group) / GRANULE;
            for granule in first..first + count {
                bytes[group + granule / 8] |= 1 << (granule % 8);
            }
        }
    }
    for (at, (len, _, contents)) in blocks {
        bytes[*at..at + len].fill(*contents);
    }
    bytes
}

/// The address that first fit gives a block of granules, by looking at each place.
fn first_fit(groups: &[usize], blocks: &Blocks, count: usize) -> Option<usize> {
    let is_huge = |at: usize| {
        let mut below = blocks.range(..=at);
        below.any(|(start, (len, align, _))| {
            matches!(Size::of(*len, *align), Size::Groups(_))
                && at + PAGE <= (start + len).next_multiple_of(PAGE)
        })
    };
    for &group in groups.iter().filter(|group| !is_huge(**group + PAGE)) {
        let live = live_granules(group, blocks);
        for (page, live) in live.chunks(PAGE_GRANULES).enumerate() {
            let fits = |start: &usize| live[*start..*start + count].iter().all(|live| !live);
            if let Some(start) = (0..=PAGE_GRANULES - count).find(fits) {
                return Some(group + page * PAGE + start * GRANULE);
            }
        }
    }
    None
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        // A linear congruential generator (Knuth, MMIX), of which the upper bits are good.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn len(&mut self) -> usize {
        let max = [8, 40, 300, 3000, 5000, 9 * PAGE, 70 * PAGE, 200 * PAGE][self.below(30).min(70) % 8];
        1 + self.below(max)
    }

    fn align(&mut self) -> usize {
        match self.below(40) {
            0 => 4096 << self.below(3),
            1 => 32 << self.below(4),
            _ => 1 << self.below(5),
        }
    }
}

/// Random operations of which about `live` blocks are live; checks everything after each `every`.
fn check(seed: u64, groups: usize, operations: usize, live: usize, every: usize) {
    let mut memory = Bytes::new(groups);
    let mut blocks = Blocks::new();
    let mut random = Random(seed);
    for operation in 0..operations {
        let contents = 1 + random.below(255) as u8;
        let picked = blocks.keys().nth(random.below(blocks.len().max(1))).copied();
        match (random.below(2 * live) >= blocks.len(), picked) {
            (true, _) => {
                let (len, align) = (random.len(), random.align());
                let at = allocate(&mut memory, len, align);
                if let Size::Granules(count) = Size::of(len, align) {
                    assert_eq!(at, first_fit(&memory.groups, &blocks, count));
                }
                let Some(at) = at else { continue };
                assert!(at.is_multiple_of(align));
                assert!(memory.bytes[at..at + len].iter().all(|byte| *byte == 0), "it is wiped");
                memory.bytes[at..at + len].fill(contents);
                blocks.insert(at, (len, align, contents));
            }
            (false, Some(at)) if random.below(3) > 0 => {
                let (len, align, _) = blocks.remove(&at).unwrap();
                free(&mut memory, at, len, align);
            }
            (false, Some(at)) => {
                let (len, align, contents) = blocks[&at];
                let new_len = if random.below(2) == 0 { random.len() } else { 1 + random.below(2 * len) };
                if resize(&mut memory, at, len, align, new_len) {
                    if new_len > len {
                        assert!(memory.bytes[at + len..at + new_len].iter().all(|byte| *byte == 0));
                    }
                    memory.bytes[at..at + new_len].fill(contents);
                    blocks.insert(at, (new_len, align, contents));
                }
            }
            (false, None) => {}
        }
        if operation % every == 0 {
            // Equal bytes are more than that no blocks overlap: all else is as the blocks say.
            assert!(memory.bytes == expected(&memory.groups, &blocks), "after operation {operation}");
        }
    }
    for (at, (len, align, _)) in blocks {
        free(&mut memory, at, len, align);
    }
    assert!(memory.bytes.iter().all(|byte| *byte == 0), "without blocks all is zero");
}

#[test]
fn a_memory_is_a_function_of_its_live_blocks() {
    for seed in 0..5 {
        check(seed, 2, 500, 20, 2);
        check(seed, 6, 500, 60, 20);
    }
    check(1, 9, 10_000, 600, 1_000);
}

#[test]
fn small_blocks_lie_in_the_first_page_and_are_reused() {
    let mut memory = Bytes::new(1);
    let first = allocate(&mut memory, 24, 8).unwrap();
    assert_eq!(first, PAGE + HEADER_GRANULES * GRANULE);
    let second = allocate(&mut memory, 1, 1).unwrap();
    assert_eq!(second, first + 32);
    free(&mut memory, first, 24, 8);
    assert_eq!(allocate(&mut memory, 33, 8), Some(second + GRANULE), "three granules do not fit before");
    assert_eq!(allocate(&mut memory, 16, 16), Some(first));
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut memory = Bytes::new(4);
    assert_eq!(allocate(&mut memory, 4 * GROUP, 1), None);
    assert_eq!(allocate(&mut memory, GROUP, 2 * PAGE), None, "no huge block has a larger alignment");
    assert_eq!(allocate(&mut memory, 2 * GROUP, 1), None, "no three groups lie side by side");
    let second = memory.groups[2];
    assert_eq!(allocate(&mut memory, 2 * GROUP - PAGE, 1), Some(2 * PAGE));
    assert_eq!(allocate(&mut memory, 2 * GROUP - PAGE, PAGE), Some(second + PAGE));
    assert_eq!(allocate(&mut memory, 1, 1), None);
}

#[test]
fn blocks_of_lists_lie_apart_and_stay_as_they_are() {
    let mut random = Random(7);
    let (mut memory, mut lists) = (Bytes::new(1), Lists::new());
    let mut blocks = Blocks::new();
    assert!(!lists.has(GROUP));
    for step in 0..20_000 {
        if blocks.len() < 2 + step % 500 {
            let (len, align, contents) = (random.len(), random.align().min(PAGE), random.below(255) as u8);
            let at = lists.allocate(&mut memory, len, align).unwrap();
            assert!(at.is_multiple_of(align) && at + len <= memory.bytes.len() && lists.has(at));
            assert!(blocks.range(..at).next_back().is_none_or(|(before, (len, ..))| before + len <= at));
            assert!(blocks.range(at..).next().is_none_or(|(after, _)| at + len <= *after));
            memory.bytes[at..at + len].fill(contents);
            blocks.insert(at, (len, align, contents));
        } else {
            let at = *blocks.keys().nth(random.below(blocks.len())).unwrap();
            let (len, align, contents) = blocks.remove(&at).unwrap();
            assert!(memory.bytes[at..at + len].iter().all(|byte| *byte == contents));
            lists.free(&mut memory, at, len, align);
        }
    }
    let most = memory.bytes.len();
    // While something is copied, nothing is given that was freed.
    let (first, (len, align, _)) = blocks.pop_first().unwrap();
    lists.free(&mut memory, first, len, align);
    let all = lists.copies(true).unwrap();
    assert!(blocks.keys().all(|at| all.contains(at)));
    let copy = lists.allocate(&mut memory, len, align).unwrap();
    assert!(copy >= all.end);
    lists.is_copied();
    assert_eq!(lists.allocate(&mut memory, len, align), Some(first));
    lists.free(&mut memory, first, len, align);
    lists.free(&mut memory, copy, len, align);
    for (at, (len, align, _)) in blocks {
        lists.free(&mut memory, at, len, align);
        assert!(Lists::fits(len, align, len));
        assert_eq!(lists.allocate(&mut memory, len, align), Some(at), "what was freed last comes first");
    }
    assert_eq!(memory.bytes.len(), most);
}
