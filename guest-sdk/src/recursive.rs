//! Values that are made of values like themselves: trees, expressions, documents.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use crate::strategy::spanned;
use crate::{Boxed, Strategy, abi};

/// How deep values nest unless [`Recursive::depth`] says it.
const DEPTH_MAX: u32 = 6;

/// From how many values of the base on nothing is extended any more, unless [`Recursive::size`] says it.
const SIZE_MAX: u32 = 100;

/// A value of `base`, the simplest, or one that `extend` makes of such values, and so on.
///
/// ```
/// use spelunk_guest::prelude::*;
///
/// enum Json {
///     Number(i32),
///     Array(Vec<Json>),
///     Object(Vec<(String, Json)>),
/// }
///
/// fn json() -> impl Strategy<Value = Json> {
///     recursive(any().mapped(Json::Number), |json| {
///         one_of![
///             vec(json.clone(), ..=5).mapped(Json::Array),
///             vec((text("abc", 1), json), ..=5).mapped(Json::Object),
///         ]
///     })
/// }
/// ```
pub fn recursive<'a, S, T>(base: S, extend: impl Fn(Boxed<'a, S::Value>) -> T + 'a) -> Recursive<'a, S::Value>
where
    S: Strategy + 'a,
    T: Strategy<Value = S::Value> + 'a,
{
    Recursive {
        base: base.boxed(),
        extend: Rc::new(move |inner| extend(inner).boxed()),
        depth_max: DEPTH_MAX,
        size_max: SIZE_MAX,
    }
}

/// What [`recursive`] returns.
pub struct Recursive<'a, V> {
    base: Boxed<'a, V>,
    extend: Rc<dyn Fn(Boxed<'a, V>) -> Boxed<'a, V> + 'a>,
    depth_max: u32,
    size_max: u32,
}

impl<V> Recursive<'_, V> {
    /// Extends a value of the base at most so often. Without it, 6 times.
    pub fn depth(self, max: u32) -> Self {
        Recursive { depth_max: max, ..self }
    }

    /// Extends nothing any more once so many values of the base were drawn. What is extended by then is drawn
    /// to its end, so a few more may come. Without it, 100.
    pub fn size(self, max: u32) -> Self {
        Recursive { size_max: max, ..self }
    }
}

impl<'a, V: 'a> Strategy for Recursive<'a, V> {
    type Value = V;

    fn draw(&self) -> V {
        Level { all: self.clone(), depth_left: self.depth_max, size_left: Rc::new(Cell::new(self.size_max)) }
            .draw()
    }
}

impl<V> Clone for Recursive<'_, V> {
    fn clone(&self) -> Self {
        let Recursive { base, extend, depth_max, size_max } = self;
        Recursive {
            base: base.clone(),
            extend: Rc::clone(extend),
            depth_max: *depth_max,
            size_max: *size_max,
        }
    }
}

impl<V> fmt::Debug for Recursive<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("recursive")
    }
}

/// The same strategy at some depth within the value of another.
struct Level<'a, V> {
    all: Recursive<'a, V>,
    depth_left: u32,
    /// One for the whole value.
    size_left: Rc<Cell<u32>>,
}

impl<'a, V: 'a> Strategy for Level<'a, V> {
    type Value = V;

    /// The boolean is drawn even where only one answer is allowed, so that a value of any depth can take the
    /// place of one that it is a part of.
    fn draw(&self) -> V {
        spanned("recursive", || {
            let may_extend = self.depth_left > 0 && self.size_left.get() > 0;
            if abi::boolean(if may_extend { 0.5 } else { 0.0 }) {
                (self.all.extend)(self.below().boxed()).draw()
            } else {
                self.size_left.set(self.size_left.get().saturating_sub(1));
                self.all.base.draw()
            }
        })
    }
}

impl<V> Level<'_, V> {
    fn below(&self) -> Self {
        Level {
            all: self.all.clone(),
            depth_left: self.depth_left - 1,
            size_left: Rc::clone(&self.size_left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::just;
    use crate::strategy::tests::{check, check_all, check_simplest};

    /// A pair in brackets, or a letter.
    fn pairs<'a>() -> Recursive<'a, String> {
        recursive(just("x".to_string()), |inner| {
            (inner.clone(), inner).mapped(|(left, right)| format!("[{left}{right}]"))
        })
    }

    #[test]
    fn the_base_is_simplest() {
        check(pairs(), &[0], "x".into(), "recursive( boolean 0.50 )");
    }

    #[test]
    fn each_value_is_a_span_whatever_its_depth() {
        check(
            pairs(),
            &[1, 0, 1, 0, 0],
            "[x[xx]]".into(),
            "recursive( boolean 0.50 tuple( recursive( boolean 0.50 ) \
             recursive( boolean 0.50 tuple( recursive( boolean 0.50 ) recursive( boolean 0.50 ) ) ) ) )",
        );
    }

    #[test]
    fn depth_and_size_are_limits() {
        check(
            pairs().depth(1),
            &[1, 0, 0],
            "[xx]".into(),
            "recursive( boolean 0.50 tuple( recursive( boolean 0.00 ) recursive( boolean 0.00 ) ) )",
        );
        check(
            pairs().size(1),
            &[1, 0, 0],
            "[xx]".into(),
            "recursive( boolean 0.50 tuple( recursive( boolean 0.50 ) recursive( boolean 0.00 ) ) )",
        );
        check(pairs().size(0), &[0], "x".into(), "recursive( boolean 0.00 )");
    }

    #[test]
    fn simplest_value_and_bounds() {
        check_simplest(pairs(), "x".into());
        check_all(pairs(), |text| {
            let depth = text.bytes().scan(0, |depth, byte| {
                *depth += i32::from(byte == b'[') - i32::from(byte == b']');
                Some(*depth)
            });
            depth.max() <= Some(DEPTH_MAX as i32)
                && text.matches('x').count() <= SIZE_MAX as usize + DEPTH_MAX as usize
        });
    }
}
