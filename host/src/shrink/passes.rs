//! What the shrinker tries, pass by pass. Every candidate goes through the gate.

use super::{Draft, Gate};
use crate::choice::{Choice, Kind, Value};
use crate::target::Target;
use crate::trace::Action;

/// A choice: which step, and which of its choices.
type Place = (usize, usize);

/// How many later numbers may take over what one has too much.
const TAKERS: usize = 8;

impl<T: Target> Gate<'_, T> {
    /// One round of all passes. Whether any helped.
    pub(super) fn pass(&mut self) -> bool {
        let steps = self.delete_steps();
        let choices = self.delete_choices();
        let values = self.lower_values();
        let equal = self.lower_equal();
        let sums = self.redistribute();
        (steps || choices || values || equal || sums) && self.executions < self.executions_max
    }

    /// Deletes runs of steps, long ones first, late ones first.
    fn delete_steps(&mut self) -> bool {
        let mut helped = false;
        let mut len = self.best.len() / 2;
        while len > 0 {
            let mut end = self.best.len();
            while end >= len {
                let drafts = self.drafts();
                let start = end - len;
                let fixed = |draft: &Draft| matches!(draft.action, Action::Setup | Action::Teardown);
                let mut candidate = drafts[..start].to_vec();
                candidate.extend(drafts[start..end].iter().filter(|draft| fixed(draft)).cloned());
                candidate.extend_from_slice(&drafts[end..]);
                if candidate.len() < drafts.len() && self.is_better(&candidate, start) {
                    helped = true;
                    end = start.min(self.best.len());
                } else {
                    end -= 1;
                }
            }
            len /= 2;
        }
        helped
    }

    /// Deletes runs of up to eight choices within a step.
    fn delete_choices(&mut self) -> bool {
        let mut helped = false;
        for len in [8, 4, 3, 2, 1] {
            let mut step = self.best.len();
            while step > 0 {
                step -= 1;
                let mut end = self.drafts().get(step).map_or(0, |draft| draft.values.len());
                while end >= len {
                    let mut candidate = self.drafts();
                    candidate[step].values.drain(end - len..end);
                    let is_better = self.is_better(&candidate, step);
                    helped |= is_better;
                    end = if is_better { end - len } else { end - 1 };
                    end = end.min(self.drafts().get(step).map_or(0, |draft| draft.values.len()));
                }
            }
        }
        helped
    }

    /// Lowers each value as far as it goes.
    fn lower_values(&mut self) -> bool {
        let mut helped = false;
        let mut step = 0;
        while step < self.best.len() {
            let mut at = 0;
            while let Some(choice) = self.choice((step, at)) {
                helped |= self.lower(step, at, &choice);
                at += 1;
            }
            step += 1;
        }
        helped
    }

    /// Lowers choices that have the same value together: what was drawn equal must often stay equal.
    fn lower_equal(&mut self) -> bool {
        let mut helped = false;
        let mut at = 0;
        while let Some(place) = self.places().get(at).copied() {
            at += 1;
            let Some(choice) = self.choice(place) else { continue };
            let equal = |gate: &Self| {
                let places = gate.places().into_iter().filter(|p| *p >= place);
                places
                    .filter(|p| gate.choice(*p).is_some_and(|c| c.value == choice.value))
                    .collect::<Vec<_>>()
            };
            let simplest = choice.kind.simplest();
            if choice.value == simplest || equal(self).len() < 2 {
                continue;
            }
            if self.replaced_all(&equal(self), &simplest) {
                helped = true;
                continue;
            }
            let Some((_, distance)) = number(&choice) else { continue };
            // Towards the simplest by halves, then by one.
            let mut step = distance.abs() / 2;
            let mut current = choice;
            while step > 0 {
                let lower = shifted(&current, -step * distance.signum());
                let places = self.places().into_iter().filter(|p| *p >= place);
                let places: Vec<Place> =
                    places.filter(|p| self.choice(*p).is_some_and(|c| c.value == current.value)).collect();
                match lower {
                    Some(lower) if places.len() > 1 && self.replaced_all(&places, &lower) => {
                        helped = true;
                        current.value = lower;
                    }
                    _ => step /= 2,
                }
            }
        }
        helped
    }

    /// Moves what one number has above its simplest to a later one of its kind, as much as that takes: two
    /// that count together become one that counts and one that does not.
    fn redistribute(&mut self) -> bool {
        let mut helped = false;
        let mut at = 0;
        while let Some(from) = self.places().get(at).copied() {
            at += 1;
            let Some(giver) = self.choice(from) else { continue };
            if number(&giver).is_none_or(|(_, distance)| distance <= 0) {
                continue;
            }
            let is_taker = |place: &Place, gate: &Self| {
                *place > from && gate.choice(*place).is_some_and(|c| same_kind(&c.value, &giver.value))
            };
            let takers: Vec<Place> =
                self.places().into_iter().filter(|p| is_taker(p, self)).take(TAKERS).collect();
            for to in takers {
                let distance = |gate: &Self| gate.choice(from).and_then(|c| number(&c)).map_or(0, |(_, d)| d);
                let mut amount = distance(self);
                while amount > 0 {
                    if self.moved(from, to, amount) {
                        helped = true;
                        amount = amount.min(distance(self));
                    } else {
                        amount /= 2;
                    }
                }
            }
        }
        helped
    }

    /// Whether the trace with `amount` taken from one number and given to another became the best.
    fn moved(&mut self, from: Place, to: Place, amount: i128) -> bool {
        let (Some(giver), Some(taker)) = (self.choice(from), self.choice(to)) else { return false };
        let (Some(less), Some(more)) = (shifted(&giver, -amount), shifted(&taker, amount)) else {
            return false;
        };
        let mut candidate = self.drafts();
        candidate[from.0].values[from.1] = less;
        candidate[to.0].values[to.1] = more;
        self.is_better(&candidate, from.0)
    }

    /// Whether the trace with this value at all of these places became the best.
    fn replaced_all(&mut self, places: &[Place], value: &Value) -> bool {
        let mut candidate = self.drafts();
        for (step, at) in places {
            candidate[*step].values[*at] = value.clone();
        }
        self.is_better(&candidate, places[0].0)
    }

    /// All choices of the best trace.
    fn places(&self) -> Vec<Place> {
        let steps = self.best.steps().iter().enumerate();
        steps.flat_map(|(i, step)| (0..self.best.choices(step).len()).map(move |at| (i, at))).collect()
    }

    fn choice(&self, (step, at): Place) -> Option<Choice> {
        let step = self.best.steps().get(step)?;
        self.best.choices(step).get(at).cloned()
    }

    /// Whether the trace with this value instead became the best.
    fn replaced(&mut self, step: usize, at: usize, value: Value) -> bool {
        let mut candidate = self.drafts();
        let Some(slot) = candidate.get_mut(step).and_then(|draft| draft.values.get_mut(at)) else {
            return false;
        };
        *slot = value;
        self.is_better(&candidate, step)
    }

    fn lower(&mut self, step: usize, at: usize, choice: &Choice) -> bool {
        let simplest = choice.kind.simplest();
        if choice.value == simplest {
            return false;
        }
        if self.replaced(step, at, simplest) {
            return true;
        }
        match (choice.kind, &choice.value) {
            (Kind::Integer { simplest, .. }, Value::Integer(v)) => {
                let distance = i128::from(*v) - i128::from(simplest);
                let to = |d: i128| Value::Integer((i128::from(simplest) + d) as i64);
                self.lower_number(step, at, &choice.kind, distance, to)
            }
            (Kind::Unsigned { simplest, .. }, Value::Unsigned(v)) => {
                let distance = i128::from(*v) - i128::from(simplest);
                let to = |d: i128| Value::Unsigned((i128::from(simplest) + d) as u64);
                self.lower_number(step, at, &choice.kind, distance, to)
            }
            (_, Value::Index(v)) => {
                self.lower_number(step, at, &choice.kind, (*v).into(), |d| Value::Index(d as u32))
            }
            (_, Value::Float(v)) => self.lower_float(step, at, &choice.kind, *v),
            (Kind::Bytes { min, .. }, Value::Bytes(v)) => self.lower_bytes(step, at, min as usize, v),
            _ => false,
        }
    }

    /// Brings a distance from the simplest value as near to 0 as it goes: the other sign, then bisection,
    /// then a few steps of one, since what fails need not be an interval.
    fn lower_number(
        &mut self,
        step: usize,
        at: usize,
        kind: &Kind,
        mut distance: i128,
        to: impl Fn(i128) -> Value,
    ) -> bool {
        let mut helped = false;
        let mut works = |gate: &mut Self, d: i128| {
            let value = to(d);
            let works = kind.accepts(&value) && gate.replaced(step, at, value);
            helped |= works;
            works
        };
        if distance < 0 && works(self, -distance) {
            distance = -distance;
        }
        let sign = distance.signum();
        let (mut low, mut high) = (0, distance.abs());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if works(self, middle * sign) {
                high = middle;
            } else {
                low = middle;
            }
        }
        for less in (1..=4).filter(|less| *less < high) {
            if works(self, (high - less) * sign) {
                break;
            }
        }
        helped
    }

    fn lower_float(&mut self, step: usize, at: usize, kind: &Kind, v: f64) -> bool {
        let mut helped = false;
        for candidate in [1.0, -1.0, v.abs(), v.trunc(), v.round(), (v * 16.0).trunc() / 16.0] {
            let value = Value::Float(candidate);
            let is_simpler = kind.complexity(&value) < kind.complexity(&Value::Float(v));
            helped |= is_simpler && kind.accepts(&value) && self.replaced(step, at, value);
        }
        if let Some(Choice { value: Value::Float(v), .. }) = self.choice((step, at))
            && v.fract() == 0.0
            && v.abs() < 1e15
        {
            helped |= self.lower_number(step, at, kind, v as i128, |d| Value::Float(d as f64));
        }
        helped
    }

    /// Shortens a byte string from its end, then from its start, then lowers each byte.
    fn lower_bytes(&mut self, step: usize, at: usize, min: usize, bytes: &[u8]) -> bool {
        let mut best = bytes.to_vec();
        let mut helped = false;
        let mut cut = best.len().saturating_sub(min);
        while cut > 0 {
            let keep = best.len().saturating_sub(cut).max(min);
            let candidates = [best[..keep].to_vec(), best[best.len() - keep..].to_vec()];
            let better = candidates.into_iter().find(|candidate| {
                candidate.len() < best.len()
                    && self.replaced(step, at, Value::Bytes(candidate.as_slice().into()))
            });
            match better {
                Some(better) => {
                    best = better;
                    helped = true;
                }
                None => cut /= 2,
            }
        }
        for index in 0..best.len() {
            for byte in [0, b'0', b'a', best[index] / 2, best[index].wrapping_sub(1)] {
                let mut candidate = best.clone();
                candidate[index] = byte;
                if byte < best[index] && self.replaced(step, at, Value::Bytes(candidate.as_slice().into())) {
                    best = candidate;
                    helped = true;
                    break;
                }
            }
        }
        helped
    }
}

/// The simplest value of a number and the distance from it.
fn number(choice: &Choice) -> Option<(i128, i128)> {
    let (simplest, value): (i128, i128) = match (choice.kind, &choice.value) {
        (Kind::Integer { simplest, .. }, Value::Integer(v)) => (simplest.into(), (*v).into()),
        (Kind::Unsigned { simplest, .. }, Value::Unsigned(v)) => (simplest.into(), (*v).into()),
        (Kind::Index { .. }, Value::Index(v)) => (0, (*v).into()),
        _ => return None,
    };
    Some((simplest, value - simplest))
}

/// The number `by` more, where it is a possible answer to the same question.
fn shifted(choice: &Choice, by: i128) -> Option<Value> {
    let (simplest, distance) = number(choice)?;
    let value = simplest + distance + by;
    let value = match choice.value {
        Value::Integer(_) => Value::Integer(value.try_into().ok()?),
        Value::Index(_) => Value::Index(value.try_into().ok()?),
        _ => Value::Unsigned(value.try_into().ok()?),
    };
    choice.kind.accepts(&value).then_some(value)
}

fn same_kind(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}
