//! Values of what other crates draw: `arbitrary` and `proptest`.
//!
//! They are macros, and name the crate of whoever calls them. So this crate depends on neither, a harness needs no
//! feature of it, and any version of theirs will do that has these functions.

use crate::{Strategy, abi, bytes};

/// Bytes that a value is made of at most, unless it is said.
#[doc(hidden)]
pub const INPUT_MAX: usize = 1024;

/// What `make` makes of drawn bytes; where it makes nothing of them, the run is given up, as by
/// [`assume`](crate::assume).
#[doc(hidden)]
pub fn from_bytes<V>(len_max: usize, make: impl Fn(&[u8]) -> Option<V>) -> impl Strategy<Value = V> {
    bytes(..=len_max).mapped(move |drawn| make(&drawn).unwrap_or_else(|| abi::reject()))
}

/// These bytes, and then the number 1 over and over, as a generator of random numbers reads them: with zeros, which
/// `proptest` would take beyond the end, many a strategy tries for ever to get a number that it can use.
#[doc(hidden)]
pub fn endless(bytes: &[u8]) -> Vec<u8> {
    const ONE: [u8; 4] = 1u32.to_le_bytes();
    const ONES: usize = 16_384;
    let mut all = bytes.to_vec();
    all.resize(bytes.len().next_multiple_of(ONE.len()), 0);
    all.extend(ONE.iter().cycle().take(ONE.len() * ONES));
    all
}

/// A strategy for a type that implements `arbitrary::Arbitrary`, the trait of fuzz targets:
/// `#[draw(from_arbitrary!(Request))]`.
///
/// The value is made of bytes, in one choice, of which there are at most 1,024, or as many as a second argument says:
/// `from_arbitrary!(Request, 64)`. It shrinks as the bytes do, to few and zeros. A type that derives the
/// [`Arbitrary`](derive@crate::Arbitrary) of this crate shrinks better, field by field.
///
/// The crate that calls it depends on `arbitrary`.
#[macro_export]
macro_rules! from_arbitrary {
    ($type:ty $(,)?) => {
        $crate::from_arbitrary!($type, $crate::__private::INPUT_MAX)
    };
    ($type:ty, $len_max:expr $(,)?) => {
        $crate::__private::from_bytes($len_max, |bytes: &[u8]| -> ::core::option::Option<$type> {
            let mut bytes = ::arbitrary::Unstructured::new(bytes);
            ::arbitrary::Arbitrary::arbitrary(&mut bytes).ok()
        })
    };
}

/// A strategy for what a strategy of `proptest` draws: `#[draw(from_proptest!(0u8..9))]`,
/// `from_proptest!(proptest::arbitrary::any::<Request>())`.
///
/// Its random bits are bytes, in one choice, of which there are at most 1,024, or as many as a second argument says; beyond
/// them come 16,384 small numbers, and then zeros. It shrinks as the bytes do, to few and zeros, and not as `proptest` would: a range shrinks to its
/// start. If the strategy gives up, as by a filter, so does the run.
///
/// The crate that calls it depends on `proptest`. For `wasm32-unknown-unknown`, take it without what needs a system:
/// `proptest = { version = "1", default-features = false, features = ["alloc", "no_std"] }`.
#[macro_export]
macro_rules! from_proptest {
    ($strategy:expr $(,)?) => {
        $crate::from_proptest!($strategy, $crate::__private::INPUT_MAX)
    };
    ($strategy:expr, $len_max:expr $(,)?) => {{
        let strategy = $strategy;
        $crate::__private::from_bytes($len_max, move |bytes: &[u8]| {
            use ::proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
            let bytes = $crate::__private::endless(bytes);
            let random = TestRng::from_seed(RngAlgorithm::PassThrough, &bytes);
            // Each try takes from the numbers that there are.
            let config = Config { max_local_rejects: 64, max_global_rejects: 64, ..Config::default() };
            let mut runner = TestRunner::new_with_rng(config, random);
            let tree = ::proptest::strategy::Strategy::new_tree(&strategy, &mut runner).ok()?;
            ::core::option::Option::Some(::proptest::strategy::ValueTree::current(&tree))
        })
    }};
}

#[cfg(test)]
mod tests {
    use proptest::strategy::Strategy as _;

    use crate::abi::{play, play_random};
    use crate::draw;
    use crate::strategy::tests::{check, check_simplest};

    #[derive(::arbitrary::Arbitrary, Debug, PartialEq)]
    enum Request {
        Get(u16),
        Put { key: u8, value: Vec<u8> },
    }

    #[test]
    fn what_arbitrary_makes_of_bytes() {
        // The bytes of these tests are all 7: two elements, and then no more.
        check(from_arbitrary!((u8, u16)), &[3], (7, 0x707), "bytes 0..=1024");
        check(from_arbitrary!((u8, u16), 2), &[1], (7, 0), "bytes 0..=2");
        check_simplest(from_arbitrary!(Request), Request::Get(0));
    }

    #[test]
    fn each_variant_of_arbitrary_is_made() {
        // The first four bytes choose the variant: 0x07070707 of 2^32 is the first, whatever follows.
        let made = |bytes: &[u8]| {
            use ::arbitrary::{Arbitrary, Unstructured};
            Request::arbitrary(&mut Unstructured::new(bytes)).unwrap()
        };
        assert_eq!(made(&[7; 8]), Request::Get(0x707));
        assert!(matches!(made(&[255; 8]), Request::Put { key: 255, .. }));
    }

    #[test]
    fn what_proptest_makes_of_bytes() {
        check_simplest(from_proptest!(3u8..=9), 3);
        check_simplest(from_proptest!(::proptest::collection::vec(0u8..9, 0..5)), vec![]);
        play_random(|| {
            let even = from_proptest!((0u32..100).prop_map(|n| n * 2));
            assert!(draw(even).is_multiple_of(2));
        });
    }

    #[test]
    #[should_panic = "reject"]
    fn where_proptest_gives_up_the_run_does() {
        play(&[0], || draw(from_proptest!((0u8..9).prop_filter("none", |_| false))));
    }
}
