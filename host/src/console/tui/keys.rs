//! Which keys were pressed, of the bytes that a terminal sends.
//!
//! They are read by a thread of their own, which is never waited for: a terminal may send half of a key and then nothing, or be gone.

use std::io::{ErrorKind, Read};
use std::sync::mpsc::{Receiver, sync_channel};

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// To stop.
    Stop,
    /// To go so many lines down, or up below zero.
    Scroll(isize),
}

const ESCAPE: u8 = 0x1b;
const CONTROL_C: u8 = 3;
/// Lines of a page.
const PAGE: isize = 10;
/// Bytes of a key after the escape, at most. What is longer is no key of ours.
const LONG: usize = 8;
/// Bytes that are read ahead, at most, and looked at before it is drawn again.
pub(super) const AHEAD: usize = 1024;

/// Reads bytes for ever, as long as there are any.
pub(super) fn bytes(mut from: impl Read + Send + 'static) -> std::io::Result<Receiver<u8>> {
    let (sender, receiver) = sync_channel(AHEAD);
    let read = move || {
        let mut bytes = [0; 64];
        loop {
            let len = match from.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => return,
                Ok(len) => len,
            };
            if bytes[..len].iter().any(|byte| sender.send(*byte).is_err()) {
                return;
            }
        }
    };
    std::thread::Builder::new().name("keys".to_string()).spawn(read)?;
    Ok(receiver)
}

/// What was sent of a key that is not whole yet.
#[derive(Default)]
pub(super) struct Keys {
    /// After the escape, where there was one.
    escaped: Option<Vec<u8>>,
}

impl Keys {
    /// The key that this byte is, or ends.
    pub(super) fn next(&mut self, byte: u8) -> Option<Key> {
        let Some(escaped) = &mut self.escaped else {
            return match byte {
                b'q' | b'Q' | CONTROL_C => Some(Key::Stop),
                b'k' => Some(Key::Scroll(-1)),
                b'j' => Some(Key::Scroll(1)),
                b' ' => Some(Key::Scroll(PAGE)),
                ESCAPE => {
                    self.escaped = Some(Vec::new());
                    None
                }
                _ => None,
            };
        };
        escaped.push(byte);
        let is_begun = matches!(escaped[..], [b'[' | b'O']);
        let is_within = escaped.len() > 1 && !(0x40..=0x7e).contains(&byte) && escaped.len() < LONG;
        if byte == CONTROL_C {
            self.pause();
            return Some(Key::Stop);
        }
        if byte == ESCAPE {
            escaped.clear();
            return None;
        }
        if is_begun || is_within {
            return None;
        }
        match &*self.escaped.take()? {
            [b'[' | b'O', b'A'] => Some(Key::Scroll(-1)),
            [b'[' | b'O', b'B'] => Some(Key::Scroll(1)),
            [b'[' | b'O', b'H'] | [b'[', b'1' | b'7', b'~'] => Some(Key::Scroll(isize::MIN)),
            [b'[' | b'O', b'F'] | [b'[', b'4' | b'8', b'~'] => Some(Key::Scroll(isize::MAX)),
            [b'[', b'5', b'~'] => Some(Key::Scroll(-PAGE)),
            [b'[', b'6', b'~'] => Some(Key::Scroll(PAGE)),
            _ => None,
        }
    }

    /// Nothing came for a while: an escape by itself is a key by itself.
    pub(super) fn pause(&mut self) {
        self.escaped = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut keys = Keys::default();
        bytes.iter().filter_map(|byte| keys.next(*byte)).collect()
    }

    #[test]
    fn keys_are_read_as_terminals_send_them() {
        let up = Key::Scroll(-1);
        assert_eq!(keys(b"\x1b[Ak\x1bOA"), [up, up, up]);
        assert_eq!(keys(b"j\x1b[B \x1b[6~"), [1, 1, 10, 10].map(Key::Scroll));
        assert_eq!(keys(b"\x1b[5~\x1b[H\x1b[4~"), [-10, isize::MIN, isize::MAX].map(Key::Scroll));
        assert_eq!(keys(b"q\x03Q"), [Key::Stop; 3]);
        // Others: with modifiers, function keys, the mouse, what is pasted, letters of other languages.
        assert_eq!(
            keys("\x1b[1;5A\x1b[15~\x1b[<0;3;4M\x1b[200~x\x1b[201~\u{e4}\u{1f600}\x1bx".as_bytes()),
            []
        );
    }

    #[test]
    fn half_a_key_keeps_none_that_follows_from_being_read() {
        for half in [&b"\x1b"[..], b"\x1b[", b"\x1bO", b"\x1b[200", b"\xff", b"\xe2", b"\x1b[<0;3"] {
            let mut state = Keys::default();
            assert_eq!(half.iter().find_map(|byte| state.next(*byte)), None);
            assert_eq!(state.next(3), Some(Key::Stop), "{half:?}");
            assert_eq!(half.iter().find_map(|byte| state.next(*byte)), None);
            state.pause();
            assert_eq!(state.next(b'q'), Some(Key::Stop), "{half:?}");
            assert_eq!(half.iter().find_map(|byte| state.next(*byte)), None);
            assert_eq!(
                b"\x1b[A".iter().find_map(|byte| state.next(*byte)),
                Some(Key::Scroll(-1)),
                "{half:?}"
            );
        }
        // One that never ends.
        assert_eq!(keys(b"\x1b[000000000000q").last(), Some(&Key::Stop));
    }

    /// No more is held of a terminal that sends for ever than is read ahead.
    #[test]
    fn a_flood_waits() {
        let received = bytes(std::io::repeat(b'j')).unwrap();
        assert_eq!(received.iter().take(10 * AHEAD).filter(|byte| *byte == b'j').count(), 10 * AHEAD);
    }

    #[test]
    fn a_terminal_that_is_gone_sends_nothing_more() {
        let received = bytes(&b"ab"[..]).unwrap();
        assert_eq!(received.iter().collect::<Vec<u8>>(), b"ab");
    }
}
