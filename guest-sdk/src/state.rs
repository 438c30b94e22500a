//! The state that a harness declares, for a check to compare in place of the memory.

use std::hash::{Hash, Hasher};

use crate::abi;

/// Bytes that go to the host at once.
const BUFFER: usize = 128;

/// Hands what a value hashes to the host.
#[doc(hidden)]
pub fn state(value: impl Hash) {
    let mut stream = Stream { bytes: [0; BUFFER], len: 0 };
    value.hash(&mut stream);
    stream.send();
}

/// A hasher that hashes nothing, and sends the bytes to the host.
struct Stream {
    bytes: [u8; BUFFER],
    len: usize,
}

impl Stream {
    fn send(&mut self) {
        if self.len > 0 {
            abi::state(&self.bytes[..self.len]);
            self.len = 0;
        }
    }
}

impl Hasher for Stream {
    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BUFFER - self.len));
            self.bytes[self.len..][..now.len()].copy_from_slice(now);
            self.len += now.len();
            if self.len == BUFFER {
                self.send();
            }
            bytes = later;
        }
    }

    fn finish(&self) -> u64 {
        unimplemented!("the host makes the hash: `Hash` only writes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::play;

    #[test]
    fn bytes_are_sent_in_order_and_many_at_once() {
        let ((), log) = play(&[], || state((1u8, [2u8; 2], false)));
        assert_eq!(log, ["state [1, 2, 0, 0, 0, 0, 0, 0, 0, 2, 2, 0]"]);
        let ((), log) = play(&[], || state([7u16; 100]));
        let lens: Vec<usize> = log.iter().map(|call| call.matches('7').count()).collect();
        assert_eq!(lens, [60, 40], "eight bytes are its length");
        assert_eq!(play(&[], || state(())).1, [""; 0]);
    }
}
