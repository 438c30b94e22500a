//! What is compared with an input is put into it.
//!
//! Where a number or some bytes that a step compares stand in what it was given, the other side of the comparison takes their place
//! (input-to-state correspondence: REDQUEEN, Aschermann et al., 2019). What stands nowhere, because it was computed, is changed
//! by the difference of both sides at a place that is guessed.

use std::ops::Range;

use rand::{Rng, RngExt};

use super::drawn::Drawn;
use super::knowledge::{Values, bytes_of, values_of};
use super::mutate::change_number;
use super::parts::{self, Parts};
use super::tokens::put;
use super::written::{Operand, decimal, hexadecimal, number};
use crate::choice::{Choice, Kind, Value, printable};
use crate::compare::{Compare, Place, each_once};
use crate::trace::Action;

/// Different replacements of each sort that are kept.
const KEPT_MAX: usize = 4096;
/// Different comparisons of a step that are looked at.
const COMPARES_MAX: usize = 4096;
/// A length is changed by at most this much.
const LONGER_MAX: u64 = 64;
/// Digits of a float that is written as text.
const DIGITS_MAX: usize = 24;
/// One in so many differences is that of a field which does not begin with its byte.
const FIELDS: u32 = 4;
/// Bytes of what may be inserted anywhere.
const TOKEN_MIN: usize = 2;
/// Bytes of a part that is recognised where it is not known how many are compared.
const PREFIX_MIN: usize = 2;

/// A step, what it was given, and what it compared with that.
#[derive(Debug)]
pub(super) struct Probe {
    pub(super) action: Action,
    pub(super) values: Values,
    pub(super) hints: Hints,
}

impl Probe {
    /// `None` where nothing was compared with what was given.
    pub(super) fn of(action: Action, compares: &[(Place, Compare)], choices: &[Choice]) -> Option<Probe> {
        let hints = Hints::of(compares, choices);
        let values = values_of(choices);
        (!hints.is_empty()).then_some(Probe { action, values, hints })
    }
}

impl Probe {
    /// Bytes that it holds, about.
    pub(super) fn bytes(&self) -> usize {
        let Hints { bytes, differences, unequal, tokens, values } = &self.hints;
        let beside = |operand: &Operand| if operand.spilled() { operand.capacity() } else { 0 };
        let with = |with: &With| if let With::Bytes(bytes) = with { beside(bytes) } else { 0 };
        let held = bytes.iter().map(|(from, to)| beside(from) + with(to)).sum::<usize>()
            + unequal.iter().map(|(a, b)| beside(a) + beside(b)).sum::<usize>()
            + tokens.iter().map(beside).sum::<usize>();
        held + bytes_of(&self.values)
            + size_of_val(&**bytes)
            + size_of_val(&**differences)
            + size_of_val(&**unequal)
            + size_of_val(&**tokens)
            + size_of_val(&**values)
            + size_of::<Probe>()
    }
}

/// What a step compared with what it was given.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// Bytes that stand in one of its byte strings, and what they were compared with.
    bytes: Vec<(Operand, With)>,
    /// Numbers that were compared and stand nowhere in it.
    pub(super) differences: Vec<Difference>,
    /// Bytes that were compared and stand nowhere in it.
    unequal: Vec<(Operand, Operand)>,
    /// What was looked for or compared and is longer than a byte or two.
    tokens: Vec<Operand>,
    /// Values of other choices, by the choice.
    values: Vec<(usize, Value)>,
}

/// A number that is computed from the input, and what it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    pub(super) place: Place,
    /// Bytes that both have.
    pub(super) width: u8,
    pub(super) from: u64,
    pub(super) to: u64,
    /// Whether it is the first of the two operands.
    pub(super) is_first: bool,
}

/// What takes the place of bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum With {
    Bytes(Operand),
    /// A number of so many bytes, the most significant first or last.
    Number(u64, u8, bool),
    /// The digits of a number.
    Digits(i64),
    /// Its hexadecimal digits.
    Hexadecimal(u64),
}

