//! Numbers from a range: `0..=100`, `1..`, `-1.0..1.0`.

use std::ops::{Range, RangeFrom, RangeInclusive, RangeTo, RangeToInclusive};
use std::time::Duration;

use crate::strategy::{draw_from_nothing, spanned};
use crate::{Strategy, abi};

/// The integers, the floats, and `Duration`. A range of them is a strategy, whose simplest value is the
/// one nearest to 0; an empty range is a deadlock, as a choice among nothing is. Floats from a range are
/// finite; [`floats`](crate::floats) may draw others.
pub trait Number: Copy + PartialOrd {
    /// The least finite one.
    #[doc(hidden)]
    const LEAST: Self;

    /// The greatest finite one.
    #[doc(hidden)]
    const GREATEST: Self;

    /// Draws from `min..=max`, which is not empty.
    #[doc(hidden)]
    fn between(min: Self, max: Self) -> Self;

    /// The number before this one, which is not the least.
    #[doc(hidden)]
    fn before(self) -> Self;
}

impl<T: Number> Strategy for RangeInclusive<T> {
    type Value = T;

    fn draw(&self) -> T {
        if self.is_empty() {
            draw_from_nothing();
        }
        T::between(*self.start(), *self.end())
    }
}

impl<T: Number> Strategy for Range<T> {
    type Value = T;

    fn draw(&self) -> T {
        if self.is_empty() {
            draw_from_nothing();
        }
        T::between(self.start, self.end.before())
    }
}

impl<T: Number> Strategy for RangeFrom<T> {
    type Value = T;

    fn draw(&self) -> T {
        (self.start..=T::GREATEST).draw()
    }
}

impl<T: Number> Strategy for RangeToInclusive<T> {
    type Value = T;

    fn draw(&self) -> T {
        (T::LEAST..=self.end).draw()
    }
}

impl<T: Number> Strategy for RangeTo<T> {
    type Value = T;

    fn draw(&self) -> T {
        (T::LEAST..self.end).draw()
    }
}

macro_rules! integers {
    ($choice:ident as $wide:ty: $($integer:ty)*) => {$(
        impl Number for $integer {
            const LEAST: $integer = <$integer>::MIN;
            const GREATEST: $integer = <$integer>::MAX;

            fn between(min: $integer, max: $integer) -> $integer {
                abi::$choice(min as $wide, max as $wide, 0) as $integer
            }

            fn before(self) -> $integer {
                self - 1
            }
        }
    )*};
}

integers!(integer as i64: i8 i16 i32 i64 isize u8 u16 u32);
integers!(unsigned as u64: u64 usize);

macro_rules! wide_integers {
    ($($integer:ty: $high:ty as $choice:ident($bits:ty);)*) => {$(
        /// In one choice where the range has as few values as that allows, else the upper 64 bits, then the lower.
        impl Number for $integer {
            const LEAST: $integer = <$integer>::MIN;
            const GREATEST: $integer = <$integer>::MAX;

            fn between(min: $integer, max: $integer) -> $integer {
                if let (Ok(min), Ok(max)) = (<$high>::try_from(min), <$high>::try_from(max)) {
                    return abi::$choice(min as $bits, max as $bits, 0).into();
                }
                let (low_of, high_of) = (|n: $integer| n as u64, |n: $integer| (n >> 64) as $high);
                spanned("wide", || {
                    let high = <$high>::between(high_of(min), high_of(max));
                    let least = if high == high_of(min) { low_of(min) } else { 0 };
                    let greatest = if high == high_of(max) { low_of(max) } else { u64::MAX };
                    // Below 0, the nearest to 0 is the greatest.
                    let simplest = if high < 0 as $high { greatest } else { least };
                    <$integer>::from(high) << 64 | <$integer>::from(abi::unsigned(least, greatest, simplest))
                })
            }

            fn before(self) -> $integer {
                self - 1
            }
        }
    )*};
}

wide_integers! {
    i128: i64 as integer(i64);
    u128: u64 as unsigned(u64);
}

/// In nanoseconds where these are at most 64 bits, else in seconds and nanoseconds.
impl Number for Duration {
    const LEAST: Duration = Duration::ZERO;
    const GREATEST: Duration = Duration::MAX;

    fn between(min: Duration, max: Duration) -> Duration {
        const NANOS_MAX: u32 = 999_999_999;
        if let (Ok(min), Ok(max)) = (u64::try_from(min.as_nanos()), u64::try_from(max.as_nanos())) {
            return Duration::from_nanos(u64::between(min, max));
        }
        spanned("duration", || {
            let seconds = u64::between(min.as_secs(), max.as_secs());
            let least = if seconds == min.as_secs() { min.subsec_nanos() } else { 0 };
            let greatest = if seconds == max.as_secs() { max.subsec_nanos() } else { NANOS_MAX };
            Duration::new(seconds, u32::between(least, greatest))
        })
    }

    fn before(self) -> Duration {
        self - Duration::from_nanos(1)
    }
}

impl Number for f64 {
    const LEAST: f64 = f64::MIN;
    const GREATEST: f64 = f64::MAX;

    fn between(min: f64, max: f64) -> f64 {
        abi::float(min, max, false, false)
    }

    fn before(self) -> f64 {
        self.next_down()
    }
}

