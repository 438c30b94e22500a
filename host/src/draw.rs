//! How values are drawn in generation: boundaries, small values, powers of two and values that were there
//! before, more often than chance would. Hints only: they bind neither replay nor mutation nor shrinking.

use std::sync::Arc;

use rand::{Rng, RngExt};

use crate::choice::{Choice, Kind, Value};

/// Ranges of at most this many values are drawn uniformly: every value is a special one there.
const UNIFORM_MAX: u128 = 256;

/// One of so many draws from a large range repeats an earlier value of the step, where there is one.
const REPEATS: u32 = 8;
/// Bits of the distance from the simplest that a small draw may have.
const SMALL_BITS: u32 = 6;
/// The most bytes of a small draw beyond the least.
const SMALL_BYTES: u32 = 4;

/// Draws a value that `kind` accepts, after `earlier` ones in the step. A small draw is near the simplest, and
/// says less often that there is more: what it finds is easily read, and close to its minimum.
pub(crate) fn value(kind: &Kind, earlier: &[Choice], is_small: bool, rng: &mut impl Rng) -> Value {
    if let Some(value) = repeated(kind, earlier, rng) {
        return value;
    }
    let kind = if is_small { small(kind) } else { *kind };
    match kind {
        Kind::Boolean { probability } => {
            Value::Boolean(probability > 0.0 && (probability >= 1.0 || rng.random::<f64>() < probability))
        }
        Kind::Index { n } => Value::Index(rng.random_range(0..n)),
        Kind::Integer { min, max, simplest } => {
            Value::Integer(integer(min.into(), max.into(), simplest.into(), rng) as i64)
        }
        Kind::Unsigned { min, max, simplest } => {
            Value::Unsigned(integer(min.into(), max.into(), simplest.into(), rng) as u64)
        }
        Kind::Float { min, max, nan, infinite } => Value::Float(float(min, max, nan, infinite, rng)),
        Kind::Bytes { min, max } => Value::Bytes(bytes(min, max, rng)),
    }
}

/// An earlier value, now and then, where a repetition would otherwise hardly ever happen.
fn repeated(kind: &Kind, earlier: &[Choice], rng: &mut impl Rng) -> Option<Value> {
    let is_large = match *kind {
        Kind::Boolean { .. } | Kind::Index { .. } => false,
        Kind::Integer { min, max, .. } => max.abs_diff(min) >= UNIFORM_MAX as u64,
        Kind::Unsigned { min, max, .. } => max - min >= UNIFORM_MAX as u64,
        Kind::Float { .. } | Kind::Bytes { .. } => true,
    };
    if !is_large || earlier.is_empty() || rng.random_range(0..REPEATS) > 0 {
        return None;
    }
    // From a random place on, so that nothing has to be counted.
    let from = rng.random_range(0..earlier.len());
    let places = earlier[from..].iter().chain(&earlier[..from]);
    places.map(|choice| &choice.value).find(|value| kind.accepts(value)).cloned()
}

/// The part of a kind that small draws come from.
fn small(kind: &Kind) -> Kind {
    const WIDTH: u64 = 1 << SMALL_BITS;
    match *kind {
        Kind::Boolean { probability } if probability > 0.5 && probability < 1.0 => {
            Kind::Boolean { probability: 0.5 }
        }
        Kind::Integer { min, max, simplest } => Kind::Integer {
            min: min.max(simplest.saturating_sub_unsigned(WIDTH)),
            max: max.min(simplest.saturating_add_unsigned(WIDTH)),
            simplest,
        },
        Kind::Unsigned { min, max, simplest } => Kind::Unsigned {
            min: min.max(simplest.saturating_sub(WIDTH)),
            max: max.min(simplest.saturating_add(WIDTH)),
            simplest,
        },
        Kind::Bytes { min, max } => Kind::Bytes { min, max: max.min(min.saturating_add(SMALL_BYTES)) },
        kind => kind,
    }
}

