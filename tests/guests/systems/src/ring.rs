//! A queue in a ring of slots, of which one stays empty.

const SLOTS: usize = 4;

#[derive(Clone, Default)]
pub(crate) struct Ring {
    slots: [u8; SLOTS],
    head: usize,
    tail: usize,
}

impl Ring {
    /// Whether there was room.
    pub(crate) fn push(&mut self, value: u8) -> bool {
        let next = (self.tail + 1) % SLOTS;
        let has_room = next != self.head;
        if has_room {
            self.slots[self.tail] = value;
            self.tail = next;
        }
        has_room
    }

    pub(crate) fn pop(&mut self) -> Option<u8> {
        let is_empty = self.head == self.tail;
        (!is_empty).then(|| {
            let value = self.slots[self.head];
            self.head = (self.head + 1) % SLOTS;
            value
        })
    }

    /// The bug: of a queue that goes on at the start of the ring only the first part is summed up.
    pub(crate) fn sum(&self) -> u32 {
        let end = if self.head <= self.tail { self.tail } else { SLOTS };
        self.slots[self.head..end].iter().map(|value| u32::from(*value)).sum()
    }
}
