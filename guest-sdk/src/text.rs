//! Text over an alphabet.

use crate::collections::each_element;
use crate::strategy::spanned;
use crate::{Alphabet, Size, Strategy};

/// Text of characters from an alphabet: `text("abc", 1..=3)`, `text('a'..='z', ..=9)`.
///
/// The size counts characters. [`any::<String>()`](crate::any) draws text of all characters,
/// [`matching`](crate::matching) text of a form.
pub fn text<A: Alphabet>(alphabet: A, size: impl Into<Size>) -> Text<A> {
    Text { alphabet, size: size.into() }
}

/// What [`text`] returns.
#[derive(Clone, Debug)]
pub struct Text<A> {
    alphabet: A,
    size: Size,
}

impl<A: Alphabet> Strategy for Text<A> {
    type Value = String;

    fn draw(&self) -> String {
        spanned("text", || {
            let mut text = String::new();
            each_element(self.size, || text.push(self.alphabet.letter()));
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::play;
    use crate::strategy::tests::{check, check_all, check_simplest};
    use crate::{draw, one_of, sampled_from};

    #[test]
    fn characters_come_from_the_alphabet() {
        check(text("abc", 2), &[2, 0], "ca".into(), "text( element( index 3 ) element( index 3 ) )");
        check(
            text("aé", 0..=1),
            &[1, 1, 0],
            "é".into(),
            "text( element( boolean 0.33 index 2 ) element( boolean 0.00 ) )",
        );
    }

    #[test]
    fn an_alphabet_may_be_any_strategy_of_characters() {
        check(text('a'..='z', 1), &[25], "z".into(), "text( element( index 26 ) )");
        check(text(sampled_from(['x', 'y']), 1), &[1], "y".into(), "text( element( index 2 ) )");
        let letters = one_of(['a'..='z', '0'..='9']);
        check(text(letters, 1), &[1, 7], "7".into(), "text( element( one_of( index 2 index 10 ) ) )");
    }

    #[test]
    #[should_panic = "deadlock"]
    fn no_letters_are_a_deadlock() {
        play(&[], || draw(text("", 1)));
    }

    #[test]
    fn simplest_values_and_bounds() {
        check_simplest(text("abc", 2..=5), "aa".into());
        check_all(text('α'..='ω', 2..5), |text| (2..5).contains(&text.chars().count()));
    }
}