/// An integer in `min..=max`: of ten draws, two at a boundary or special value, four near the simplest (with
/// every number of bits equally likely), four uniform.
fn integer(min: i128, max: i128, simplest: i128, rng: &mut impl Rng) -> i128 {
    let uniform = |rng: &mut dyn Rng| rng.random_range(min..=max);
    if ((max - min) as u128) < UNIFORM_MAX {
        // Within 2^64 values, so one word decides.
        return min + i128::from(rng.random_range(0..=(max - min) as u64));
    }
    match rng.random_range(0..10u32) {
        0..2 => {
            let power = 1i128 << rng.random_range(0..64u32);
            let special = match rng.random_range(0..8u32) {
                0 => min,
                1 => max,
                2 => 0,
                3 => 1,
                4 => -1,
                5 => power,
                6 => power - 1,
                _ => -power,
            };
            if (min..=max).contains(&special) { special } else { uniform(rng) }
        }
        2..6 => {
            let width = 128 - ((max - min) as u128).leading_zeros();
            let bits = rng.random_range(1..=width.min(64));
            let distance = i128::from(rng.random::<u64>() >> (64 - bits));
            let near = if rng.random() { simplest + distance } else { simplest - distance };
            let near = if (min..=max).contains(&near) { near } else { 2 * simplest - near };
            if (min..=max).contains(&near) { near } else { uniform(rng) }
        }
        _ => uniform(rng),
    }
}

/// A float in `min..=max`: special values, small whole numbers, fractions, and any bit pattern.
fn float(min: f64, max: f64, nan: bool, infinite: bool, rng: &mut impl Rng) -> f64 {
    const SPECIAL: [f64; 14] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        f64::MIN_POSITIVE,
        5e-324,
        f64::EPSILON,
        f64::MAX,
        f64::MIN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        9_007_199_254_740_992.0,
        f64::NAN,
    ];
    let kind = Kind::Float { min, max, nan, infinite };
    let candidate = match rng.random_range(0..8u32) {
        0 | 1 => SPECIAL[rng.random_range(0..SPECIAL.len())],
        2 => min,
        3 => max,
        4 | 5 => f64::from(rng.random_range(-1000..=1000i32)),
        6 => f64::from_bits(rng.random()),
        _ => f64::from(rng.random_range(-1000..=1000i32)) / 16.0,
    };
    // Every NaN is the canonical one: its payload must not become a hidden input.
    let candidate = if candidate.is_nan() { f64::NAN } else { candidate };
    if kind.accepts(&Value::Float(candidate)) {
        return candidate;
    }
    let (low, high) = (min.max(f64::MIN), max.min(f64::MAX));
    if low > high {
        // Only an infinity lies in the range.
        return min;
    }
    // Weighted, not scaled, so that the width of the whole range does not overflow.
    let share = rng.random::<f64>();
    (low * (1.0 - share) + high * share).clamp(low, high)
}

/// A byte string: every number of bits of the length is as likely, so short ones are frequent; bytes are a few
/// special ones, text or anything.
fn bytes(min: u32, max: u32, rng: &mut impl Rng) -> Arc<[u8]> {
    let len = min + length(max - min, rng);
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, len as usize).collect();
    let filled = Arc::get_mut(&mut bytes).expect("nobody else has it yet");
    let style = rng.random_range(0..4u32);
    rng.fill_bytes(filled);
    match style {
        0 => filled.iter_mut().for_each(|byte| *byte = [0, 0xff, b'a', 1][usize::from(*byte & 3)]),
        1 => filled.iter_mut().for_each(|byte| *byte = printable(*byte)),
        _ => {}
    }
    bytes
}

/// A number in `0..=max`.
fn length(max: u32, rng: &mut impl Rng) -> u32 {
    if max < 16 {
        return rng.random_range(0..=max);
    }
    let bits = rng.random_range(0..=u32::BITS - max.leading_zeros());
    let len = (u64::from(rng.random::<u32>()) & ((1 << bits) - 1)) as u32;
    if len <= max { len } else { rng.random_range(0..=max) }
}

/// One of the characters from the space to the tilde, nearly as likely each.
fn printable(byte: u8) -> u8 {
    b' ' + (u16::from(byte) * 95 / 256) as u8
}

