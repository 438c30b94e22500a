//! Which edges get counters.
//!
//! As few as determine all: edges that are always taken equally often share one ([`classes`](crate::classes)),
//! and an edge has none where its count is the *sum* of others, because it is the only way into a block
//! whose ways out are known, or the only way out of one whose ways in are known. Differences are not used: a
//! trap ends a run in mid-block, and a difference would then count edges that were never taken; a sum at
//! worst misses the last block of each frame that was live at the trap.
//!
//! ```text
//!      │ a = b + c   no counter
//!      2
//!   b ╱ ╲ c          counted
//!    3   4
//!   b ╲ ╱ c          no counter, same class
//!      5
//!      │ a           no counter, same class
//! ```
//!
//! A sum has two terms or more that can each be greater than 0, so what depends on it is strictly more often
//! taken in some run: dependencies cannot form a circle, and the rules may be applied in any order.

use crate::cfg::{Cfg, ENTRY, EXIT, Site};
use crate::classes::{Neighbours, classes};
use crate::work;
use std::collections::BTreeSet;

/// What must be counted in a function.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    /// Its edges, to report them.
    pub edges: bool,
    /// Every cycle, to end it.
    pub cycles: bool,
    /// Its calls, to end a recursion.
    pub entry: bool,
}

/// An edge that gets a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Placed {
    /// Index into [`Cfg::edges`].
    pub edge: usize,
    /// Where its code stands: not always the edge's own site, if only this edge leads to its target.
    pub site: Site,
    /// What it pays from the budget.
    pub steps: u32,
}

/// The edges of a function that get counters, in the order of [`Cfg::edges`].
pub(crate) fn place(cfg: &Cfg, wanted: Wanted) -> Vec<Placed> {
    let flow = Flow::new(cfg);
    let steps = flow.steps(cfg, wanted);
    let follows = flow.follows(cfg);
    let counted = |class: usize| steps[class] > 0 || wanted.edges && !follows[class];
    let mut best: Vec<Option<(u8, usize)>> = vec![None; flow.class.len()];
    for edge in 0..cfg.edges.len() {
        let class = flow.class[edge] as usize;
        if let (true, Some(cost)) = (counted(class), cost(flow.site(cfg, edge))) {
            let candidate = (cost, edge);
            best[class] = Some(best[class].map_or(candidate, |known| known.min(candidate)));
        }
    }
    let mut placed: Vec<Placed> = (0..flow.class.len())
        .filter_map(|class| {
            let (_, edge) = best[class]?;
            Some(Placed { edge, site: flow.site(cfg, edge), steps: steps[class] })
        })
        .collect();
    placed.sort_unstable_by_key(|placed| placed.edge);
    placed
}

/// How dear code at a site is; none where there can be none.
fn cost(site: Site) -> Option<u8> {
    match site {
        Site::Virtual => None,
        Site::Before(_) => Some(0),
        Site::Taken(_) => Some(1),
        Site::Catch(..) => Some(2),
        Site::Table(..) => Some(3),
    }
}

/// The graph closed to a circulation: what leaves the function enters it again.
struct Flow {
    /// By edge of the graph, and then of the edges added here: its class.
    class: Vec<u32>,
    incoming: Neighbours,
    outgoing: Neighbours,
}

impl Flow {
    fn new(cfg: &Cfg) -> Self {
        let blocks = cfg.blocks.len();
        let mut edges: Vec<(u32, u32)> = cfg.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        edges.push((EXIT, ENTRY));
        edges.extend(endless(cfg, &edges));
        let incoming = Neighbours::new(blocks, edges.iter().map(|edge| edge.1));
        let outgoing = Neighbours::new(blocks, edges.iter().map(|edge| edge.0));
        Self { class: classes(blocks, &edges), incoming, outgoing }
    }

    /// The cheapest site of an edge: the head of its target if nothing else leads there.
    fn site(&self, cfg: &Cfg, edge: usize) -> Site {
        let site = cfg.edges[edge].site;
        let to = cfg.edges[edge].to;
        match (site, cfg.blocks[to as usize].head) {
            (Site::Taken(_) | Site::Table(..) | Site::Catch(..), Some(head))
                if self.incoming.of(to).len() == 1 =>
            {
                Site::Before(head)
            }
            _ => site,
        }
    }

