//! Where one is in a timeline, and what one waits for.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};

use super::expression::{Expression, Lack};
use super::scope::{At, Names};
use super::timeline::Timeline;
use super::value::Value;

/// Expressions that are watched.
const WATCHES_MAX: usize = 100;

/// A timeline, a position in it, and what one waits for.
pub struct Debugger {
    pub(super) timeline: Timeline,
    pub(super) names: Names,
    position: usize,
    watches: Vec<Watch>,
    number: usize,
    breaks: BTreeSet<String>,
}

/// An expression that is watched.
#[derive(Clone, Debug)]
pub struct Watch {
    /// What it is called, from 1.
    pub number: usize,
    /// What is watched.
    pub expression: Expression,
}

/// What an expression comes to, or why it does not.
#[derive(Clone, Debug)]
pub struct Seen(pub std::result::Result<Value, String>);

impl PartialEq for Seen {
    /// What is not there stays the same, whyever it is not.
    fn eq(&self, other: &Seen) -> bool {
        match (&self.0, &other.0) {
            (Ok(Value::Float(one)), Ok(Value::Float(other))) => one.to_bits() == other.to_bits(),
            (Ok(one), Ok(other)) => one == other,
            (one, other) => one.is_err() && other.is_err(),
        }
    }
}

/// Where one came to, and why not further.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// The position.
    pub position: usize,
    /// What there is to say of it; several things may be.
    pub reasons: Vec<Reason>,
}

/// Why one comes no further.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// The last step is one that is waited for.
    Break(String),
    /// An expression has another value than before the last step.
    Changed {
        /// The expression.
        expression: String,
        /// What it was.
        before: Seen,
        /// What it is.
        after: Seen,
    },
    /// The last step failed.
    Failure,
    /// There is nothing after it.
    End,
    /// There is nothing before it.
    Start,
}

impl Debugger {
    /// At the start of a timeline.
    pub fn new(timeline: Timeline) -> Debugger {
        Debugger {
            timeline,
            names: Names::default(),
            position: 0,
            watches: Vec::new(),
            number: 0,
            breaks: BTreeSet::new(),
        }
    }

    /// How many steps were performed.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The states.
    pub fn timeline(&mut self) -> &mut Timeline {
        &mut self.timeline
    }

    /// What is watched.
    pub fn watches(&self) -> &[Watch] {
        &self.watches
    }

    /// The names of steps that are waited for.
    pub fn breaks(&self) -> &BTreeSet<String> {
        &self.breaks
    }

    /// Goes to a position.
    ///
    /// # Errors
    /// There is no such position; the guest is not deterministic; the budget is over.
    pub fn go(&mut self, position: usize) -> Result<()> {
        let len = self.timeline.len();
        ensure!(position <= len, "there is no step {position}: the last is {len}");
        self.timeline.go(position)?;
        self.position = position;
        Ok(())
    }

    /// Goes on until there is a reason to stop, forwards or back.
    ///
    /// # Errors
    /// As [`Debugger::go`].
    pub fn run(&mut self, forwards: bool) -> Result<Stop> {
        let len = self.timeline.len();
        let watches = self.watches.clone();
        let mut position = self.position;
        let mut values = self.values(&watches, position)?;
        loop {
            let next = if forwards { position + 1 } else { position.wrapping_sub(1) };
            if next > len {
                break;
            }
            let now = self.values(&watches, next)?;
            // Back, it is the step that one came to after which something changed.
            let mut reasons = Vec::new();
            let changed = |(watch, (before, after)): (&Watch, (&Seen, &Seen))| {
                let (before, after) = (before.clone(), after.clone());
                (before != after).then(|| Reason::Changed {
                    expression: watch.expression.text.clone(),
                    before,
                    after,
                })
            };
            match forwards {
                true => reasons.extend(watches.iter().zip(values.iter().zip(&now)).filter_map(changed)),
                false if next > 0 => {
                    let before = self.values(&watches, next - 1)?;
                    reasons.extend(watches.iter().zip(before.iter().zip(&now)).filter_map(changed));
                }
                false => {}
            }
            if next > 0 {
                let name = self.timeline.name(next);
                reasons.extend(self.breaks.contains(&name).then_some(Reason::Break(name)));
            }
            (position, values) = (next, now);
            if !reasons.is_empty() {
                return self.stop(position, reasons);
            }
        }
        self.stop(position, Vec::new())
    }

    /// Goes to a position; where it is at an end, that is a reason too.
    fn stop(&mut self, position: usize, mut reasons: Vec<Reason>) -> Result<Stop> {
        self.go(position)?;
        if self.timeline.failure(position).is_some() {
            reasons.push(Reason::Failure);
        } else if position == self.timeline.len() {
            reasons.push(Reason::End);
        }
        if position == 0 {
            reasons.push(Reason::Start);
        }
        Ok(Stop { position, reasons })
    }

    fn values(&mut self, watches: &[Watch], position: usize) -> Result<Vec<Seen>> {
        watches.iter().map(|watch| self.evaluate(&watch.expression, position)).collect()
    }