/// A changed copy of a value; a byte string may get parts of `other`, where that is one too. `scratch` is a buffer.
pub(crate) fn mutated(value: &Value, other: &Value, scratch: &mut Vec<u8>, rng: &mut impl Rng) -> Value {
    match (value, other) {
        (Value::Bytes(bytes), other) => {
            let other = if let Value::Bytes(other) = other { other } else { bytes };
            mutate_bytes(bytes, other, scratch, rng);
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
pub(crate) fn renewed(value: Option<&Value>, scratch: &mut Vec<u8>, rng: &mut impl Rng) -> Option<Value> {
    value.filter(|value| matches!(value, Value::Bytes(_))).map(|bytes| mutated(bytes, bytes, scratch, rng))
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
fn mutate_bytes(bytes: &[u8], other: &[u8], out: &mut Vec<u8>, rng: &mut impl Rng) {
    out.clear();
    out.extend_from_slice(bytes);
    for _ in 0..1 << rng.random_range(0..=CHANGES_BITS) {
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
    let at = rng.random_range(0..=out.len());
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

    fn check(kind: Kind) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let other = |value| Choice { kind, value };
        let earlier = [kind.simplest(), Value::Integer(3), Value::Boolean(true)].map(other);
        for i in 0..10_000 {
            let value = value(&kind, &earlier[..i % 4], i % 3 == 0, &mut rng);
            assert!(kind.accepts(&value), "{kind:?} drew {value:?}");
        }
        assert!(kind.accepts(&kind.simplest()), "{kind:?}");
    }

    #[test]
    fn every_draw_fits_its_question() {
        for probability in [-1.0, 0.0, 0.3, 1.0, 2.0, f64::NAN] {
            check(Kind::Boolean { probability });
        }
        check(Kind::Index { n: 1 });
        check(Kind::Index { n: u32::MAX });
        check(Kind::Integer { min: i64::MIN, max: i64::MAX, simplest: 0 });
        check(Kind::Integer { min: -5, max: -5, simplest: -5 });
        check(Kind::Integer { min: -1000, max: -5, simplest: -5 });
        check(Kind::Unsigned { min: 0, max: u64::MAX, simplest: 0 });
        check(Kind::Unsigned { min: u64::MAX - 1, max: u64::MAX, simplest: u64::MAX });
        for (nan, infinite) in [(false, false), (true, true)] {
            check(Kind::Float { min: f64::NEG_INFINITY, max: f64::INFINITY, nan, infinite });
            check(Kind::Float { min: -1e300, max: f64::MAX, nan, infinite });
            check(Kind::Float { min: 0.25, max: 0.5, nan, infinite });
            check(Kind::Float { min: 0.25, max: 0.25, nan, infinite });
        }
        for end in [f64::INFINITY, f64::NEG_INFINITY] {
            check(Kind::Float { min: end, max: end, nan: false, infinite: true });
        }
        check(Kind::Bytes { min: 0, max: 300 });
        check(Kind::Bytes { min: 4, max: 4 });
    }

    #[test]
    fn a_mutation_changes_something_and_keeps_most() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let (one, other) = (&b"{\"a\": [1, 20, 300]}"[..], &b"<<spliced>>"[..]);
        let (mut same, mut kept, mut spliced, mut longer, mut shorter) = (0, 0, 0, 0, 0);
        let mut out = Vec::new();
        for _ in 0..10_000 {
            mutate_bytes(one, other, &mut out, &mut rng);
            same += u32::from(out == one);
            kept += u32::from(out.windows(4).any(|part| one.windows(4).any(|known| known == part)));
            spliced += u32::from(out.contains(&b'<'));
            longer += u32::from(out.len() > one.len());
            shorter += u32::from(out.len() < one.len());
            mutate_bytes(&[], &[], &mut out, &mut rng);
        }
        assert_eq!((same, kept, spliced), (131, 9022, 402));
        assert_eq!((longer, shorter), (3146, 2881));
    }

    #[test]
    fn a_small_range_is_drawn_uniformly() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            let Value::Integer(v) =
                value(&Kind::Integer { min: 0, max: 9, simplest: 0 }, &[], false, &mut rng)
            else {
                unreachable!()
            };
            counts[v as usize] += 1;
        }
        assert!(counts.iter().all(|n| (9_500..10_500).contains(n)), "{counts:?}");
    }

    #[test]
    fn a_large_range_repeats_what_was_there() {
        let kind = Kind::Integer { min: i64::MIN, max: i64::MAX, simplest: 0 };
        let earlier = [Choice { kind, value: Value::Integer(0x1234_5678_9abc) }];
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let repeats =
            (0..8_000).filter(|_| value(&kind, &earlier, false, &mut rng) == earlier[0].value).count();
        assert!((800..1_200).contains(&repeats), "{repeats}");
    }
}