    /// By class: what it pays from the budget. An edge back to the head of a loop pays for the way that led there from
    /// the head, and the entry of a function for that to its end; both for the longest one, without the loops on it,
    /// which pay themselves.
    fn steps(&self, cfg: &Cfg, wanted: Wanted) -> Vec<u32> {
        let mut steps = vec![0u32; self.class.len()];
        if !wanted.cycles && !wanted.entry {
            return steps;
        }
        let ways = self.longest_ways(cfg);
        let longest = ways.iter().copied().max().unwrap_or(0);
        for (edge, class) in cfg.edges.iter().zip(&self.class) {
            let way = if edge.back && wanted.cycles {
                // Every way to the end of a loop leads through its head.
                let head = edge.to as usize;
                (ways[edge.from as usize] + cfg.blocks[head].work).saturating_sub(ways[head])
            } else if edge.from == ENTRY && wanted.entry {
                longest
            } else {
                continue;
            };
            let paid = &mut steps[*class as usize];
            *paid = paid.saturating_add(work::steps(way));
        }
        steps
    }

    /// By block: what the longest way takes that leads there and through it, without edges back.
    fn longest_ways(&self, cfg: &Cfg) -> Vec<u64> {
        let mut ways: Vec<u64> = cfg.blocks.iter().map(|block| block.work).collect();
        let is_forward = |edge: u32| cfg.edges.get(edge as usize).is_some_and(|edge| !edge.back);
        let count = |block| self.incoming.of(block).iter().filter(|edge| is_forward(**edge)).count();
        let mut missing: Vec<usize> = (0..cfg.blocks.len() as u32).map(count).collect();
        let mut ready: Vec<u32> =
            (0..cfg.blocks.len() as u32).filter(|block| missing[*block as usize] == 0).collect();
        while let Some(block) = ready.pop() {
            for edge in self.outgoing.of(block).iter().filter(|edge| is_forward(**edge)) {
                let to = cfg.edges[*edge as usize].to as usize;
                ways[to] = ways[to].max(ways[block as usize] + cfg.blocks[to].work);
                missing[to] -= 1;
                if missing[to] == 0 {
                    ready.push(to as u32);
                }
            }
        }
        ways
    }

    /// By class: whether its count follows from others.
    fn follows(&self, cfg: &Cfg) -> Vec<bool> {
        let mut known = vec![false; self.class.len()];
        for (edge, class) in cfg.edges.iter().zip(&self.class) {
            known[*class as usize] |= edge.site != Site::Virtual;
        }
        let mut follows = vec![false; self.class.len()];
        for block in 0..cfg.blocks.len() as u32 {
            let (ins, outs) = self.balance(block);
            for (one, sum) in [(&ins, &outs), (&outs, &ins)] {
                let adds_up = !sum.is_empty() && sum.iter().all(|&class| known[class as usize]);
                if let ([class], true) = (&one[..], adds_up) {
                    follows[*class as usize] = true;
                }
            }
        }
        follows
    }

    /// The classes that enter and leave a block, without those that do both.
    fn balance(&self, block: u32) -> (Vec<u32>, Vec<u32>) {
        let of = |edges: &[u32]| {
            let mut classes: Vec<u32> = edges.iter().map(|&edge| self.class[edge as usize]).collect();
            classes.sort_unstable();
            classes
        };
        let (ins, outs) = (of(self.incoming.of(block)), of(self.outgoing.of(block)));
        (without(&ins, &outs), without(&outs, &ins))
    }
}

/// Edges to [`EXIT`] from every head of a loop that cannot reach it: an endless loop is left by a trap.
fn endless(cfg: &Cfg, edges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let blocks = cfg.blocks.len();
    let incoming = Neighbours::new(blocks, edges.iter().map(|edge| edge.1));
    let mut leaves = vec![false; blocks];
    leaves[EXIT as usize] = true;
    let mut queue = vec![EXIT];
    while let Some(block) = queue.pop() {
        for &edge in incoming.of(block) {
            let from = edges[edge as usize].0;
            if !std::mem::replace(&mut leaves[from as usize], true) {
                queue.push(from);
            }
        }
    }
    let heads = cfg.edges.iter().filter(|edge| edge.back && !leaves[edge.to as usize]);
    let heads: BTreeSet<u32> = heads.map(|edge| edge.to).collect();
    heads.into_iter().map(|head| (head, EXIT)).collect()
}

