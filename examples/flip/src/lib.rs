//! Coins, to see in which order an exhaustive check tries them.

#![forbid(unsafe_code)]

use spelunk_guest::prelude::*;

/// Three coins, each of them `f` or `t`.
#[cfg(not(feature = "conditional"))]
#[check]
fn three() {
    let coins: String = (0..3).map(|_| if flip() { 't' } else { 'f' }).collect();
    note!("{coins}");
}

/// Coins of which it depends on others whether they are flipped.
#[cfg(feature = "conditional")]
#[check]
fn conditional() {
    let mut letters = String::new();
    if flip() {
        letters.push('a');
        letters.push(if flip() { 'b' } else { 'c' });
    } else {
        letters.push('d');
    }
    letters.push(if flip() { 'e' } else { 'f' });
    note!("{letters}");
}
