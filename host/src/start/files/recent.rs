//! The code under test: the latest numbers of many. It has a bug, which is there for you to find.

/// The latest numbers, of which there is room for a few. The numbers lie in a ring: after the last place comes the first.
#[derive(Clone, Default, Hash)]
pub struct Recent {
    places: [u8; Recent::ROOM],
    /// The place of the oldest number.
    oldest: usize,
    len: usize,
}

impl Recent {
    pub const ROOM: usize = 3;

    /// Adds a number. Where there is no room, it takes the place of the oldest.
    pub fn push(&mut self, number: u8) {
        let place = (self.oldest + self.len) % Recent::ROOM;
        self.places[place] = number;
        if self.len < Recent::ROOM {
            self.len += 1;
        }
        // The bug: another number is the oldest now. To fix it, add:
        // else {
        //     self.oldest = (self.oldest + 1) % Recent::ROOM;
        // }
    }

    /// Removes the oldest number.
    pub fn pop(&mut self) -> Option<u8> {
        if self.len == 0 {
            return None;
        }
        let number = self.places[self.oldest];
        self.oldest = (self.oldest + 1) % Recent::ROOM;
        self.len -= 1;
        Some(number)
    }

    pub fn len(&self) -> usize {
        self.len
    }
}
