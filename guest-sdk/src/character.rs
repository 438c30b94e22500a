//! Characters: any, from ranges, and from the letters of a string.

use std::ops::{Range, RangeFrom, RangeInclusive, RangeTo, RangeToInclusive};

use crate::strategy::{draw_from_nothing, spanned};
use crate::{Arbitrary, Strategy, abi};

/// No characters have these codes.
const SURROGATES: Range<u32> = 0xd800..0xe000;

/// What one can read and type.
pub(crate) const PRINTABLE: RangeInclusive<char> = ' '..='~';

/// How often a character is drawn of those that are not [`PRINTABLE`], where there are both.
pub(crate) const RARE: f64 = 0.2;

/// The simplest is the first.
impl Strategy for RangeInclusive<char> {
    type Value = char;

    fn draw(&self) -> char {
        nth(self, abi::index(count(self)))
    }
}

/// The simplest is the first.
impl Strategy for Range<char> {
    type Value = char;

    fn draw(&self) -> char {
        if self.is_empty() {
            draw_from_nothing();
        }
        let all = self.start..=self.end;
        nth(&all, abi::index(count(&all) - 1))
    }
}

/// The simplest is the first.
impl Strategy for RangeFrom<char> {
    type Value = char;

    fn draw(&self) -> char {
        (self.start..=char::MAX).draw()
    }
}

/// The simplest is the first.
impl Strategy for RangeToInclusive<char> {
    type Value = char;

    fn draw(&self) -> char {
        (char::MIN..=self.end).draw()
    }
}

/// The simplest is the first.
impl Strategy for RangeTo<char> {
    type Value = char;

    fn draw(&self) -> char {
        (char::MIN..self.end).draw()
    }
}

/// How many characters these are.
fn count(range: &RangeInclusive<char>) -> usize {
    match range.is_empty() {
        true => 0,
        false => (position(*range.end()) - position(*range.start())) as usize + 1,
    }
}

/// One of these, of which there are more than `place`.
fn nth(range: &RangeInclusive<char>, place: usize) -> char {
    at(position(*range.start()) + place as u32)
}

/// How many characters come before this one.
pub(crate) fn position(character: char) -> u32 {
    let code = character as u32;
    if code < SURROGATES.start { code } else { code - SURROGATES.len() as u32 }
}

/// The character before which there are so many.
pub(crate) fn at(position: u32) -> char {
    let code = if position < SURROGATES.start { position } else { position + SURROGATES.len() as u32 };
    char::from_u32(code).expect("surrogates are left out")
}

/// Mostly printable ASCII; the simplest is `0`.
impl Arbitrary for char {
    fn arbitrary() -> char {
        spanned("char", || match abi::boolean(RARE) {
            true => ('\0'..=char::MAX).draw(),
            false => {
                abi::integer(*PRINTABLE.start() as i64, *PRINTABLE.end() as i64, '0' as i64) as u8 as char
            }
        })
    }
}

/// Of which characters a [`text`](crate::text) is made: those of a string, of which the first is the
/// simplest, or what a strategy of characters draws, such as a range.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an alphabet",
    note = "an alphabet is a string that holds the letters, or a strategy of characters, as `'a'..='z'`"
)]
pub trait Alphabet {
    /// Draws one.
    #[doc(hidden)]
    fn letter(&self) -> char;
}

impl Alphabet for &str {
    fn letter(&self) -> char {
        let place = abi::index(self.chars().count());
        self.chars().nth(place).expect("the index is less than the length")
    }
}

impl<S: Strategy<Value = char>> Alphabet for S {
    fn letter(&self) -> char {
        self.draw()
    }
}

#[cfg(test)]
mod tests {
    use crate::abi::play;
    use crate::strategy::tests::{check, check_all, check_simplest};
    use crate::{any, draw};

    #[test]
    fn ranges() {
        check('a'..='z', &[0], 'a', "index 26");
        check('a'..'c', &[1], 'b', "index 2");
        check('\u{d7ff}'..='\u{e000}', &[1], '\u{e000}', "index 2");
        check('\u{d7ff}'..'\u{e000}', &[0], '\u{d7ff}', "index 1");
        check('\u{e000}'..='\u{e001}', &[1], '\u{e001}', "index 2");
        check('\u{10fff0}'.., &[15], char::MAX, "index 16");
        check(..'\u{5}', &[4], '\u{4}', "index 5");
        check(..='\u{5}', &[5], '\u{5}', "index 6");
    }

    #[test]
    fn any_jumps_over_the_surrogates() {
        check(any::<char>(), &[0, 'x' as u64], 'x', "char( boolean 0.20 integer 32..=126 48 )");
        check(any::<char>(), &[1, 0xd7ff], '\u{d7ff}', "char( boolean 0.20 index 1112064 )");
        check(any::<char>(), &[1, 0xd800], '\u{e000}', "char( boolean 0.20 index 1112064 )");
        check(any::<char>(), &[1, 1112063], char::MAX, "char( boolean 0.20 index 1112064 )");
    }

    #[test]
    #[should_panic = "deadlock"]
    fn an_empty_range_is_a_deadlock() {
        play(&[], || draw('a'..'a'));
    }

    #[test]
    #[should_panic = "deadlock"]
    #[allow(clippy::reversed_empty_ranges)]
    fn an_inverted_range_is_a_deadlock() {
        play(&[], || draw('b'..='a'));
    }

    #[test]
    fn simplest_values_and_bounds() {
        check_simplest('x'..='z', 'x');
        check_simplest(any::<char>(), '0');
        check_all('a'..'d', |c| ('a'..'d').contains(c));
        check_all('\u{d7fe}'..='\u{e001}', |c| ('\u{d7fe}'..='\u{e001}').contains(c));
    }
}
