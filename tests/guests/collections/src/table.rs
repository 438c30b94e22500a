//! A hash table with open addresses. Its bug: a key that is put again takes the first place that was freed on its way, and its old
//! place, beyond, is not.

#[derive(Clone, Copy, Default, PartialEq)]
enum Place {
    #[default]
    Empty,
    Freed,
    Full(u16, u8),
}

pub(crate) struct Table {
    places: Vec<Place>,
    used: usize,
}

impl Default for Table {
    fn default() -> Table {
        Table { places: vec![Place::Empty; 16], used: 0 }
    }
}

impl Table {
    fn way(&self, key: u16) -> impl Iterator<Item = usize> + use<> {
        let len = self.places.len();
        let first = usize::from(key.wrapping_mul(40_503) >> 4) % len;
        (0..len).map(move |at| (first + at) % len)
    }

    pub(crate) fn get(&self, key: u16) -> Option<u8> {
        for at in self.way(key) {
            match self.places[at] {
                Place::Full(other, value) if other == key => return Some(value),
                Place::Empty => return None,
                _ => {}
            }
        }
        None
    }

    pub(crate) fn put(&mut self, key: u16, value: u8) {
        if self.used * 4 > self.places.len() * 3 {
            self.grow();
        }
        for at in self.way(key) {
            match self.places[at] {
                Place::Full(other, _) if other != key => {}
                // The bug.
                Place::Freed | Place::Full(..) => {
                    self.places[at] = Place::Full(key, value);
                    return;
                }
                Place::Empty => {
                    self.places[at] = Place::Full(key, value);
                    self.used += 1;
                    return;
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, key: u16) -> bool {
        for at in self.way(key) {
            match self.places[at] {
                Place::Full(other, _) if other == key => {
                    self.places[at] = Place::Freed;
                    return true;
                }
                Place::Empty => return false,
                _ => {}
            }
        }
        false
    }

    fn grow(&mut self) {
        let places = std::mem::take(&mut self.places);
        self.places = vec![Place::Empty; places.len() * 2];
        self.used = 0;
        for place in places {
            if let Place::Full(key, value) = place {
                self.put(key, value);
            }
        }
    }
}
