//! Binary heaps of integers: no value is below its parent's.

use std::fmt;

use spelunk_guest::prelude::*;

/// Up to 63 values, of which 4 are enough.
const DEPTH_MAX: u32 = 6;

/// The empty heap or a node.
#[derive(Clone, Default)]
pub(crate) struct Heap(Option<Box<Node>>);

#[derive(Clone)]
struct Node {
    value: i64,
    left: Heap,
    right: Heap,
}

/// Any heap.
pub(crate) fn heap() -> impl Strategy<Value = Heap> {
    composite(|| heap_from(i64::MIN, DEPTH_MAX))
}

/// A heap of values from `min` on.
fn heap_from(min: i64, depth: u32) -> Heap {
    let has_node = draw(weighted(if depth > 0 { 0.6 } else { 0.0 }));
    if !has_node {
        return Heap(None);
    }
    let value = draw(min..=i64::MAX);
    let child = composite(|| heap_from(value, depth - 1));
    Heap(Some(Box::new(Node { value, left: draw(&child), right: draw(&child) })))
}

impl Heap {
    /// The values, the right side of each node before its left.
    pub(crate) fn values(&self) -> Vec<i64> {
        let mut values = Vec::new();
        let mut waiting = vec![self];
        while let Some(Heap(heap)) = waiting.pop() {
            if let Some(node) = heap {
                values.push(node.value);
                waiting.extend([&node.left, &node.right]);
            }
        }
        values
    }

    /// The least value, then the others as if they came in order after the least of them has come forward.
    pub(crate) fn wrongly_sorted(&self) -> Vec<i64> {
        let Heap(Some(node)) = self.clone() else { return Vec::new() };
        // The bug: the least value is to be taken from the rest again and again.
        let rest = merge(node.left, node.right);
        [vec![node.value], rest.values()].concat()
    }
}

fn merge(a: Heap, b: Heap) -> Heap {
    let (Heap(Some(a)), Heap(Some(b))) = (&a, &b) else {
        return Heap(a.0.or(b.0));
    };
    let (first, second) = if a.value <= b.value { (a, b) } else { (b, a) };
    let first = first.clone();
    let left = merge(first.right, Heap(Some(second.clone())));
    Heap(Some(Box::new(Node { value: first.value, left, right: first.left })))
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.0 {
            None => f.write_str("None"),
            Some(node) => write!(f, "({:?}, {:?}, {:?})", node.value, node.left, node.right),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(value: i64, left: Heap, right: Heap) -> Heap {
        Heap(Some(Box::new(Node { value, left, right })))
    }

    #[test]
    fn the_least_heap_that_is_sorted_wrongly() {
        let none = Heap::default;
        let inner = node(0, node(0, none(), none()), node(1, none(), none()));
        let heap = node(0, none(), inner);
        assert_eq!(format!("{heap:?}"), "(0, None, (0, (0, None, None), (1, None, None)))");
        assert_eq!(heap.wrongly_sorted(), [0, 0, 1, 0]);
    }
}
