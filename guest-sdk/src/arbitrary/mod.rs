//! Any value of a type.

mod collections;
mod nested;
mod net;
mod ranges;
mod strings;
mod time;
mod wrappers;

use std::array;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZero;

use crate::strategy::spanned;
use crate::{Number, Strategy, abi, floats, result, text};

pub(crate) use nested::begin_anew;
pub use nested::{structure, variant};

/// How long a `String` of [`any`] can become, and a collection. Say more with [`vec`](crate::vec()).
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

/// A type of which [`any`] can draw values. Derive it for yours, or implement it by drawing the parts.
///
/// ```
/// use spelunk_guest::prelude::*;
///
/// #[derive(Arbitrary)]
/// enum Shape {
///     Point,
///     Circle {
///         #[draw(1..=100)]
///         radius: u32,
///     },
/// }
///
/// struct Even(u32);
///
/// impl Arbitrary for Even {
///     fn arbitrary() -> Even {
///         Even(draw(0..=1000) * 2)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "no strategy is known for any `{Self}`",
    note = "say how to draw it with `#[draw(strategy)]`, or derive `Arbitrary`"
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

        /// The simplest is 1.
        impl Arbitrary for NonZero<$integer> {
            fn arbitrary() -> NonZero<$integer> {
                let value = <$integer as Number>::between(<$integer>::MIN, <$integer>::MAX - 1);
                // All from 0 on is one more.
                NonZero::new(value).filter(|value| value.get() < 1).unwrap_or_else(|| {
                    NonZero::new(value + 1).expect("it is not below 0")
                })
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

impl Arbitrary for f64 {
    fn arbitrary() -> f64 {
        floats(..).with_nan().with_infinities().draw()
    }
}

impl Arbitrary for f32 {
    fn arbitrary() -> f32 {
        floats(..).with_nan().with_infinities().draw()
    }
}

impl Arbitrary for bool {
    fn arbitrary() -> bool {
        abi::boolean(0.5)
    }
}

impl Arbitrary for String {
    fn arbitrary() -> String {
        text(any::<char>(), 0..=LEN_MAX).draw()
    }
}

impl Arbitrary for () {
    fn arbitrary() {}
}

impl<T: Arbitrary> Arbitrary for Option<T> {
    fn arbitrary() -> Option<T> {
        let probability = if nested::may_nest::<T>() { 0.5 } else { 0.0 };
        spanned("option", || abi::boolean(probability).then(T::arbitrary))
    }
}

impl<T: Arbitrary, E: Arbitrary> Arbitrary for Result<T, E> {
    fn arbitrary() -> Result<T, E> {
        result(any(), any()).draw()
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

tuples! {
    (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) (A, B, C, D, E, F, G) (A, B, C, D, E, F, G, H)
    (A, B, C, D, E, F, G, H, I) (A, B, C, D, E, F, G, H, I, J) (A, B, C, D, E, F, G, H, I, J, K)
    (A, B, C, D, E, F, G, H, I, J, K, L)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::Arbitrary;
    use crate::strategy::tests::{check, check_all, check_simplest};

    #[test]
    fn numbers() {
        check(any::<u8>(), &[255], 255, "integer 0..=255 0");
        check(any::<i32>(), &[1], 1, "integer -2147483648..=2147483647 0");
        check(any::<u64>(), &[1], 1, "unsigned 0..=18446744073709551615 0");
        check(any::<f64>(), &[0.5f64.to_bits()], 0.5, "float -inf..=inf nan infinite");
        check(any::<f32>(), &[1, 1], f32::NEG_INFINITY, "f32( boolean 0.10 index 3 )");
        let wide =
            "wide( integer -9223372036854775808..=9223372036854775807 0 unsigned 0..=18446744073709551615";
        check(any::<i128>(), &[1, 3], (1 << 64) + 3, &format!("{wide} 0 )"));
        check(any::<i128>(), &[-1i64 as u64, u64::MAX - 1], -2, &format!("{wide} 18446744073709551615 )"));
    }

    #[test]
    fn all_numbers_but_zero() {
        for (answer, value) in [(-128i64, -128), (-1, -1), (0, 1), (126, 127)] {
            let value = NonZero::<i8>::new(value).unwrap();
            check(any::<NonZero<i8>>(), &[answer as u64], value, "integer -128..=126 0");
        }
        check(any::<NonZero<u8>>(), &[254], NonZero::<u8>::MAX, "integer 0..=254 0");
        check_all(any::<(NonZero<u128>, NonZero<isize>)>(), |_| true);
    }

    #[test]
    fn compounds() {
        check(any::<(bool, u8)>(), &[1, 2], (true, 2), "tuple( boolean 0.50 integer 0..=255 0 )");
        check(any::<[bool; 2]>(), &[1, 0], [true, false], "array( boolean 0.50 boolean 0.50 )");
        check(any::<Option<bool>>(), &[0], None, "option( boolean 0.50 )");
        check(any::<Vec<bool>>(), &[0], vec![], "vec( element( boolean 0.83 ) )");
        check(any::<String>(), &[0], String::new(), "text( element( boolean 0.83 ) )");
        check(any::<BTreeSet<bool>>(), &[0], BTreeSet::new(), "set( element( boolean 0.83 ) )");
        check(any::<BTreeMap<u8, u8>>(), &[0], BTreeMap::new(), "map( element( boolean 0.83 ) )");
        check(
            any::<Result<Box<bool>, ()>>(),
            &[0, 1],
            Ok(Box::new(true)),
            "result( boolean 0.50 boolean 0.50 )",
        );
        let twelve = any::<((), (), (), (), (), (), (), (), (), (), (), bool)>();
        check(twelve, &[1], ((), (), (), (), (), (), (), (), (), (), (), true), "tuple( boolean 0.50 )");
    }

    #[derive(Arbitrary, Debug, PartialEq)]
    struct Interval {
        #[strategy(0..=9)]
        low: u8,
        #[strategy(low..=9)]
        high: u8,
    }

    #[derive(Arbitrary, Debug, PartialEq)]
    enum Tree<T> {
        Leaf,
        Node(T, Box<Tree<T>>),
    }

    #[test]
    fn derived_structs_draw_their_fields() {
        check(
            any::<Interval>(),
            &[3, 5],
            Interval { low: 3, high: 5 },
            "Interval( low( integer 0..=9 0 ) high( integer 3..=9 0 ) )",
        );
    }

    #[test]
    fn derived_enums_draw_a_variant_by_its_place() {
        check(any::<Tree<bool>>(), &[0], Tree::Leaf, "Tree( index 2 )");
        check(
            any::<Tree<bool>>(),
            &[1, 1, 0],
            Tree::Node(true, Box::new(Tree::Leaf)),
            "Tree( index 2 field_0( boolean 0.50 ) field_1( Tree( index 2 ) ) )",
        );
    }

    #[test]
    fn simplest_values() {
        check_simplest(any::<(i8, u64, i128, f32, bool, char)>(), (0, 0, 0, 0.0, false, '0'));
        check_simplest(any::<(String, Vec<u8>, Option<u8>)>(), (String::new(), vec![], None));
        check_simplest(any::<Result<u8, u8>>(), Ok(0));
        check_simplest(any::<(Interval, Tree<u8>)>(), (Interval { low: 0, high: 0 }, Tree::Leaf));
        check_all(any::<Interval>(), |interval| interval.low <= interval.high);
        check_simplest(any::<(NonZero<u8>, NonZero<i64>, NonZero<i128>)>(), {
            (NonZero::<u8>::MIN, NonZero::new(1).unwrap(), NonZero::new(1).unwrap())
        });
    }
}
