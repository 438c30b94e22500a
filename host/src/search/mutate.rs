//! How values that once served are changed, to be tried again.

use std::sync::Arc;

use rand::{Rng, RngExt};

use super::dice::Dice;
use super::tokens::{Tokens, put};
use crate::choice::{Value, printable};

/// A changed copy of a value; a byte string may get parts of `other`, which is asked for only then, where that is one too. `scratch` is
/// a buffer.
pub(crate) fn mutated<'o>(
    value: &'o Value,
    other: impl Fn() -> Option<&'o Value>,
    tokens: &Tokens,
    scratch: &mut Vec<u8>,
    rng: &mut impl Rng,
) -> Value {
    match value {
        Value::Bytes(bytes) => Value::Bytes(mutated_bytes(bytes, other, tokens, scratch, rng)),
        Value::Boolean(v) => Value::Boolean(!v),
        Value::Index(v) => Value::Index(near(u64::from(*v), rng) as u32),
        Value::Integer(v) => Value::Integer(near(*v as u64, rng) as i64),
        Value::Unsigned(v) => Value::Unsigned(near(*v, rng)),
        Value::Float(v) => Value::Float(match rng.random_range(0..3u32) {
            0 => -v,
            1 => v + f64::from(rng.random_range(-NEAR..=NEAR)),
            _ => v * 0.5,
        }),
    }
}

/// As [`mutated`], of a byte string.
#[inline(always)]
pub(super) fn mutated_bytes<'o>(
    bytes: &'o [u8],
    other: impl Fn() -> Option<&'o Value>,
    tokens: &Tokens,
    scratch: &mut Vec<u8>,
    rng: &mut impl Rng,
) -> Arc<[u8]> {
    let other = || if let Some(Value::Bytes(other)) = other() { other } else { bytes };
    mutate_bytes(bytes, other, tokens, scratch, rng);
    Arc::from(&scratch[..])
}

/// What to give in place of a value that once served: changed bytes; `None`, for a draw, in place of anything else.
pub(crate) fn renewed(
    value: Option<&Value>,
    tokens: &Tokens,
    scratch: &mut Vec<u8>,
    rng: &mut impl Rng,
) -> Option<Value> {
    let bytes = value.filter(|value| matches!(value, Value::Bytes(_)));
    bytes.map(|bytes| mutated(bytes, || None, tokens, scratch, rng))
}

/// Numbers are changed by at most this much, if not by a bit.
const NEAR: i32 = 35;
/// Changes made to a byte string at once are at most two to the power of this.
const CHANGES_BITS: u32 = 2;
/// Bytes that are inserted, deleted or copied at once, at most.
const PART_MAX: usize = 64;
/// One in so many parts has more, which get a loop through many rounds, or is repeated more often than once.
const LONG: u32 = 4;
const LONG_MAX: usize = 1024;
const TIMES_MAX: u32 = 64;
/// Values at which programs often decide.
const SPECIAL: [u32; 16] =
    [0, 1, 16, 32, 64, 100, 127, 128, 255, 256, 1000, 0x7fff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

/// A number nearby, or one with a bit flipped.
fn near(number: u64, rng: &mut impl Rng) -> u64 {
    if rng.random() {
        number.wrapping_add_signed(rng.random_range(-NEAR..=NEAR).into())
    } else {
        number ^ 1 << rng.random_range(0..64u32)
    }
}

/// Puts a changed copy of `bytes` into `out`: some of the changes that AFL makes in its havoc stage, stacked.
fn mutate_bytes<'o>(
    bytes: &'o [u8],
    other: impl Fn() -> &'o [u8],
    tokens: &Tokens,
    out: &mut Vec<u8>,
    rng: &mut impl Rng,
) {
    out.clear();
    out.extend_from_slice(bytes);
    for _ in 0..1 << rng.below(CHANGES_BITS + 1) {
        if let Some(token) = tokens.draw(rng) {
            put(token, out, rng);
            continue;
        }
        // Of nothing there is only more.
        let change = rng.below(if out.is_empty() { 2 } else { 12 });
        let at = rng.place(out.len().max(1));
        match change {
            0 => insert(out, rng),
            1 => splice(other(), out, rng),
            2 | 3 => out[at] ^= 1 << rng.below(8),
            4 => out[at] = rng.random(),
            5 => out[at] = printable(rng.random()),
            6 => number(out, at, rng),
            7 => digit(out, at, rng),
            8 => copy_part(out, rng),
            9 => {
                let end = out.len().min(at + part_len(rng));
                out.drain(at..end);
            }
            10 => {
                repeat(at, out, rng);
            }
            _ => {
                let to = rng.place(out.len());
                out.swap(at, to);
            }
        }
    }
}

/// Bytes of a part: mostly few.
fn part_len(rng: &mut impl Rng) -> usize {
    let max = if rng.below(LONG) == 0 { LONG_MAX } else { PART_MAX };
    1 + rng.place(max)
}

/// Repeats a part, where it stands or elsewhere, mostly once.
fn repeat(at: usize, out: &mut Vec<u8>, rng: &mut impl Rng) {
    let end = out.len().min(at + part_len(rng));
    let to = rng.place(out.len() + 1);
    let times = if rng.below(LONG) == 0 { 1 + rng.below(TIMES_MAX) } else { 1 };
    let before = out.len();
    for _ in 0..times {
        if out.len() - before < LONG_MAX {
            out.extend_from_within(at..end);
        }
    }
    let added = out.len() - before;
    out[to..].rotate_right(added);
}

