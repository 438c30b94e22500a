//! Numbers from a range: `0..=100`, `1..`, `-1.0..1.0`.

use std::ops::{Range, RangeFrom, RangeInclusive, RangeTo, RangeToInclusive};

use crate::strategy::draw_from_nothing;
use crate::{Strategy, abi};

/// The integers of up to 64 bits, and the floats. A range of them is a strategy, whose simplest value is the
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
