//! What the shrinker tries, pass by pass. Every candidate goes through the gate.

use std::ops::Range;

use super::{Draft, Gate};
use crate::choice::{Choice, Kind, Span, Value};
use crate::target::Target;
use crate::trace::Action;

/// A choice: which step, and which of its choices.
type Place = (usize, usize);

/// How many simpler values next to one are tried.
const NEAR: i128 = 5;
/// How many later choices are tried together with one.
const LATER: usize = 8;

impl<T: Target> Gate<'_, T> {
    /// One round of all passes. Whether any helped.
    pub(super) fn pass(&mut self) -> bool {
        let steps = self.delete_steps();
        let choices = self.delete_choices();
        let values = self.lower_values();
        let equal = self.lower_equal();
        let together = self.lower_together();
        let sums = self.redistribute();
        let sizes = self.lower_sizes();
        let indices = self.delete_and_close_up();
        let order = self.swap_spans();
        let helped = [steps, choices, values, equal, together, sums, sizes, indices, order];
        helped.contains(&true)
    }

    /// Deletes runs of steps, long ones first, late ones first.
    fn delete_steps(&mut self) -> bool {
        let mut helped = false;
        let mut len = self.best.len() / 2;
        while len > 0 {
            let mut end = self.best.len();
            while end >= len && !self.is_over() {
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
                while end >= len && !self.is_over() {
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
            while let Some(choice) = self.choice((step, at)).filter(|_| !self.is_over()) {
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
        while let Some(place) = self.place(at) {
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
        while let Some(from) = self.place(at) {
            at += 1;
            let Some(giver) = self.choice(from) else { continue };
            if number(&giver).is_none_or(|(_, distance)| distance == 0) {
                continue;
            }
            for to in self.later_of_kind(from, &giver) {
                let distance = |gate: &Self| gate.choice(from).and_then(|c| number(&c)).map_or(0, |(_, d)| d);
                let mut amount = distance(self);
                while amount != 0 {
                    if self.moved(from, to, amount) {
                        helped = true;
                        let left = distance(self);
                        amount = if amount.abs() < left.abs() { amount } else { left };
                    } else {
                        amount /= 2;
                    }
                }
            }
        }
        helped
    }

    /// The next few choices of the same kind of value after a place.
    fn later_of_kind(&self, from: Place, choice: &Choice) -> Vec<Place> {
        let is_like = |place: &Place| self.choice(*place).is_some_and(|c| same_kind(&c.value, &choice.value));
        self.places().into_iter().filter(|place| *place > from).filter(is_like).take(LATER).collect()
    }

    /// Lowers two numbers by the same amount, which keeps their difference; and sets two choices to their
    /// simplest at once, where one alone does not do.
    fn lower_together(&mut self) -> bool {
        let mut helped = false;
        let mut at = 0;
        while let Some(first) = self.place(at) {
            at += 1;
            let later: Vec<Place> = self.places().into_iter().filter(|p| *p > first).take(LATER).collect();
            for second in later {
                helped |= self.lower_pair(first, second);
            }
        }
        helped
    }

    fn lower_pair(&mut self, first: Place, second: Place) -> bool {
        let (Some(a), Some(b)) = (self.choice(first), self.choice(second)) else { return false };
        let (a_simplest, b_simplest) = (a.kind.simplest(), b.kind.simplest());
        if a.value == a_simplest || b.value == b_simplest {
            return false;
        }
        if self.replaced_both(first, a_simplest, second, b_simplest) {
            return true;
        }
        let (Some((_, d)), Some((_, e))) = (number(&a), number(&b)) else { return false };
        if !same_kind(&a.value, &b.value) || d.signum() != e.signum() {
            return false;
        }
        let mut helped = false;
        let mut amount = if d.abs() < e.abs() { d } else { e };
        while amount != 0 {
            let (Some(a), Some(b)) = (self.choice(first), self.choice(second)) else { break };
            let lower = shifted(&a, -amount).zip(shifted(&b, -amount));
            match lower {
                Some((a, b)) if self.replaced_both(first, a.clone(), second, b.clone()) => helped = true,
                _ => amount /= 2,
            }
        }
        helped
    }

    fn replaced_both(&mut self, first: Place, a: Value, second: Place, b: Value) -> bool {
        let mut candidate = self.drafts();
        let places = [(first, a), (second, b)];
        for ((step, at), value) in places {
            let Some(slot) = candidate.get_mut(step).and_then(|draft| draft.values.get_mut(at)) else {
                return false;
            };
            *slot = value;
        }
        self.is_better(&candidate, first.0)
    }

    /// Lowers a number by one and deletes a later choice of the step: a size that was drawn before the
    /// elements.
    fn lower_sizes(&mut self) -> bool {
        let mut helped = false;
        let mut at = 0;
        while let Some((step, place)) = self.place(at) {
            at += 1;
            let mut later = place + 1;
            while let Some(size) = self.choice((step, place)) {
                let count = self.drafts().get(step).map_or(0, |draft| draft.values.len());
                let Some((_, 1..)) = number(&size) else { break };
                let (true, Some(less)) = (later < count, shifted(&size, -1)) else { break };
                let mut candidate = self.drafts();
                candidate[step].values[place] = less;
                candidate[step].values.remove(later);
                match self.is_better(&candidate, step) {
                    true => helped = true,
                    false => later += 1,
                }
            }
        }
        helped
    }

    /// Deletes one of several sibling spans and lowers by one every number in its step that is greater than
    /// its position among them: indices into what the spans draw close up.
    fn delete_and_close_up(&mut self) -> bool {
        let mut helped = false;
        for step in 0..self.best.len() {
            let mut at = 0;
            while let Some((span, position)) =
                self.siblings(step).get(at).cloned().filter(|_| !self.is_over())
            {
                let mut candidate = self.drafts();
                let choices = self.best.choices(&self.best.steps()[step]);
                for (slot, choice) in candidate[step].values.iter_mut().zip(choices) {
                    let is_beyond = number(choice).is_some_and(|(simplest, d)| simplest + d > position);
                    if is_beyond && let Some(less) = shifted(choice, -1) {
                        *slot = less;
                    }
                }
                candidate[step].values.drain(span);
                match self.is_better(&candidate, step) {
                    true => helped = true,
                    false => at += 1,
                }
                if step >= self.best.len() {
                    break;
                }
            }
        }
        helped
    }

    /// The spans of a step that follow directly on one another with the same label, as ranges of choices, and
    /// the position of each in its row.
    fn siblings(&self, step: usize) -> Vec<(Range<usize>, i128)> {
        let Some(step) = self.best.steps().get(step) else { return Vec::new() };
        let spans = self.best.spans(step);
        let mut rows = Vec::new();
        for (index, span) in spans.iter().enumerate() {
            let mut position = 0;
            let mut start = span.start;
            for before in spans[..index].iter().rev() {
                if before.label == span.label && before.end == start && before.start < before.end {
                    position += 1;
                    start = before.start;
                }
            }
            if span.start < span.end {
                rows.push((span.start as usize..span.end as usize, position));
            }
        }
        rows
    }

    /// Exchanges neighbouring spans with the same label.
    fn swap_spans(&mut self) -> bool {
        let mut helped = false;
        for step in 0..self.best.len() {
            let mut at = 0;
            while let Some((first, second)) =
                self.neighbours(step).get(at).cloned().filter(|_| !self.is_over())
            {
                at += 1;
                let mut candidate = self.drafts();
                candidate[step].values[first.start..second.end].rotate_left(first.len());
                helped |= self.is_better(&candidate, step);
                if step >= self.best.len() {
                    break;
                }
            }
        }
        helped
    }

    /// Pairs of spans with the same label, the second beginning where the first ends.
    fn neighbours(&self, step: usize) -> Vec<(Range<usize>, Range<usize>)> {
        let Some(step) = self.best.steps().get(step) else { return Vec::new() };
        let spans = self.best.spans(step);
        let range = |span: &Span| span.start as usize..span.end as usize;
        let mut pairs = Vec::new();
        for (index, first) in spans.iter().enumerate() {
            let follows = |second: &&Span| second.label == first.label && second.start == first.end;
            for second in spans[index + 1..].iter().filter(follows) {
                pairs.push((range(first), range(second)));
            }
        }
        pairs
    }

    /// Whether the trace with `amount` taken from one number and given to another became the best.
    fn moved(&mut self, from: Place, to: Place, amount: i128) -> bool {
        let (Some(giver), Some(taker)) = (self.choice(from), self.choice(to)) else { return false };
        let (Some(less), Some(more)) = (shifted(&giver, -amount), wrapped(&taker, amount)) else {
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

    /// The choice with this number in the best trace, while there is any use in looking at it.
    fn place(&self, number: usize) -> Option<Place> {
        if self.is_over() {
            return None;
        }
        let mut left = number;
        for (index, step) in self.best.steps().iter().enumerate() {
            let count = self.best.choices(step).len();
            if left < count {
                return Some((index, left));
            }
            left -= count;
        }
        None
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
        // The next simpler ones: less by a little, or of the other sign.
        let order = |d: i128| if d > 0 { d * 2 - 1 } else { -d * 2 };
        let distance_of = |order: i128| if order % 2 == 1 { order / 2 + 1 } else { -(order / 2) };
        let from = order(high * sign);
        for simpler in (1.max(from - NEAR)..from).rev() {
            if works(self, distance_of(simpler)) {
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

/// As [`shifted`]; beyond one end of the range it goes on from the other, as integers of that width would.
fn wrapped(choice: &Choice, by: i128) -> Option<Value> {
    let (Kind::Integer { min, max, .. }, Value::Integer(v)) = (choice.kind, &choice.value) else {
        return shifted(choice, by);
    };
    let (min, width) = (i128::from(min), i128::from(max) - i128::from(min) + 1);
    let value = (i128::from(*v) + by - min).rem_euclid(width) + min;
    value.try_into().ok().map(Value::Integer)
}

fn same_kind(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}
