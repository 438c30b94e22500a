//! One of several: values, or strategies.

use crate::strategy::spanned;
use crate::{Strategy, abi};

/// Always this value.
pub fn just<V: Clone>(value: V) -> Just<V> {
    Just(value)
}

/// What [`just`] returns.
#[derive(Clone, Debug)]
pub struct Just<V>(V);

impl<V: Clone> Strategy for Just<V> {
    type Value = V;

    fn draw(&self) -> V {
        self.0.clone()
    }
}

/// `true` or `false`, the simplest.
pub fn boolean() -> Weighted {
    weighted(0.5)
}

/// `true` with this probability, else `false`, the simplest. At 0 or less it is never `true`, at 1 or more
/// always; between them both remain possible, whatever the probability.
pub fn weighted(probability: f64) -> Weighted {
    Weighted { probability }
}

/// What [`weighted`] and [`boolean`] return.
#[derive(Clone, Debug)]
pub struct Weighted {
    probability: f64,
}

impl Strategy for Weighted {
    type Value = bool;

    fn draw(&self) -> bool {
        abi::boolean(self.probability)
    }
}

/// `None`, the simplest, or a value of `strategy`.
pub fn option<S: Strategy>(strategy: S) -> OptionOf<S> {
    OptionOf { strategy }
}

/// What [`option`] returns.
#[derive(Clone, Debug)]
pub struct OptionOf<S> {
    strategy: S,
}

impl<S: Strategy> Strategy for OptionOf<S> {
    type Value = Option<S::Value>;

    fn draw(&self) -> Option<S::Value> {
        spanned("option", || abi::boolean(0.5).then(|| self.strategy.draw()))
    }
}

/// `Ok`, the simplest, with a value of the first strategy, or `Err` with one of the second.
pub fn result<T: Strategy, E: Strategy>(ok: T, err: E) -> ResultOf<T, E> {
    ResultOf { ok, err }
}

/// What [`result`] returns.
#[derive(Clone, Debug)]
pub struct ResultOf<T, E> {
    ok: T,
    err: E,
}

impl<T: Strategy, E: Strategy> Strategy for ResultOf<T, E> {
    type Value = Result<T::Value, E::Value>;

    fn draw(&self) -> Self::Value {
        spanned("result", || match abi::boolean(0.5) {
            false => Ok(self.ok.draw()),
            true => Err(self.err.draw()),
        })
    }
}

/// A value of one of these strategies, all equally likely. The first is the simplest; none at all is a
/// deadlock, as with [`sampled_from`](crate::sampled_from).
///
/// Strategies of different types go into the macro [`one_of!`](macro@crate::one_of).
pub fn one_of<S: Strategy>(strategies: impl Into<Vec<S>>) -> OneOf<S> {
    OneOf { strategies: strategies.into() }
}

/// What [`one_of`] returns.
#[derive(Clone, Debug)]
pub struct OneOf<S> {
    strategies: Vec<S>,
}

impl<S: Strategy> Strategy for OneOf<S> {
    type Value = S::Value;

    fn draw(&self) -> S::Value {
        spanned("one_of", || self.strategies[abi::index(self.strategies.len())].draw())
    }
}

/// A value of one of these strategies, each as likely as its weight says: `weighted_one_of([(9, a), (1, b)])`
/// is nine times in ten `a`. The first is the simplest. One of weight 0 is never drawn; if all are, that is
/// a deadlock.
///
/// # Panics
/// If the weights add up to more than `u32::MAX`.
pub fn weighted_one_of<S: Strategy>(strategies: impl Into<Vec<(u32, S)>>) -> WeightedOneOf<S> {
    let strategies = strategies.into();
    let total = strategies.iter().try_fold(0u32, |total, (weight, _)| total.checked_add(*weight));
    WeightedOneOf { strategies, total: total.expect("the weights add up to at most `u32::MAX`") }
}

/// What [`weighted_one_of`] returns.
#[derive(Clone, Debug)]
pub struct WeightedOneOf<S> {
    strategies: Vec<(u32, S)>,
    total: u32,
}

impl<S: Strategy> Strategy for WeightedOneOf<S> {
    type Value = S::Value;

    /// In one choice, so that a simpler alternative is a smaller number.
    fn draw(&self) -> S::Value {
        spanned("one_of", || {
            let mut place = abi::index(self.total as usize) as u32;
            for (weight, strategy) in &self.strategies {
                match place.checked_sub(*weight) {
                    Some(rest) => place = rest,
                    None => return strategy.draw(),
                }
            }
            unreachable!("the index is less than the sum of the weights")
        })
    }
}

/// A value of one of these strategies, which may be of different types: `one_of![just(0), 100..200, any()]`.
/// With weights, `one_of![9 => just(0), 1 => any()]`, some are drawn more often than others.
///
/// The first is the simplest.
///
/// ```
/// use spelunk_guest::prelude::*;
///
/// fn key() -> impl Strategy<Value = u32> {
///     one_of![just(0), 100..200, any()]
/// }
/// ```
#[macro_export]
macro_rules! one_of {
    ($($weight:literal => $strategy:expr),+ $(,)?) => {
        $crate::weighted_one_of([$(($weight, $crate::Strategy::boxed($strategy))),+])
    };
    ($($strategy:expr),+ $(,)?) => {
        $crate::one_of([$($crate::Strategy::boxed($strategy)),+])
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::play;
    use crate::strategy::tests::{check, check_simplest};
    use crate::{any, draw};

    #[test]
    fn values_and_coins() {
        check(just("a"), &[], "a", "");
        check(boolean(), &[1], true, "boolean 0.50");
        check(weighted(0.25), &[0], false, "boolean 0.25");
    }

    #[test]
    fn options_and_results() {
        check(option(boolean()), &[0], None, "option( boolean 0.50 )");
        check(option(boolean()), &[1, 1], Some(true), "option( boolean 0.50 boolean 0.50 )");
        check(result(just(1), boolean()), &[0], Ok(1), "result( boolean 0.50 )");
        check(result(just(1), boolean()), &[1, 1], Err(true), "result( boolean 0.50 boolean 0.50 )");
    }

    #[test]
    fn one_of_several() {
        check(one_of([just(1), just(2)]), &[1], 2, "one_of( index 2 )");
        check(one_of![just(1), 5..=6, any::<u8>()], &[0], 1, "one_of( index 3 )");
        check(one_of![just(1), 5..=6], &[1, 6], 6, "one_of( index 2 integer 5..=6 0 )");
    }

    #[test]
    fn weights_are_shares_of_one_choice() {
        let strategy = one_of![2 => just('a'), 0 => just('b'), 3 => just('c')];
        for (place, expected) in [(0, 'a'), (1, 'a'), (2, 'c'), (4, 'c')] {
            check(&strategy, &[place], expected, "one_of( index 5 )");
        }
    }

    #[test]
    #[should_panic = "deadlock"]
    fn one_of_none_is_a_deadlock() {
        play(&[], || draw(one_of::<Just<u8>>([])));
    }

    #[test]
    #[should_panic = "deadlock"]
    fn no_weight_is_a_deadlock() {
        play(&[], || draw(one_of![0 => just(1)]));
    }

    #[test]
    fn simplest_values() {
        check_simplest(boolean(), false);
        check_simplest(weighted(1.0), true);
        check_simplest(option(just(1)), None);
        check_simplest(result(5..=9, just(1)), Ok(5));
        check_simplest(one_of![just(7), any()], 7);
        check_simplest(one_of![0 => just(8), 1 => just(9)], 9);
    }
}
