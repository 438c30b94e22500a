//! A heap of items with priorities. Its bug: a removal lets the item that fills the hole sink, and never rise.

#[derive(Default)]
pub(crate) struct Heap(Vec<(u8, u8)>);

impl Heap {
    pub(crate) fn push(&mut self, item: u8, priority: u8) {
        self.0.push((item, priority));
        self.rise(self.0.len() - 1);
    }

    pub(crate) fn change(&mut self, item: u8, priority: u8) {
        let at = self.place_of(item).expect("it was pushed");
        self.0[at].1 = priority;
        let at = self.rise(at);
        self.sink(at);
    }

    pub(crate) fn remove(&mut self, item: u8) -> bool {
        let Some(at) = self.place_of(item) else { return false };
        self.0.swap_remove(at);
        // The bug.
        self.sink(at);
        true
    }

    pub(crate) fn peek(&self) -> Option<(u8, u8)> {
        self.0.first().copied()
    }

    fn place_of(&self, item: u8) -> Option<usize> {
        self.0.iter().position(|(other, _)| *other == item)
    }

    fn rise(&mut self, mut at: usize) -> usize {
        while at > 0 && self.0[(at - 1) / 2].1 < self.0[at].1 {
            self.0.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        at
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let children = [2 * at + 1, 2 * at + 2].into_iter().filter(|child| *child < self.0.len());
            let Some(largest) = children.max_by_key(|child| self.0[*child].1) else { return };
            if self.0[largest].1 <= self.0[at].1 {
                return;
            }
            self.0.swap(at, largest);
            at = largest;
        }
    }
}
