//! Hashes under a key that no guest knows: those by which a check takes two states for one.
//!
//! The hash of a state is a sum of hashes of its blocks, and of sums under a known function one can prepare some that cancel out.
//! So a block is hashed by NH (Black et al. 1999, UMAC), twice, as in that paper's Toeplitz construction: for any two blocks the
//! chance over the keys is 2^-128 that they collide. What comes of it is mixed with the place of the block. The key is drawn once
//! in a process, or is that of an earlier one whose check goes on. It reaches nothing but these hashes: no result depends on it, unless
//! two states collide, but which states of a large check are compared with others does.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_128_with_secret;

/// Bytes that are hashed together.
pub(super) const BLOCK: usize = 128;
/// Words in a block.
const WORDS: usize = BLOCK / 8;

struct Key {
    /// What the rest is made of.
    seed: [u8; 32],
    /// For the words of a block; the second hash takes those from the third on.
    words: [u64; WORDS + 2],
    secret: [u8; 192],
}

static KEY: OnceLock<Key> = OnceLock::new();

impl Key {
    fn get() -> &'static Key {
        KEY.get_or_init(|| {
            // SipHash under a key that the standard library has from the operating system, of 0, 1, 2, 3.
            let random = RandomState::new();
            let mut seed = [0; 32];
            let words = (0u64..).zip(seed.as_chunks_mut().0);
            words.for_each(|(number, bytes)| *bytes = random.hash_one(number).to_le_bytes());
            Key::of(seed)
        })
    }

    fn of(seed: [u8; 32]) -> Key {
        let mut bytes = blake3::Hasher::new_keyed(&seed).finalize_xof();
        let words = std::array::from_fn(|_| {
            let mut word = [0; 8];
            bytes.fill(&mut word);
            u64::from_le_bytes(word)
        });
        let mut secret = [0; 192];
        bytes.fill(&mut secret);
        Key { seed, words, secret }
    }
}

/// What the key of this process is made of.
pub fn seed() -> [u8; 32] {
    Key::get().seed
}

/// Makes the key of another process that of this one, unless it has another already; whether it is so now.
pub fn adopt_seed(seed: [u8; 32]) -> bool {
    KEY.get_or_init(|| Key::of(seed)).seed == seed
}

/// The hash of a block at a place; 0 of one that is all zeros.
pub(super) fn hash_of_block(block: &[u8; BLOCK], place: u64) -> u128 {
    if *block == [0; BLOCK] { 0 } else { mixed(block, place) }
}

fn mixed(block: &[u8; BLOCK], place: u64) -> u128 {
    mixed_up_to(BLOCK, block, place)
}

/// As [`mixed`], of a block of which the `place` says how long it is: what follows is zeros.
fn mixed_up_to(len: usize, block: &[u8; BLOCK], place: u64) -> u128 {
    let key = Key::get();
    let pairs = &block.as_chunks::<16>().0[..len.div_ceil(16)];
    let (one, two) = (nh(pairs, &key.words[..WORDS]), nh(pairs, &key.words[2..]));
    let mut mixed = [0; 40];
    mixed[..16].copy_from_slice(&one.to_le_bytes());
    mixed[16..32].copy_from_slice(&two.to_le_bytes());
    mixed[32..].copy_from_slice(&place.to_le_bytes());
    xxh3_128_with_secret(&mixed, &key.secret)
}

fn nh(pairs: &[[u8; 16]], key: &[u64]) -> u128 {
    let mut sum = 0u128;
    for (bytes, key) in pairs.iter().zip(key.as_chunks::<2>().0) {
        let both = u128::from_le_bytes(*bytes);
        let [a, b] = [(both as u64).wrapping_add(key[0]), ((both >> 64) as u64).wrapping_add(key[1])];
        sum = sum.wrapping_add(u128::from(a) * u128::from(b));
    }
    sum
}

/// Hashes bytes that come in parts.
#[derive(Clone, Debug)]
pub(crate) struct Hasher {
    block: [u8; BLOCK],
    len: u64,
    sum: u128,
}

/// The places of blocks that stand in no memory, and those of such that are all that there is, with how many of their bytes are.
const NOWHERE: u64 = 1 << 63;
const ALONE: u64 = 1 << 62;

impl Hasher {
    pub(super) fn new() -> Hasher {
        Hasher { block: [0; BLOCK], len: 0, sum: 0 }
    }

    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let at = (self.len % BLOCK as u64) as usize;
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - at));
            self.block[at..at + now.len()].copy_from_slice(now);
            self.len += now.len() as u64;
            if self.len.is_multiple_of(BLOCK as u64) {
                self.end_block();
            }
            bytes = later;
        }
    }

    fn end_block(&mut self) {
        let place = NOWHERE | self.len.div_ceil(BLOCK as u64);
        self.sum = self.sum.wrapping_add(mixed(&self.block, place));
        self.block = [0; BLOCK];
    }

    pub(super) fn finish(&mut self) -> u128 {
        if self.len < BLOCK as u64 {
            return mixed_up_to(self.len as usize, &self.block, ALONE | self.len);
        }
        self.end_block();
        let mut last = [0; BLOCK];
        last[..16].copy_from_slice(&self.sum.to_le_bytes());
        last[16..24].copy_from_slice(&self.len.to_le_bytes());
        mixed(&last, u64::MAX)
    }
}