impl Hints {
    /// What these comparisons say of these choices.
    pub(super) fn of<'c>(
        compares: impl IntoIterator<Item = &'c (Place, Compare)>,
        choices: &[Choice],
    ) -> Hints {
        let mut hints = Hints::default();
        let inputs = Parts::of(choices.iter().filter_map(|choice| match &choice.value {
            Value::Bytes(bytes) => Some(&bytes[..]),
            _ => None,
        }));
        let drawn = Drawn::of(choices);
        for (place, compare) in each_once(compares).take(COMPARES_MAX) {
            match compare {
                Compare::Integers(width, a, b) => {
                    hints.values_of(&drawn, *width, (*a, *b));
                    hints.integers(&inputs, *width, (*a, *b), *place);
                }
                Compare::Floats(width, a, b) => {
                    hints.floats_of(&drawn, *width, (*a, *b));
                    hints.floats(&inputs, *width, *a, *b);
                }
                Compare::Bytes(a, b) => {
                    hints.token(a);
                    hints.token(b);
                    hints.replace(&inputs, a, b);
                    hints.replace(&inputs, b, a);
                    let is_there = inputs.have(a) || inputs.have(b);
                    if !is_there && a.len() == b.len() && a != b && hints.unequal.len() < KEPT_MAX {
                        hints.unequal.push((a[..].into(), b[..].into()));
                    }
                }
                Compare::Prefixes(a, b) => {
                    hints.prefix(&inputs, a, b);
                    hints.prefix(&inputs, b, a);
                }
                Compare::Part(part) => hints.token(part),
            }
        }
        hints.tidy();
        hints
    }

    /// Whether they say nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How much there is to try.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + self.differences.len() + self.unequal.len() + self.tokens.len() + self.values.len()
    }

    /// Each once, and not too many of a sort.
    fn tidy(&mut self) {
        fn few<T: Ord>(list: &mut Vec<T>) {
            list.sort();
            list.dedup();
            // Where there are too many, some of all.
            let step = list.len().div_ceil(KEPT_MAX).max(1);
            let mut at = 0;
            list.retain(|_| {
                at += 1;
                (at - 1) % step == 0
            });
        }
        few(&mut self.bytes);
        few(&mut self.differences);
        few(&mut self.unequal);
        few(&mut self.tokens);
        self.values.dedup();
        self.values.truncate(KEPT_MAX);
    }

    fn token(&mut self, bytes: &[u8]) {
        if bytes.len() >= TOKEN_MIN && self.tokens.len() < 2 * KEPT_MAX {
            self.tokens.push(bytes.into());
        }
    }

    /// `from` is compared with `to`, and is replaced where it stands.
    fn replace(&mut self, inputs: &Parts<'_>, from: &[u8], to: &[u8]) {
        if from != to && self.bytes.len() < 16 * KEPT_MAX && inputs.have(from) {
            self.bytes.push((from.into(), With::Bytes(to.into())));
        }
    }

    /// As much of `from` as stands in an input, and as text.
    fn prefix(&mut self, inputs: &Parts<'_>, from: &[u8], to: &[u8]) {
        let text = |bytes: &[u8]| bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let (one, other) = (&from[..text(from)], &to[..text(to)]);
        if !one.is_empty() && !other.is_empty() && other.len() < to.len() {
            self.replace(inputs, one, other);
            self.token(other);
        }
        let known = (PREFIX_MIN..=from.len().min(to.len())).rev().find(|len| inputs.have(&from[..*len]));
        if let Some(len) = known {
            self.replace(inputs, &from[..len], &to[..len]);
        }
    }

    fn integers(&mut self, inputs: &Parts<'_>, width: u8, (a, b): (u64, u64), place: Place) {
        if inputs.is_empty() || a == b {
            return;
        }
        let is_there = [(a, b), (b, a)].map(|(from, to)| {
            let mut is_there = false;
            for len in [1, 2, 4, 8].into_iter().filter(|len| *len <= width) {
                if extends(from, len, width) && extends(to, len, width) {
                    for is_big in [false, true].into_iter().filter(|is_big| len > 1 || !is_big) {
                        // What is compared may be one more or less than what stands there.
                        for beside in if len > 1 { -1..=1 } else { 0..=0 } {
                            let value = from.wrapping_add_signed(beside);
                            if !inputs.may_have(value, len, is_big) {
                                continue;
                            }
                            let pattern = number(value, len, is_big);
                            if inputs.have(&pattern) {
                                is_there |= len > 1;
                                let to = to.wrapping_add_signed(beside);
                                self.bytes.push((pattern, With::Number(to, len, is_big)));
                            }
                        }
                    }
                }
            }
            let digits = hexadecimal(from);
            if digits.len() > 1 && inputs.have(&digits) {
                is_there = true;
                self.bytes.push((digits, With::Hexadecimal(to)));
            }
            let [from, to] = [from, to].map(|number| signed(number, width));
            let digits = decimal(from);
            if inputs.have(&digits) {
                is_there |= digits.len() > 1;
                self.bytes.push((digits, With::Digits(to)));
            }
            is_there
        });
        for (from, to, is_first) in [(a, b, true), (b, a, false)] {
            // Texts are compared by words where they are short.
            if to > 0xff && self.tokens.len() < 2 * KEPT_MAX {
                let len = if to > u64::from(u32::MAX) {
                    8
                } else if to > 0xffff {
                    4
                } else {
                    2
                };
                self.tokens.push(number(to, len, false));
                self.tokens.push(number(to, len, true));
            }
            if is_there == [false; 2] && self.differences.len() < 4 * KEPT_MAX {
                self.differences.push(Difference { place, width, from, to, is_first });
            }
        }
        if self.bytes.len() > 16 * KEPT_MAX {
            self.tidy();
        }
    }

    fn floats(&mut self, inputs: &Parts<'_>, width: u8, a: u64, b: u64) {
        for (from, to) in [(a, b), (b, a)] {
            let (from_value, to_value) = (float(width, from), float(width, to));
            // As it is, or converted to the other width, or from an integer.
            let forms = [
                (width, from, to),
                (4, (from_value as f32).to_bits().into(), (to_value as f32).to_bits().into()),
                (8, from_value.to_bits(), to_value.to_bits()),
                (4, from_value as i32 as u32 as u64, to_value as i32 as u32 as u64),
                (8, from_value as i64 as u64, to_value as i64 as u64),
                (2, from_value as i16 as u16 as u64, to_value as i16 as u16 as u64),
                (1, from_value as u8 as u64, to_value as u8 as u64),
            ];
            for (len, from, to) in forms {
                for is_big in [false, true] {
                    self.replace(inputs, &number(from, len, is_big), &number(to, len, is_big));
                    self.token(&number(to, len, is_big));
                }
            }
            // As text, where that is not long.
            let [from, to] = [from_value, to_value].map(|value| value.to_string().into_bytes());
            if to.len() <= DIGITS_MAX {
                self.replace(inputs, &from, &to);
                self.token(&to);
            }
        }
    }

    /// Integers that were drawn and compared become what they were compared with.
    fn values_of(&mut self, drawn: &Drawn<'_>, width: u8, (a, b): (u64, u64)) {
        let mask = if width == 4 { u64::from(u32::MAX) } else { u64::MAX };
        for (from, to) in [(a, b), (b, a)] {
            let difference = signed(to.wrapping_sub(from) & mask, width);
            for (at, choice, drawn) in drawn.integers(from) {
                if from & mask == drawn & mask && difference != 0 {
                    for other in [to, signed(to, width) as u64, drawn.wrapping_add(difference as u64)] {
                        self.value(at, choice, other);
                    }
                }
            }
        }
    }

    fn floats_of(&mut self, drawn: &Drawn<'_>, width: u8, (a, b): (u64, u64)) {
        for (from, to) in [(a, b), (b, a)] {
            let value = Value::Float(float(width, to));
            for (at, choice) in drawn.floats(float(width, from)) {
                if choice.kind.accepts(&value) && self.values.len() < KEPT_MAX {
                    self.values.push((at, value.clone()));
                }
            }
        }
    }

    fn value(&mut self, at: usize, choice: &Choice, number: u64) {
        for number in [number, number.wrapping_add(1), number.wrapping_sub(1)] {
            let value = match choice.kind {
                Kind::Integer { .. } => Value::Integer(number as i64),
                Kind::Unsigned { .. } => Value::Unsigned(number),
                Kind::Index { .. } => match u32::try_from(number) {
                    Ok(number) => Value::Index(number),
                    Err(_) => continue,
                },
                _ => continue,
            };
            let known = (at, value);
            if choice.kind.accepts(&known.1) && !self.values.contains(&known) && self.values.len() < KEPT_MAX
            {
                self.values.push(known);
            }
        }
    }

    /// Changes these values so often as the comparisons say; whether there was one that fits. `scratch` is a buffer.
    pub(super) fn apply(
        &self,
        values: &mut [Option<Value>],
        times: u32,
        scratch: &mut Vec<u8>,
        rng: &mut impl Rng,
    ) -> bool {
        let mut is_changed = false;
        let mut times_of_bytes = times;
        for _ in (0..times).filter(|_| !self.values.is_empty()) {
            if rng.random() {
                let (at, value) = &self.values[rng.random_range(0..self.values.len())];
                if let Some(place) = values.get_mut(*at) {
                    *place = Some(value.clone());
                    is_changed = true;
                    times_of_bytes -= 1;
                }
            }
        }
        let inputs = (0..values.len()).filter(|at| matches!(values[*at], Some(Value::Bytes(_))));
        let count = inputs.clone().count();
        if count == 0 || times_of_bytes == 0 {
            return is_changed;
        }
        let Some(at) = inputs.clone().nth(rng.random_range(0..count)) else { return is_changed };
        let Some(Value::Bytes(bytes)) = &values[at] else { return is_changed };
        scratch.clear();
        scratch.extend_from_slice(bytes);
        let changed = (0..times_of_bytes).filter(|_| self.change(scratch, rng)).count();
        if changed > 0 {
            values[at] = Some(Value::Bytes(scratch[..].into()));
        }
        is_changed || changed > 0
    }

    fn change(&self, bytes: &mut Vec<u8>, rng: &mut impl Rng) -> bool {
        match rng.random_range(0..8u32) {
            0 | 1 if !self.tokens.is_empty() => {
                let token = &self.tokens[rng.random_range(0..self.tokens.len())];
                put(token, bytes, rng);
                true
            }
            2 if !self.differences.is_empty() => self.shift(bytes, rng),
            3 if !self.unequal.is_empty() => self.shift_all(bytes, rng),
            _ if !self.bytes.is_empty() => {
                let (from, with) = &self.bytes[rng.random_range(0..self.bytes.len())];
                let Some(at) = place_of(bytes, from, rng) else { return false };
                replace(bytes, at..at + from.len(), &with.bytes(rng));
                true
            }
            _ => !self.differences.is_empty() && self.shift(bytes, rng),
        }
    }

    /// Changes bytes somewhere by the differences of those that were compared.
    fn shift_all(&self, bytes: &mut [u8], rng: &mut impl Rng) -> bool {
        let (a, b) = &self.unequal[rng.random_range(0..self.unequal.len())];
        if bytes.len() < a.len() {
            return false;
        }
        let at = rng.random_range(0..=bytes.len() - a.len());
        let (is_added, is_forward): (bool, bool) = (rng.random(), rng.random());
        for ((byte, a), b) in bytes[at..].iter_mut().zip(a).zip(b) {
            let (from, to) = if is_forward { (a, b) } else { (b, a) };
            *byte = if is_added { byte.wrapping_add(to.wrapping_sub(*from)) } else { *byte ^ to ^ from };
        }
        true
    }

    /// Changes a number somewhere, or the length, by the difference of what was compared.
    fn shift(&self, bytes: &mut Vec<u8>, rng: &mut impl Rng) -> bool {
        let Difference { width, from, to, .. } =
            self.differences[rng.random_range(0..self.differences.len())];
        let longer = signed(to.wrapping_sub(from), width);
        if longer.unsigned_abs() <= LONGER_MAX && rng.random() {
            let at = rng.random_range(0..=bytes.len());
            if longer < 0 {
                bytes.drain(at..bytes.len().min(at + longer.unsigned_abs() as usize));
            } else {
                let beside = bytes.get(at).copied().filter(|_| rng.random());
                let byte = beside.unwrap_or_else(|| printable(rng.random()));
                bytes.splice(at..at, std::iter::repeat_n(byte, longer as usize));
            }
            return true;
        }
        let len = 1usize << rng.random_range(0..=width.ilog2());
        if bytes.len() < len {
            return false;
        }
        let at = rng.random_range(0..=bytes.len() - len);
        let is_big = rng.random();
        let bits = if rng.random_range(0..FIELDS) == 0 { rng.random_range(1..8u32) } else { 0 };
        change_number(&mut bytes[at..at + len], is_big, |old| match rng.random_range(0..4u32) {
            0 | 1 => old.wrapping_add(to.wrapping_sub(from) << bits),
            2 => old.wrapping_sub(to.wrapping_sub(from) << bits),
            _ => old ^ (to ^ from) << bits,
        });
        true
    }
}

