//! Passes over values: each alone, those that are equal, and two that depend on each other.

use std::collections::BTreeMap;

use super::edit::{Edit, Place};
use super::gate::Gate;
use super::numbers::{at, descend, distance, shifted, wrapped};
use crate::choice::{Choice, Kind, Value};
use crate::target::Target;

/// Floats below this are lowered as the integers that they are.
const INTEGRAL_MAX: f64 = 1e30;
/// How many later choices are tried together with one, and among how many they are sought.
const LATER: usize = 8;
const WINDOW: usize = 64;
/// Bytes that are left out at once, where fewer cannot be.
const TOGETHER: [usize; 4] = [5, 4, 3, 2];
/// Bytes of a string of which each is brought down as far as it goes; of a longer one some lower values are tried.
const SHORT: usize = 64;

impl<T: Target> Gate<'_, T> {
    /// Makes all numbers simplest at once: what remains is said by the structure alone.
    pub(super) fn lower_all(&mut self) -> bool {
        let is_number = |place: &Place| {
            let choice = self.choice(*place).expect("it is a place of the best");
            matches!(choice.value, Value::Integer(_) | Value::Unsigned(_) | Value::Float(_))
        };
        let places: Vec<Place> = self.places().into_iter().filter(is_number).collect();
        self.replaced(&places, |choice| Some(choice.kind.simplest()))
    }

    /// Makes values simplest, in runs that double for as long as they can.
    pub(super) fn lower_each_to_simplest(&mut self) -> bool {
        let mut helped = false;
        for step in 0..self.best.len() {
            let (mut at, mut run) = (0, 1);
            loop {
                let places: Vec<Place> = self.lowerable(step, at).take(run).collect();
                let Some(last) = places.last().filter(|_| !self.is_over()) else { break };
                if self.replaced(&places, |choice| Some(choice.kind.simplest())) {
                    helped = true;
                    at = last.1 + 1;
                    run *= 2;
                } else if run > 1 {
                    run = 1;
                } else {
                    at = last.1 + 1;
                }
            }
        }
        helped
    }

    /// The choices of a step from one on that are not simplest yet, but for those that row passes take care of.
    fn lowerable(&self, step: usize, from: usize) -> impl Iterator<Item = Place> {
        let count = self.best.steps().get(step).map_or(0, |step| self.best.choices(step).len());
        (from..count).map(move |at| (step, at)).filter(|place| self.is_lowerable(*place))
    }

    fn is_lowerable(&self, place: Place) -> bool {
        self.choice(place).is_some_and(|choice| {
            choice.value != choice.kind.simplest()
                && !(matches!(choice.value, Value::Boolean(_))
                    && self.layout(place.0).begins_element[place.1])
        })
    }

    /// Lowers each value as far as it goes.
    pub(super) fn lower_each(&mut self) -> bool {
        self.each_place(|gate, place| {
            let Some(choice) = gate.choice(place).filter(|_| gate.is_lowerable(place)) else {
                return false;
            };
            match (choice.kind, &choice.value) {
                (_, Value::Float(v)) => gate.lower_float(place, *v),
                (Kind::Bytes { min, .. }, Value::Bytes(v)) => gate.lower_bytes(place, min as usize, v),
                (_, Value::Boolean(_)) => gate.replaced(&[place], |choice| Some(choice.kind.simplest())),
                _ => gate.lower_numbers(&[place]),
            }
        })
    }

    /// Lowers numbers that are equal together: what was drawn equal must often stay equal.
    pub(super) fn lower_equal(&mut self) -> bool {
        self.each_equal(|gate, places| match gate.choice(places[0]).and_then(|choice| distance(&choice)) {
            Some(_) => gate.lower_numbers(places),
            None => gate.replaced(places, |choice| Some(choice.kind.simplest())),
        })
    }

    /// Does something with the places of each value that several have. Whether any helped.
    pub(super) fn each_equal(&mut self, mut f: impl FnMut(&mut Self, &[Place]) -> bool) -> bool {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let mut first: Vec<(String, Value)> = Vec::new();
        for place in self.places().into_iter().filter(|place| self.is_lowerable(*place)) {
            let Some(Choice { value, .. }) = self.choice(place) else { continue };
            if let Value::Boolean(_) = value {
                continue;
            }
            let count = counts.entry(value.to_string()).or_default();
            *count += 1;
            if *count == 1 {
                first.push((value.to_string(), value));
            }
        }
        let mut helped = false;
        for (_, value) in first.into_iter().filter(|(text, _)| counts[text] > 1) {
            // Looking for equal ones among many takes long too.
            if self.is_over() {
                break;
            }
            let is_equal = |place: &Place| {
                self.is_lowerable(*place) && self.choice(*place).is_some_and(|choice| choice.value == value)
            };
            let places: Vec<Place> = self.places().into_iter().filter(is_equal).collect();
            helped |= places.len() > 1 && f(self, &places);
        }
        helped
    }

    /// Brings numbers down to one distance from their simplest, that of the first being known.
    fn lower_numbers(&mut self, places: &[Place]) -> bool {
        let Some(from) = self.choice(places[0]).and_then(|choice| distance(&choice)) else { return false };
        let first = self.choice(places[0]).expect("a place of the best");
        descend(from, |to| {
            at(&first, to)?;
            Some(self.replaced(places, |choice| at(choice, to)))
        })
    }

    /// Lowers two numbers by the same amount, which keeps their difference; and sets two choices to their
    /// simplest at once, where one alone does not do.
    pub(super) fn lower_together(&mut self) -> bool {
        self.each_place(|gate, first| {
            let later: Vec<Place> = gate.later(first).take(LATER).collect();
            let mut helped = false;
            for second in later {
                helped |= gate.lower_pair(first, second);
            }
            helped
        })
    }

    fn lower_pair(&mut self, first: Place, second: Place) -> bool {
        let (Some(a), Some(b)) = (self.choice(first), self.choice(second)) else { return false };
        if !self.is_lowerable(first) || !self.is_lowerable(second) {
            return false;
        }
        if self.replaced(&[first, second], |choice| Some(choice.kind.simplest())) {
            return true;
        }
        let (Some(d), Some(e)) = (distance(&a), distance(&b)) else { return false };
        if !same_kind(&a.value, &b.value) || d.signum() != e.signum() {
            return false;
        }
        // Both come down to what is left of the nearer one.
        let nearer = if d.abs() < e.abs() { d } else { e };
        if !self.both_shifted(first, second, -nearer.signum()) {
            return false;
        }
        let left = |gate: &Self| {
            let of = |place| gate.choice(place).and_then(|c| distance(&c)).unwrap_or(0);
            let (d, e) = (of(first), of(second));
            if d.abs() < e.abs() { d } else { e }
        };
        descend(left(self), |to| {
            let now = left(self);
            Some(now.signum() == nearer.signum() && self.both_shifted(first, second, to - now))
        });
        true
    }

    fn both_shifted(&mut self, first: Place, second: Place, by: i128) -> bool {
        self.replaced(&[first, second], |choice| shifted(choice, by))
    }

    /// Moves what one number has above its simplest to a later one of its kind, as much as that takes: two
    /// that count together become one that counts and one that does not.
    pub(super) fn redistribute(&mut self) -> bool {
        self.each_place(|gate, from| {
            let Some(giver) = gate.choice(from) else { return false };
            let is_like = |p: &Place| gate.choice(*p).is_some_and(|c| same_kind(&c.value, &giver.value));
            let later: Vec<Place> = gate.later(from).take(WINDOW).filter(is_like).take(LATER).collect();
            let mut helped = false;
            for to in later {
                helped |= gate.gave(from, to);
            }
            helped
        })
    }

    fn gave(&mut self, from: Place, to: Place) -> bool {
        let left = |gate: &Self| gate.choice(from).and_then(|c| distance(&c)).unwrap_or(0);
        let all = left(self);
        if all == 0 {
            return false;
        }
        if self.moved(from, to, all) {
            return true;
        }
        let mut amount = all.signum();
        let mut helped = false;
        // Doubling for as long as it works.
        while amount.abs() <= left(self).abs() && self.moved(from, to, amount) {
            helped = true;
            amount *= 2;
        }
        helped
    }

    /// Whether the trace with `amount` taken from one number and given to another became the best.
    fn moved(&mut self, from: Place, to: Place, amount: i128) -> bool {
        let (Some(giver), Some(taker)) = (self.choice(from), self.choice(to)) else { return false };
        let (Some(less), Some(more)) = (shifted(&giver, -amount), wrapped(&taker, amount)) else {
            return false;
        };
        self.is_better([Edit::Value { place: from, value: less }, Edit::Value { place: to, value: more }])
    }

    fn lower_float(&mut self, place: Place, v: f64) -> bool {
        let mut helped = false;
        let finite = v.clamp(f64::MIN, f64::MAX);
        for candidate in
            [1.0, -1.0, v.abs(), finite, finite.abs(), v.trunc(), v.round(), (v * 16.0).trunc() / 16.0]
        {
            helped |= self.replaced(&[place], |choice| {
                let value = Value::Float(candidate);
                let is_simpler = choice.kind.complexity(&value) < choice.kind.complexity(&choice.value);
                (is_simpler && choice.kind.accepts(&value)).then_some(value)
            });
        }
        // Too large for an integer: the power of two first.
        while let Some(Choice { value: Value::Float(v), .. }) = self.choice(place)
            && v.is_finite()
            && v.abs() >= INTEGRAL_MAX
        {
            let exponent = v.abs().log2().floor() as i128;
            let lowered = descend(exponent, |to| {
                Some(self.replaced(&[place], |choice| {
                    let value = Value::Float(2f64.powi(to as i32).copysign(v));
                    choice.kind.accepts(&value).then_some(value)
                }))
            });
            helped |= lowered;
            if !lowered {
                break;
            }
        }
        let Some(Choice { value: Value::Float(v), .. }) = self.choice(place) else { return helped };
        if v.fract() == 0.0 && v.abs() < INTEGRAL_MAX {
            helped |= descend(v as i128, |to| {
                Some(self.replaced(&[place], |choice| {
                    let value = Value::Float(to as f64);
                    choice.kind.accepts(&value).then_some(value)
                }))
            });
        }
        helped
    }

    /// Shortens a byte string, then lowers each byte.
    fn lower_bytes(&mut self, place: Place, min: usize, bytes: &[u8]) -> bool {
        let mut best = bytes.to_vec();
        let helped = self.shorten_bytes(place, min, &mut best);
        self.lower_each_byte(place, &mut best) || helped
    }

    /// From its end and its start, then within.
    fn shorten_bytes(&mut self, place: Place, min: usize, best: &mut Vec<u8>) -> bool {
        let mut helped = false;
        let mut cut = best.len().saturating_sub(min);
        while cut > 0 && !self.is_over() {
            let keep = best.len().saturating_sub(cut).max(min);
            let candidates = [best[..keep].to_vec(), best[best.len() - keep..].to_vec()];
            let mut shorter = candidates.into_iter().filter(|candidate| candidate.len() < best.len());
            match shorter.find(|candidate| self.has_bytes(place, candidate)) {
                Some(shorter) => {
                    *best = shorter;
                    helped = true;
                }
                None => cut /= 2,
            }
        }
        // From the end, in runs that double for as long as they can be left out.
        let (mut end, mut run) = (best.len(), 1);
        while end > 0 && best.len() > min && !self.is_over() {
            let begin = end.saturating_sub(run.min(best.len() - min));
            let shorter = [&best[..begin], &best[end..]].concat();
            if self.has_bytes(place, &shorter) {
                (*best, end, run) = (shorter, begin, run * 2);
                helped = true;
            } else if run > 1 {
                run = 1;
            } else {
                end -= 1;
            }
        }
        // Some go together only.
        for run in TOGETHER {
            let mut end = best.len();
            while end >= run && best.len() >= min + run && !self.is_over() {
                let shorter = [&best[..end - run], &best[end..]].concat();
                if self.has_bytes(place, &shorter) {
                    (*best, end) = (shorter, end - run);
                    helped = true;
                } else {
                    end -= 1;
                }
            }
        }
        helped
    }

    fn lower_each_byte(&mut self, place: Place, best: &mut Vec<u8>) -> bool {
        let mut helped = false;
        for index in 0..best.len() {
            if self.is_over() {
                break;
            }
            for byte in [0, b'0', b'a', best[index] / 2, best[index].wrapping_sub(1)] {
                let before = best[index];
                best[index] = byte;
                if byte < before && self.has_bytes(place, best) {
                    helped = true;
                    break;
                }
                best[index] = before;
            }
            if best.len() <= SHORT && best[index] > 0 {
                helped |= descend(best[index].into(), |to| {
                    let mut lower = best.clone();
                    lower[index] = u8::try_from(to).ok()?;
                    let is_better = self.has_bytes(place, &lower);
                    if is_better {
                        *best = lower;
                    }
                    Some(is_better)
                });
            }
        }
        helped
    }

    /// Whether the trace with these bytes at a place became the best.
    fn has_bytes(&mut self, place: Place, bytes: &[u8]) -> bool {
        self.replaced(&[place], |_| Some(Value::Bytes(bytes.into())))
    }

    /// Whether the trace with other values at these places became the best; it does not where there is none
    /// for one of them.
    pub(super) fn replaced(&mut self, places: &[Place], value: impl Fn(&Choice) -> Option<Value>) -> bool {
        let edit = |place: &Place| {
            let value = self.choice(*place).and_then(|choice| value(&choice))?;
            Some(Edit::Value { place: *place, value })
        };
        let edits: Option<Vec<Edit>> = places.iter().map(edit).collect();
        edits.is_some_and(|edits| !edits.is_empty() && self.is_better(edits))
    }

    /// Does something at each place of the best trace, whatever it becomes meanwhile. Whether any helped.
    pub(super) fn each_place(&mut self, mut f: impl FnMut(&mut Self, Place) -> bool) -> bool {
        let mut helped = false;
        let mut step = 0;
        while step < self.best.len() {
            let mut at = 0;
            while self.choice((step, at)).is_some() && !self.is_over() {
                helped |= f(self, (step, at));
                at += 1;
            }
            step += 1;
        }
        helped
    }

    /// All choices of the best trace.
    pub(super) fn places(&self) -> Vec<Place> {
        let steps = self.best.steps().iter().enumerate();
        steps.flat_map(|(i, step)| (0..self.best.choices(step).len()).map(move |at| (i, at))).collect()
    }

    /// The choices after one.
    fn later(&self, (step, at): Place) -> impl Iterator<Item = Place> {
        let steps = self.best.steps().iter().enumerate().skip(step);
        let counts = steps.map(|(index, step)| (index, self.best.choices(step).len()));
        let from = move |index| if index == step { at + 1 } else { 0 };
        counts.flat_map(move |(index, count)| (from(index)..count).map(move |at| (index, at)))
    }

    pub(super) fn choice(&self, (step, at): Place) -> Option<Choice> {
        let step = self.best.steps().get(step)?;
        self.best.choices(step).get(at).cloned()
    }
}

fn same_kind(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}