    /// What an expression comes to in the state at a position.
    ///
    /// # Errors
    /// The budget is over.
    pub fn evaluate(&mut self, expression: &Expression, position: usize) -> Result<Seen> {
        let mut scope = At { timeline: &mut self.timeline, names: &mut self.names, position };
        match expression.evaluate(&mut scope) {
            Ok(value) => Ok(Seen(Ok(value))),
            Err(Lack::Absent(why)) => Ok(Seen(Err(why))),
            Err(Lack::Stopped(error)) => Err(error),
        }
    }

    /// Watches an expression; what it is called.
    ///
    /// # Errors
    /// It has a value in no state; too many are watched; the budget is over.
    pub fn watch(&mut self, expression: Expression) -> Result<usize> {
        ensure!(self.watches.len() < WATCHES_MAX, "{WATCHES_MAX} expressions are watched already");
        self.has_value(&expression)?;
        self.number += 1;
        self.watches.push(Watch { number: self.number, expression });
        Ok(self.number)
    }

    /// Watches the expression with this number no longer.
    ///
    /// # Errors
    /// There is none.
    pub fn unwatch(&mut self, number: usize) -> Result<()> {
        let before = self.watches.len();
        self.watches.retain(|watch| watch.number != number);
        ensure!(self.watches.len() < before, "there is no watch {number}");
        Ok(())
    }

    /// Watches these expressions and no others.
    pub(super) fn set_watches(&mut self, expressions: Vec<Expression>) {
        let watches = (1..).zip(expressions.into_iter().take(WATCHES_MAX));
        self.watches = watches.map(|(number, expression)| Watch { number, expression }).collect();
        self.number = self.watches.len();
    }

    /// Waits for the steps with this name.
    ///
    /// # Errors
    /// No step can have it.
    pub fn wait_for(&mut self, name: &str) -> Result<()> {
        if !self.can_be_called(name) {
            bail!("no step is called `{name}`; `list` tells what the steps are called");
        }
        self.breaks.insert(name.to_string());
        Ok(())
    }

    /// Whether a step of the trace is called this.
    pub(super) fn can_be_called(&self, name: &str) -> bool {
        (1..=self.timeline.len()).any(|number| self.timeline.name(number) == name)
    }

    /// Waits for the steps with this name no longer.
    ///
    /// # Errors
    /// They are not waited for.
    pub fn wait_no_longer(&mut self, name: &str) -> Result<()> {
        ensure!(self.breaks.remove(name), "no step called `{name}` is waited for");
        Ok(())
    }

    /// Waits for the steps with these names and no others.
    pub(super) fn set_breaks(&mut self, names: BTreeSet<String>) {
        self.breaks = names;
    }

    /// The last step up to here that changed what an expression comes to, and what it was before and is after it; none where it is what it was
    /// at the start.
    ///
    /// # Errors
    /// It has a value in no state; the budget is over.
    pub fn last(&mut self, expression: &Expression) -> Result<Option<(usize, Seen, Seen)>> {
        let mut after = self.evaluate(expression, self.position)?;
        let mut has_value = after.0.is_ok();
        for number in (1..=self.position).rev() {
            let before = self.evaluate(expression, number - 1)?;
            if before != after {
                return Ok(Some((number, before, after)));
            }
            has_value |= before.0.is_ok();
            after = before;
        }
        if !has_value {
            self.has_value(expression)?;
        }
        Ok(None)
    }

    /// The first position at which an expression holds. All are looked at, so it may hold, not hold, and hold again.
    ///
    /// # Errors
    /// It has a value in no state; it is neither true nor false; the budget is over.
    pub fn bisect(&mut self, expression: &Expression) -> Result<Option<usize>> {
        let mut unfit = None;
        let found = self.find(expression, &mut |value| match &value.0 {
            Ok(value) => match value.is_true() {
                Some(holds) => holds,
                None => {
                    unfit = Some(value.noun());
                    true
                }
            },
            Err(_) => false,
        })?;
        if let Some(noun) = unfit {
            bail!("`{}` is {noun}, which is neither true nor false", expression.text);
        }
        Ok(found)
    }

    /// Sees to it that an expression has a value in some state.
    ///
    /// # Errors
    /// It has none; the budget is over.
    pub(super) fn has_value(&mut self, expression: &Expression) -> Result<()> {
        self.find(expression, &mut |value| value.0.is_ok()).map(drop)
    }

    /// The first position at which `is_it` says so.
    fn find(
        &mut self,
        expression: &Expression,
        is_it: &mut dyn FnMut(&Seen) -> bool,
    ) -> Result<Option<usize>> {
        let (mut is_known, mut whys) = (false, Vec::new());
        for position in 0..=self.timeline.len() {
            let value = self.evaluate(expression, position)?;
            if is_it(&value) {
                return Ok(Some(position));
            }
            match value.0 {
                Ok(_) => is_known = true,
                Err(why) => match whys.iter_mut().find(|(known, _)| *known == why) {
                    Some((_, times)) => *times += 1,
                    None => whys.push((why, 1)),
                },
            }
        }
        // Before the first step, and where a step fails, a guest may describe nothing.
        match whys.into_iter().rev().max_by_key(|(_, times)| *times) {
            Some((why, _)) if !is_known => bail!("`{}` has a value after no step: {why}", expression.text),
            _ => Ok(None),
        }
    }
}
