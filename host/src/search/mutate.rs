//! How values that once served are changed, to be tried again.

use std::sync::Arc;

use rand::{Rng, RngExt};

use super::tokens::{Tokens, put};
use crate::choice::{Value, printable};

/// A changed copy of a value; a byte string may get parts of `other`, where that is one too. `scratch` is a buffer.
pub(crate) fn mutated(
    value: &Value,
    other: &Value,
    tokens: &Tokens,
    scratch: &mut Vec<u8>,
    rng: &mut impl Rng,
) -> Value {
    match (value, other) {
        (Value::Bytes(bytes), other) => {
            let other = if let Value::Bytes(other) = other { other } else { bytes };
            mutate_bytes(bytes, other, tokens, scratch, rng);
            Value::Bytes(Arc::from(&scratch[..]))
        }
        (Value::Boolean(v), _) => Value::Boolean(!v),
        (Value::Index(v), _) => Value::Index(near(u64::from(*v), rng) as u32),
        (Value::Integer(v), _) => Value::Integer(near(*v as u64, rng) as i64),
        (Value::Unsigned(v), _) => Value::Unsigned(near(*v, rng)),
        (Value::Float(v), _) => Value::Float(match rng.random_range(0..3u32) {
            0 => -v,
            1 => v + f64::from(rng.random_range(-NEAR..=NEAR)),
            _ => v * 0.5,
        }),
    }
}

/// What to give in place of a value that once served: changed bytes; `None`, for a draw, in place of anything else.
pub(crate) fn renewed(
    value: Option<&Value>,
    tokens: &Tokens,
    scratch: &mut Vec<u8>,
    rng: &mut impl Rng,
) -> Option<Value> {
    let bytes = value.filter(|value| matches!(value, Value::Bytes(_)));
    bytes.map(|bytes| mutated(bytes, bytes, tokens, scratch, rng))
}

/// Numbers are changed by at most this much, if not by a bit.
const NEAR: i32 = 35;
/// Changes made to a byte string at once are at most two to the power of this.
const CHANGES_BITS: u32 = 2;
/// Bytes that are inserted, deleted or copied at once, at most.
const PART_MAX: usize = 64;
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
fn mutate_bytes(bytes: &[u8], other: &[u8], tokens: &Tokens, out: &mut Vec<u8>, rng: &mut impl Rng) {
    out.clear();
    out.extend_from_slice(bytes);
    for _ in 0..1 << rng.random_range(0..=CHANGES_BITS) {
        if let Some(token) = tokens.draw(rng) {
            put(token, out, rng);
            continue;
        }
        // Of nothing there is only more.
        let change = if out.is_empty() { rng.random_range(0..2u32) } else { rng.random_range(0..12) };
        let at = rng.random_range(0..=out.len().saturating_sub(1));
        match change {
            0 => insert(out, rng),
            1 => splice(other, out, rng),
            2 | 3 => out[at] ^= 1 << rng.random_range(0..8u32),
            4 => out[at] = rng.random(),
            5 => out[at] = printable(rng.random()),
            6 => number(out, at, rng),
            7 => digit(out, at, rng),
            8 | 9 => {
                let end = out.len().min(at + rng.random_range(1..=PART_MAX));
                out.drain(at..end);
            }
            10 => {
                // A part is repeated, where it stands or elsewhere.
                let end = out.len().min(at + rng.random_range(1..=PART_MAX));
                let to = rng.random_range(0..=out.len());
                out.extend_from_within(at..end);
                out[to..].rotate_right(end - at);
            }
            _ => {
                let to = rng.random_range(0..out.len());
                out.swap(at, to);
            }
        }
    }
}

/// Inserts bytes: one and the same, or any.
fn insert(out: &mut Vec<u8>, rng: &mut impl Rng) {
    let at = rng.random_range(0..=out.len());
    let bits = rng.random_range(0..=PART_MAX.ilog2());
    let len = rng.random_range(1..=1usize << bits);
    let (repeats, byte) = (rng.random::<bool>(), rng.random());
    let from = out.len();
    out.resize(from + len, byte);
    if !repeats {
        rng.fill_bytes(&mut out[from..]);
    }
    out[at..].rotate_right(len);
}

/// Inserts a part of `other`, or writes it over what is there.
fn splice(other: &[u8], out: &mut Vec<u8>, rng: &mut impl Rng) {
    if other.is_empty() {
        return;
    }
    let from = rng.random_range(0..other.len());
    let part = &other[from..other.len().min(from + rng.random_range(1..=PART_MAX))];
    // Often what serves in one place serves there in another input.
    let at = if rng.random() { from.min(out.len()) } else { rng.random_range(0..=out.len()) };
    if rng.random() {
        let end = out.len().min(at + part.len());
        out[at..end].copy_from_slice(&part[..end - at]);
    } else {
        out.extend_from_slice(part);
        out[at..].rotate_right(part.len());
    }
}

/// Adds a little to a number of 1, 2 or 4 bytes, or writes a special one.
fn number(out: &mut [u8], at: usize, rng: &mut impl Rng) {
    let width = 1usize << rng.random_range(0..3u32);
    let Some(place) = out.get_mut(at..at + width) else { return };
    let mut word = [0; 4];
    word[..width].copy_from_slice(place);
    let is_big = rng.random();
    if is_big {
        word[..width].reverse();
    }
    let number = match rng.random() {
        true => u32::from_le_bytes(word).wrapping_add_signed(rng.random_range(-NEAR..=NEAR)),
        false => SPECIAL[rng.random_range(0..SPECIAL.len())],
    };
    word = number.to_le_bytes();
    if is_big {
        word[..width].reverse();
    }
    place.copy_from_slice(&word[..width]);
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
            mutate_bytes(one, other, &Tokens::default(), &mut out, &mut rng);
            same += u32::from(out == one);
            kept += u32::from(out.windows(4).any(|part| one.windows(4).any(|known| known == part)));
            spliced += u32::from(out.contains(&b'<'));
            longer += u32::from(out.len() > one.len());
            shorter += u32::from(out.len() < one.len());
            mutate_bytes(&[], &[], &Tokens::default(), &mut out, &mut rng);
        }
        assert_eq!((same, kept, spliced), (105, 8996, 397));
        assert_eq!((longer, shorter), (3177, 2914));
    }

    #[test]
    fn tokens_are_put_in_now_and_then() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let of = |text: &[u8]| std::sync::Arc::from([std::sync::Arc::from(text)]);
        let tokens = Tokens { given: of(b"given"), gathered: of(b"gathered") };
        let (mut given, mut gathered, mut out) = (0, 0, Vec::new());
        for _ in 0..10_000 {
            mutate_bytes(b"0123456789", b"", &tokens, &mut out, &mut rng);
            let has = |token: &[u8]| u32::from(out.windows(token.len()).any(|part| part == token));
            (given, gathered) = (given + has(b"given"), gathered + has(b"gathered"));
        }
        assert_eq!((given, gathered), (1894, 773));
    }
}
