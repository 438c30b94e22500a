//! Any value of a type.

use std::array;
use std::fmt;
use std::marker::PhantomData;

use crate::strategy::spanned;
use crate::{Number, Strategy, abi, option, vec};

/// How long a `Vec` or a `String` of [`any`] can become. Say more with [`vec`](crate::vec()).
const LEN_MAX: usize = 64;

/// Any value of the type: all integers, all floats with NaN and the infinities, …
///
/// It is what draws an argument without `#[draw]`.
pub fn any<T: Arbitrary>() -> Any<T> {
    Any(PhantomData)
}

/// What [`any`] returns.
pub struct Any<T>(PhantomData<fn() -> T>);

impl<T: Arbitrary> Strategy for Any<T> {
    type Value = T;

    fn draw(&self) -> T {
        T::arbitrary()
    }
}

impl<T> Clone for Any<T> {
    fn clone(&self) -> Any<T> {
        Any(PhantomData)
    }
}

impl<T> fmt::Debug for Any<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("any")
    }
}

/// A type of which [`any`] can draw values. Implement it for yours by drawing its parts.
///
/// ```
/// use spelunk_guest::prelude::*;
///
/// struct Point {
///     x: i32,
///     y: i32,
/// }
///
/// impl Arbitrary for Point {
///     fn arbitrary() -> Point {
///         Point { x: draw(any()), y: draw(any()) }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "no strategy is known for any `{Self}`",
    note = "say how to draw it with `#[draw(strategy)]`, or implement `Arbitrary`"
)]
pub trait Arbitrary {
    /// Draws a value.
    fn arbitrary() -> Self;
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl Arbitrary for $integer {
            fn arbitrary() -> $integer {
                Number::between(<$integer>::MIN, <$integer>::MAX)
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

impl Arbitrary for f64 {
    fn arbitrary() -> f64 {
        abi::any_float()
    }
}

impl Arbitrary for f32 {
    fn arbitrary() -> f32 {
        // Most `f64` would be infinite as `f32`, so these are drawn on their own.
        const RARE: [f32; 3] = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        spanned("f32", || match abi::boolean(0.1) {
            true => RARE[abi::index(RARE.len())],
            false => Number::between(f32::MIN, f32::MAX),
        })
    }
}

impl Arbitrary for bool {
    fn arbitrary() -> bool {
        abi::boolean(0.5)
    }
}

/// Mostly printable ASCII; the simplest is `0`.
impl Arbitrary for char {
    fn arbitrary() -> char {
        const SURROGATES: std::ops::RangeInclusive<u32> = 0xd800..=0xdfff;
        const COUNT: u32 = char::MAX as u32 + 1 - 0x800;
        spanned("char", || {
            if !abi::boolean(0.2) {
                return abi::integer(' ' as i64, '~' as i64, '0' as i64) as u8 as char;
            }
            let place = abi::index(COUNT as usize) as u32;
            let code = if place < *SURROGATES.start() { place } else { place + 0x800 };
            char::from_u32(code).expect("surrogates are left out")
        })
    }
}

impl Arbitrary for String {
    fn arbitrary() -> String {
        let mut text = String::new();
        crate::collections::each_element((0..=LEN_MAX).into(), || text.push(char::arbitrary()));
        text
    }
}

impl Arbitrary for () {
    fn arbitrary() {}
}

impl<T: Arbitrary> Arbitrary for Option<T> {
    fn arbitrary() -> Option<T> {
        option(any()).draw()
    }
}

impl<T: Arbitrary> Arbitrary for Vec<T> {
    fn arbitrary() -> Vec<T> {
        vec(any(), 0..=LEN_MAX).draw()
    }
}

impl<T: Arbitrary, const N: usize> Arbitrary for [T; N] {
    fn arbitrary() -> [T; N] {
        spanned("array", || array::from_fn(|_| T::arbitrary()))
    }
}

macro_rules! tuples {
    ($(($($ty:ident),+))*) => {$(
        impl<$($ty: Arbitrary),+> Arbitrary for ($($ty,)+) {
            fn arbitrary() -> Self {
                spanned("tuple", || ($($ty::arbitrary(),)+))
            }
        }
    )*};
}

tuples! { (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::tests::check;

    #[test]
    fn numbers() {
        check(any::<u8>(), &[255], 255, "integer 0..=255 0");
        check(any::<i32>(), &[1], 1, "integer -2147483648..=2147483647 0");
        check(any::<u64>(), &[1], 1, "unsigned 0..=18446744073709551615 0");
        check(any::<f64>(), &[0.5f64.to_bits()], 0.5, "float any");
        check(any::<f32>(), &[1, 1], f32::NEG_INFINITY, "f32( boolean 0.10 index 3 )");
    }

    #[test]
    fn characters_jump_over_the_surrogates() {
        check(any::<char>(), &[0, 'x' as u64], 'x', "char( boolean 0.20 integer 32..=126 48 )");
        check(any::<char>(), &[1, 0xd7ff], '\u{d7ff}', "char( boolean 0.20 index 1112064 )");
        check(any::<char>(), &[1, 0xd800], '\u{e000}', "char( boolean 0.20 index 1112064 )");
        check(any::<char>(), &[1, 1112063], char::MAX, "char( boolean 0.20 index 1112064 )");
    }

    #[test]
    fn compounds() {
        check(any::<(bool, u8)>(), &[1, 2], (true, 2), "tuple( boolean 0.50 integer 0..=255 0 )");
        check(any::<[bool; 2]>(), &[1, 0], [true, false], "array( boolean 0.50 boolean 0.50 )");
        check(any::<Option<bool>>(), &[0], None, "option( boolean 0.50 )");
        check(any::<Vec<bool>>(), &[0], vec![], "vec( element( boolean 0.83 ) )");
    }
}
