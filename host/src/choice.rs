//! Choices: every question a guest asks the host, and the one place that answers them.
//!
//! A run is a function of (module, answers). The [`Chooser`] supplies the answers of one step: values that
//! were recorded before, where there are some and they fit, and values drawn from the step's own seed
//! otherwise. Random exploration, replay, mutation and shrinking differ only in what is recorded. An exhaustive
//! check counts the alternatives of each choice instead, and answers by their numbers: a script.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use crate::draw;
use serde::{Deserialize, Serialize};

/// What was asked: the kind of a choice and its constraint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// True with this probability in generation. Below or at 0 always false, at or above 1 always true.
    Boolean {
        /// In `0.0..=1.0` to matter.
        probability: f64,
    },
    /// One of `0..n`.
    Index {
        /// How many alternatives there are; never 0.
        n: u32,
    },
    /// A signed integer in `min..=max`.
    Integer {
        /// The least value.
        min: i64,
        /// The greatest value.
        max: i64,
        /// The value that shrinking goes towards; within the range.
        simplest: i64,
    },
    /// An unsigned integer in `min..=max`.
    Unsigned {
        /// The least value.
        min: u64,
        /// The greatest value.
        max: u64,
        /// The value that shrinking goes towards; within the range.
        simplest: u64,
    },
    /// A float in `min..=max`.
    Float {
        /// The least value; not NaN.
        min: f64,
        /// The greatest value; not NaN.
        max: f64,
        /// NaN is a possible answer.
        nan: bool,
        /// Infinities within the range are possible answers.
        infinite: bool,
    },
    /// A byte string of `min..=max` bytes.
    Bytes {
        /// The least length.
        min: u32,
        /// The greatest length.
        max: u32,
    },
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    /// To [`Kind::Boolean`].
    Boolean(bool),
    /// To [`Kind::Index`].
    Index(u32),
    /// To [`Kind::Integer`].
    Integer(i64),
    /// To [`Kind::Unsigned`].
    Unsigned(u64),
    /// To [`Kind::Float`]. NaN is always the canonical one.
    #[serde(with = "bits")]
    Float(f64),
    /// To [`Kind::Bytes`]; shared, since the same bytes stand in many traces.
    #[serde(with = "shared")]
    Bytes(Arc<[u8]>),
}

/// A float as its bits, since not every float is a number in JSON.
mod bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        value.to_bits().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        u64::deserialize(from).map(f64::from_bits)
    }
}

/// Shared bytes as a list.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &Arc<[u8]>, to: S) -> Result<S::Ok, S::Error> {
        bytes[..].serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[u8]>, D::Error> {
        Vec::deserialize(from).map(Arc::from)
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Boolean(a), Value::Boolean(b)) => a == b,
            (Value::Index(a), Value::Index(b)) => a == b,
            (Value::Integer(a), Value::Integer(b)) => a == b,
            (Value::Unsigned(a), Value::Unsigned(b)) => a == b,
            // By bits: 0.0 and -0.0 are two answers, NaN is one.
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Display for Value {
    /// As a literal: `true`, `-3`, `0.5`, `x"00ff"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Boolean(v) => write!(f, "{v}"),
            Value::Index(v) => write!(f, "{v}"),
            Value::Integer(v) => write!(f, "{v}"),
            Value::Unsigned(v) => write!(f, "{v}"),
            Value::Float(v) => write!(f, "{v:?}"),
            Value::Bytes(v) => {
                f.write_str("x\"")?;
                v.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("\"")
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Boolean { probability } => write!(f, "a boolean with probability {probability}"),
            Kind::Index { n } => write!(f, "an index below {n}"),
            Kind::Integer { min, max, .. } => write!(f, "an integer in {min}..={max}"),
            Kind::Unsigned { min, max, .. } => write!(f, "an unsigned integer in {min}..={max}"),
            Kind::Float { min, max, .. } => write!(f, "a float in {min:?}..={max:?}"),
            Kind::Bytes { min, max } => write!(f, "{min} to {max} bytes"),
        }
    }
}

