//! Choices: every question a guest asks the host, and the one place that answers them.
//!
//! A run is a function of (module, answers). The [`Chooser`] supplies the answers of one step: values that
//! were recorded before, where there are some and they fit, and values drawn from the step's own seed
//! otherwise. Random exploration, replay, mutation and shrinking differ only in what is recorded. An exhaustive
//! check counts the alternatives of each choice instead, and answers by their numbers: a script.

mod draw;
mod kind;
mod priority;

use std::ops::{Deref, DerefMut};

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

pub(crate) use draw::printable;
pub use kind::{Kind, Value};
pub use priority::Priorities;

/// One answered question.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// What was asked.
    pub kind: Kind,
    /// What was answered.
    pub value: Value,
}

/// One choice of a script: what was asked when it was first met, and the number of the alternative that answers it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scripted {
    /// What was asked.
    pub kind: Kind,
    /// See [`Kind::nth`].
    pub number: u32,
}

impl Choice {
    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        size_of::<Choice>() + self.value.shared_bytes()
    }
}

impl Scripted {
    /// Whether there is an alternative after this one.
    pub fn has_next(&self) -> bool {
        self.kind.alternatives().is_some_and(|count| u64::from(self.number) + 1 < count)
    }
}

/// Makes `script` the next one in depth-first order that shares its first `fixed` answers; whether there is one.
pub(crate) fn advance(script: &mut Vec<Scripted>, fixed: usize) -> bool {
    while script.len() > fixed {
        let last = script.last_mut().expect("it is not empty");
        if last.has_next() {
            last.number += 1;
            return true;
        }
        script.pop();
    }
    false
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
    /// Who goes on of several threads, where that is drawn.
    pub priorities: Priorities,
    /// The index that the next draw is.
    preferred: Option<u32>,
    /// A span that is left out of the recorded answers; it holds for all steps until it is taken away.
    pub hole: Option<Hole>,
    is_in_hole: bool,
    /// What was asked and answered so far in this step.
    pub choices: Vec<Choice>,
    /// Bytes of the answers in this step and those before it.
    pub drawn_bytes: u64,
    /// The spans of this step in the order in which they were opened.
    pub spans: Vec<Span>,
    open: Vec<u32>,
    /// Index of the first choice that was recorded with a value that its question does not accept.
    pub misfit: Option<usize>,
    /// Index of the first choice that the script could not answer, and why.
    pub stopped: Option<(usize, Stopped)>,
    script: Vec<Scripted>,
    /// What must be asked, and is answered so, where the step is one that echoes another.
    echoed: Vec<Choice>,
    echoes: bool,
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
        self.recorded.clear();
        self.recorded.extend(recorded);
        self.begin_recorded(seed);
    }

    /// As [`Answers::begin`], with what is recorded in a list, in place of which an empty one is left.
    pub(crate) fn begin_with(&mut self, seed: u64, recorded: &mut Vec<Option<Value>>) {
        self.recorded.clear();
        std::mem::swap(&mut self.recorded, recorded);
        self.begin_recorded(seed);
    }

    fn begin_recorded(&mut self, seed: u64) {
        self.seed = seed;
        (self.scripted, self.echoes) = (None, false);
        self.clear();
    }

    /// Starts a step whose questions must be these, which have the same answers again. Another one stops the step.
    pub fn begin_echo(&mut self, answered: &[Choice]) {
        self.echoed.clear();
        self.echoed.extend_from_slice(answered);
        self.echoes = true;
        self.clear();
    }

    /// Starts a step whose answers are those of `script`, and past its end what `past` says. A choice with more
    /// than `alternatives_max` alternatives stops the step.
    pub fn begin_script(&mut self, script: &[Scripted], past: Past, alternatives_max: u32) {
        self.script.clear();
        self.script.extend_from_slice(script);
        (self.scripted, self.echoes) = (Some((past, alternatives_max)), false);
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

    /// Asks for an index below `n`; if it is drawn it is `preferred`.
    pub fn ask_index(&mut self, n: u32, preferred: Option<u32>) -> Option<&Value> {
        self.preferred = preferred;
        let is_answered = self.ask(Kind::Index { n }).is_some();
        self.preferred = None;
        if is_answered { self.choices.last().map(|choice| &choice.value) } else { None }
    }

    /// Answers one question; nothing where the step is to be stopped.
    pub fn ask(&mut self, kind: Kind) -> Option<&Value> {
        let position = self.choices.len();
        if self.echoes {
            let answered = self.echoed.get(position).filter(|answered| answered.kind == kind);
            let Some(answered) = answered.filter(|_| self.stopped.is_none()) else {
                self.stopped.get_or_insert((position, Stopped::Differs(kind)));
                return None;
            };
            self.choices.push(answered.clone());
            return Some(&self.choices[position].value);
        }
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
            self.recorded.get_mut(self.next - 1)
        };
        let value = match recorded.and_then(|recorded| recorded.take_if(|value| kind.accepts(value))) {
            Some(value) => value,
            None => self.unfit(position, kind),
        };
        self.drawn_bytes += value.shared_bytes() as u64;
        self.choices.push(Choice { kind, value });
        Some(&self.choices[position].value)
    }

    /// The answer to a choice for which nothing is recorded that it accepts.
    #[inline(never)]
    fn unfit(&mut self, position: usize, kind: Kind) -> Value {
        let recorded = if self.is_in_hole { None } else { self.recorded.get_mut(self.next - 1) };
        let fitting = recorded.and_then(Option::take).and_then(|value| {
            self.misfit.get_or_insert(position);
            kind.fit(&value)
        });
        fitting
            .unwrap_or_else(|| if self.draws_nothing { kind.simplest() } else { self.draw(position, &kind) })
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
        if let Some(preferred) = self.preferred {
            return Value::Index(preferred);
        }
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
