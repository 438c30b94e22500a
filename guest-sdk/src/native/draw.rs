//! Answers that are drawn.

use super::host::{Question, Value};

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// One of `0..n`. Some are more likely by 2⁻⁶⁴ × `n` at most.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// In `0.0..1.0`.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of `0..=most`.
    fn distance(&mut self, most: u64) -> u64 {
        match most.checked_add(1) {
            Some(n) => self.below(n),
            None => self.next(),
        }
    }

    /// Each possible answer is as likely as any other, but for these: one number in four is an end of its range or the
    /// simplest, and one float in eight is NaN or infinite where that is possible. Bytes have any possible length up to 64 more
    /// than the least.
    pub(super) fn answer(&mut self, question: &Question) -> Value {
        let special = self.below(12);
        match *question {
            Question::Boolean { probability } => Value::Boolean(self.fraction() < probability),
            Question::Index { n } => Value::Index(self.below(n as u64) as u32),
            Question::Integer { min, max, simplest } => Value::Integer(match special {
                0 => min,
                1 => max,
                2 => simplest,
                _ => min.wrapping_add(self.distance(max.wrapping_sub(min) as u64) as i64),
            }),
            Question::Unsigned { min, max, simplest } => Value::Unsigned(match special {
                0 => min,
                1 => max,
                2 => simplest,
                _ => min + self.distance(max - min),
            }),
            Question::Float { min, max, nan, infinite } => Value::Float(self.float(min, max, nan, infinite)),
            Question::Bytes { min, max } => {
                let most = (max - min).min(64) as u64;
                let len = min + self.distance(most) as usize;
                Value::Bytes((0..len).map(|_| self.next() as u8).collect())
            }
        }
    }

    fn float(&mut self, min: f64, max: f64, nan: bool, infinite: bool) -> f64 {
        let (least, greatest) = (min.clamp(f64::MIN, f64::MAX), max.clamp(f64::MIN, f64::MAX));
        match self.below(24) {
            0 if nan => f64::NAN,
            1 if infinite => max,
            2 if infinite => min,
            3 => least,
            4 => greatest,
            5 => 0f64.clamp(least, greatest),
            // Small ones, of which a wide range has next to none.
            6..12 => ((self.below(2001) as f64 - 1000.0) / 8.0).clamp(least, greatest),
            // In two halves, since their difference may be infinite.
            _ => {
                let at = self.fraction();
                (least * (1.0 - at) + greatest * at).clamp(least, greatest)
            }
        }
    }
}