impl Kind {
    /// The value that shrinking goes towards.
    pub fn simplest(&self) -> Value {
        match *self {
            Kind::Boolean { probability } => Value::Boolean(probability >= 1.0),
            Kind::Index { .. } => Value::Index(0),
            Kind::Integer { simplest, .. } => Value::Integer(simplest),
            Kind::Unsigned { simplest, .. } => Value::Unsigned(simplest),
            Kind::Float { min, max, .. } => Value::Float(0f64.clamp(min, max)),
            Kind::Bytes { min, .. } => Value::Bytes(vec![0; min as usize].into()),
        }
    }

    /// Whether `value` is a possible answer to this question.
    pub fn accepts(&self, value: &Value) -> bool {
        match (*self, value) {
            (Kind::Boolean { probability }, Value::Boolean(v)) => {
                if *v {
                    probability > 0.0
                } else {
                    probability.is_nan() || probability < 1.0
                }
            }
            (Kind::Index { n }, Value::Index(v)) => *v < n,
            (Kind::Integer { min, max, .. }, Value::Integer(v)) => (min..=max).contains(v),
            (Kind::Unsigned { min, max, .. }, Value::Unsigned(v)) => (min..=max).contains(v),
            (Kind::Float { min, max, nan, infinite }, Value::Float(v)) => {
                if v.is_nan() {
                    nan
                } else {
                    (infinite || v.is_finite()) && (min..=max).contains(v)
                }
            }
            (Kind::Bytes { min, max }, Value::Bytes(v)) => (min as usize..=max as usize).contains(&v.len()),
            _ => false,
        }
    }

    /// The answer that stands for a recorded one: itself where it is possible, the nearest possible one of a
    /// number out of range, the beginning of bytes that are too many, else nothing.
    pub fn fit(&self, value: &Value) -> Option<Value> {
        if self.accepts(value) {
            return Some(value.clone());
        }
        match (*self, value) {
            (Kind::Index { n }, Value::Index(_)) => Some(Value::Index(n - 1)),
            (Kind::Integer { min, max, .. }, Value::Integer(v)) => Some(Value::Integer((*v).clamp(min, max))),
            (Kind::Unsigned { min, max, .. }, Value::Unsigned(v)) => {
                Some(Value::Unsigned((*v).clamp(min, max)))
            }
            (Kind::Float { min, max, .. }, Value::Float(v)) if !v.is_nan() => {
                let nearest = Value::Float(v.clamp(min.max(f64::MIN).min(max), max.min(f64::MAX).max(min)));
                self.accepts(&nearest).then_some(nearest)
            }
            (Kind::Bytes { max, .. }, Value::Bytes(v)) if v.len() > max as usize => {
                Some(Value::Bytes(v[..max as usize].into()))
            }
            _ => None,
        }
    }

    /// How far `value` is from the simplest one: 0 is simplest, and smaller is simpler. Byte strings count
    /// by length first, so the order is that of pairs.
    pub fn complexity(&self, value: &Value) -> (u64, u128) {
        match (*self, value) {
            (_, Value::Boolean(v)) => (0, u128::from(*v)),
            (_, Value::Index(v)) => (0, u128::from(*v)),
            (Kind::Integer { simplest, .. }, Value::Integer(v)) => {
                (0, zigzag(i128::from(*v) - i128::from(simplest)))
            }
            (Kind::Unsigned { simplest, .. }, Value::Unsigned(v)) => {
                (0, zigzag(i128::from(*v) - i128::from(simplest)))
            }
            // The simplest may be a fraction, where the range ends at one.
            (_, value @ Value::Float(v)) => {
                (0, if *value == self.simplest() { 0 } else { 1 + float_complexity(*v) })
            }
            (_, Value::Bytes(v)) => {
                let leading = v.iter().take(15).fold(0u128, |n, b| n << 8 | u128::from(*b));
                (v.len() as u64, leading)
            }
            _ => (u64::MAX, u128::MAX),
        }
    }
}

