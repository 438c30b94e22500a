//! What a strategy is, and how one is made of another.

use std::rc::Rc;

use crate::abi;

/// How a value is drawn.
///
/// Ranges of numbers are strategies, and so are tuples of strategies. A strategy holds nothing but what it
/// was made of: all that is random is asked from the host, choice by choice, so that whatever the explorer
/// does to the choices, the value still satisfies its strategy.
///
/// Each has a **simplest** value, towards which findings shrink.
///
/// The combinators are called `mapped`, `filtered` and `flat_mapped`, because ranges are iterators too, whose
/// methods have the shorter names.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a strategy",
    note = "strategies are ranges as `0..=100`, tuples of strategies, and what `any`, `sampled_from`, `text`, … return"
)]
pub trait Strategy {
    /// What is drawn.
    type Value;

    /// Draws a value.
    fn draw(&self) -> Self::Value;

    /// What `f` makes of a drawn value.
    fn mapped<R, F: Fn(Self::Value) -> R>(self, f: F) -> Map<Self, F>
    where
        Self: Sized,
    {
        Map { strategy: self, f }
    }

    /// Only values of which `accepts` is true. After three others in a row the run is given up, as
    /// [`assume`](crate::assume) does, so `accepts` should mostly hold.
    fn filtered<F: Fn(&Self::Value) -> bool>(self, accepts: F) -> Filter<Self, F>
    where
        Self: Sized,
    {
        Filter { strategy: self, accepts }
    }

    /// A value of the strategy that `f` makes of a drawn value.
    fn flat_mapped<S: Strategy, F: Fn(Self::Value) -> S>(self, f: F) -> FlatMap<Self, F>
    where
        Self: Sized,
    {
        FlatMap { strategy: self, f }
    }

    /// The same strategy behind a type that depends on its value alone, as [`one_of`](crate::one_of()) needs
    /// it.
    fn boxed<'a>(self) -> Boxed<'a, Self::Value>
    where
        Self: Sized + 'a,
    {
        Boxed(Rc::new(self))
    }
}

/// Draws a value here and now: in a rule, in the setup, or deep in a fake that the code under test uses.
pub fn draw<S: Strategy>(strategy: S) -> S::Value {
    strategy.draw()
}

impl<S: Strategy + ?Sized> Strategy for &S {
    type Value = S::Value;

    fn draw(&self) -> S::Value {
        (**self).draw()
    }
}

/// What [`Strategy::mapped`] returns.
#[derive(Clone, Debug)]
pub struct Map<S, F> {
    strategy: S,
    f: F,
}

impl<R, S: Strategy, F: Fn(S::Value) -> R> Strategy for Map<S, F> {
    type Value = R;

    fn draw(&self) -> R {
        (self.f)(self.strategy.draw())
    }
}

/// What [`Strategy::filtered`] returns.
#[derive(Clone, Debug)]
pub struct Filter<S, F> {
    strategy: S,
    accepts: F,
}

impl<S: Strategy, F: Fn(&S::Value) -> bool> Strategy for Filter<S, F> {
    type Value = S::Value;

    fn draw(&self) -> S::Value {
        // As often as Hypothesis tries: more would hide a filter that wastes what it is given.
        const TRIES_MAX: usize = 3;
        for _ in 0..TRIES_MAX {
            abi::span_begin("filter");
            let value = self.strategy.draw();
            let accepted = (self.accepts)(&value);
            abi::span_end(!accepted);
            if accepted {
                return value;
            }
        }
        abi::reject()
    }
}

/// What [`Strategy::flat_mapped`] returns.
#[derive(Clone, Debug)]
pub struct FlatMap<S, F> {
    strategy: S,
    f: F,
}

impl<S: Strategy, T: Strategy, F: Fn(S::Value) -> T> Strategy for FlatMap<S, F> {
    type Value = T::Value;

    fn draw(&self) -> T::Value {
        spanned("flat_map", || (self.f)(self.strategy.draw()).draw())
    }
}

/// What [`Strategy::boxed`] returns. A clone draws from the same strategy.
pub struct Boxed<'a, V>(Rc<dyn Strategy<Value = V> + 'a>);

impl<V> Clone for Boxed<'_, V> {
    fn clone(&self) -> Self {
        Boxed(Rc::clone(&self.0))
    }
}

impl<V> Strategy for Boxed<'_, V> {
    type Value = V;

    fn draw(&self) -> V {
        self.0.draw()
    }
}

/// What the function returns, which draws as it likes; for values that need more than one step to make.
///
/// ```
/// use spelunk_guest::prelude::*;
///
/// /// Two ends, the first not above the second.
/// fn interval() -> impl Strategy<Value = (u32, u32)> {
///     composite(|| {
///         let low = draw(0..1000);
///         (low, draw(low..=1000))
///     })
/// }
/// ```
pub fn composite<V, F: Fn() -> V>(f: F) -> Composite<F> {
    Composite { f }
}

