//! Tokens: what the user, or the target itself, says that inputs are made of.

use std::sync::Arc;

use rand::{Rng, RngExt};

use super::dice::Dice;
use super::mutate::gap;

/// Of so many changes of bytes one is a token that the user gave, and one that stands in the target.
const GIVEN: u32 = 8;
const GATHERED: u32 = 16;

/// Texts that are put into byte strings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tokens {
    /// What the user gave.
    pub given: Arc<[Arc<[u8]>]>,
    /// What stands in the target.
    pub gathered: Arc<[Arc<[u8]>]>,
}

impl Tokens {
    /// Now and then one of them. Where there are none, nothing is drawn.
    pub(super) fn draw(&self, rng: &mut impl Rng) -> Option<&[u8]> {
        for (tokens, times) in [(&self.given, GIVEN), (&self.gathered, GATHERED)] {
            if !tokens.is_empty() && rng.below(times) == 0 {
                return Some(&tokens[rng.place(tokens.len())]);
            }
        }
        None
    }
}

/// Inserts a token somewhere, or writes it over what is there.
pub(super) fn put(token: &[u8], bytes: &mut Vec<u8>, rng: &mut impl Rng) {
    let at = rng.place(bytes.len() + 1);
    let end = if rng.random() { at } else { bytes.len().min(at + token.len()) };
    gap(end, token.len() - (end - at), bytes);
    bytes[at..at + token.len()].copy_from_slice(token);
}