impl Kind {
    /// How many possible answers there are; `None` where they are too many to be counted.
    pub fn alternatives(&self) -> Option<u64> {
        let range = |min: i128, max: i128| u64::try_from(max - min + 1).ok();
        match *self {
            Kind::Boolean { probability } if probability > 0.0 && probability < 1.0 => Some(2),
            Kind::Boolean { .. } => Some(1),
            Kind::Index { n } => Some(n.into()),
            Kind::Integer { min, max, .. } => range(min.into(), max.into()),
            Kind::Unsigned { min, max, .. } => range(min.into(), max.into()),
            // Zero has two signs.
            Kind::Float { min, max, nan, .. } if min == max => {
                Some(1 + u64::from(min == 0.0) + u64::from(nan))
            }
            Kind::Bytes { max: 0, .. } => Some(1),
            Kind::Float { .. } | Kind::Bytes { .. } => None,
        }
    }

    /// The possible answer with this number, from 0, in the order of [`Kind::complexity`]. The number is below
    /// that of [`Kind::alternatives`].
    pub fn nth(&self, number: u64) -> Value {
        match *self {
            Kind::Boolean { probability } => Value::Boolean(number == 1 || probability >= 1.0),
            Kind::Index { .. } => Value::Index(number as u32),
            Kind::Integer { min, max, simplest } => {
                Value::Integer(nth_integer(number, min.into(), max.into(), simplest.into()) as i64)
            }
            Kind::Unsigned { min, max, simplest } => {
                Value::Unsigned(nth_integer(number, min.into(), max.into(), simplest.into()) as u64)
            }
            Kind::Float { min, .. } => Value::Float(match number {
                0 if min == 0.0 => 0.0,
                0 => min,
                1 if min == 0.0 => -0.0,
                _ => f64::NAN,
            }),
            Kind::Bytes { .. } => Value::Bytes(Arc::default()),
        }
    }
}

/// By distance from the simplest, above before below; where one side has ended, the other alone.
fn nth_integer(number: u64, min: i128, max: i128, simplest: i128) -> i128 {
    let number = i128::from(number);
    let (above, below) = (max - simplest, simplest - min);
    let both = above.min(below);
    if number > 2 * both {
        return if above > below { simplest + (number - both) } else { simplest - (number - both) };
    }
    if number % 2 == 1 { simplest + (number + 1) / 2 } else { simplest - number / 2 }
}

/// 0, 1, -1, 2, -2, … as 0, 1, 2, 3, 4, …
fn zigzag(distance: i128) -> u128 {
    if distance > 0 { distance as u128 * 2 - 1 } else { distance.unsigned_abs() * 2 }
}

/// Whole numbers before fractions, small before large, positive before negative; infinities, then NaN, last.
fn float_complexity(v: f64) -> u128 {
    let class: u128 = match v {
        v if v.is_nan() => 3,
        v if v.is_infinite() => 2,
        v if v.fract() != 0.0 => 1,
        _ => 0,
    };
    class << 100 | u128::from(v.abs().to_bits()) << 1 | u128::from(v.is_sign_negative())
}

/// One answered question.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// What was asked.
    pub kind: Kind,
    /// What was answered.
    pub value: Value,
}

/// One choice of a script: what was asked when it was first met, and the number of the alternative that answers it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scripted {
    /// What was asked.
    pub kind: Kind,
    /// See [`Kind::nth`].
    pub number: u32,
}

impl Scripted {
    /// Whether there is an alternative after this one.
    pub fn has_next(&self) -> bool {
        self.kind.alternatives().is_some_and(|count| u64::from(self.number) + 1 < count)
    }
}

/// What answers a choice past the end of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// The first alternative.
    First,
    /// Nothing: the step is stopped there.
    Stop,
}

