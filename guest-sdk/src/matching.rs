//! Text of a form that a regular expression says.

use crate::class::Class;
use crate::collections::each_element;
use crate::pattern;
use crate::strategy::spanned;
use crate::{Size, Strategy, abi};

/// Text that matches a regular expression as a whole: `matching("[a-z]{2,5}(-[0-9]+)?")`.
///
/// There are characters, of which `\` makes literal ones, `.`, classes as `[a-z_]` and `[^,]`, `\d`, `\w` and
/// `\s` (of ASCII) with their opposites, groups, `|`, `?`, `*`, `+` and `{2}`, `{2,}`, `{2,5}`. What may be
/// repeated without end is repeated at most 16 times more than it must be. The simplest text is the shortest,
/// of the first alternatives and the first characters of the classes.
///
/// # Panics
/// If the expression is not one, or has something else in it, such as `^`, `\b` or `(?i)`.
#[track_caller]
pub fn matching(regex: &str) -> Matching {
    match pattern::parse(regex) {
        Ok(node) => Matching { node },
        Err(message) => panic!("`matching` cannot read {regex:?}: {message}"),
    }
}

/// What [`matching`] returns.
#[derive(Clone, Debug)]
pub struct Matching {
    node: Node,
}

impl Strategy for Matching {
    type Value = String;

    fn draw(&self) -> String {
        let mut text = String::new();
        spanned("matching", || self.node.draw(&mut text));
        text
    }
}

/// A part of a regular expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Literal(char),
    Class(Class),
    /// One after the other.
    Sequence(Vec<Node>),
    /// One of them.
    Alternation(Vec<Node>),
    Optional(Box<Node>),
    Repeated(Box<Node>, Size),
}

impl Node {
    fn draw(&self, text: &mut String) {
        match self {
            Node::Literal(character) => text.push(*character),
            Node::Class(class) => text.push(class.draw()),
            Node::Sequence(nodes) => nodes.iter().for_each(|node| node.draw(text)),
            Node::Alternation(nodes) => spanned("one_of", || nodes[abi::index(nodes.len())].draw(text)),
            Node::Optional(node) => spanned("option", || {
                if abi::boolean(0.5) {
                    node.draw(text);
                }
            }),
            Node::Repeated(node, size) => spanned("repeated", || each_element(*size, || node.draw(text))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::tests::{check, check_all, check_simplest};

    #[test]
    fn parts_draw_one_after_the_other() {
        check(matching("a-b"), &[], "a-b".into(), "matching( )");
        check(matching("[a-c]x"), &[1], "bx".into(), "matching( index 3 )");
        check(matching("a|b|"), &[2], "".into(), "matching( one_of( index 3 ) )");
        check(matching("(ab)?c"), &[1], "abc".into(), "matching( option( boolean 0.50 ) )");
        check(
            matching("[xy]{2}"),
            &[1, 0],
            "yx".into(),
            "matching( repeated( element( index 2 ) element( index 2 ) ) )",
        );
    }

    #[test]
    fn a_whole_expression() {
        check(
            matching("[a-z]{1,2}(-[0-9]+)?"),
            &[1, 0, 1, 25, 0, 1, 1, 7, 0],
            "az-7".into(),
            "matching( repeated( element( boolean 1.00 index 26 ) element( boolean 0.33 index 26 ) \
             element( boolean 0.00 ) ) option( boolean 0.50 repeated( element( boolean 1.00 index 10 ) \
             element( boolean 0.83 ) ) ) )",
        );
    }

    #[test]
    #[should_panic = "`matching` cannot read \"^a\": `^` is not supported"]
    fn what_is_not_supported_is_a_panic() {
        matching("^a");
    }

    #[test]
    fn simplest_values_and_bounds() {
        check_simplest(matching("[b-z]{2,5}(-[0-9]+)?x*"), "bb".into());
        check_simplest(matching("(no|yes)\\w"), "noa".into());
        check_all(matching("[^a-y]{1,3}!?|\\d+"), |text| {
            let (rest, digits) = (text.trim_end_matches('!'), text.bytes().all(|byte| byte.is_ascii_digit()));
            digits && !text.is_empty()
                || rest.chars().count() <= 3 && !text.contains(|c| ('a'..='y').contains(&c))
        });
    }
}
