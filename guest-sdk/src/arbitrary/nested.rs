//! Derived types that are a part of themselves: how deep their values nest.

use std::any::type_name;
use std::cell::Cell;

use super::LEN_MAX;
use crate::strategy::spanned;
use crate::{Size, abi};

/// How many values of a type may lie in each other. An enum that lies deeper is drawn as its last resort, an `Option` as
/// `None`, and collections are empty.
const DEPTH_MAX: usize = 6;

/// How long collections may be in which values of a type lie, of which so many are being drawn. A value may have several
/// such collections, so that it would not end otherwise.
const LENS_MAX: [usize; DEPTH_MAX + 1] = [LEN_MAX, LEN_MAX, 4, 2, 1, 1, 1];

thread_local! {
    /// The derived types of which values are being drawn, one as a part of another.
    static DRAWN: Cell<Vec<&'static str>> = const { Cell::new(Vec::new()) };
}

/// Nothing is being drawn any more: a call was left in its middle.
pub(crate) fn begin_anew() {
    DRAWN.take();
}

fn with<R>(f: impl FnOnce(&mut Vec<&'static str>) -> R) -> R {
    // Taken, since `f` may not return.
    let mut drawn = DRAWN.take();
    let result = f(&mut drawn);
    DRAWN.set(drawn);
    result
}

/// A value of this type is being drawn.
struct Drawn;

impl Drawn {
    fn new<T>() -> Drawn {
        with(|drawn| drawn.push(type_name::<T>()));
        Drawn
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        with(|drawn| {
            drawn.pop();
            // Nothing may be left of it in memory, which a check compares.
            if drawn.is_empty() {
                *drawn = Vec::new();
            }
        });
    }
}

/// Of how many derived values that are being drawn this type has a part, at most: of those of one type.
fn depth<T>() -> usize {
    let name = type_name::<T>();
    with(|drawn| {
        let count = |part: &str| drawn.iter().filter(|other| **other == part).count();
        drawn.iter().filter(|part| mentions(name, part)).map(|part| count(part)).max().unwrap_or(0)
    })
}

/// Whether the name of a type has that of another in it.
fn mentions(name: &str, part: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    name.match_indices(part)
        .any(|(at, _)| !name[..at].ends_with(is_word) && !name[at + part.len()..].starts_with(is_word))
}

/// Whether a value of this type may be drawn where there need be none.
pub(super) fn may_nest<T>() -> bool {
    depth::<T>() <= DEPTH_MAX
}

/// How long a collection of values of these types may become.
pub(super) fn size<T>() -> Size {
    Size::from(..=LENS_MAX.get(depth::<T>()).copied().unwrap_or(0))
}

/// The value of a derived struct, in a span of the type's name.
#[doc(hidden)]
pub fn structure<T>(name: &'static str, make: impl FnOnce() -> T) -> T {
    spanned(name, || {
        let _drawn = Drawn::new::<T>();
        make()
    })
}

/// The value of a derived enum: of one of the variants `0..n`, with what `make` draws for it, in a span of the type's name.
/// Too deep in itself, it is the variant `end`.
#[doc(hidden)]
pub fn variant<T>(name: &'static str, n: usize, end: usize, make: impl FnOnce(usize) -> T) -> T {
    spanned(name, || {
        let nests = depth::<T>() < DEPTH_MAX;
        let _drawn = Drawn::new::<T>();
        make(if nests { abi::index(n) } else { end + abi::index(1) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{play, play_random, play_simplest};
    use crate::{Arbitrary, any, draw};

    #[derive(Arbitrary, Debug, PartialEq)]
    enum Chain {
        Longer(Box<Chain>),
        End,
    }

    #[derive(Arbitrary, Debug)]
    struct Node {
        next: Option<Box<Node>>,
        children: Vec<Node>,
        by_name: std::collections::BTreeMap<u8, Node>,
    }

    #[derive(Arbitrary, Debug)]
    struct Block(Vec<Statement>);

    #[derive(Arbitrary, Debug)]
    enum Statement {
        Nested(Block),
        Both(Block, Block),
    }

    #[test]
    fn an_enum_in_itself_ends_with_what_is_not_itself() {
        let (chain, log) = play(&[0; 7], || draw(any::<Chain>()));
        let indices: Vec<&String> = log.iter().filter(|call| call.starts_with("index")).collect();
        assert_eq!(indices[5..], ["index 2", "index 1"]);
        let deepest = (0..6).fold(Chain::End, |inner, _| Chain::Longer(Box::new(inner)));
        assert_eq!(chain, deepest);
    }

    /// How deep a node is, and how many there are in it.
    fn measured(node: &Node) -> (usize, usize) {
        let parts = node.next.as_deref().into_iter().chain(&node.children).chain(node.by_name.values());
        parts.map(measured).fold((1, 1), |(depth, count), (inner, more)| (depth.max(inner + 1), count + more))
    }

    #[test]
    fn structs_in_themselves_end() {
        let mut deepest = 0;
        play_random(|| {
            let (depth, count) = measured(&draw(any::<Node>()));
            assert!(depth <= DEPTH_MAX + 1 && count < 100_000, "{depth} {count}");
            deepest = deepest.max(depth);
        });
        assert_eq!(deepest, DEPTH_MAX + 1);
        assert_eq!(measured(&play_simplest(|| draw(any::<Node>()))), (1, 1));
    }

    #[test]
    fn types_in_each_other_end() {
        fn depth(Block(statements): &Block) -> usize {
            let inner = statements.iter().map(|statement| match statement {
                Statement::Nested(block) => depth(block),
                Statement::Both(a, b) => depth(a).max(depth(b)),
            });
            1 + inner.max().unwrap_or(0)
        }
        play_random(|| {
            let depth = depth(&draw(any::<Block>()));
            // Statements are counted, and each lies in a block.
            assert!(depth <= DEPTH_MAX + 2, "{depth}");
        });
    }

    #[test]
    fn nothing_is_left_of_a_value_that_was_drawn() {
        play_random(|| {
            draw(any::<Node>());
            assert_eq!(with(|drawn| drawn.capacity()), 0);
        });
    }

    #[test]
    fn a_name_in_a_longer_one_is_another() {
        assert!(mentions("alloc::boxed::Box<a::Node>", "a::Node"));
        assert!(mentions("a::Node", "a::Node"));
        assert!(!mentions("(a::Nodes, ba::Node, c::a::Node, a::Node::Id)", "a::Node"));
    }
}
