//! A graph as lists of indices into each other.

/// Whether some path leads back to where it began. The bug: a node that is reached twice counts as one on a cycle.
pub(crate) fn has_cycle(graph: &[Vec<usize>]) -> bool {
    (0..graph.len()).any(|node| meets_again(graph, node, &mut vec![false; graph.len()]))
}

fn meets_again(graph: &[Vec<usize>], node: usize, met: &mut [bool]) -> bool {
    let mut next = graph[node].clone();
    next.sort_unstable();
    next.dedup();
    std::mem::replace(&mut met[node], true) || next.into_iter().any(|next| meets_again(graph, next, met))
}

/// The same, by taking away nodes from which nothing leads on.
pub(crate) fn really_has_cycle(graph: &[Vec<usize>]) -> bool {
    let mut is_left = vec![true; graph.len()];
    for _ in 0..graph.len() {
        for node in 0..graph.len() {
            is_left[node] = is_left[node] && graph[node].iter().any(|next| is_left[*next]);
        }
    }
    is_left.contains(&true)
}
