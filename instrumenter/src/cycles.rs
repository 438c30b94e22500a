//! Which nodes of a graph lie on a cycle (Tarjan's strongly connected components, without recursion).

/// `edges[n]` are the successors of node `n`.
pub(crate) fn in_cycles(edges: &[Vec<u32>]) -> Vec<bool> {
    let mut search = Search {
        edges,
        index: vec![UNSEEN; edges.len()],
        low: vec![0; edges.len()],
        on_stack: vec![false; edges.len()],
        stack: Vec::new(),
        found: 0,
        result: vec![false; edges.len()],
    };
    for root in 0..edges.len() {
        if search.index[root] == UNSEEN {
            search.run(root);
        }
    }
    search.result
}

const UNSEEN: u32 = u32::MAX;

struct Search<'a> {
    edges: &'a [Vec<u32>],
    index: Vec<u32>,
    low: Vec<u32>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    found: u32,
    result: Vec<bool>,
}

impl Search<'_> {
    fn run(&mut self, root: usize) {
        let mut path = vec![(root, 0)];
        self.enter(root);
        while let Some((node, next)) = path.last_mut() {
            let node = *node;
            if let Some(&to) = self.edges[node].get(*next) {
                *next += 1;
                let to = to as usize;
                if self.index[to] == UNSEEN {
                    self.enter(to);
                    path.push((to, 0));
                } else if self.on_stack[to] {
                    self.low[node] = self.low[node].min(self.index[to]);
                }
            } else {
                path.pop();
                if let Some(&(parent, _)) = path.last() {
                    self.low[parent] = self.low[parent].min(self.low[node]);
                }
                self.leave(node);
            }
        }
    }

    fn enter(&mut self, node: usize) {
        self.index[node] = self.found;
        self.low[node] = self.found;
        self.found += 1;
        self.stack.push(node);
        self.on_stack[node] = true;
    }

    fn leave(&mut self, node: usize) {
        if self.low[node] != self.index[node] {
            return;
        }
        let first = self.stack.iter().rposition(|&other| other == node).unwrap_or(0);
        let component = self.stack.split_off(first);
        let cyclic = component.len() > 1 || self.edges[node].contains(&(node as u32));
        for member in component {
            self.on_stack[member] = false;
            self.result[member] = cyclic;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(edges: &[&[u32]], expected: &[bool]) {
        let edges: Vec<Vec<u32>> = edges.iter().map(|edges| edges.to_vec()).collect();
        assert_eq!(in_cycles(&edges), expected);
    }

    #[test]
    fn cycles_are_found() {
        check(&[&[1], &[2], &[]], &[false, false, false]);
        check(&[&[0]], &[true]);
        check(&[&[1], &[2], &[1, 3], &[]], &[false, true, true, false]);
        check(&[&[1, 2], &[3], &[3], &[0]], &[true, true, true, true]);
    }

    #[test]
    fn a_long_chain_does_not_overflow_the_stack() {
        let edges: Vec<Vec<u32>> = (1..=200_000).map(|next| vec![next % 200_000]).collect();
        assert!(in_cycles(&edges).iter().all(|&cyclic| cyclic));
    }
}