/// Inserts bytes: one and the same, or any.
fn insert(out: &mut Vec<u8>, rng: &mut impl Rng) {
    let at = rng.place(out.len() + 1);
    let max = part_len(rng);
    let bits = rng.below(max.ilog2() + 1);
    let len = 1 + rng.place(1 << bits);
    let (repeats, byte) = (rng.random::<bool>(), rng.random());
    let gap = gap(at, len, out);
    if repeats {
        gap.fill(byte);
    } else {
        rng.fill_bytes(gap);
    }
}

/// Makes room at a place.
pub(super) fn gap(at: usize, len: usize, out: &mut Vec<u8>) -> &mut [u8] {
    let end = out.len();
    out.resize(end + len, 0);
    out.copy_within(at..end, at + len);
    &mut out[at..at + len]
}

/// Inserts a part of `other`, or writes it over what is there.
fn splice(other: &[u8], out: &mut Vec<u8>, rng: &mut impl Rng) {
    if other.is_empty() {
        return;
    }
    let from = rng.place(other.len());
    let part = &other[from..other.len().min(from + part_len(rng))];
    // Often what serves in one place serves there in another input.
    let at = if rng.random() { from.min(out.len()) } else { rng.place(out.len() + 1) };
    if rng.random() {
        let end = out.len().min(at + part.len());
        out[at..end].copy_from_slice(&part[..end - at]);
    } else {
        gap(at, part.len(), out).copy_from_slice(part);
    }
}

/// Inserts a part once more, there or elsewhere, or writes it over what is elsewhere.
fn copy_part(out: &mut Vec<u8>, rng: &mut impl Rng) {
    let from = rng.place(out.len());
    let len = part_len(rng).min(out.len() - from);
    let at = if rng.random() { from } else { rng.place(out.len() + 1) };
    if at != from && rng.random() {
        let len = len.min(out.len() - at);
        out.copy_within(from..from + len, at);
    } else {
        gap(at, len, out);
        // What stood behind the gap was moved.
        let (before, behind) =
            (from.min(at)..(from + len).min(at), from.max(at) + len..(from + len).max(at) + len);
        let middle = at + before.len();
        out.copy_within(before, at);
        out.copy_within(behind, middle);
    }
}

/// Adds a little to a number of 1, 2 or 4 bytes, or writes a special one.
fn number(out: &mut [u8], at: usize, rng: &mut impl Rng) {
    let width = 1usize << rng.below(3);
    let Some(place) = out.get_mut(at..at + width) else { return };
    let is_big = rng.random();
    change_number(place, is_big, |old| match rng.random() {
        true => old.wrapping_add_signed(rng.random_range(-NEAR..=NEAR).into()),
        false => SPECIAL[rng.place(SPECIAL.len())].into(),
    });
}

/// Changes a number of up to 8 bytes, the most significant first or last.
pub(super) fn change_number(place: &mut [u8], is_big: bool, change: impl FnOnce(u64) -> u64) {
    let mut word = [0; 8];
    let bytes = &mut word[..place.len()];
    bytes.copy_from_slice(place);
    if is_big {
        bytes.reverse();
    }
    word = change(u64::from_le_bytes(word)).to_le_bytes();
    let bytes = &mut word[..place.len()];
    if is_big {
        bytes.reverse();
    }
    place.copy_from_slice(bytes);
}

/// Changes the first digit from a place on, where there is one.
fn digit(out: &mut [u8], at: usize, rng: &mut impl Rng) {
    if let Some(digit) = out[at..].iter_mut().find(|byte| byte.is_ascii_digit()) {
        *digit = rng.random_range(b'0'..=b'9');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    #[test]
    fn a_mutation_changes_something_and_keeps_most() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let (one, other) = (&b"{\"a\": [1, 20, 300]}"[..], &b"<<spliced>>"[..]);
        let (mut same, mut kept, mut spliced, mut longer, mut shorter) = (0, 0, 0, 0, 0);
        let mut out = Vec::new();
        for _ in 0..10_000 {
            mutate_bytes(one, || other, &Tokens::default(), &mut out, &mut rng);
            same += u32::from(out == one);
            kept += u32::from(out.windows(4).any(|part| one.windows(4).any(|known| known == part)));
            spliced += u32::from(out.contains(&b'<'));
            longer += u32::from(out.len() > one.len());
            shorter += u32::from(out.len() < one.len());
            mutate_bytes(&[], || &[], &Tokens::default(), &mut out, &mut rng);
        }
        assert_eq!((same, kept, spliced), (117, 9481, 492));
        assert_eq!((longer, shorter), (4430, 1442));
    }

    #[test]
    fn tokens_are_put_in_now_and_then() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let of = |text: &[u8]| std::sync::Arc::from([std::sync::Arc::from(text)]);
        let tokens = Tokens { given: of(b"given"), gathered: of(b"gathered") };
        let (mut given, mut gathered, mut out) = (0, 0, Vec::new());
        for _ in 0..10_000 {
            mutate_bytes(b"0123456789", || b"", &tokens, &mut out, &mut rng);
            let has = |token: &[u8]| u32::from(out.windows(token.len()).any(|part| part == token));
            (given, gathered) = (given + has(b"given"), gathered + has(b"gathered"));
        }
        assert_eq!((given, gathered), (1915, 812));
    }
}
