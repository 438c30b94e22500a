//! Numbers as they are written into inputs.

use smallvec::SmallVec;

/// Bytes of an operand, most of which are those of a number: what stands in place is read faster.
pub(super) type Operand = SmallVec<[u8; 16]>;

/// The lowest bytes of a number.
pub(super) fn number(value: u64, len: u8, is_big: bool) -> Operand {
    let mut bytes = Operand::from_slice(&value.to_le_bytes()[..usize::from(len)]);
    if is_big {
        bytes.reverse();
    }
    bytes
}

/// A number as text.
pub(super) fn decimal(value: i64) -> Operand {
    let mut digits = digits::<10>(value.unsigned_abs());
    if value < 0 {
        digits.insert(0, b'-');
    }
    digits
}

pub(super) fn hexadecimal(value: u64) -> Operand {
    digits::<16>(value)
}

/// The digits of a number, which is written often: without a `String` and what formats into one.
fn digits<const BASE: u64>(mut value: u64) -> Operand {
    let mut digits = Operand::new();
    loop {
        digits.push(b"0123456789abcdef"[(value % BASE) as usize]);
        value /= BASE;
        if value == 0 {
            break;
        }
    }
    digits.reverse();
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_as_the_standard_library_writes_them() {
        for value in [0, 1, -1, 9, 10, -10, 255, 1_234_567_890_123, i64::MAX, i64::MIN] {
            assert_eq!(decimal(value)[..], *value.to_string().as_bytes());
            assert_eq!(hexadecimal(value as u64)[..], *format!("{value:x}").as_bytes());
        }
    }
}
