//! Any value of a type.

use std::array;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;

use crate::strategy::spanned;
use crate::{Number, Strategy, abi, floats, map, option, result, set, text, vec};

/// How long a collection or a `String` of [`any`] can become. Say more with [`vec`](crate::vec()).
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
///         #[strategy(1..=100)]
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
    )*};
}

integers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

macro_rules! wide_integers {
    ($($wide:ty: $high:ty;)*) => {$(
        impl Arbitrary for $wide {
            fn arbitrary() -> $wide {
                spanned("wide", || <$wide>::from(<$high>::arbitrary()) << 64 | <$wide>::from(u64::arbitrary()))
            }
        }
    )*};
}

wide_integers! {
    i128: i64;
    u128: u64;
}

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
        option(any()).draw()
    }
}

impl<T: Arbitrary> Arbitrary for Vec<T> {
    fn arbitrary() -> Vec<T> {
        vec(any(), 0..=LEN_MAX).draw()
    }
}

impl<T: Arbitrary + Ord> Arbitrary for BTreeSet<T> {
    fn arbitrary() -> BTreeSet<T> {
        set(any(), 0..=LEN_MAX).draw()
    }
}

impl<K: Arbitrary + Ord, V: Arbitrary> Arbitrary for BTreeMap<K, V> {
    fn arbitrary() -> BTreeMap<K, V> {
        map(any(), any(), 0..=LEN_MAX).draw()
    }
}

impl<T: Arbitrary> Arbitrary for Box<T> {
    fn arbitrary() -> Box<T> {
        Box::new(T::arbitrary())
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

tuples! { (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) (A, B, C, D, E, F, G) (A, B, C, D, E, F, G, H) }

thread_local! {
    /// How many derived enums are being drawn, one as a part of another.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// The variant of a derived enum: one of `0..n`, with what `make` draws for it, in a span of the type's name.
///
/// An enum may be a part of itself. From some depth on only its first variant is drawn, so that it ends.
#[doc(hidden)]
pub fn variant<V>(name: &'static str, n: usize, make: impl FnOnce(usize) -> V) -> V {
    const DEPTH_MAX: usize = 6;
    spanned(name, || {
        let depth = DEPTH.replace(DEPTH.get() + 1);
        let value = make(abi::index(if depth < DEPTH_MAX { n } else { 1 }));
        DEPTH.set(depth);
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::play;
    use crate::strategy::tests::{check, check_all, check_simplest};
    use crate::{Arbitrary, draw};

    #[test]
    fn numbers() {
        check(any::<u8>(), &[255], 255, "integer 0..=255 0");
        check(any::<i32>(), &[1], 1, "integer -2147483648..=2147483647 0");
        check(any::<u64>(), &[1], 1, "unsigned 0..=18446744073709551615 0");
        check(any::<f64>(), &[0.5f64.to_bits()], 0.5, "float -inf..=inf nan infinite");
        check(any::<f32>(), &[1, 1], f32::NEG_INFINITY, "f32( boolean 0.10 index 3 )");
        let wide = "wide( integer -9223372036854775808..=9223372036854775807 0 unsigned 0..=18446744073709551615 0 )";
        check(any::<i128>(), &[-1i64 as u64, 3], -(1 << 64) + 3, wide);
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
        let eight = any::<(bool, (), (), (), (), (), (), ())>();
        check(eight, &[1], (true, (), (), (), (), (), (), ()), "tuple( boolean 0.50 )");
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
    fn an_enum_in_itself_ends() {
        let (_, log) = play(&[[1; 6].as_slice(), &[0]].concat(), || draw(any::<Tree<()>>()));
        let indices: Vec<&String> = log.iter().filter(|call| call.starts_with("index")).collect();
        assert_eq!(indices[5..], ["index 2", "index 1"]);
    }

    #[test]
    fn simplest_values() {
        check_simplest(any::<(i8, u64, i128, f32, bool, char)>(), (0, 0, 0, 0.0, false, '0'));
        check_simplest(any::<(String, Vec<u8>, Option<u8>)>(), (String::new(), vec![], None));
        check_simplest(any::<Result<u8, u8>>(), Ok(0));
        check_simplest(any::<(Interval, Tree<u8>)>(), (Interval { low: 0, high: 0 }, Tree::Leaf));
        check_all(any::<Interval>(), |interval| interval.low <= interval.high);
    }
}
