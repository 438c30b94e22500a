//! Which edges of a flow graph are always taken equally often.
//!
//! In a strongly connected graph two edges are taken equally often in every closed walk just when they are
//! *cycle equivalent*: every cycle has both or neither (Johnson, Pearson, Pingali: The Program Structure Tree,
//! PLDI 1994), and the directions of the edges do not matter for that. So: take a spanning tree, give each edge
//! outside it a random number, and each tree edge the exclusive or of the numbers of those edges whose cycle
//! goes through it. Edges with equal numbers are equivalent, but for a chance of about `edges² / 2^64`, which
//! would cost one counter. The numbers are random but fixed.

/// Numbers the classes: `result[e]` is the class of edge `e`. Every block with an edge must be reachable from
/// block 0, and lie on a cycle with it.
pub(crate) fn classes(blocks: usize, edges: &[(u32, u32)]) -> Vec<u32> {
    let tree = spanning_tree(blocks, edges);
    let mut number: Vec<u64> = (0..edges.len() as u64).map(random).collect();
    let mut carried = vec![0u64; blocks];
    for (edge, &(from, to)) in edges.iter().enumerate() {
        if !tree.has[edge] {
            carried[from as usize] ^= number[edge];
            carried[to as usize] ^= number[edge];
        }
    }
    for &(block, edge, parent) in tree.order.iter().rev() {
        number[edge as usize] = carried[block as usize];
        carried[parent as usize] ^= carried[block as usize];
    }
    rank(&number)
}

struct Tree {
    /// Each block but the root with the edge that led to it and the block it was found from, in order.
    order: Vec<(u32, u32, u32)>,
    /// By edge: it is in the tree.
    has: Vec<bool>,
}

fn spanning_tree(blocks: usize, edges: &[(u32, u32)]) -> Tree {
    let neighbours = Neighbours::new(blocks, edges.iter().flat_map(|&(from, to)| [from, to]));
    let mut tree = Tree { order: Vec::with_capacity(blocks), has: vec![false; edges.len()] };
    let mut seen = vec![false; blocks];
    seen[0] = true;
    let mut queue = vec![0u32];
    while let Some(block) = queue.pop() {
        for &end in neighbours.of(block) {
            let (edge, (from, to)) = (end / 2, edges[end as usize / 2]);
            let other = if from == block { to } else { from };
            if !std::mem::replace(&mut seen[other as usize], true) {
                tree.order.push((other, edge, block));
                tree.has[edge as usize] = true;
                queue.push(other);
            }
        }
    }
    tree
}

/// For each block, the positions at which it stands in a list of blocks.
pub(crate) struct Neighbours {
    start: Vec<u32>,
    positions: Vec<u32>,
}

impl Neighbours {
    pub(crate) fn new(blocks: usize, list: impl Iterator<Item = u32> + Clone) -> Self {
        let mut start = vec![0u32; blocks + 1];
        for block in list.clone() {
            start[block as usize + 1] += 1;
        }
        for block in 0..blocks {
            start[block + 1] += start[block];
        }
        let mut next = start.clone();
        let mut positions = vec![0u32; start[blocks] as usize];
        for (position, block) in list.enumerate() {
            let slot = &mut next[block as usize];
            positions[*slot as usize] = position as u32;
            *slot += 1;
        }
        Self { start, positions }
    }

    pub(crate) fn of(&self, block: u32) -> &[u32] {
        &self.positions[self.start[block as usize] as usize..self.start[block as usize + 1] as usize]
    }
}

/// Replaces numbers by their rank of first appearance.
fn rank(numbers: &[u64]) -> Vec<u32> {
    let mut sorted: Vec<(u64, u32)> = numbers.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let mut ranks = vec![0u32; numbers.len()];
    let mut first = 0;
    for (index, &(number, edge)) in sorted.iter().enumerate() {
        if sorted[first].0 != number {
            first = index;
        }
        ranks[edge as usize] = sorted[first].1;
    }
    ranks
}

/// The n-th number of a fixed random sequence (splitmix64).
fn random(n: u64) -> u64 {
    let mut z = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(blocks: usize, edges: &[(u32, u32)], expected: &[u32]) {
        assert_eq!(classes(blocks, edges), expected);
    }

    #[test]
    fn a_chain_is_one_class() {
        check(3, &[(0, 1), (1, 2), (2, 0)], &[0, 0, 0]);
    }

    #[test]
    fn each_arm_of_a_diamond_is_one_class() {
        let edges = [(0, 2), (2, 3), (2, 4), (3, 5), (4, 5), (5, 1), (1, 0)];
        check(6, &edges, &[0, 1, 2, 1, 2, 0, 0]);
    }

    #[test]
    fn the_way_into_a_loop_is_the_way_out() {
        check(4, &[(0, 2), (2, 2), (2, 3), (3, 1), (1, 0)], &[0, 1, 0, 0, 0]);
        check(5, &[(0, 2), (2, 3), (3, 2), (3, 4), (4, 1), (1, 0)], &[0, 1, 2, 0, 0, 0]);
    }

    #[test]
    fn parallel_edges_differ() {
        check(3, &[(0, 1), (1, 2), (1, 2), (2, 0)], &[0, 1, 2, 0]);
    }
}
