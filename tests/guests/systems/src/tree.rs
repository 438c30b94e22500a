//! A sorted set in leaves that are split when they are full, and separators that say which leaf a key is in.

const LEAF_MAX: usize = 4;

#[derive(Clone)]
pub(crate) struct Tree {
    leaves: Vec<Vec<u8>>,
    /// The first key of each leaf but the first.
    separators: Vec<u8>,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree { leaves: vec![Vec::new()], separators: Vec::new() }
    }
}

impl Tree {
    /// The bug: a key that is a separator is sought on the wrong side of it.
    fn leaf_of(&self, key: u8) -> usize {
        self.separators.iter().take_while(|separator| **separator < key).count()
    }

    pub(crate) fn insert(&mut self, key: u8) {
        let at = self.leaf_of(key);
        let leaf = &mut self.leaves[at];
        let Err(place) = leaf.binary_search(&key) else { return };
        leaf.insert(place, key);
        if leaf.len() > LEAF_MAX {
            let right = leaf.split_off(LEAF_MAX / 2);
            self.separators.insert(at, right[0]);
            self.leaves.insert(at + 1, right);
        }
    }

    pub(crate) fn contains(&self, key: u8) -> bool {
        self.leaves[self.leaf_of(key)].contains(&key)
    }
}
