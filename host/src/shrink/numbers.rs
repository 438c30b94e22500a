//! Integers, unsigned ones and indices alike: their distance from the simplest one.

use crate::choice::{Choice, Kind, Value};

/// How many possible distances right below one are tried.
const BELOW: i128 = 2;

/// The number that a choice is, which may name something.
pub(super) fn number(choice: &Choice) -> Option<i128> {
    match choice.value {
        Value::Integer(v) => Some(v.into()),
        Value::Unsigned(v) => Some(v.into()),
        Value::Index(v) => Some(v.into()),
        _ => None,
    }
}

/// How far the number is from the simplest one; none where it is no number.
pub(super) fn distance(choice: &Choice) -> Option<i128> {
    Some(match (choice.kind, &choice.value) {
        (Kind::Integer { simplest, .. }, Value::Integer(v)) => i128::from(*v) - i128::from(simplest),
        (Kind::Unsigned { simplest, .. }, Value::Unsigned(v)) => i128::from(*v) - i128::from(simplest),
        (Kind::Index { .. }, Value::Index(v)) => (*v).into(),
        _ => return None,
    })
}

/// The number at this distance from the simplest one, where it is a possible answer to the same question.
pub(super) fn at(choice: &Choice, distance: i128) -> Option<Value> {
    let value = match choice.kind {
        Kind::Integer { simplest, .. } => Value::Integer((i128::from(simplest) + distance).try_into().ok()?),
        Kind::Unsigned { simplest, .. } => {
            Value::Unsigned((i128::from(simplest) + distance).try_into().ok()?)
        }
        Kind::Index { .. } => Value::Index(distance.try_into().ok()?),
        _ => return None,
    };
    choice.kind.accepts(&value).then_some(value)
}

/// The number `by` more, where it is a possible answer to the same question.
pub(super) fn shifted(choice: &Choice, by: i128) -> Option<Value> {
    at(choice, distance(choice)? + by)
}

/// As [`shifted`]; beyond one end of the range it goes on from the other, as integers of that width would.
pub(super) fn wrapped(choice: &Choice, by: i128) -> Option<Value> {
    let (Kind::Integer { min, max, .. }, Value::Integer(v)) = (choice.kind, &choice.value) else {
        return shifted(choice, by);
    };
    let (min, width) = (i128::from(min), i128::from(max) - i128::from(min) + 1);
    let value = (i128::from(*v) + by - min).rem_euclid(width) + min;
    value.try_into().ok().map(Value::Integer)
}

/// The place of a distance in the order of simplicity: 0, 1, -1, 2, -2, …
fn rank(distance: i128) -> i128 {
    if distance > 0 { distance * 2 - 1 } else { -distance * 2 }
}

fn of_rank(rank: i128) -> i128 {
    if rank % 2 == 1 { rank / 2 + 1 } else { -(rank / 2) }
}

/// Brings a distance down as far as `works` allows, which sets it and says whether that helped, or nothing
/// where it is impossible. Whether it came down at all.
///
/// What works need not be an interval. The simplest are tried first, then those right below; only where one
/// of these works it goes on by bisection, first of the number of bits and then of the bits. Where none does, its lowest
/// bits alone may be what counts.
pub(super) fn descend(mut distance: i128, mut works: impl FnMut(i128) -> Option<bool>) -> bool {
    let mut helped = false;
    for simplest in [0, 1, -1] {
        if rank(simplest) >= rank(distance) {
            return helped;
        }
        if works(simplest) == Some(true) {
            return true;
        }
    }
    loop {
        let from = rank(distance);
        let below = (1..=2 * BELOW).map(|less| of_rank(from - less)).take_while(|lower| rank(*lower) > 0);
        let mut tried = below.filter_map(|lower| Some((lower, works(lower)?))).take(BELOW as usize);
        let lower = tried.find(|(_, works)| *works);
        drop(tried);
        distance = match lower {
            Some((lower, _)) => bisect(lower, &mut |d| works(d) == Some(true)),
            None => match lowest_bits(distance, &mut |d| works(d) == Some(true)) {
                Some(bits) => bits,
                None => return helped,
            },
        };
        helped = true;
    }
}

/// The fewest of the lowest bits of a distance, of two's complement, at which it works, as far as bisection can tell.
fn lowest_bits(distance: i128, works: &mut impl FnMut(i128) -> bool) -> Option<i128> {
    let (mut low, mut least, mut best) = (0, 128 - distance.unsigned_abs().leading_zeros(), None);
    while least - low > 1 {
        let middle = (low + least) / 2;
        let bits = distance & ((1 << middle) - 1);
        if rank(bits) < rank(distance) && works(bits) {
            (best, least) = (Some(bits), middle);
        } else {
            low = middle;
        }
    }
    best
}

/// Brings a distance other than 0 towards it with its sign.
fn bisect(distance: i128, works: &mut impl FnMut(i128) -> bool) -> i128 {
    let (sign, mut best) = (distance.signum(), distance.abs());
    // 2^least is the least power of two at which it works, as far as bisection can tell.
    let (mut low, mut least) = (0, 127 - best.leading_zeros() + 1);
    while least - low > 1 {
        let middle = (low + least) / 2;
        let power = 1i128 << middle;
        if power < best && works(power * sign) {
            best = power;
            least = middle;
        } else if power < best {
            low = middle;
        } else {
            least = middle;
        }
    }
    let mut low = 1i128 << low;
    while best - low > 1 {
        let middle = low + (best - low) / 2;
        if works(middle * sign) {
            best = middle;
        } else {
            low = middle;
        }
    }
    best * sign
}

