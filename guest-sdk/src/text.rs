//! Text over an alphabet.

use crate::collections::each_element;
use crate::strategy::spanned;
use crate::{Size, Strategy, abi};

/// Text of characters from `alphabet`, of which the first is the simplest: `text("abc", 1..=3)`.
///
/// The size counts characters. [`any::<String>()`](crate::any) draws text of all characters.
pub fn text(alphabet: &str, size: impl Into<Size>) -> Text<'_> {
    Text { alphabet, size: size.into() }
}

/// What [`text`] returns.
#[derive(Clone, Debug)]
pub struct Text<'a> {
    alphabet: &'a str,
    size: Size,
}

impl Strategy for Text<'_> {
    type Value = String;

    fn draw(&self) -> String {
        let alphabet_len = self.alphabet.chars().count();
        spanned("text", || {
            let mut text = String::new();
            each_element(self.size, || {
                let place = abi::index(alphabet_len);
                text.extend(self.alphabet.chars().nth(place));
            });
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::tests::check;

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
}