impl Number for f32 {
    const LEAST: f32 = f32::MIN;
    const GREATEST: f32 = f32::MAX;

    // Rounding to `f32` never leaves a range whose ends are `f32`.
    fn between(min: f32, max: f32) -> f32 {
        abi::float(min.into(), max.into(), false, false) as f32
    }

    fn before(self) -> f32 {
        self.next_down()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::abi::play;
    use crate::draw;
    use crate::strategy::tests::{check, check_all, check_simplest};

    #[test]
    fn ranges_of_integers() {
        check(0..=100, &[7], 7, "integer 0..=100 0");
        check(0..100u8, &[7], 7, "integer 0..=99 0");
        check(-5..5i8, &[-5i64 as u64], -5, "integer -5..=4 0");
        check(i64::MIN..=i64::MAX, &[1], 1, "integer -9223372036854775808..=9223372036854775807 0");
        check(0..u64::MAX, &[u64::MAX - 1], u64::MAX - 1, "unsigned 0..=18446744073709551614 0");
        check(3..=3usize, &[3], 3, "unsigned 3..=3 0");
    }

    #[test]
    fn ranges_without_an_end() {
        check(1.., &[7], 7, "integer 1..=2147483647 0");
        check(..=5u8, &[5], 5, "integer 0..=5 0");
        check(..5i8, &[4], 4, "integer -128..=4 0");
        check(5u64.., &[6], 6, "unsigned 5..=18446744073709551615 0");
    }

    #[test]
    fn ranges_of_floats() {
        check(0.0..=1.0, &[0.5f64.to_bits()], 0.5, "float 0..=1");
        check(0.0..1.0, &[0.5f64.to_bits()], 0.5, "float 0..=0.9999999999999999");
        check(0.0..=1.0f32, &[0.1f64.to_bits()], 0.1f32, "float 0..=1");
    }

    #[test]
    fn ranges_of_wide_integers() {
        check(-5..=5i128, &[-2i64 as u64], -2, "integer -5..=5 0");
        check(0..=u128::from(u64::MAX), &[7], 7, "unsigned 0..=18446744073709551615 0");
        let (min, max) = (-(1i128 << 64) - 5, (1 << 64) + 5);
        let all = "18446744073709551615";
        for (answers, value, low) in [
            ([-2i64 as u64, u64::MAX], -(1 << 64) - 1, format!("18446744073709551611..={all} {all}")),
            ([-1i64 as u64, u64::MAX], -1, format!("0..={all} {all}")),
            ([0, 3], 3, format!("0..={all} 0")),
            ([1, 5], max, "0..=5 0".to_string()),
        ] {
            check(min..=max, &answers, value, &format!("wide( integer -2..=1 0 unsigned {low} )"));
        }
        let (min, max) = ((1u128 << 64) + 7, (1 << 64) + 9);
        check(min..max, &[1, 8], min + 1, "wide( unsigned 1..=1 0 unsigned 7..=8 7 )");
        check_simplest(min..=max, min);
        check_simplest(-(5 << 64)..=-(1i128 << 64), -(1 << 64));
        check_simplest(i128::MIN..0, -1);
        check_all(min..=max, |n| (min..=max).contains(n));
        check_all(i128::MIN..-3, |n| *n < -3);
    }

    #[test]
    fn ranges_of_durations() {
        let ms = Duration::from_millis;
        check(ms(1)..ms(2), &[1_500_000], Duration::from_micros(1500), "unsigned 1000000..=1999999 0");
        check(..=ms(1), &[0], Duration::ZERO, "unsigned 0..=1000000 0");
        check_simplest(ms(5).., ms(5));
        check_all(ms(5).., |duration| *duration >= ms(5));
        let long = Duration::new(u64::MAX - 1, 5)..=Duration::new(u64::MAX, 3);
        let seconds = "duration( unsigned 18446744073709551614..=18446744073709551615 0 integer";
        check(long.clone(), &[u64::MAX, 3], Duration::new(u64::MAX, 3), &format!("{seconds} 0..=3 0 )"));
        check(
            long,
            &[u64::MAX - 1, 5],
            Duration::new(u64::MAX - 1, 5),
            &format!("{seconds} 5..=999999999 0 )"),
        );
    }

    #[test]
    #[should_panic = "deadlock"]
    fn an_empty_range_is_a_deadlock() {
        play(&[], || draw(0..0));
    }

    #[test]
    #[should_panic = "deadlock"]
    #[allow(clippy::reversed_empty_ranges)]
    fn an_inverted_range_is_a_deadlock() {
        play(&[], || draw(1..=0));
    }

    #[test]
    fn simplest_values_and_bounds() {
        check_simplest(-5..=5, 0);
        check_simplest(3..=9u64, 3);
        check_simplest(-9..-3i64, -4);
        check_simplest(0.5.., 0.5);
        check_simplest(..-1.5f32, (-1.5f32).next_down());
        check_all(-5..=5i8, |n| (-5..=5).contains(n));
        check_all(7..9usize, |n| (7..9).contains(n));
        check_all(-1.0..1.0, |x| (-1.0..1.0).contains(x));
        check_all(0.1f32..=0.2, |x| (0.1f32..=0.2).contains(x));
    }
}
