//! Numbers from a range: `0..=100`, `-1.0..1.0`.

use std::ops::{Range, RangeInclusive};

use crate::strategy::draw_from_nothing;
use crate::{Strategy, abi};

/// The integers of up to 64 bits, and the floats. A range of them is a strategy, whose simplest value is the
/// one nearest to 0; an empty range is a deadlock, as a choice among nothing is.
pub trait Number: Copy + PartialOrd {
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

macro_rules! integers {
    ($choice:ident as $wide:ty: $($integer:ty)*) => {$(
        impl Number for $integer {
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
    fn between(min: f64, max: f64) -> f64 {
        abi::float(min, max)
    }

    fn before(self) -> f64 {
        self.next_down()
    }
}

impl Number for f32 {
    // Rounding to `f32` never leaves a range whose ends are `f32`.
    fn between(min: f32, max: f32) -> f32 {
        abi::float(min.into(), max.into()) as f32
    }

    fn before(self) -> f32 {
        self.next_down()
    }
}

#[cfg(test)]
mod tests {
    use crate::abi::play;
    use crate::draw;
    use crate::strategy::tests::check;

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
}
