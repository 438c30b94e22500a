//! How the choices of a step lie in spans.
//!
//! Spans that follow directly on one another with the same label, in the same span, are a **row**: the
//! elements of a collection.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::choice::Span;

/// A span that holds choices, and where it lies.
#[derive(Clone)]
pub(super) struct Node {
    /// Its number among all spans of the step.
    pub(super) number: u32,
    pub(super) label: (u32, u32),
    pub(super) start: usize,
    pub(super) end: usize,
    /// The index of the node that holds it.
    pub(super) parent: Option<usize>,
    /// The index of the node before it in its row.
    pub(super) previous: Option<usize>,
    /// Whether it stands in a row, or is one and nothing else: to thin that out takes care of it.
    pub(super) is_thinned: bool,
    /// How many nodes it holds directly.
    pub(super) children: u32,
}

impl Node {
    pub(super) fn holds(&self, other: &Node) -> bool {
        self.number < other.number && self.start <= other.start && other.end <= self.end
    }
}

/// A row and its step.
pub(super) type Row = (usize, Vec<Range<usize>>);

/// The spans of a step.
pub(super) struct Layout {
    /// Those that hold choices, each before what it holds.
    pub(super) nodes: Vec<Node>,
    /// The rows, outer ones first.
    pub(super) rows: Vec<Vec<Range<usize>>>,
    /// For each choice the innermost node around it.
    pub(super) holders: Vec<Option<usize>>,
    /// For each choice whether it is the first of several in an element of a row.
    pub(super) begins_element: Vec<bool>,
}

impl Layout {
    pub(super) fn new(spans: &[Span], choices: usize) -> Layout {
        let mut nodes = nodes_of(spans);
        let mut holders = vec![None; choices];
        for (index, node) in nodes.iter().enumerate() {
            // Inner ones come later.
            holders[node.start..node.end].fill(Some(index));
        }
        let mut begins_element = vec![false; choices];
        let mut rows = Vec::new();
        for row in rows_of(&mut nodes) {
            let (first, last) = (row[0], row[row.len() - 1]);
            for &index in &row {
                let node = &mut nodes[index];
                node.is_thinned = true;
                begins_element[node.start] |= node.end - node.start > 1;
            }
            if let Some(parent) = nodes[first].parent {
                nodes[parent].is_thinned |=
                    nodes[parent].start == nodes[first].start && nodes[parent].end == nodes[last].end;
            }
            rows.push(row.into_iter().map(|index| nodes[index].start..nodes[index].end).collect());
        }
        Layout { nodes, rows, holders, begins_element }
    }
}

fn nodes_of(spans: &[Span]) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (number, span) in spans.iter().enumerate().filter(|(_, span)| span.start < span.end) {
        let (start, end) = (span.start as usize, span.end as usize);
        while open.last().is_some_and(|outer| nodes[*outer].end <= start) {
            open.pop();
        }
        let parent = open.last().copied();
        if let Some(parent) = parent {
            nodes[parent].children += 1;
        }
        open.push(nodes.len());
        nodes.push(Node {
            number: number as u32,
            label: span.label,
            start,
            end,
            parent,
            previous: None,
            is_thinned: false,
            children: 0,
        });
    }
    nodes
}

/// The rows of more than one node, as indices; each node learns which is before it.
fn rows_of(nodes: &mut [Node]) -> Vec<Vec<usize>> {
    let mut rows: Vec<Vec<usize>> = Vec::new();
    // The row that a node with this parent and label may go on.
    let mut last: BTreeMap<(Option<usize>, (u32, u32)), usize> = BTreeMap::new();
    for index in 0..nodes.len() {
        let key = (nodes[index].parent, nodes[index].label);
        let row = last.get(&key).copied().filter(|row| {
            let before = rows[*row][rows[*row].len() - 1];
            nodes[before].end == nodes[index].start
        });
        match row {
            Some(row) => {
                nodes[index].previous = rows[row].last().copied();
                rows[row].push(index);
            }
            None => {
                last.insert(key, rows.len());
                rows.push(vec![index]);
            }
        }
    }
    rows.retain(|row| row.len() > 1);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_siblings_that_follow_on_one_another() {
        // A list of two lists, the first with one element and an end each.
        let span = |label, start, end| Span { label: (label, 1), start, end, discarded: false };
        let spans = [
            span(0, 0, 7),
            span(1, 0, 4),
            span(0, 1, 4),
            span(1, 1, 3),
            span(1, 3, 4),
            span(2, 4, 4),
            span(1, 4, 6),
            span(1, 6, 7),
        ];
        let layout = Layout::new(&spans, 7);
        assert_eq!(layout.rows, [vec![0..4, 4..6, 6..7], vec![1..3, 3..4]]);
        assert_eq!(layout.holders[0], Some(1));
        assert_eq!(layout.holders[2], Some(3));
        assert_eq!(layout.begins_element, [true, true, false, false, true, false, false]);
        let thinned: Vec<bool> = layout.nodes.iter().map(|node| node.is_thinned).collect();
        assert_eq!(thinned, [true; 7]);
        assert_eq!(layout.nodes[0].children, 3);
        assert_eq!(layout.nodes[5].previous, Some(1));
    }
}
