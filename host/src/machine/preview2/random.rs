//! `wasi:random`.

use super::super::component::Value;
use super::super::host::pay;
use super::super::preview1::{drawn_random, fill_random};
use super::values::Args;
use super::{Call, Done, Function, broken};

pub(super) const FUNCTIONS: &[Function] = &[
    ("wasi:random/random", "get-random-bytes", "func(len: u64) -> list<u8>", bytes),
    ("wasi:random/random", "get-random-u64", "func() -> u64", number),
    ("wasi:random/insecure", "get-insecure-random-bytes", "func(len: u64) -> list<u8>", bytes),
    ("wasi:random/insecure", "get-insecure-random-u64", "func() -> u64", number),
    ("wasi:random/insecure-seed", "insecure-seed", "func() -> tuple<u64, u64>", seed),
];

/// Bytes that are asked for at once.
const BYTES_MAX: u64 = 16 << 20;

fn random(call: &mut Call<'_>, len: u64) -> Done<Vec<u8>> {
    if len > BYTES_MAX {
        return broken(format!("it asks for {len} random bytes at once; {BYTES_MAX} are the most"));
    }
    pay(call, len as usize)?;
    let drawn = drawn_random(call, len as u32)?;
    let mut bytes = vec![0; len as usize];
    fill_random(call.data_mut(), drawn, &mut bytes);
    Ok(bytes)
}

fn word(bytes: &[u8]) -> Value {
    Value::Unsigned(bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
}

fn bytes(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let len = args.number()?;
    Ok(Some(Value::Bytes(random(call, len)?)))
}

fn number(call: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    Ok(Some(word(&random(call, 8)?)))
}

fn seed(call: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    let bytes = random(call, 16)?;
    Ok(Some(Value::Record(bytes.chunks(8).map(word).collect())))
}
