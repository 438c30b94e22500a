//! Passes that shorten several values at once, since they must be of one length, or equal: byte strings, and rows of spans.
//!
//! They come after the others, which shorten most values alone.

use std::collections::BTreeMap;

use super::edit::{Edit, Place};
use super::gate::Gate;
use super::layout::Row;
use crate::choice::{Choice, Kind, Value};
use crate::target::Target;

/// With how many later ones of its group each is shortened, where the whole group cannot be.
const LATER: usize = 4;

impl<T: Target> Gate<'_, T> {
    /// Whether any of these passes helped.
    pub(super) fn shorten_together(&mut self) -> bool {
        let mut helped = false;
        while self.shortened_bytes() || self.shortened_rows() {
            helped = true;
        }
        helped
    }

    /// Whether byte strings of one length were shortened.
    fn shortened_bytes(&mut self) -> bool {
        let mut groups: BTreeMap<usize, Vec<Place>> = BTreeMap::new();
        for place in self.places() {
            if let Some(Choice { value: Value::Bytes(bytes), .. }) = self.choice(place) {
                groups.entry(bytes.len()).or_default().push(place);
            }
        }
        groups
            .iter()
            .any(|(len, places)| subsets(places).into_iter().any(|places| self.are_shortened(*len, &places)))
    }

    fn are_shortened(&mut self, len: usize, places: &[Place]) -> bool {
        let mut cut = len;
        while cut > 0 && !self.is_over() {
            // From the end, or from the start.
            for kept in [0..len - cut, cut..len] {
                let shorter = |choice: &Choice| match (choice.kind, &choice.value) {
                    (Kind::Bytes { min, .. }, Value::Bytes(bytes)) if kept.len() >= min as usize => {
                        Some(Value::Bytes(bytes[kept.clone()].into()))
                    }
                    _ => None,
                };
                if self.replaced(places, shorter) {
                    return true;
                }
            }
            cut /= 2;
        }
        false
    }

    /// Whether elements were deleted in rows that are equal.
    fn shortened_rows(&mut self) -> bool {
        let mut groups: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        for (step, row) in self.rows() {
            let values = &self.choices(step)[row[0].start..row[row.len() - 1].end];
            let text: String = values.iter().map(|choice| format!("{} ", choice.value)).collect();
            groups.entry(text).or_default().push((step, row));
        }
        groups.values().any(|rows| subsets(rows).into_iter().any(|rows| self.are_thinned(&rows)))
    }

    fn are_thinned(&mut self, rows: &[Row]) -> bool {
        let (step, row) = &rows[0];
        let mut elements = row.len();
        // The last element of a row may only say that there is none.
        if row[elements - 1].len() == 1 && self.is_simplest(*step, row[elements - 1].clone()) {
            elements -= 1;
        }
        let mut run = elements;
        while run > 0 && !self.is_over() {
            for from in (0..=elements - run).rev() {
                // Later ones first, so that the others stay where they are.
                let edits = rows.iter().rev().map(|(step, row)| {
                    let range = row[from].start..row[from + run - 1].end;
                    Edit::without(*step, range)
                });
                let edits: Vec<Edit> = edits.collect();
                if self.is_better(edits) {
                    return true;
                }
            }
            run /= 2;
        }
        false
    }
}

/// All of a group, then each two of it that are near; nothing of a group of one.
fn subsets<P: Clone>(group: &[P]) -> Vec<Vec<P>> {
    let pairs = (0..group.len()).flat_map(|first| {
        let later = group[first + 1..].iter().take(LATER);
        later.map(move |second| vec![group[first].clone(), second.clone()])
    });
    match group.len() {
        0 | 1 => Vec::new(),
        2 => vec![group.to_vec()],
        _ => [group.to_vec()].into_iter().chain(pairs).collect(),
    }
}
