//! A queue in a ring that grows and shrinks. Its bug: a ring of 32 or more that wraps around at its very end when it shrinks loses
//! what is behind the wrap.

pub(crate) struct Ring {
    places: Vec<u8>,
    first: usize,
    len: usize,
}

impl Default for Ring {
    fn default() -> Ring {
        Ring { places: vec![0; 4], first: 0, len: 0 }
    }
}

impl Ring {
    pub(crate) fn push(&mut self, value: u8) {
        if self.len == self.places.len() {
            self.move_to(self.len * 2);
        }
        let at = (self.first + self.len) % self.places.len();
        self.places[at] = value;
        self.len += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<u8> {
        if self.len == 0 {
            return None;
        }
        let value = self.places[self.first];
        self.first = (self.first + 1) % self.places.len();
        self.len -= 1;
        Some(value)
    }

    pub(crate) fn shrink(&mut self) {
        let half = self.places.len() / 2;
        if half < 4 || self.len > half {
            return;
        }
        let wraps = self.first + self.len > self.places.len();
        // The bug.
        if wraps && half >= 16 && self.first + 2 >= self.places.len() {
            self.places[0] = 0;
        }
        self.move_to(half);
    }

    fn move_to(&mut self, capacity: usize) {
        let moved = (0..self.len).map(|at| self.places[(self.first + at) % self.places.len()]);
        let mut places: Vec<u8> = moved.collect();
        places.resize(capacity, 0);
        (self.places, self.first) = (places, 0);
    }
}