impl With {
    /// The bytes, of a number now and then one beside it.
    fn bytes(&self, rng: &mut impl Rng) -> Operand {
        let beside = if rng.random_range(0..4u32) == 0 { if rng.random() { 1 } else { -1 } } else { 0 };
        match self {
            With::Bytes(bytes) => bytes.clone(),
            With::Number(value, len, is_big) => number(value.wrapping_add_signed(beside), *len, *is_big),
            With::Digits(value) => decimal(value.wrapping_add(beside)),
            With::Hexadecimal(value) => hexadecimal(value.wrapping_add_signed(beside)),
        }
    }
}

/// Puts others in the place of some bytes.
fn replace(bytes: &mut Vec<u8>, range: Range<usize>, with: &[u8]) {
    match range.len() == with.len() {
        true => bytes[range].copy_from_slice(with),
        false => drop(bytes.splice(range, with.iter().copied())),
    }
}

/// A place where the part stands: the first from a random one on.
fn place_of(bytes: &[u8], part: &[u8], rng: &mut impl Rng) -> Option<usize> {
    let from = rng.random_range(0..=bytes.len().checked_sub(part.len())?);
    let after = || parts::place_of(&bytes[from..], part).map(|at| from + at);
    after().or_else(|| parts::place_of(&bytes[..from + part.len().saturating_sub(1)], part))
}

/// Whether a number of `width` bytes is one of `len`, extended with zeros or its sign.
fn extends(value: u64, len: u8, width: u8) -> bool {
    let bits = u32::from(len) * 8;
    if bits >= u32::from(width) * 8 {
        return true;
    }
    let high = signed(value, width) >> (bits - 1);
    value >> bits == 0 || high == 0 || high == -1
}

/// A number of so many bytes, with its sign.
fn signed(value: u64, width: u8) -> i64 {
    let unused = 64 - u32::from(width) * 8;
    (value << unused) as i64 >> unused
}

fn float(width: u8, bits: u64) -> f64 {
    if width == 4 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }
}
