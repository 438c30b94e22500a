//! A buffer that grows by itself. A copy of it has no room to spare, so what is done where there is some is never done to one.

use spelunk_guest::prelude::*;

#[derive(Default, Hash)]
struct Buffer(Vec<u8>);

impl Clone for Buffer {
    fn clone(&self) -> Buffer {
        #[cfg(feature = "cloned")]
        reachable!("it is copied");
        Buffer(self.0.clone())
    }
}

#[harness]
impl Buffer {
    #[rule]
    #[precondition(self.0.len() < 6)]
    fn push(&mut self, #[draw(0..=1)] byte: u8) {
        if self.0.len() < self.0.capacity() {
            #[cfg(not(feature = "cloned"))]
            reachable!("there is room");
        } else {
            self.0.reserve(4);
        }
        self.0.push(byte);
    }

    #[rule]
    fn clear(&mut self) {
        self.0 = Vec::new();
    }
}
