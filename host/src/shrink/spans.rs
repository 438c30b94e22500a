//! Passes over spans: what a strategy drew goes, gives way to a part of itself, or changes places.

use std::ops::Range;
use std::rc::Rc;

use super::compare_choices;
use super::edit::{DraftHole, Edit};
use super::gate::Gate;
use super::layout::{Layout, Node, Row};
use super::numbers::{distance, number, shifted};
use crate::choice::{Choice, Hole};
use crate::target::Target;

/// Spans of a step between which a place is sought for each; in a larger step only neighbours are exchanged.
const REORDERED_MAX: usize = 100;
/// Runs of choices that are deleted at once.
const RUNS: [usize; 6] = [8, 5, 4, 3, 2, 1];

impl<T: Target> Gate<'_, T> {
    /// How the choices of a step lie in spans.
    pub(super) fn layout(&self, step: usize) -> Rc<Layout> {
        let Some(found) = self.best.steps().get(step) else { return Rc::new(Layout::new(&[], 0)) };
        let mut layouts = self.layouts.borrow_mut();
        let layout = || Rc::new(Layout::new(self.best.spans(found), self.best.choices(found).len()));
        layouts.entry(step).or_insert_with(layout).clone()
    }

    /// The rows of all steps.
    pub(super) fn rows(&self) -> Vec<Row> {
        let steps = 0..self.best.len();
        steps
            .flat_map(|step| self.layout(step).rows.clone().into_iter().map(move |row| (step, row)))
            .collect()
    }

    pub(super) fn choices(&self, step: usize) -> &[Choice] {
        self.best.steps().get(step).map_or(&[], |step| self.best.choices(step))
    }

    pub(super) fn is_simplest(&self, step: usize, range: Range<usize>) -> bool {
        self.choices(step)[range].iter().all(|choice| choice.value == choice.kind.simplest())
    }

    /// Makes spans all simplest, whatever they then ask: the outermost that can be.
    pub(super) fn collapse_spans(&mut self) -> bool {
        let mut helped = false;
        for step in 0..self.best.len() {
            let mut at = 0;
            while let Some(node) = self.layout(step).nodes.get(at).cloned() {
                at += 1;
                if node.is_thinned || self.is_over() || self.is_simplest(step, node.start..node.end) {
                    continue;
                }
                let layout = self.layout(step);
                let inner = layout.nodes[at..].iter().take_while(|inner| inner.start == node.start);
                let nested = inner.filter(|inner| node.holds(inner));
                let hole = Hole { span: node.number, resume: node.end as u32 };
                let hole = DraftHole { hole, start: node.start, nested: nested.count() as u32 };
                helped |= self.is_better([Edit::Hole { step, hole: Some(hole) }]);
            }
        }
        helped
    }

    /// Thins rows out, late elements first.
    pub(super) fn delete_rows(&mut self) -> bool {
        let mut helped = false;
        for step in (0..self.best.len()).rev() {
            let mut at = 0;
            while let Some(row) = self.layout(step).rows.get(at).cloned().filter(|_| !self.is_over()) {
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
        while end > 0 && !self.is_over() {
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

    /// Whether the trace without the elements from `from` on became the best: by itself, or together with a
    /// number before the row that says how many they are; as they are, or where later numbers in the row that may be
    /// positions in it close up.
    pub(super) fn thinned(&mut self, step: usize, row: &[Range<usize>], from: usize) -> bool {
        let range = row[from].start..row[row.len() - 1].end;
        if self.deleted(step, range.clone()) {
            return true;
        }
        let choices = self.choices(step);
        if choices.len() < range.end {
            return false;
        }
        let (layout, run) = (self.layout(step), row.len() - from);
        let all = layout.rows.iter().find(|all| all[0] == row[0]).map_or(row, |all| all);
        let len = all.len() as i128;
        let is_size = |choice: &Choice| distance(choice).is_some_and(|d| d == len || d + 1 == len);
        let size = choices[..row[0].start].iter().rposition(is_size);
        let size = size.and_then(|at| {
            let value = shifted(&choices[at], -(run as i128))?;
            Some(Edit::Value { place: (step, at), value })
        });
        let deletion = Edit::without(step, range);
        if size.clone().is_some_and(|size| self.is_better([size, deletion.clone()])) {
            return true;
        }
        let Some(edits) = self.closed_up_row(step, all, from, run).filter(|edits| !edits.is_empty()) else {
            return false;
        };
        let edits = [edits, vec![deletion]].concat();
        self.is_better(edits.clone()) || size.is_some_and(|size| self.is_better([vec![size], edits].concat()))
    }

    /// What makes of the numbers in a row, if all may be positions in it, those without `run` elements from `from` on.
    fn closed_up_row(&self, step: usize, row: &[Range<usize>], from: usize, run: usize) -> Option<Vec<Edit>> {
        let choices = self.choices(step);
        let whole = row[0].start..row[row.len() - 1].end;
        let mut edits = Vec::new();
        for (at, choice) in whole.clone().zip(&choices[whole]) {
            let Some(number) = number(choice) else { continue };
            if !(0..row.len() as i128).contains(&number) {
                return None;
            }
            if number > from as i128 {
                let less = shifted(choice, -(number - from as i128).min(run as i128));
                edits.extend(less.map(|value| Edit::Value { place: (step, at), value }));
            }
        }
        Some(edits)
    }

    /// Whether the trace without these choices became the best.
    fn deleted(&mut self, step: usize, range: Range<usize>) -> bool {
        self.choices(step).len() >= range.end && self.is_better([Edit::without(step, range)])
    }

    /// Makes one of two neighbours in a row: what ends the first and begins the second goes.
    pub(super) fn merge_rows(&mut self) -> bool {
        let mut helped = false;
        for step in 0..self.best.len() {
            let mut at = 0;
            while let Some(row) = self.layout(step).rows.get(at).cloned().filter(|_| !self.is_over()) {
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
            while at < self.layout(step).nodes.len() && !self.is_over() {
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
        let layout = self.layout(step);
        let outer = &layout.nodes[at];
        let mut covered = outer.start;
        for inner in layout.nodes[at + 1..].iter().take_while(|inner| inner.start < outer.end) {
            // Those within one that was tried come when it is the outer one.
            if !outer.holds(inner) || inner.label != outer.label || inner.start < covered {
                continue;
            }
            covered = inner.end;
            let values = self.drafts[step].values[inner.start..inner.end].to_vec();
            if self.is_better([Edit::Values { step, range: outer.start..outer.end, values }]) {
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
            while late < self.layout(step).nodes.len() && !self.is_over() {
                let moved = self.moved_forward(step, late);
                helped |= moved;
                late = if moved { 1 } else { late + 1 };
            }
        }
        helped
    }

    fn moved_forward(&mut self, step: usize, late: usize) -> bool {
        let layout = self.layout(step);
        let nodes = &layout.nodes;
        let node = &nodes[late];
        // Of a collection the last element may only say that there is none; it stays the last.
        let is_last = node.end - node.start == 1
            && node.parent.is_some_and(|p| nodes[p].end == node.end && nodes[p].children > 2);
        let earlier = match (nodes.len() > REORDERED_MAX, node.previous) {
            (false, _) => 0..late,
            (true, Some(previous)) => previous..previous + 1,
            (true, None) => 0..0,
        };
        for early in &nodes[earlier] {
            let is_apart = early.end <= node.start && early.label == node.label;
            let ends_its_row = is_last && early.parent == node.parent;
            if !is_apart || ends_its_row || !self.is_less(step, node, early) {
                continue;
            }
            let (range, by) = (early.start..node.end, node.end - node.start);
            if self.is_better([Edit::Rotation { step, range, by }]) {
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

    /// The innermost span around each of these choices is the same, and what follows them could come in their
    /// place.
    fn is_direct(&self, step: usize, range: Range<usize>) -> bool {
        let choices = self.choices(step);
        let fits = choices.get(range.end).is_none_or(|next| choices[range.start].kind.accepts(&next.value));
        let holders = &self.layout(step).holders[range];
        fits && holders.iter().all(|holder| *holder == holders[0])
    }

    /// Where no span says what belongs together: deletes a run of choices, and lowers by one a number before it
    /// that may be their count.
    fn deleted_one_less(&mut self, step: usize, range: Range<usize>) -> bool {
        if !self.layout(step).nodes.is_empty() || range.end > self.choices(step).len() {
            return false;
        }
        (0..range.start).rev().any(|at| {
            let choices = self.choices(step);
            if range.end > choices.len() || distance(&choices[at]).is_none_or(|d| d <= 0) {
                return false;
            }
            let Some(less) = shifted(&choices[at], -1) else { return false };
            let lowered = Edit::Value { place: (step, at), value: less };
            self.is_better([lowered, Edit::without(step, range.clone())])
        })
    }
}
