//! A balanced tree. Its bug: where a removal makes a tree heavy on the left, a double rotation is taken for a single one.

use std::cmp::Ordering;

#[derive(Default)]
pub(crate) struct Tree(Option<Box<Node>>);

struct Node {
    key: u8,
    height: i32,
    left: Tree,
    right: Tree,
}

impl Tree {
    fn height(&self) -> i32 {
        self.0.as_ref().map_or(0, |node| node.height)
    }

    pub(crate) fn insert(&mut self, key: u8) -> bool {
        let Some(node) = &mut self.0 else {
            self.0 = Some(Box::new(Node { key, height: 1, left: Tree(None), right: Tree(None) }));
            return true;
        };
        let is_new = match key.cmp(&node.key) {
            Ordering::Less => node.left.insert(key),
            Ordering::Greater => node.right.insert(key),
            Ordering::Equal => return false,
        };
        self.balance(false);
        is_new
    }

    pub(crate) fn remove(&mut self, key: u8) -> bool {
        let Some(node) = &mut self.0 else { return false };
        let was_there = match key.cmp(&node.key) {
            Ordering::Less => node.left.remove(key),
            Ordering::Greater => node.right.remove(key),
            Ordering::Equal => {
                match (node.left.0.is_some(), node.right.0.is_some()) {
                    (_, false) => *self = std::mem::take(&mut node.left),
                    (false, true) => *self = std::mem::take(&mut node.right),
                    (true, true) => node.key = node.right.take_first(),
                }
                true
            }
        };
        self.balance(true);
        was_there
    }

    fn take_first(&mut self) -> u8 {
        let node = self.0.as_mut().expect("there is one");
        if node.left.0.is_some() {
            let first = node.left.take_first();
            self.balance(true);
            return first;
        }
        let first = node.key;
        *self = std::mem::take(&mut node.right);
        first
    }

    fn balance(&mut self, is_removal: bool) {
        let Some(node) = &mut self.0 else { return };
        node.height = node.left.height().max(node.right.height()) + 1;
        match node.left.height() - node.right.height() {
            2 => {
                let left = node.left.0.as_ref().expect("it is higher");
                // The bug.
                if left.left.height() < left.right.height() && !is_removal {
                    node.left.rotate_left();
                }
                self.rotate_right();
            }
            -2 => {
                let right = node.right.0.as_ref().expect("it is higher");
                if right.right.height() < right.left.height() {
                    node.right.rotate_right();
                }
                self.rotate_left();
            }
            _ => {}
        }
    }

    fn rotate_left(&mut self) {
        let mut node = self.0.take().expect("there is one");
        let mut up = node.right.0.take().expect("it is higher");
        node.right = std::mem::take(&mut up.left);
        node.height = node.left.height().max(node.right.height()) + 1;
        up.left = Tree(Some(node));
        up.height = up.left.height().max(up.right.height()) + 1;
        self.0 = Some(up);
    }

    fn rotate_right(&mut self) {
        let mut node = self.0.take().expect("there is one");
        let mut up = node.left.0.take().expect("it is higher");
        node.left = std::mem::take(&mut up.right);
        node.height = node.left.height().max(node.right.height()) + 1;
        up.right = Tree(Some(node));
        up.height = up.left.height().max(up.right.height()) + 1;
        self.0 = Some(up);
    }

    pub(crate) fn is_balanced(&self) -> bool {
        let Some(node) = &self.0 else { return true };
        let difference = node.left.height() - node.right.height();
        difference.abs() <= 1 && node.left.is_balanced() && node.right.is_balanced()
    }
}
