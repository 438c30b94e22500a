//! Whether bytes stand in the inputs of a step, asked often.

use memchr::memchr2_iter;

/// Bytes of an input in which parts are looked for.
const LOOKED_AT: usize = 4096;
/// Lengths of parts that are found without looking.
const LENGTHS: [usize; 4] = [1, 2, 4, 8];

/// The parts of some inputs. Letters of either case are alike, since what is compared may have been converted.
pub(super) struct Parts<'i> {
    inputs: Vec<&'i [u8]>,
    /// By the lengths of [`LENGTHS`], a bit for each hash of a part that is there.
    known: [Vec<u64>; 4],
}

/// Bits of a hash.
const HASH_BITS: u32 = 14;

fn set(known: &mut [u64], word: u64) {
    let (at, bit) = place(word);
    known[at] |= bit;
}

fn place(word: u64) -> (usize, u64) {
    // Fibonacci hashing.
    let hash = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - HASH_BITS);
    ((hash / 64) as usize, 1 << (hash % 64))
}

impl<'i> Parts<'i> {
    pub(super) fn of(inputs: impl Iterator<Item = &'i [u8]>) -> Parts<'i> {
        let inputs: Vec<&[u8]> = inputs.map(|input| &input[..input.len().min(LOOKED_AT)]).collect();
        let known = LENGTHS.map(|len| {
            let mut known = vec![0; 1 << HASH_BITS >> 6];
            inputs.iter().flat_map(|input| input.windows(len)).for_each(|part| set(&mut known, word(part)));
            known
        });
        Parts { inputs, known }
    }

    /// Whether there is no byte to look for.
    pub(super) fn is_empty(&self) -> bool {
        self.inputs.iter().all(|input| input.is_empty())
    }

    /// Whether an input may have the lowest bytes of a number, of which there are as many as [`LENGTHS`] says, the most significant first
    /// or last.
    pub(super) fn may_have(&self, value: u64, len: u8, is_big: bool) -> bool {
        let bits = 8 * u32::from(len);
        let value = value << (64 - bits);
        // The first byte is the most significant one of a word.
        let word = if is_big { value >> (64 - bits) } else { value.swap_bytes() };
        let (at, bit) = place(lowercase(word));
        self.known[len.ilog2() as usize][at] & bit != 0
    }

    /// Whether an input has this part.
    pub(super) fn have(&self, part: &[u8]) -> bool {
        let Some(at) = LENGTHS.iter().rposition(|len| *len <= part.len()) else { return false };
        let (len, known) = (LENGTHS[at], &self.known[at]);
        let may_be = |part: &[u8]| {
            let (at, bit) = place(word(part));
            known[at] & bit != 0
        };
        may_be(&part[..len])
            && may_be(&part[part.len() - len..])
            && self.inputs.iter().any(|input| place_of(input, part).is_some())
    }
}

/// Up to 8 bytes as a number, without the case of letters.
fn word(part: &[u8]) -> u64 {
    lowercase(part.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)))
}

/// Each byte as [`u8::to_ascii_lowercase`] has it, all at once.
fn lowercase(word: u64) -> u64 {
    let all = |byte: u8| u64::from_ne_bytes([byte; 8]);
    let low = word & all(0x7f);
    // The highest bit of each sum says whether the byte is at least `A`, and whether it is beyond `Z`.
    let is_letter = (low + all(0x80 - b'A')) & !(low + all(0x7f - b'Z')) & !word & all(0x80);
    word | is_letter >> 2
}

/// The first place where the part stands; none of a part of no bytes.
pub(super) fn place_of(input: &[u8], part: &[u8]) -> Option<usize> {
    let first = part.first()?;
    let last = input.len().checked_sub(part.len())?;
    let mut starts = memchr2_iter(first.to_ascii_lowercase(), first.to_ascii_uppercase(), &input[..=last]);
    starts.find(|at| input[*at..at + part.len()].eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn letters_are_lowered_as_the_standard_library_does() {
        for byte in 0..=255u8 {
            let bytes = [byte, b'A', byte, b'z', 0xc1, byte, b'@', b'Z'];
            assert_eq!(
                lowercase(u64::from_be_bytes(bytes)).to_be_bytes(),
                bytes.map(|b| b.to_ascii_lowercase())
            );
        }
    }

    #[test]
    fn a_number_may_stand_where_its_bytes_do() {
        let input = [0x41, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0];
        let parts = Parts::of([&input[..]].into_iter());
        for (value, len, is_big) in [
            (0x61, 1, false),
            (0x1234, 2, true),
            (0x3412, 2, false),
            (0x7856_3412, 4, false),
            (0xffff_ffff_1234_5678, 4, true),
            (0xf0de_bc9a_7856_3412, 8, false),
        ] {
            assert!(parts.may_have(value, len, is_big), "{value:x}");
        }
        assert!(!parts.may_have(0x1234, 2, false));
    }

    #[test]
    fn parts_are_those_that_a_search_finds() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut found = 0;
        for _ in 0..2_000 {
            let text = |rng: &mut Xoshiro256PlusPlus, len| -> Vec<u8> {
                (0..rng.random_range(0..len)).map(|_| b"abAB\0"[rng.random_range(0..5)]).collect()
            };
            let inputs = [text(&mut rng, 40), text(&mut rng, 12)];
            let parts = Parts::of(inputs.iter().map(|input| &input[..]));
            let part = text(&mut rng, 12);
            let lower = part.to_ascii_lowercase();
            let is_there = !part.is_empty()
                && inputs.iter().any(|input| {
                    input.to_ascii_lowercase().windows(lower.len()).any(|window| window == lower)
                });
            assert_eq!(parts.have(&part), is_there, "{part:?} in {inputs:?}");
            found += u32::from(is_there);
        }
        assert!(found > 400, "{found}");
    }
}