/// Why a script cannot answer a choice; the step is stopped there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stopped {
    /// The script has ended.
    Ended(Kind),
    /// The choice has more alternatives than a script may enumerate.
    Unbounded(Kind),
    /// It asks for something else than when the script was made.
    Differs(Kind),
}

/// Choices of one step that belong together: `choices[start..end]`, both relative to the step.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The address and length of the label in guest memory.
    pub label: (u32, u32),
    /// Index of the first choice.
    pub start: u32,
    /// Index after the last choice.
    pub end: u32,
    /// The choices were drawn and then filtered out.
    pub discarded: bool,
}

/// A span of a step for which nothing is recorded, however much it asks: of the recorded answers, those from
/// `resume` on are for what comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The number of the span, in the order in which the spans of the step are opened.
    pub span: u32,
    /// Index of the recorded answer to the first question after the span.
    pub resume: u32,
}

/// Answers the choices of one step and records them. Its buffers are reused from step to step. It is lent to the target for
/// each step, so it is no larger than a pointer.
#[derive(Default)]
pub struct Chooser(Box<Answers>);

/// What a chooser has.
#[derive(Default)]
pub struct Answers {
    seed: u64,
    recorded: Vec<Option<Value>>,
    /// Index of the next recorded answer.
    next: usize,
    /// Where no recorded answer fits, the simplest one is given instead of a drawn one.
    pub draws_nothing: bool,
    /// A span that is left out of the recorded answers; it holds for all steps until it is taken away.
    pub hole: Option<Hole>,
    is_in_hole: bool,
    /// What was asked and answered so far in this step.
    pub choices: Vec<Choice>,
    /// The spans of this step in the order in which they were opened.
    pub spans: Vec<Span>,
    open: Vec<u32>,
    /// Index of the first choice that was recorded with a value that its question does not accept.
    pub misfit: Option<usize>,
    /// Index of the first choice that the script could not answer, and why.
    pub stopped: Option<(usize, Stopped)>,
    script: Vec<Scripted>,
    /// Where a script answers instead of what is recorded: what comes past it, and the most alternatives that a
    /// choice may have.
    scripted: Option<(Past, u32)>,
}

impl Deref for Chooser {
    type Target = Answers;

    fn deref(&self) -> &Answers {
        &self.0
    }
}

impl DerefMut for Chooser {
    fn deref_mut(&mut self) -> &mut Answers {
        &mut self.0
    }
}

impl Answers {
    /// Starts a step: the answers come from `recorded`, and from `seed` where that holds `None`, does not
    /// fit, or has ended.
    pub fn begin(&mut self, seed: u64, recorded: impl IntoIterator<Item = Option<Value>>) {
        self.seed = seed;
        self.recorded.clear();
        self.recorded.extend(recorded);
        self.scripted = None;
        self.clear();
    }

    /// Starts a step whose answers are those of `script`, and past its end what `past` says. A choice with more
    /// than `alternatives_max` alternatives stops the step.
    pub fn begin_script(&mut self, script: &[Scripted], past: Past, alternatives_max: u32) {
        self.script.clear();
        self.script.extend_from_slice(script);
        self.scripted = Some((past, alternatives_max));
        self.clear();
    }

    fn clear(&mut self) {
        self.choices.clear();
        self.spans.clear();
        self.open.clear();
        self.misfit = None;
        self.next = 0;
        self.is_in_hole = false;
        self.stopped = None;
    }

    /// Answers one question. Where the step is to be stopped, which [`Chooser::ask`] tells, the answer is the
    /// simplest one, and nothing that follows counts.
    pub fn choose(&mut self, kind: Kind) -> &Value {
        if self.ask(kind).is_none() {
            self.choices.push(Choice { kind, value: kind.simplest() });
        }
        let last = self.choices.len() - 1;
        &self.choices[last].value
    }