/// Where what works has gaps, lower numbers by so much are tried, and by some round ones.
const STRIDES: std::ops::RangeInclusive<i128> = 3..=16;
const ROUND: [i128; 8] = [32, 64, 100, 128, 256, 512, 1000, 1024];

/// As [`descend`] once that does no more: to one without some of the bits, or by a stride that works, as often as that
/// does.
pub(super) fn across_gaps(mut distance: i128, mut works: impl FnMut(i128) -> Option<bool>) -> bool {
    let mut works = |d: i128| works(d) == Some(true);
    let (before, sign) = (distance, distance.signum());
    for bit in (0..i128::BITS - distance.unsigned_abs().leading_zeros()).rev() {
        let bit = 1 << bit;
        if distance.abs() & bit != 0 && distance.abs() != bit && works(distance - bit * sign) {
            distance -= bit * sign;
        }
    }
    for stride in STRIDES.chain(ROUND) {
        let rest = distance.abs() % stride;
        let mut works = |times: i128| works((rest + times * stride) * sign);
        let times = distance.abs() / stride;
        if times > 0 && works(times - 1) {
            let least = if times > 1 { bisect(times - 1, &mut works) } else { 0 };
            let least = if least == 1 && rest > 0 && works(0) { 0 } else { least };
            distance = (rest + least * stride) * sign;
        }
    }
    distance != before
}

/// The value that is farthest from the simplest.
pub(super) fn farthest(choice: &Choice) -> Option<Value> {
    let (least, greatest) = match choice.kind {
        Kind::Integer { min, max, simplest } => {
            (i128::from(min) - i128::from(simplest), i128::from(max) - i128::from(simplest))
        }
        Kind::Unsigned { min, max, simplest } => {
            (i128::from(min) - i128::from(simplest), i128::from(max) - i128::from(simplest))
        }
        Kind::Index { n } => (0, i128::from(n) - 1),
        _ => return None,
    };
    at(choice, if least.abs() > greatest.abs() { least } else { greatest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(distance: i128, fails: fn(i128) -> bool, expected: i128, tries_max: u32) {
        let (mut best, mut tries) = (distance, 0);
        descend(distance, |d| {
            tries += 1;
            let works = fails(d);
            if works {
                best = d;
            }
            Some(works)
        });
        assert_eq!(best, expected);
        assert!(tries <= tries_max, "{tries} tries");
    }

    #[test]
    fn numbers_come_down_to_the_simplest_that_works_in_few_tries() {
        check(1 << 60, |_| true, 0, 1);
        check(-5, |d| d < 0, -1, 3);
        check(1 << 60, |d| d >= 10, 10, 24);
        check(i64::MAX.into(), |d| d >= i128::from(i64::MAX), i64::MAX.into(), 12);
        check(1 << 60, |d| d.abs() > 2, 3, 20);
        check(1 << 60, |d| d != 0 && d.abs() != 1 && d != 2, -2, 20);
        check(10, |d| (6..=14).contains(&d) && d != 10, 6, 14);
        check(1000, |d| d >= 900, 900, 25);
        check(567_430, |d| d & 15 == 6, 6, 16);
        check(-55, |d| d & 15 == 9, 9, 16);
        check(i64::MAX.into(), |d| d & 0xff00 == 0x4200 || d == i64::MAX.into(), i64::MAX.into(), 12);
        check(0, |_| true, 0, 0);
    }

    #[test]
    fn numbers_come_down_across_gaps() {
        let check = |distance: i128, fails: fn(i128) -> bool, expected: i128| {
            let (mut best, mut from, mut tries) = (distance, distance, 0);
            for _ in 0..9 {
                let mut works = |d: i128| {
                    tries += 1;
                    let works = fails(d);
                    best = if works { d } else { best };
                    Some(works)
                };
                descend(from, &mut works);
                from = best;
                across_gaps(from, |d| {
                    tries += 1;
                    let works = fails(d);
                    best = if works { d } else { best };
                    Some(works)
                });
                from = best;
            }
            assert_eq!(best, expected);
            assert!(tries < 2000, "{tries} tries");
        };
        check(563_935_905, |d| d >= 100 && d % 3 == 0, 102);
        check(-516_374_406, |d| d < -100 && d % 3 == 0, -102);
        check(61, |d| d >= 20 && d % 7 == 5, 26);
        check(40, |d| d >= 10 && d % 8 == 0, 16);
        check(704_777, |d| d > 5000 && d % 1000 == 777, 5777);
        check(2789, |d| d & 0xf0f == 0xa05, 2565);
        check(12, |d| d == 12 || d == 3, 3);
        check(1 << 60, |d| d >= 1000, 1000);
    }

    #[test]
    fn ranks_order_the_distances() {
        for r in 0..100 {
            assert_eq!(rank(of_rank(r)), r);
        }
    }
}
