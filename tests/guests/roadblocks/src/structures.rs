//! What is repeated, nested, or walked through.

use crate::{solved, u16_at, u32_at, u64_at};

pub(crate) fn counter(data: &[u8]) {
    let mut count = 0;
    for byte in data {
        if *byte == b'A' + count {
            count += 1;
        }
    }
    if count > 11 {
        solved();
    }
}

pub(crate) fn all_of_six(data: &[u8]) {
    let mut bits = 0;
    for (bit, byte) in b"FUZZER".iter().enumerate() {
        if data.get(bit) == Some(byte) {
            bits |= 1 << bit;
        }
    }
    if bits == 63 {
        solved();
    }
}

fn descend(data: &[u8], depth: u32) -> u32 {
    match data.first() {
        Some(b'(') => descend(&data[1..], depth + 1),
        _ => depth,
    }
}

pub(crate) fn recursion(data: &[u8]) {
    if descend(data, 0) >= 24 {
        solved();
    }
}

#[inline(never)]
fn first(data: &[u8]) -> bool {
    u32_at(data, 0) == 0x4242_4241 && second(&data[4..])
}

#[inline(never)]
fn second(data: &[u8]) -> bool {
    u16_at(data, 0) == 0x1337 && third(&data[2..])
}

#[inline(never)]
fn third(data: &[u8]) -> bool {
    u64_at(data, 0) == 0x5566_7788_99aa_bbcc
}

pub(crate) fn nested_calls(data: &[u8]) {
    if data.len() >= 14 && first(data) {
        solved();
    }
}

pub(crate) fn maze(data: &[u8]) {
    const MAZE: [&[u8; 11]; 7] = [
        b"+-+---+---+",
        b"| |     |#|",
        b"| | --+ | |",
        b"| |   | | |",
        b"| +-- | | |",
        b"|     |   |",
        b"+-----+---+",
    ];
    let (mut x, mut y) = (1, 1);
    for step in data.iter().take(40) {
        let (next_x, next_y) = match step {
            b'w' => (x, y - 1),
            b's' => (x, y + 1),
            b'a' => (x - 1, y),
            b'd' => (x + 1, y),
            _ => return,
        };
        match MAZE[next_y][next_x] {
            b'#' => return solved(),
            b' ' => (x, y) = (next_x, next_y),
            _ => return,
        }
    }
}

pub(crate) fn length_and_tag(data: &[u8]) {
    // Records of a tag, a length and so many bytes; the third has to be of the kind that is looked for.
    let (mut at, mut number) = (0, 0);
    while at + 3 <= data.len() {
        let (tag, len) = (data[at], usize::from(u16_at(data, at + 1)));
        let Some(value) = data.get(at + 3..at + 3 + len) else { return };
        match (number, tag) {
            (0, 0x10) if len > 2 => {}
            (1, 0x22) if value.starts_with(b"key") => {}
            (2, 0x7f) if len == 4 && u32_at(value, 0) == 0x00c0_ffee => return solved(),
            _ => return,
        }
        (at, number) = (at + 3 + len, number + 1);
    }
}
