//! Numbers.

use crate::{solved, u16_at, u32_at, u64_at, u128_at};

pub(crate) fn letters(data: &[u8]) {
    if data.len() > 2 && data[0] == b'H' && data[1] == b'i' && data[2] == b'!' {
        solved();
    }
}

pub(crate) fn four_bytes_apart(data: &[u8]) {
    let mut bits = 0;
    if !data.is_empty() && data[0] == b'F' {
        bits |= 1;
    }
    if data.len() > 5 && data[5] == b'U' {
        bits |= 2;
    }
    if data.len() > 9 && data[9] == b'Z' {
        bits |= 4;
    }
    if data.len() > 15 && data[15] == b'?' {
        bits |= 8;
    }
    if bits == 15 {
        solved();
    }
}

pub(crate) fn ranges(data: &[u8]) {
    if data.len() < 22 {
        return;
    }
    let (x, y, z, a) =
        (u64_at(data, 0) as i64, u64_at(data, 8) as i64, u32_at(data, 16) as i32, u16_at(data, 20));
    if x > 1_234_567_890
        && x < 1_234_567_895
        && y < -3_000_000_000
        && y > -3_000_000_006
        && z == 987_654_321
        && a == 12345
    {
        solved();
    }
}

pub(crate) fn magic_16(data: &[u8]) {
    if data.len() == 6 && u16_at(data, 0) == 0xcafe && u16_at(data, 2) == 0xd00d && u16_at(data, 4) == 0x0bad
    {
        solved();
    }
}

pub(crate) fn magic_32(data: &[u8]) {
    if data.len() >= 8 && u32_at(data, 0) == 0xdead_beef && u32_at(data, 4) == 0x1234_5678 {
        solved();
    }
}

pub(crate) fn magic_64(data: &[u8]) {
    if data.len() >= 16
        && u64_at(data, 0) == 0x0123_4567_89ab_cdef
        && u64_at(data, 8) == 0xfeed_face_dead_c0de
    {
        solved();
    }
}

pub(crate) fn magic_128(data: &[u8]) {
    if data.len() >= 16 && u128_at(data, 0) == 0x0f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0 {
        solved();
    }
}

pub(crate) fn swapped_bytes(data: &[u8]) {
    if data.len() < 14 {
        return;
    }
    let (x, y, z) =
        (u64_at(data, 0).swap_bytes(), u32_at(data, 8).swap_bytes(), u16_at(data, 12).swap_bytes());
    if x == 0x46_5a00_2233_1155 && y == 0x66ff_ee55 && z == 0x7788 {
        solved();
    }
}

pub(crate) fn cases_32(data: &[u8]) {
    if data.len() < 12 {
        return;
    }
    let mut met = 0;
    for at in [0, 4, 8] {
        match u32_at(data, at) {
            0x65c3_8123 if at == 0 => met += 1,
            0x0a09_3845 if at == 4 => met += 1,
            0x7fff_ff31 if at == 8 => met += 1,
            1..=3 => met += 5,
            _ => {}
        }
    }
    if met == 3 {
        solved();
    }
}

pub(crate) fn cases_64(data: &[u8]) {
    if data.len() < 24 {
        return;
    }
    match u64_at(data, 0) {
        101_111_213_141_516 => match u64_at(data, 8) {
            192_021_222_324_252 => match u64_at(data, 16) {
                282_930_313_233_343 => solved(),
                5 => {}
                _ => {}
            },
            6 => {}
            _ => {}
        },
        7 => {}
        _ => {}
    }
}

pub(crate) fn cases_less_one(data: &[u8]) {
    let mut met = 0;
    for (index, word) in data.chunks_exact(4).take(3).enumerate() {
        let constant = [0x0102_0304u32, 0xf0e0_d0c0, 0x5566_7788][index];
        if u32_at(word, 0).wrapping_add(1) == constant {
            met += 1;
        }
    }
    if met == 3 {
        solved();
    }
}

pub(crate) fn least_and_constant_32(data: &[u8]) {
    if data.len() < 8 {
        return;
    }
    let (x, y) = (u32_at(data, 0) as i32, u32_at(data, 4));
    if x.wrapping_abs() < 0 && y == 0xbadd_cafe {
        solved();
    }
}

pub(crate) fn least_and_constant_64(data: &[u8]) {
    if data.len() < 16 {
        return;
    }
    let (x, y) = (u64_at(data, 0) as i64, u64_at(data, 8));
    if x.wrapping_abs() < 0 && y == 0xbadd_cafe_deaf_bed5 {
        solved();
    }
}

pub(crate) fn division(data: &[u8]) {
    if data.len() < 4 {
        return;
    }
    let number = u32_at(data, 0);
    if 1_234_567_890u32.checked_div(12_345_678u32.wrapping_sub(number)).is_none() {
        solved();
    }
}

pub(crate) fn load(data: &[u8]) {
    const LEN: u64 = 1_000_000;
    if data.len() < 8 {
        return;
    }
    let index = u64_at(data, 0) % 4_294_967_296;
    if index == LEN * 4000 {
        solved();
    }
}

pub(crate) fn constraints(data: &[u8]) {
    if data.len() < 2 || data.len() > 4 {
        return;
    }
    let (a, b) = (data[0], data[1]);
    if a > 2 && a < 5 && b > 0x28 && b < 0x2b && a.wrapping_mul(b) == 0x29 * 3 {
        solved();
    }
}

pub(crate) fn chain_32(data: &[u8]) {
    if data.len() < 24 {
        return;
    }
    let wanted = [0x1111_2222u32, 0x8000_0001, 77_777_777, 0xffff_fffe, 1_000_003, 0xabcd_ef01];
    let mut met = 0;
    for (index, wanted) in wanted.into_iter().enumerate() {
        if u32_at(data, index * 4) != wanted {
            break;
        }
        met += 1;
    }
    if met == wanted.len() {
        solved();
    }
}

pub(crate) fn chain_64(data: &[u8]) {
    if data.len() < 24 {
        return;
    }
    if u64_at(data, 0) > 0xffff_ffff_ffff_ff00 && u64_at(data, 8) == 0x1_0000_0001 && u64_at(data, 16) < 3 {
        solved();
    }
}

pub(crate) fn signed_chain(data: &[u8]) {
    if data.len() < 16 {
        return;
    }
    let number = |at| u32_at(data, at) as i32;
    if number(0) == -1_000_000
        && number(4) < -2_147_483_640
        && number(8) > 2_147_483_640
        && number(12) == number(0) * 2
    {
        solved();
    }
}

pub(crate) fn single_byte(data: &[u8]) {
    if data.len() == 1 && data[0] == 0x2a {
        solved();
    }
}

pub(crate) fn float_32(data: &[u8]) {
    if data.len() < 8 {
        return;
    }
    let (x, y) = (f32::from_bits(u32_at(data, 0)), f32::from_bits(u32_at(data, 4)));
    if x > 123.25 && x < 123.26 && y == -9.9 {
        solved();
    }
}

pub(crate) fn float_64(data: &[u8]) {
    if data.len() < 16 {
        return;
    }
    let (x, y) = (f64::from_bits(u64_at(data, 0)), f64::from_bits(u64_at(data, 8)));
    if x == 6.022e23 && y > 3.818_28 && y < 3.818_29 {
        solved();
    }
}

pub(crate) fn float_of_integer(data: &[u8]) {
    if data.len() < 4 {
        return;
    }
    let celsius = f64::from(u32_at(data, 0) as i32) / 1.0;
    if celsius > 36_600_000.0 && celsius < 36_600_010.0 {
        solved();
    }
}