/// What [`composite`] returns.
#[derive(Clone, Debug)]
pub struct Composite<F> {
    f: F,
}

impl<V, F: Fn() -> V> Strategy for Composite<F> {
    type Value = V;

    fn draw(&self) -> V {
        spanned("composite", &self.f)
    }
}

macro_rules! tuples {
    ($(($($strategy:ident $place:tt),+))*) => {$(
        impl<$($strategy: Strategy),+> Strategy for ($($strategy,)+) {
            type Value = ($($strategy::Value,)+);

            fn draw(&self) -> Self::Value {
                spanned("tuple", || ($(self.$place.draw(),)+))
            }
        }
    )*};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11)
}

/// An array of strategies draws an array of values, as a tuple draws a tuple.
impl<S: Strategy, const N: usize> Strategy for [S; N] {
    type Value = [S::Value; N];

    fn draw(&self) -> Self::Value {
        spanned("array", || self.each_ref().map(Strategy::draw))
    }
}

/// The choices that `f` draws, in a span.
#[doc(hidden)]
pub fn spanned<V>(label: &'static str, f: impl FnOnce() -> V) -> V {
    abi::span_begin(label);
    let value = f();
    abi::span_end(false);
    value
}

/// Ends the run where a strategy has no value at all: as `index` does among none, that is a deadlock.
#[cold]
pub(crate) fn draw_from_nothing() -> ! {
    abi::index(0);
    unreachable!("the host does not answer a choice among nothing")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fmt::Debug;

    use super::*;
    use crate::abi::{play, play_random, play_simplest};
    use crate::{any, boolean, just};

    /// What `strategy` draws from these answers, and what it asks.
    #[track_caller]
    pub(crate) fn check<S: Strategy<Value: Debug + PartialEq>>(
        strategy: S,
        answers: &[u64],
        value: S::Value,
        calls: &str,
    ) {
        let (drawn, log) = play(answers, || draw(strategy));
        assert_eq!(drawn, value);
        assert_eq!(log.join(" "), calls);
    }

    /// The simplest value of `strategy`.
    #[track_caller]
    pub(crate) fn check_simplest<S: Strategy<Value: Debug + PartialEq>>(strategy: S, value: S::Value) {
        assert_eq!(play_simplest(|| draw(strategy)), value);
    }

    /// Whatever is answered, the value is one that `holds` accepts.
    #[track_caller]
    pub(crate) fn check_all<S: Strategy<Value: Debug>>(strategy: S, holds: impl Fn(&S::Value) -> bool) {
        play_random(|| {
            let value = draw(&strategy);
            assert!(holds(&value), "{value:?}");
        });
    }

    #[test]
    fn simplest_values() {
        check_simplest((5..=9, any::<bool>()), (5, false));
        check_simplest([1..=9, 2..=9], [1, 2]);
        check_simplest((1..=9).mapped(|n| n * 2), 2);
        check_simplest((0..=9).flat_mapped(|n| n..=9), 0);
        check_simplest((0..=9).filtered(|n| n % 2 == 0), 0);
        check_simplest(composite(|| draw(3..=9)), 3);
    }

    #[test]
    fn combined_strategies() {
        check(composite(|| draw(boolean()) && draw(boolean())), &[0], false, "composite( boolean 0.50 )");
        check(boolean().mapped(u8::from), &[1], 1, "boolean 0.50");
        check(
            boolean().flat_mapped(|wide| if wide { 0..=1000 } else { 0..=9 }),
            &[1, 7],
            7,
            "flat_map( boolean 0.50 integer 0..=1000 0 )",
        );
        check(boolean().boxed().clone(), &[1], true, "boolean 0.50");
    }

    #[test]
    fn tuples_and_arrays() {
        check((boolean(), just(3)), &[1], (true, 3), "tuple( boolean 0.50 )");
        let one = || just(1);
        let twelve = (one(), one(), one(), one(), one(), one(), one(), one(), one(), one(), one(), boolean());
        check(twelve, &[1], (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, true), "tuple( boolean 0.50 )");
        check([0..=1, 5..=6], &[1, 5], [1, 5], "array( integer 0..=1 0 integer 5..=6 0 )");
    }

    #[test]
    fn filter_discards_what_it_refuses() {
        let even = (0..=9).filtered(|n| n % 2 == 0);
        check(
            even,
            &[1, 3, 4],
            4,
            "filter( integer 0..=9 0 )discarded filter( integer 0..=9 0 )discarded filter( integer 0..=9 0 )",
        );
    }

    #[test]
    #[should_panic = "reject"]
    fn filter_gives_up_after_three() {
        play(&[1, 3, 5], || draw((0..=9).filtered(|n| n % 2 == 0)));
    }
}
