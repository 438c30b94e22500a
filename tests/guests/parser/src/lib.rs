//! A parser of `key=number` pairs, given valid text of which one element is missing or mangled.

#![forbid(unsafe_code)]

use spelunk_guest::prelude::*;

/// What is wrong with a text.
#[derive(Debug, PartialEq)]
enum Error {
    Key,
    Equals,
    Number,
    Separator,
}

/// The pairs of `a=1;b=2`.
fn parse(text: &[u8]) -> Result<Vec<(u8, u8)>, Error> {
    let mut pairs = Vec::new();
    let mut rest = text.iter().copied().peekable();
    loop {
        let key = rest.next().filter(u8::is_ascii_lowercase).ok_or(Error::Key)?;
        rest.next().filter(|byte| *byte == b'=').ok_or(Error::Equals)?;
        let number = rest.next().filter(u8::is_ascii_digit).ok_or(Error::Number)?;
        pairs.push((key, number - b'0'));
        match rest.next() {
            None => return Ok(pairs),
            Some(b';') => {}
            Some(_) => return Err(Error::Separator),
        }
    }
}

#[check]
fn damaged() {
    let mut text = b"a=1;b=2".to_vec();
    assert_eq!(parse(&text), Ok(vec![(b'a', 1), (b'b', 2)]));
    let place = choose(text.len());
    if flip() {
        text[place] = b'?';
    } else {
        text.remove(place);
    }
    let parsed = parse(&text);
    sometimes!(parsed == Err(Error::Key), "no key");
    sometimes!(parsed == Err(Error::Equals), "no equals sign");
    sometimes!(parsed == Err(Error::Number), "no number");
    sometimes!(parsed == Err(Error::Separator), "no separator");
    note!("{}: {parsed:?}", String::from_utf8_lossy(&text));
    assert!(parsed.is_err(), "{} is read as {parsed:?}", String::from_utf8_lossy(&text));
}
