//! Marks that a guest sets, a byte each, 1 where something happened. Most are 0, so they are looked at many at once.

/// Marks that are looked at together: first so many, then by the line where any of them is set.
const LINES: usize = 4 * LINE;
const LINE: usize = 64;

/// Clears marks, each of which is 0 or 1, and adds the places of those that were 1 to `marked`, in order.
pub(super) fn take(marks: &mut [u8], marked: &mut Vec<u32>) {
    let (lines, rest) = marks.as_chunks_mut::<LINES>();
    for (i, lines) in lines.iter_mut().enumerate() {
        if is_any(lines) {
            take_lines(lines, (i * LINES) as u32, marked);
        }
    }
    take_lines(rest, (lines.len() * LINES) as u32, marked);
}

/// Whether any of these marks is set; written for the vectoriser.
fn is_any<const N: usize>(marks: &[u8; N]) -> bool {
    let (parts, _) = marks.as_chunks::<16>();
    parts.iter().fold(0, |any, part| any | u128::from_ne_bytes(*part)) != 0
}

/// Takes some marks, the first of which is that of the place `first`.
fn take_lines(marks: &mut [u8], first: u32, marked: &mut Vec<u32>) {
    let (lines, rest) = marks.as_chunks_mut::<LINE>();
    for (i, line) in (0..).zip(lines.iter_mut()) {
        if is_any(line) {
            take_words(line.as_chunks_mut().0, first + i * LINE as u32, marked);
        }
    }
    let first = first + (lines.len() * LINE) as u32;
    let (words, rest) = rest.as_chunks_mut();
    take_words(words, first, marked);
    for (i, mark) in (first + words.len() as u32 * 8..).zip(rest) {
        if std::mem::take(mark) != 0 {
            marked.push(i);
        }
    }
}

fn take_words(words: &mut [[u8; 8]], first: u32, marked: &mut Vec<u32>) {
    for (i, word) in (0..).zip(words) {
        take_word(word, first + i * 8, marked);
    }
}

fn take_word(marks: &mut [u8; 8], first: u32, marked: &mut Vec<u32>) {
    let mut word = u64::from_le_bytes(std::mem::take(marks));
    while word != 0 {
        marked.push(first + word.trailing_zeros() / 8);
        word &= word - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn all_that_are_set_are_taken_in_order() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        for _ in 0..300 {
            let mut marks: Vec<u8> =
                (0..rng.random_range(0..1000)).map(|_| u8::from(rng.random_bool(0.02))).collect();
            let expected: Vec<u32> =
                (0u32..).zip(&marks).filter(|(_, mark)| **mark == 1).map(|(at, _)| at).collect();
            let mut marked = Vec::new();
            take(&mut marks, &mut marked);
            assert_eq!(marked, expected);
            assert!(marks.iter().all(|mark| *mark == 0));
        }
    }
}
