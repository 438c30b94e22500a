//! Ranges and their bounds. The start is never after the end.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::Arbitrary;
use crate::abi;
use crate::strategy::spanned;

/// Two values, of which the first is the lesser.
fn ends<T: Arbitrary + PartialOrd>() -> (T, T) {
    spanned("range", || {
        let (a, b) = (T::arbitrary(), T::arbitrary());
        if b < a { (b, a) } else { (a, b) }
    })
}

impl<T: Arbitrary + PartialOrd> Arbitrary for Range<T> {
    fn arbitrary() -> Range<T> {
        let (start, end) = ends();
        start..end
    }
}

impl<T: Arbitrary + PartialOrd> Arbitrary for RangeInclusive<T> {
    fn arbitrary() -> RangeInclusive<T> {
        let (start, end) = ends();
        start..=end
    }
}

impl<T: Arbitrary> Arbitrary for RangeFrom<T> {
    fn arbitrary() -> RangeFrom<T> {
        T::arbitrary()..
    }
}

impl<T: Arbitrary> Arbitrary for RangeTo<T> {
    fn arbitrary() -> RangeTo<T> {
        ..T::arbitrary()
    }
}

impl<T: Arbitrary> Arbitrary for RangeToInclusive<T> {
    fn arbitrary() -> RangeToInclusive<T> {
        ..=T::arbitrary()
    }
}

impl Arbitrary for RangeFull {
    fn arbitrary() -> RangeFull {
        ..
    }
}

/// The simplest is `Unbounded`.
impl<T: Arbitrary> Arbitrary for Bound<T> {
    fn arbitrary() -> Bound<T> {
        spanned("bound", || match abi::index(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(T::arbitrary()),
            _ => Bound::Excluded(T::arbitrary()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any;
    use crate::strategy::tests::{check, check_all, check_simplest};

    #[test]
    fn ranges_start_before_they_end() {
        let calls = "range( integer 0..=255 0 integer 0..=255 0 )";
        check(any::<Range<u8>>(), &[5, 3], 3..5, calls);
        check(any::<RangeInclusive<u8>>(), &[3, 5], 3..=5, calls);
        check_all(any::<RangeInclusive<i8>>(), |range| range.start() <= range.end());
        // Neither is the lesser.
        check_all(any::<RangeInclusive<f64>>(), |range| {
            range.start() <= range.end() || range.start().is_nan() || range.end().is_nan()
        });
    }

    #[test]
    fn ends_and_bounds() {
        let byte = "integer 0..=255 0";
        check(any::<RangeFrom<u8>>(), &[5], 5.., byte);
        check(any::<RangeTo<u8>>(), &[5], ..5, byte);
        check(any::<RangeToInclusive<u8>>(), &[5], ..=5, byte);
        check(any::<RangeFull>(), &[], .., "");
        check(any::<Bound<u8>>(), &[0], Bound::Unbounded, "bound( index 3 )");
        check(any::<Bound<u8>>(), &[1, 5], Bound::Included(5), &format!("bound( index 3 {byte} )"));
        check(any::<Bound<u8>>(), &[2, 5], Bound::Excluded(5), &format!("bound( index 3 {byte} )"));
        check_simplest(any::<(Range<i8>, Bound<u8>)>(), (0..0, Bound::Unbounded));
    }
}
