//! Passes over spans: what a strategy drew goes, gives way to a part of itself, or changes places.
//!
//! Spans that follow directly on one another with the same label, in the same span, are a **row**: the
//! elements of a collection.

use std::ops::Range;

use super::numbers::{distance, shifted};
use super::{DraftHole, Gate, compare_choices};
use crate::choice::{Choice, Hole, Span, Value};
use crate::target::Target;

/// Spans of a step between which a place is sought for each; in a larger step only neighbours are exchanged.
const REORDERED_MAX: usize = 100;
/// Runs of choices that are deleted at once.
const RUNS: [usize; 4] = [8, 4, 2, 1];

/// A span that holds choices, and where it lies.
#[derive(Clone)]
struct Node {
    /// Its number among all spans of the step.
    number: u32,
    label: (u32, u32),
    start: usize,
    end: usize,
    /// The index of the node that holds it.
    parent: Option<usize>,
}

impl Node {
    fn holds(&self, other: &Node) -> bool {
        self.number < other.number && self.start <= other.start && other.end <= self.end
    }
}

impl<T: Target> Gate<'_, T> {
    /// The spans of a step that hold choices, each before what it holds.
    fn nodes(&self, step: usize) -> Vec<Node> {
        let Some(step) = self.best.steps().get(step) else { return Vec::new() };
        let mut nodes: Vec<Node> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for (number, span) in self.best.spans(step).iter().enumerate() {
            let Span { label, start, end, .. } = *span;
            if start == end {
                continue;
            }
            let (start, end) = (start as usize, end as usize);
            while open.last().is_some_and(|outer| nodes[*outer].end <= start) {
                open.pop();
            }
            let parent = open.last().copied();
            open.push(nodes.len());
            nodes.push(Node { number: number as u32, label, start, end, parent });
        }
        nodes
    }

    /// The rows of a step, outer ones first.
    fn rows(&self, step: usize) -> Vec<Vec<Range<usize>>> {
        let nodes = self.nodes(step);
        let mut rows: Vec<(usize, Vec<Range<usize>>)> = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let row = rows.iter_mut().rev().find(|(last, row)| {
                let last = &nodes[*last];
                last.label == node.label
                    && last.parent == node.parent
                    && row.last().is_some_and(|range| range.end == node.start)
            });
            match row {
                Some((last, row)) => {
                    *last = index;
                    row.push(node.start..node.end);
                }
                None => rows.push((index, std::iter::once(node.start..node.end).collect())),
            }
        }
        rows.into_iter().map(|(_, row)| row).filter(|row| row.len() > 1).collect()
    }

    /// Whether the choice begins an element of a row: to lower it would only end the row there.
    pub(super) fn begins_element(&self, step: usize, at: usize) -> bool {
        self.rows(step).iter().flatten().any(|range| range.start == at && range.len() > 1)
    }

    fn choices(&self, step: usize) -> &[Choice] {
        self.best.steps().get(step).map_or(&[], |step| self.best.choices(step))
    }

    fn is_simplest(&self, step: usize, range: Range<usize>) -> bool {
        self.choices(step)[range].iter().all(|choice| choice.value == choice.kind.simplest())
    }

    /// Makes spans all simplest, whatever they then ask: the outermost that can be.
    pub(super) fn collapse_spans(&mut self) -> bool {
        let mut helped = false;
        for step in 0..self.best.len() {
            let mut at = 0;
            while let Some(node) = self.nodes(step).get(at).cloned() {
                at += 1;
                let range = node.start..node.end;
                let is_row = |row: &Vec<Range<usize>>| {
                    row[0].start == range.start && row[row.len() - 1].end == range.end
                };
                let is_thinned = self.rows(step).iter().any(|row| row.contains(&range) || is_row(row));
                if is_thinned || self.is_over() || self.is_simplest(step, node.start..node.end) {
                    continue;
                }
                let nodes = self.nodes(step);
                let nested = nodes.iter().filter(|inner| inner.start == node.start && node.holds(inner));
                let hole = Hole { span: node.number, resume: node.end as u32 };
                let hole = DraftHole { hole, start: node.start, nested: nested.count() as u16 };
                let mut candidate = self.drafts.clone();
                candidate[step].hole = Some(hole);
                helped |= self.is_better(&candidate, step);
            }
        }
        helped
    }

    /// Thins rows out, late elements first.
    pub(super) fn delete_rows(&mut self) -> bool {
        let mut helped = false;
        for step in (0..self.best.len()).rev() {
            let mut at = 0;
            while let Some(row) = self.rows(step).get(at).cloned().filter(|_| !self.is_over()) {
                at += 1;
                helped |= self.thin(step, &row);
            }
        }
        helped
    }

    /// Deletes elements of a row, in runs that double for as long as they can go.
    fn thin(&mut self, step: usize, row: &[Range<usize>]) -> bool {
        let mut helped = false;
        let mut end = row.len();
        // The last element of a row may only say that there is none.
        if row[end - 1].len() == 1 && self.is_simplest(step, row[end - 1].clone()) {
            end -= 1;
        }
        while end > 0 {
            let mut run = 1;
            while run <= end && self.thinned(step, &row[..end], end - run) {
                helped = true;
                end -= run;
                run *= 2;
            }
            if run == 1 {
                end -= 1;
            }
        }
        helped
    }

    /// Whether the trace without the elements from `from` on became the best: by itself; or together with a
    /// number before the row that says how many they are; or where later numbers in the row that may be
    /// positions in it close up.
    fn thinned(&mut self, step: usize, row: &[Range<usize>], from: usize) -> bool {
        let (start, run) = (row[0].start, (row.len() - from) as i128);
        let range = row[from].start..row[row.len() - 1].end;
        if self.deleted(step, range.clone()) {
            return true;
        }
        let choices = self.choices(step);
        if choices.len() < range.end {
            return false;
        }
        let len = row.len() as i128;
        let is_size = |choice: &Choice| distance(choice).is_some_and(|d| d == len || d + 1 == len);
        if let Some(at) = choices[..start].iter().rposition(is_size)
            && let Some(less) = shifted(&choices[at], -run)
        {
            let mut candidate = self.drafts.clone();
            candidate[step].values[at] = less;
            candidate[step].values.drain(range.clone());
            if self.is_better(&candidate, step) {
                return true;
            }
        }
        self.closed_up_row(step, row, from)
    }

    fn closed_up_row(&mut self, step: usize, row: &[Range<usize>], from: usize) -> bool {
        let range = row[from].start..row[row.len() - 1].end;
        let all = self.rows(step).into_iter().find(|all| all[0] == row[0]).unwrap_or_else(|| row.to_vec());
        let choices = self.choices(step);
        let mut candidate = self.drafts.clone();
        let whole = row[0].start..all[all.len() - 1].end;
        for (at, choice) in whole.clone().zip(&choices[whole]) {
            let number = match choice.value {
                Value::Integer(v) => i128::from(v),
                Value::Unsigned(v) => v.into(),
                Value::Index(v) => v.into(),
                _ => continue,
            };
            if !(0..all.len() as i128).contains(&number) {
                return false;
            }
            if number > from as i128 {
                let less = shifted(choice, -(number - from as i128).min((row.len() - from) as i128));
                candidate[step].values[at] = less.unwrap_or_else(|| choice.value.clone());
            }
        }
        candidate[step].values.drain(range);
        self.is_better(&candidate, step)
    }

    /// Whether the trace without these choices became the best.
    fn deleted(&mut self, step: usize, range: Range<usize>) -> bool {
        if self.choices(step).len() < range.end {
            return false;
        }
        let mut candidate = self.drafts.clone();
        candidate[step].values.drain(range);
        self.is_better(&candidate, step)
    }

    /// Makes one of two neighbours in a row: what ends the first and begins the second goes.
    pub(super) fn merge_rows(&mut self) -> bool {
        let mut helped = false;
        for step in 0..self.best.len() {
            let mut at = 0;
            while let Some(row) = self.rows(step).get(at).cloned().filter(|_| !self.is_over()) {
                at += 1;
                for pair in row.windows(2).rev() {
                    if pair[0].len() > 1 && pair[1].len() > 1 {
                        helped |= self.deleted(step, pair[0].end - 1..pair[1].start + 1);
                    }
                }
            }
        }
        helped
    }

    /// Puts a span in the place of one with the same label that holds it.
    pub(super) fn hoist_spans(&mut self) -> bool {
        let mut helped = false;
        for step in 0..self.best.len() {
            let mut at = 0;
            while at < self.nodes(step).len() && !self.is_over() {
                if self.hoisted(step, at) {
                    helped = true;
                } else {
                    at += 1;
                }
            }
        }
        helped
    }

    fn hoisted(&mut self, step: usize, at: usize) -> bool {
        let nodes = self.nodes(step);
        let outer = &nodes[at];
        let mut covered = outer.start;
        for inner in &nodes[at + 1..] {
            // Those within one that was tried come when it is the outer one.
            if !outer.holds(inner) || inner.label != outer.label || inner.start < covered {
                continue;
            }
            covered = inner.end;
            let mut candidate = self.drafts.clone();
            let values = candidate[step].values[inner.start..inner.end].to_vec();
            candidate[step].values.splice(outer.start..outer.end, values);
            if self.is_better(&candidate, step) {
                return true;
            }
        }
        false
    }

    /// Moves spans before earlier ones with the same label, wherever that is simpler: elements come in order,
    /// and what was in one part of a tree comes to stand in another.
    pub(super) fn reorder_spans(&mut self) -> bool {
        let mut helped = false;
        for step in 0..self.best.len() {
            let mut late = 1;
            while late < self.nodes(step).len() && !self.is_over() {
                let moved = self.moved_forward(step, late);
                helped |= moved;
                late = if moved { 1 } else { late + 1 };
            }
        }
        helped
    }

    fn moved_forward(&mut self, step: usize, late: usize) -> bool {
        let nodes = self.nodes(step);
        let node = &nodes[late];
        let is_large = nodes.len() > REORDERED_MAX;
        // Of a collection the last element may only say that there is none; it stays the last.
        let is_list = |node: &Node| {
            node.parent.is_some_and(|parent| {
                let elements = nodes.iter().filter(|other| other.parent == Some(parent));
                nodes[parent].end == node.end && elements.count() > 2
            })
        };
        for early in &nodes[..late] {
            let is_apart = early.end <= node.start && early.label == node.label;
            let ends_its_row = node.end - node.start == 1 && early.parent == node.parent && is_list(node);
            if !is_apart
                || ends_its_row
                || (is_large && early.end < node.start)
                || !self.is_less(step, node, early)
            {
                continue;
            }
            let mut candidate = self.drafts.clone();
            candidate[step].values[early.start..node.end].rotate_right(node.end - node.start);
            if self.is_better(&candidate, step) {
                return true;
            }
        }
        false
    }

    /// Whether the first choices in which they differ are simpler in `a`.
    fn is_less(&self, step: usize, a: &Node, b: &Node) -> bool {
        let choices = self.choices(step);
        let pairs = choices[a.start..a.end].iter().zip(&choices[b.start..b.end]);
        let mut orders = pairs.map(|(a, b)| compare_choices(a, b));
        orders.find(|order| order.is_ne()).is_some_and(|order| order.is_lt())
    }

    /// Deletes runs of choices that lie directly in one span, or in none: what was drawn without a strategy.
    pub(super) fn delete_choices(&mut self) -> bool {
        let mut helped = false;
        for len in RUNS {
            for step in (0..self.best.len()).rev() {
                let mut end = self.choices(step).len();
                while end >= len && !self.is_over() {
                    let is_deleted =
                        self.is_direct(step, end - len..end) && self.deleted(step, end - len..end);
                    helped |= is_deleted || self.deleted_one_less(step, end - len..end);
                    end = if is_deleted { end - len } else { end - 1 };
                    end = end.min(self.choices(step).len());
                }
            }
        }
        helped
    }

    /// The innermost span around each of these choices is the same.
    fn is_direct(&self, step: usize, range: Range<usize>) -> bool {
        let nodes = self.nodes(step);
        let holder = |at: usize| nodes.iter().rposition(|node| (node.start..node.end).contains(&at));
        let first = holder(range.start);
        range.into_iter().all(|at| holder(at) == first)
    }

    /// Where no span says what belongs together: deletes a run of choices, and lowers by one a number before it
    /// that may be their count.
    fn deleted_one_less(&mut self, step: usize, range: Range<usize>) -> bool {
        if !self.nodes(step).is_empty() || range.end > self.choices(step).len() {
            return false;
        }
        (0..range.start).rev().any(|at| {
            let choices = self.choices(step);
            if range.end > choices.len() || distance(&choices[at]).is_none_or(|d| d <= 0) {
                return false;
            }
            let Some(less) = shifted(&choices[at], -1) else { return false };
            let mut candidate = self.drafts.clone();
            candidate[step].values[at] = less;
            candidate[step].values.drain(range.clone());
            self.is_better(&candidate, step)
        })
    }
}