    /// Answers one question; nothing where the step is to be stopped.
    pub fn ask(&mut self, kind: Kind) -> Option<&Value> {
        let position = self.choices.len();
        if let Some((past, alternatives_max)) = self.scripted {
            match self.number(position, &kind, past, alternatives_max) {
                Ok(number) => self.choices.push(Choice { kind, value: kind.nth(number.into()) }),
                Err(why) => {
                    self.stopped.get_or_insert((position, why));
                    return None;
                }
            }
            return Some(&self.choices[position].value);
        }
        let recorded = if self.is_in_hole {
            None
        } else {
            self.next += 1;
            self.recorded.get_mut(self.next - 1).and_then(Option::take)
        };
        let fitting = match recorded {
            Some(value) if kind.accepts(&value) => Some(value),
            Some(value) => {
                self.misfit.get_or_insert(position);
                kind.fit(&value)
            }
            None => None,
        };
        let value = fitting
            .unwrap_or_else(|| if self.draws_nothing { kind.simplest() } else { self.draw(position, &kind) });
        self.choices.push(Choice { kind, value });
        Some(&self.choices[position].value)
    }

    /// The number of the alternative that the script answers choice `position` with.
    fn number(
        &self,
        position: usize,
        kind: &Kind,
        past: Past,
        alternatives_max: u32,
    ) -> Result<u32, Stopped> {
        if let Some((_, why)) = self.stopped {
            return Err(why);
        }
        match self.script.get(position) {
            Some(scripted) if scripted.kind == *kind => Ok(scripted.number),
            Some(_) => Err(Stopped::Differs(*kind)),
            None if kind.alternatives().is_none_or(|count| count > alternatives_max.into()) => {
                Err(Stopped::Unbounded(*kind))
            }
            None if past == Past::Stop => Err(Stopped::Ended(*kind)),
            None => Ok(0),
        }
    }

    /// The draw of choice `position` depends on the seed and the position, not on how the answers before it
    /// were drawn, so that these do not shift it; now and then it is one of them.
    fn draw(&self, position: usize, kind: &Kind) -> Value {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(mix(self.seed, position as u64));
        draw::value(kind, &self.choices, is_small(self.seed), &mut rng)
    }

    /// Opens a span.
    pub fn span_begin(&mut self, label: (u32, u32)) {
        let at = self.choices.len() as u32;
        let number = self.spans.len() as u32;
        self.is_in_hole |= self.hole.is_some_and(|hole| hole.span == number);
        self.open.push(number);
        self.spans.push(Span { label, start: at, end: at, discarded: false });
    }

    /// Closes the innermost span; false where none is open.
    pub fn span_end(&mut self, discarded: bool) -> bool {
        let Some(index) = self.open.pop() else { return false };
        if let Some(hole) = self.hole.filter(|hole| hole.span == index) {
            self.is_in_hole = false;
            self.next = hole.resume as usize;
        }
        let span = &mut self.spans[index as usize];
        span.end = self.choices.len() as u32;
        span.discarded = discarded;
        true
    }

    /// Ends the step: closes the spans that are still open.
    pub fn end(&mut self) {
        while self.span_end(false) {}
    }
}

/// Of seeds as they come, one in eight draws small.
const SMALL_MASK: u64 = 7;

/// Whether the seed's draws are small.
fn is_small(seed: u64) -> bool {
    seed & SMALL_MASK == 0
}

/// The seed next to this one whose draws are small.
pub(crate) fn small_seed(seed: u64) -> u64 {
    seed & !SMALL_MASK
}

