//! Pools: values that rules make and later rules use.

use std::fmt::Debug;
use std::slice;

use crate::strategy::spanned;
use crate::{Samples, abi};

/// Values that some rules make and others use, as a field of the harness.
///
/// `#[rule(into = accounts)]` puts what the rule returns into the pool of that name, `#[from(accounts)]` draws
/// a clone of one of its values for an argument, and `#[take(accounts)]` takes one out. A rule that needs
/// values is chosen only where there are enough. The oldest value is the simplest.
///
/// ```
/// use spelunk_guest::prelude::*;
///
/// #[derive(Default)]
/// struct Files {
///     open: Pool<u32>,
///     next: u32,
/// }
///
/// #[harness]
/// impl Files {
///     #[rule(into = open)]
///     fn open(&mut self) -> u32 {
///         self.next += 1;
///         self.next
///     }
///
///     #[rule]
///     fn write(&mut self, #[from(open)] file: u32, text: String) {}
///
///     #[rule]
///     fn close(&mut self, #[take(open)] file: u32) {}
/// }
/// # fn main() {}
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool<T> {
    /// The oldest first.
    values: Vec<T>,
}

impl<T> Pool<T> {
    /// An empty pool.
    pub const fn new() -> Pool<T> {
        Pool { values: Vec::new() }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values, the oldest first.
    pub fn iter(&self) -> slice::Iter<'_, T> {
        self.values.iter()
    }

    /// Puts a value in.
    pub fn push(&mut self, value: T) {
        self.values.push(value);
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool::new()
    }
}

impl<'a, T> IntoIterator for &'a Pool<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> slice::Iter<'a, T> {
        self.iter()
    }
}

/// `sampled_from(&self.accounts)` draws a clone of one of the values, as `#[from(accounts)]` does.
impl<T: Clone> Samples for &Pool<T> {
    type Item = T;

    fn len(&self) -> usize {
        self.values.len()
    }

    fn get(&self, index: usize) -> T {
        self.values[index].clone()
    }
}

/// What a rule may return that puts values into a `Pool<T>`: a value; an `Option`, of which `None` puts in
/// nothing; a `Vec` of values; or a `Result`, whose error is a failure.
#[diagnostic::on_unimplemented(
    message = "what goes into a `Pool<{T}>` is a `{T}`, or an `Option`, `Vec` or `Result` of it, not `{Self}`"
)]
pub trait Produced<T> {
    /// The values.
    #[doc(hidden)]
    fn values(self) -> Vec<T>;
}

impl<T> Produced<T> for T {
    fn values(self) -> Vec<T> {
        vec![self]
    }
}

impl<T> Produced<T> for Option<T> {
    fn values(self) -> Vec<T> {
        Vec::from_iter(self)
    }
}

impl<T> Produced<T> for Vec<T> {
    fn values(self) -> Vec<T> {
        self
    }
}

impl<T, E: Debug> Produced<T> for Result<T, E> {
    fn values(self) -> Vec<T> {
        match self {
            Ok(value) => vec![value],
            Err(error) => abi::fail(&format!("{error:?}")),
        }
    }
}

/// Puts what a rule returned into a pool, and reports it with a finding.
#[doc(hidden)]
pub fn produce<T: Debug>(name: &'static str, pool: &mut Pool<T>, produced: impl Produced<T>) {
    let values = produced.values();
    if abi::verbose() {
        for value in &values {
            abi::note(&format!("into {name}: {value:?}"));
        }
    }
    pool.values.extend(values);
}

/// Draws an argument by taking it out of a pool, in a span of its name.
#[doc(hidden)]
pub fn taken<T>(name: &'static str, pool: &mut Pool<T>) -> T {
    spanned(name, || {
        let place = abi::index(pool.values.len());
        pool.values.remove(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::play;
    use crate::sampled_from;
    use crate::strategy::tests::check;

    fn pool(values: &[u8]) -> Pool<u8> {
        Pool { values: values.to_vec() }
    }

    #[test]
    fn the_oldest_is_the_simplest() {
        check(sampled_from(&pool(&[7, 3])), &[0], 7, "index 2");
        let mut pool = pool(&[7, 3, 5]);
        let (value, log) = play(&[1], || taken("id", &mut pool));
        assert_eq!((value, log.join(" ")), (3, "id( index 3 )".into()));
        assert!(pool.iter().eq(&[7, 5]));
    }

    #[test]
    fn rules_may_produce_one_value_some_or_none() {
        let mut pool = pool(&[]);
        let ((), log) = play(&[1, 0, 0, 0, 0], || {
            produce("ids", &mut pool, 1);
            produce("ids", &mut pool, Some(2));
            produce("ids", &mut pool, None);
            produce("ids", &mut pool, vec![3, 4]);
            produce("ids", &mut pool, Ok::<u8, ()>(5));
        });
        assert!(pool.iter().eq(&[1, 2, 3, 4, 5]));
        assert_eq!(log[..3], ["verbose", "note into ids: 1", "verbose"]);
    }

    #[test]
    #[should_panic = "fail \"full\""]
    fn an_error_is_a_failure() {
        play(&[], || produce("ids", &mut pool(&[]), Err("full")));
    }
}
