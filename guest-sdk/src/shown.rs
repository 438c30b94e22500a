//! What a harness holds, for the story of a finding to show what each step changes.

use std::fmt::Debug;

use crate::{State, abi};

/// A value that is described in the best way that there is: as with [`Tell`](crate::state::Tell), the first trait that fits is taken.
pub struct Show<'v, T: ?Sized>(pub &'v T);

/// Part by part.
pub trait ByParts {
    /// Whether it has parts.
    #[doc(hidden)]
    fn parts(&self, path: &str) -> bool;
}

/// It has no parts that have names.
pub trait NoParts {
    #[doc(hidden)]
    fn parts(&self, _path: &str) -> bool {
        false
    }
}

/// As a text.
pub trait ByDebug {
    #[doc(hidden)]
    fn text(&self, path: &str);
}

/// Nothing is known to be said of it.
pub trait NoDebug {
    #[doc(hidden)]
    fn text(&self, _path: &str) {}
}

impl<T: State + ?Sized> ByParts for &Show<'_, T> {
    fn parts(&self, path: &str) -> bool {
        self.0.describe_parts(path)
    }
}

impl<T: ?Sized> NoParts for Show<'_, T> {}

impl<T: Debug + ?Sized> ByDebug for &Show<'_, T> {
    fn text(&self, path: &str) {
        abi::describe(path, &format!("{:?}", self.0));
    }
}

impl<T: ?Sized> NoDebug for Show<'_, T> {}

/// The path of a part: a part without a name is all of what it is a part of.
#[doc(hidden)]
pub fn path(path: &str, part: &str) -> String {
    match (path, part) {
        (path, "") => path.to_string(),
        ("", part) => part.to_string(),
        _ => format!("{path}.{part}"),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::abi::play;
    use crate::prelude::*;

    #[derive(State)]
    struct Inner {
        on: bool,
        // It has no `Debug`, and no parts.
        quiet: Quiet,
    }

    #[derive(State)]
    enum Quiet {
        One,
    }

    #[derive(Default, State)]
    struct Unnamed(Option<u8>, u8);

    #[derive(State)]
    struct Wrapped(Outer);

    #[derive(State)]
    struct Outer {
        inner: Inner,
        list: Vec<u8>,
        unnamed: Unnamed,
        cell: Cell<u8>,
    }

    #[test]
    fn parts_are_described_by_name_down_to_what_has_none() {
        let inner = Inner { on: true, quiet: Quiet::One };
        let outer = Outer { inner, list: vec![1, 2], unnamed: Unnamed::default(), cell: Cell::new(3) };
        let (is_told, log) = play(&[], || Wrapped(outer).describe_parts(""));
        let expected = [
            "describe inner.on=true",
            "describe list=[1, 2]",
            "describe unnamed.0=None",
            "describe unnamed.1=0",
            "describe cell=Cell { value: 3 }",
        ];
        assert_eq!((is_told, log), (true, expected.map(str::to_string).to_vec()));
    }
}