/// Two numbers into one, well mixed (the finaliser of SplitMix64, Steele et al. 2014).
pub fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_add(b.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(min: i64, max: i64) -> Kind {
        Kind::Integer { min, max, simplest: 0i64.clamp(min, max) }
    }

    #[test]
    fn recorded_answers_come_first_then_the_seed() {
        let mut chooser = Chooser::default();
        chooser.begin(7, []);
        let drawn: Vec<Value> = (0..3).map(|_| chooser.choose(integer(0, 1000)).clone()).collect();
        chooser.begin(7, [Some(Value::Integer(5)), None]);
        let mixed: Vec<Value> = (0..3).map(|_| chooser.choose(integer(0, 1000)).clone()).collect();
        assert_eq!(mixed, [Value::Integer(5), drawn[1].clone(), drawn[2].clone()]);
        assert_eq!(chooser.misfit, None);
    }

    #[test]
    fn a_recorded_answer_that_does_not_fit_is_clamped_or_drawn_again() {
        let mut chooser = Chooser::default();
        chooser.begin(7, [Some(Value::Integer(5000)), Some(Value::Boolean(true))]);
        assert_eq!(*chooser.choose(integer(0, 1000)), Value::Integer(1000));
        assert!(integer(0, 1000).accepts(chooser.choose(integer(0, 1000))));
        assert_eq!(chooser.misfit, Some(0));
    }

    #[test]
    fn a_hole_gets_the_simplest_answers_and_what_follows_it_its_own() {
        let mut chooser = Chooser(Box::new(Answers { draws_nothing: true, ..Answers::default() }));
        chooser.hole = Some(Hole { span: 1, resume: 3 });
        chooser.begin(7, [1, 2, 3, 4].map(|v| Some(Value::Integer(v))));
        let draw = |chooser: &mut Chooser| chooser.choose(integer(0, 9)).to_string();
        chooser.span_begin((0, 1));
        let mut drawn = vec![draw(&mut chooser)];
        chooser.span_begin((0, 1));
        drawn.push(draw(&mut chooser));
        chooser.span_end(false);
        drawn.push(draw(&mut chooser));
        drawn.push(draw(&mut chooser));
        assert_eq!(drawn, ["1", "0", "4", "0"]);
    }

    #[test]
    fn floats_and_bytes_are_refitted() {
        let float = |min, max| Kind::Float { min, max, nan: false, infinite: false };
        assert_eq!(float(1.5, 9.0).fit(&Value::Float(f64::INFINITY)), Some(Value::Float(9.0)));
        assert_eq!(float(1.5, 9.0).fit(&Value::Float(-3.0)), Some(Value::Float(1.5)));
        assert_eq!(float(1.5, 9.0).fit(&Value::Float(f64::NAN)), None);
        let whole = float(f64::NEG_INFINITY, f64::INFINITY);
        assert_eq!(whole.fit(&Value::Float(f64::NEG_INFINITY)), Some(Value::Float(f64::MIN)));
        let bytes = |bytes: &[u8]| Value::Bytes(bytes.into());
        assert_eq!(Kind::Bytes { min: 1, max: 2 }.fit(&bytes(b"abc")), Some(bytes(b"ab")));
        assert_eq!(Kind::Bytes { min: 2, max: 3 }.fit(&bytes(b"a")), None);
    }

    #[test]
    fn a_float_is_simplest_where_its_range_says() {
        let kind = Kind::Float { min: 5.5, max: 10.0, nan: false, infinite: false };
        let mut values = [7.25, 6.0, 10.0, 5.5];
        values.sort_by_key(|v| kind.complexity(&Value::Float(*v)));
        assert_eq!(values, [5.5, 6.0, 10.0, 7.25]);
    }

    #[test]
    fn integers_are_simplest_at_zero_then_one_then_minus_one() {
        let kind = integer(i64::MIN, i64::MAX);
        let mut values = [2, -1, 0, -2, 1, i64::MIN, i64::MAX];
        values.sort_by_key(|v| kind.complexity(&Value::Integer(*v)));
        assert_eq!(values, [0, 1, -1, 2, -2, i64::MAX, i64::MIN]);
    }

    #[test]
    fn alternatives_are_in_the_order_of_complexity() {
        let check = |kind: Kind, expected: &str| {
            let count = kind.alternatives().unwrap();
            let values: Vec<Value> = (0..count).map(|number| kind.nth(number)).collect();
            assert!(values.iter().all(|value| kind.accepts(value)), "{kind:?}");
            assert!(values.is_sorted_by_key(|value| kind.complexity(value)), "{kind:?}");
            let text: Vec<String> = values.iter().map(ToString::to_string).collect();
            assert_eq!(text.join(" "), expected);
        };
        check(Kind::Boolean { probability: 0.5 }, "false true");
        check(Kind::Boolean { probability: 0.0 }, "false");
        check(Kind::Boolean { probability: 1.0 }, "true");
        check(Kind::Index { n: 3 }, "0 1 2");
        check(integer(-2, 5), "0 1 -1 2 -2 3 4 5");
        check(integer(-5, 1), "0 1 -1 -2 -3 -4 -5");
        check(Kind::Integer { min: 3, max: 5, simplest: 5 }, "5 4 3");
        check(Kind::Unsigned { min: u64::MAX - 2, max: u64::MAX, simplest: u64::MAX - 1 }, &{
            format!("{} {} {}", u64::MAX - 1, u64::MAX, u64::MAX - 2)
        });
        check(Kind::Float { min: 0.5, max: 0.5, nan: true, infinite: false }, "0.5 NaN");
        check(Kind::Float { min: 0.0, max: 0.0, nan: false, infinite: false }, "0.0 -0.0");
        check(Kind::Bytes { min: 0, max: 0 }, "x\"\"");
        assert_eq!(integer(i64::MIN, i64::MAX).alternatives(), None);
        assert_eq!(Kind::Bytes { min: 1, max: 1 }.alternatives(), None);
    }

    #[test]
    fn a_script_answers_by_number_and_stops_where_it_cannot() {
        let coin = Kind::Boolean { probability: 0.5 };
        let script = [Scripted { kind: Kind::Index { n: 4 }, number: 2 }, Scripted { kind: coin, number: 1 }];
        let mut chooser = Chooser::default();
        chooser.begin_script(&script, Past::First, 10);
        assert_eq!(chooser.ask(Kind::Index { n: 4 }), Some(&Value::Index(2)));
        assert_eq!(chooser.ask(coin), Some(&Value::Boolean(true)));
        assert_eq!(chooser.ask(Kind::Index { n: 9 }), Some(&Value::Index(0)));
        assert_eq!(chooser.ask(Kind::Index { n: 11 }), None);
        assert_eq!(chooser.stopped, Some((3, Stopped::Unbounded(Kind::Index { n: 11 }))));
        chooser.begin_script(&script[..1], Past::Stop, 10);
        assert_eq!(*chooser.choose(Kind::Index { n: 4 }), Value::Index(2));
        assert_eq!(*chooser.choose(coin), Value::Boolean(false));
        assert_eq!(*chooser.choose(Kind::Index { n: 3 }), Value::Index(0));
        assert_eq!(chooser.stopped, Some((1, Stopped::Ended(coin))));
        chooser.begin_script(&script, Past::Stop, 10);
        assert_eq!(chooser.ask(Kind::Index { n: 5 }), None);
        assert_eq!(chooser.stopped, Some((0, Stopped::Differs(Kind::Index { n: 5 }))));
    }

    #[test]
    fn spans_nest_and_open_ones_are_closed_at_the_end() {
        let mut chooser = Chooser::default();
        chooser.begin(1, []);
        chooser.span_begin((0, 1));
        chooser.choose(Kind::Index { n: 2 });
        chooser.span_begin((1, 1));
        chooser.choose(Kind::Index { n: 2 });
        assert!(chooser.span_end(true));
        chooser.end();
        assert!(!chooser.span_end(false));
        let ranges: Vec<_> = chooser.spans.iter().map(|s| (s.start, s.end, s.discarded)).collect();
        assert_eq!(ranges, [(0, 2, false), (1, 2, true)]);
    }
}
