//! How values are drawn in generation: boundaries, small values, powers of two and values that were there
//! before, more often than chance would. Hints only: they bind neither replay nor mutation nor shrinking.

use std::sync::Arc;

use rand::{Rng, RngExt};

use super::{Choice, Kind, Value};

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
pub(super) fn value(kind: &Kind, earlier: &[Choice], is_small: bool, rng: &mut impl Rng) -> Value {
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
pub(crate) fn printable(byte: u8) -> u8 {
    b' ' + (u16::from(byte) * 95 / 256) as u8
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
