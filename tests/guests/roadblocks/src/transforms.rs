//! What is computed from the input before it is compared.

use crate::{solved, u16_at, u32_at, u64_at};

pub(crate) fn crc(data: &[u8]) {
    let Some((rest, tail)) = data.split_last_chunk::<4>().filter(|(rest, _)| rest.len() >= 4) else { return };
    let mut crc = u32::MAX;
    for byte in rest {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    if !crc == u32::from_le_bytes(*tail) && rest[0] == b'P' && rest[1] == b'N' {
        solved();
    }
}

pub(crate) fn sum(data: &[u8]) {
    if data.len() < 8 {
        return;
    }
    let sum: u32 = data.chunks_exact(4).map(|word| u32_at(word, 0)).fold(0, u32::wrapping_add);
    if sum == 0x3141_5926 {
        solved();
    }
}

pub(crate) fn xor(data: &[u8]) {
    if data.len() < 8 {
        return;
    }
    if u64_at(data, 0) ^ 0x5a5a_5a5a_5a5a_5a5a == 0x0011_2233_4455_6677 {
        solved();
    }
}

pub(crate) fn hash_of_rest(data: &[u8]) {
    let Some((head, rest)) = data.split_first_chunk::<4>().filter(|(_, rest)| rest.len() >= 8) else {
        return;
    };
    let hash = rest.iter().fold(5381u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
    if hash == u32::from_le_bytes(*head) && rest.starts_with(b"FUZZ") {
        solved();
    }
}

pub(crate) fn decimal(data: &[u8]) {
    let Some(text) = std::str::from_utf8(data).ok() else { return };
    let Ok(number) = text.trim_end_matches('\0').parse::<i64>() else { return };
    if number == 73_501_942 {
        solved();
    }
}

pub(crate) fn hexadecimal(data: &[u8]) {
    let Some(text) = std::str::from_utf8(data).ok().and_then(|text| text.strip_prefix("0x")) else { return };
    let Ok(number) = u32::from_str_radix(text, 16) else { return };
    if number == 0x00fa_ce77 {
        solved();
    }
}

pub(crate) fn shifted_letters(data: &[u8]) {
    if data.len() < 8 {
        return;
    }
    let shifted: Vec<u8> = data[..8].iter().map(|byte| byte.wrapping_add(13)).collect();
    if shifted == *b"fcryhaxr" {
        solved();
    }
}

pub(crate) fn product(data: &[u8]) {
    if data.len() < 6 {
        return;
    }
    if u32_at(data, 0).wrapping_mul(3).wrapping_add(7) == 0x1000_0000 && u16_at(data, 4) == 0x4d5a {
        solved();
    }
}