/// The hash of bytes.
pub(super) fn hash(bytes: &[u8]) -> u128 {
    let mut hasher = Hasher::new();
    hasher.update(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use xxhash_rust::xxh3::xxh3_128_with_seed;

    use super::*;
    use crate::check::{self, Options};
    use crate::machine::{Limits, Machine, Program, Selection};
    use crate::target::Target;
    use crate::trace::Action;

    #[test]
    fn every_bit_and_the_place_count() {
        let mut block = [7; BLOCK];
        let hash = hash_of_block(&block, 3);
        assert_eq!(hash, hash_of_block(&block, 3));
        assert_ne!(hash, hash_of_block(&block, 4));
        for bit in 0..BLOCK * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(hash, hash_of_block(&block, 3));
            block[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(hash_of_block(&[0; BLOCK], 3), 0);
    }

    #[test]
    fn parts_are_hashed_as_the_whole() {
        let bytes: Vec<u8> = (0..1000).map(|i| (i * 7) as u8).collect();
        for cut in [0, 1, 127, 128, 129, 500, 1000] {
            let mut hasher = Hasher::new();
            hasher.update(&bytes[..cut]);
            hasher.update(&bytes[cut..]);
            assert_eq!(hasher.finish(), hash(&bytes));
        }
        let lengths: Vec<u128> = (0..300).map(|len| hash(&vec![0; len])).collect();
        assert!((0..300).all(|a| (0..a).all(|b| lengths[a] != lengths[b])));
    }

    /// Blocks of memory 0 whose hashes without a key add up to those of zeros: for each of 1024 blocks its first number.
    /// Found by Wagner's algorithm (2002): lists of sums are merged by pairs, and those kept whose next bits are zero.
    fn cancelling() -> Vec<u16> {
        const BITS: u32 = 12;
        let block = |at: u64, value: u16| {
            let mut block = [0; BLOCK];
            block[..2].copy_from_slice(&value.to_le_bytes());
            xxh3_128_with_seed(&block, at)
        };
        let mut lists: Vec<Vec<u128>> =
            (0..1024).map(|at| (1..=4096).map(|value| block(at, value)).collect()).collect();
        let mut levels: Vec<Vec<Vec<(u16, u16)>>> = Vec::new();
        for level in 0..10 {
            let is_last = lists.len() == 2;
            let chunk = |sum: u128| ((sum >> (BITS * level)) % (1 << BITS)) as usize;
            let merged = lists.chunks(2).map(|pair| {
                let mut buckets = vec![Vec::new(); 1 << BITS];
                for (index, sum) in (0u16..).zip(&pair[1]) {
                    buckets[chunk(*sum)].push(index);
                }
                let mut found = Vec::new();
                for (left, sum) in (0u16..).zip(&pair[0]) {
                    for right in &buckets[chunk(sum.wrapping_neg())] {
                        let both = sum.wrapping_add(pair[1][usize::from(*right)]);
                        if both == 0 || !is_last {
                            found.push((both, (left, *right)));
                        }
                    }
                }
                found.truncate(5000);
                found.into_iter().unzip()
            });
            let (sums, origins): (Vec<_>, Vec<_>) = merged.unzip();
            levels.push(origins);
            lists = sums;
        }
        assert_eq!(lists[0][0], 0);
        let mut chosen = vec![0u16];
        for origins in levels.iter().rev() {
            let both = chosen.iter().zip(origins).flat_map(|(index, origins)| {
                let (left, right) = origins[usize::from(*index)];
                [left, right]
            });
            chosen = both.collect();
        }
        chosen.into_iter().map(|index| index + 1).collect()
    }

    /// A guest that stores what cancels out hides what it does from nobody.
    #[test]
    fn blocks_that_cancel_out_are_told_apart() {
        let bytes: String =
            cancelling().iter().map(|value| format!("\\{:02x}\\{:02x}", value & 255, value >> 8)).collect();
        let wat = format!(
            r#"(module
          (memory 3) (data $d "{bytes}")
          (func (export "rule:hide") (local i32)
            (loop
              (memory.init $d (i32.mul (local.get 0) (i32.const 128)) (i32.mul (local.get 0) (i32.const 2)) (i32.const 2))
              (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 1024)))))
          (func (export "rule:fail") unreachable)
          (func (export "precondition:fail") (result i32) (i32.load (i32.const 0))))"#
        );
        let program = Program::load(&wat::parse_str(wat).unwrap(), Limits::default(), Selection::default());
        let mut machine = Machine::new(Arc::new(program.unwrap())).unwrap();
        let before = (machine.live_state(), machine.compared_state().unwrap());
        machine.step(Action::Rule(0), &mut Default::default());
        let after = (machine.live_state(), machine.compared_state().unwrap());
        assert_eq!(before.0, after.0);
        assert_ne!(before.1, after.1);
        let checked = check::check(&mut [machine], &Options::default(), &|_| None, &mut |_, _| ()).unwrap();
        assert_eq!((checked.findings.len(), checked.census.states), (1, 2));
    }
}
