//! Two bugs whose errors `main` returns.

use std::io::Read;

#[derive(Debug)]
#[allow(dead_code, reason = "they are printed")]
enum Error {
    Short { len: usize },
    First { byte: u8 },
}

fn read(bytes: &[u8]) -> Result<(), Error> {
    match bytes {
        [] | [_] => Err(Error::Short { len: bytes.len() }),
        [byte, ..] if *byte > 200 => Err(Error::First { byte: *byte }),
        _ => Ok(()),
    }
}

fn main() -> Result<(), Error> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).expect("it can be read");
    read(&bytes)
}
