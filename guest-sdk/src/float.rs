//! Floats that need not be finite.

use std::ops::{Bound, RangeBounds};

use crate::strategy::{draw_from_nothing, spanned};
use crate::{Number, Strategy, abi};

/// Floats from a range, and, if it is said so, such as are not finite: `floats(0.0..).with_infinities()`,
/// `floats(..).with_nan()`. The simplest is the one nearest to 0; NaN is the least simple.
///
/// Where only finite ones are wanted, the range is a strategy itself: `0.0..=1.0`.
pub fn floats<T: Float>(range: impl RangeBounds<T>) -> Floats<T> {
    let (min, max) = T::ends(range.start_bound().cloned(), range.end_bound().cloned());
    Floats { min, max, nan: false, infinite: false }
}

/// What [`floats`] returns.
#[derive(Clone, Debug)]
pub struct Floats<T> {
    min: T,
    max: T,
    nan: bool,
    infinite: bool,
}

impl<T: Float> Floats<T> {
    /// NaN too.
    pub fn with_nan(self) -> Floats<T> {
        Floats { nan: true, ..self }
    }

    /// The infinities too, as far as they are in the range: `1.0..` holds one, `0.0..=1.0` none.
    pub fn with_infinities(self) -> Floats<T> {
        Floats { infinite: true, ..self }
    }
}

impl<T: Float> Strategy for Floats<T> {
    type Value = T;

    fn draw(&self) -> T {
        let Floats { min, max, nan, infinite } = *self;
        if min > max {
            draw_from_nothing();
        }
        T::within(min, max, nan, infinite)
    }
}

/// `f32` and `f64`.
pub trait Float: Number {
    /// The least and the greatest number between these, which are infinite where there is no bound.
    #[doc(hidden)]
    fn ends(start: Bound<Self>, end: Bound<Self>) -> (Self, Self);

    /// Draws from `min..=max`, which is not empty.
    #[doc(hidden)]
    fn within(min: Self, max: Self, nan: bool, infinite: bool) -> Self;
}

macro_rules! ends {
    ($float:ty) => {
        fn ends(start: Bound<$float>, end: Bound<$float>) -> ($float, $float) {
            let min = match start {
                Bound::Included(min) => min,
                Bound::Excluded(below) => below.next_up(),
                Bound::Unbounded => <$float>::NEG_INFINITY,
            };
            let max = match end {
                Bound::Included(max) => max,
                Bound::Excluded(above) => above.next_down(),
                Bound::Unbounded => <$float>::INFINITY,
            };
            (min, max)
        }
    };
}

impl Float for f64 {
    ends!(f64);

    fn within(min: f64, max: f64, nan: bool, infinite: bool) -> f64 {
        abi::float(min, max, nan, infinite)
    }
}

impl Float for f32 {
    ends!(f32);

    /// Most `f64` would be infinite as `f32`, so those that are not finite are drawn on their own.
    fn within(min: f32, max: f32, nan: bool, infinite: bool) -> f32 {
        let rare: Vec<f32> = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN]
            .into_iter()
            .filter(|value| if value.is_nan() { nan } else { infinite && (min..=max).contains(value) })
            .collect();
        let finite = || Number::between(min.max(f32::MIN), max.min(f32::MAX));
        if rare.is_empty() {
            return finite();
        }
        spanned("f32", || match abi::boolean(0.1) {
            true => rare[abi::index(rare.len())],
            false => finite(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::play;
    use crate::draw;
    use crate::strategy::tests::{check, check_all, check_simplest};

    const HALF: u64 = 0.5f64.to_bits();

    #[test]
    fn doubles() {
        check(floats(0.0..=1.0), &[HALF], 0.5, "float 0..=1");
        check(floats(0.0..1.0), &[HALF], 0.5, "float 0..=0.9999999999999999");
        check(floats(0.0..).with_infinities(), &[HALF], 0.5, "float 0..=inf infinite");
        check(floats(..=1.0f64).with_nan(), &[HALF], 0.5, "float -inf..=1 nan");
    }

    #[test]
    fn singles_draw_what_is_not_finite_on_their_own() {
        check(floats(0.0..=1.0f32).with_infinities(), &[HALF], 0.5, "float 0..=1");
        let some = floats(0.0f32..).with_infinities();
        let max = f64::from(f32::MAX);
        check(&some, &[0, HALF], 0.5, &format!("f32( boolean 0.10 float 0..={max} )"));
        check(&some, &[1, 0], f32::INFINITY, "f32( boolean 0.10 index 1 )");
        let (drawn, _) = play(&[1, 0], || draw(floats(0.0..=1.0f32).with_nan()));
        assert!(drawn.is_nan());
    }

    #[test]
    #[should_panic = "deadlock"]
    fn an_empty_range_is_a_deadlock() {
        play(&[], || draw(floats(1.0..1.0)));
    }

    #[test]
    fn simplest_values_and_bounds() {
        check_simplest(floats(..).with_nan().with_infinities(), 0.0);
        check_simplest(floats(1.5f32..).with_infinities(), 1.5);
        check_all(floats(-1.0f32..), |x| x.is_finite() && *x >= -1.0);
        check_all(floats(..0.5f32).with_nan().with_infinities(), |x| x.is_nan() || *x < 0.5);
    }
}