/// The difference of two sorted multisets.
fn without(all: &[u32], taken: &[u32]) -> Vec<u32> {
    let mut taken = taken.iter().copied().peekable();
    all.iter()
        .copied()
        .filter(|&item| {
            while taken.next_if(|&other| other < item).is_some() {}
            taken.next_if_eq(&item).is_none()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::build;
    use walrus::Module;

    fn graphs(source: &str) -> Vec<Cfg> {
        let module = Module::from_buffer(&wat::parse_str(source).unwrap()).unwrap();
        module.funcs.iter_local().map(|(_, function)| build(function, &work::of, false)).collect()
    }

    const EDGES: Wanted = Wanted { edges: true, cycles: false, entry: false };
    const ALL: Wanted = Wanted { edges: true, cycles: true, entry: true };

    /// Walks a graph at random from entry to exit, or for long if there is no exit; how often it took each edge.
    fn walk(cfg: &Cfg, random: &mut impl FnMut(usize) -> usize) -> Vec<u64> {
        let mut counts = vec![0; cfg.edges.len()];
        for _ in 0..random(6) {
            let mut block = ENTRY;
            let mut steps = 0;
            while block != EXIT && steps < 10_000 {
                steps += 1;
                let out: Vec<usize> = (0..cfg.edges.len()).filter(|&e| cfg.edges[e].from == block).collect();
                let edge = out[random(out.len())];
                counts[edge] += 1;
                block = cfg.edges[edge].to;
            }
        }
        counts
    }

    /// Computes all counts from those of the counted edges, by sums alone.
    fn infer(cfg: &Cfg, placed: &[Placed], counts: &[u64]) -> Vec<Option<u64>> {
        let flow = Flow::new(cfg);
        let mut known = vec![None; flow.class.len()];
        for placed in placed {
            known[flow.class[placed.edge] as usize] = Some(counts[placed.edge]);
        }
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for block in 0..cfg.blocks.len() as u32 {
                let (ins, outs) = flow.balance(block);
                for (one, terms) in [(&ins, &outs), (&outs, &ins)] {
                    let sum: Option<u64> = terms.iter().map(|&class| known[class as usize]).sum();
                    if let ([class], Some(sum), false) = (&one[..], sum, terms.is_empty())
                        && known[*class as usize].is_none()
                    {
                        known[*class as usize] = Some(sum);
                        changed = true;
                    }
                }
            }
        }
        (0..cfg.edges.len()).map(|edge| known[flow.class[edge] as usize]).collect()
    }

    /// The counts of the edges without counters follow, in random runs. Checks how many edges and counters
    /// there are in all functions.
    fn check(source: &str, edges: usize, counters: usize) {
        let mut seed = 1u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % below.max(1)
        };
        let (mut edges_found, mut counters_found) = (0, 0);
        for cfg in graphs(source) {
            edges_found += cfg.edges.iter().filter(|edge| edge.site != Site::Virtual).count();
            counters_found += place(&cfg, EDGES).len();
            for wanted in [EDGES, ALL] {
                let placed = place(&cfg, wanted);
                for _ in 0..100 {
                    let counts = walk(&cfg, &mut random);
                    let inferred = infer(&cfg, &placed, &counts);
                    for (edge, count) in inferred.iter().enumerate() {
                        if cfg.edges[edge].site != Site::Virtual {
                            assert_eq!(*count, Some(counts[edge]), "edge {edge} of {source}");
                        }
                    }
                }
            }
        }
        assert_eq!((edges_found, counters_found), (edges, counters), "{source}");
    }

    #[test]
    fn what_is_not_counted_follows() {
        check("(module (func))", 2, 1);
        check("(module (func (param i32) (if (local.get 0) (then (nop)))))", 6, 2);
        check("(module (func (param i32) (loop (br_if 0 (local.get 0)))))", 5, 2);
        check("(module (func (param i32) (if (local.get 0) (then (unreachable)))))", 5, 2);
        check(
            "(module (func (param i32) (block (block (block (br_table 0 1 2 0 (local.get 0))) (br 1)) (nop))))",
            7,
            3,
        );
        check(
            "(module (func (param i32) (loop (loop (br_if 0 (local.get 0)) (br_if 1 (local.get 0))))))",
            8,
            3,
        );
        check("(module (func (loop (br 0))))", 3, 2);
    }

    #[test]
    fn indices_of_a_table_are_told_apart_unless_they_are_very_many() {
        let table = |zeros: usize, ones: usize, edges: usize, counters: usize| {
            let labels = "0 ".repeat(zeros) + &"1 ".repeat(ones);
            let table = format!("(br_table {labels} 2 (local.get 0))");
            check(
                &format!("(module (func (param i32) (block (block (block {table}) (br 1)) (nop))))"),
                edges,
                counters,
            );
        };
        table(2, 2, 9, 5);
        table(2, 254, 261, 257);
        table(2, 255, 7, 3);
    }

    #[test]
    fn merging_branches_are_summed() {
        check(
            "(module (func (param i32)
               (block $a (block $b (block $c
                 (br_if $c (local.get 0)) (br_if $b (local.get 0)) (br_if $a (local.get 0)))
                 (nop))
                 (nop))
               (nop)))",
            11,
            4,
        );
    }

    #[test]
    fn what_an_exception_leaves_is_not_taken_for_granted() {
        check(
            "(module (tag $e) (func $f (param i32)
               (block $caught (br_if $caught (local.get 0))
                 (try_table (catch_all $caught) (call $f (local.get 0)) (throw $e)))))",
            6,
            3,
        );
    }
}
