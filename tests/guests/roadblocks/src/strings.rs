//! Texts.

use crate::solved;

/// Up to the first zero.
fn c_text(data: &[u8]) -> &[u8] {
    let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    &data[..end]
}

pub(crate) fn token(data: &[u8]) {
    if data.starts_with(b"spelunking") {
        solved();
    }
}

pub(crate) fn tokens_in_a_row(data: &[u8]) {
    if data.len() < 16
        || data[..4] != *b"0123"
        || data[4..8] != *b"abcd"
        || data[8..14] != *b"AA\0\x01\xff\xfe"
    {
        return;
    }
    if data[14..16] == *b"<>" {
        solved();
    }
}

pub(crate) fn token_64(data: &[u8]) {
    if data.len() >= 64 && data[..64] == *b"Magic numbers that are sixty-four bytes long are no obstacle...!"
    {
        solved();
    }
}

pub(crate) fn c_string(data: &[u8]) {
    if c_text(data) == b"ABC-correct-horse" {
        solved();
    }
}

pub(crate) fn c_strings(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == 0);
    if parts.next() == Some(b"name") && parts.next() == Some(b"some-value") && parts.next() == Some(b"3") {
        solved();
    }
}

pub(crate) fn c_prefix(data: &[u8]) {
    let text = c_text(data);
    if text.len() >= 8 && text[..6] == *b"ABCDEF" && text[6..].starts_with(b"xy") {
        solved();
    }
}

pub(crate) fn part(data: &[u8]) {
    if data.windows(5).any(|window| window == b"FUZZ?") && data.windows(4).any(|window| window == b"ok=1") {
        solved();
    }
}

pub(crate) fn any_case(data: &[u8]) {
    let text = c_text(data);
    if text.eq_ignore_ascii_case(b"Content-Length") {
        solved();
    }
}

pub(crate) fn string_equal(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text == "naïve façade" {
        solved();
    }
}

pub(crate) fn repeated(data: &[u8]) {
    let count = (0..data.len().saturating_sub(3)).filter(|at| data[*at..at + 3] == *b"abX").count();
    if count >= 4 {
        solved();
    }
}

pub(crate) fn tokens_in_any_order(data: &[u8]) {
    let has = |token: &[u8]| data.windows(token.len()).any(|window| window == token);
    let mut met = 0;
    for token in [&b"GET /"[..], b"Host:", b"\r\n\r\n", b"chunked", b"HTTP/1.1"] {
        if has(token) {
            met += 1;
        }
    }
    if met == 5 {
        solved();
    }
}

pub(crate) fn halves_equal(data: &[u8]) {
    if data.len() == 16
        && data[..8] == data[8..]
        && data[0] != data[1]
        && data[2] != data[3]
        && data[4] > data[5]
    {
        solved();
    }
}

pub(crate) fn dictionary(data: &[u8]) {
    const WORDS: [&[u8]; 4] = [b"<!DOCTYPE", b"SYSTEM", b"%entity;", b"]]>"];
    let mut rest = data;
    for word in WORDS {
        let Some(after) = rest.strip_prefix(word) else { return };
        rest = after;
    }
    solved();
}

/// Compares in a loop, as what is compiled without a library does.
pub(crate) fn hand_written(data: &[u8]) {
    const WANTED: &[u8] = b"no-memcmp";
    if data.len() < WANTED.len() {
        return;
    }
    let mut at = 0;
    while at < WANTED.len() {
        if data[at] != WANTED[at] {
            return;
        }
        at += 1;
    }
    solved();
}
