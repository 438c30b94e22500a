//! Errors of memory, as the instrumented guest notes them: those of the heap, and those of the stack.

use spelunk_instrumenter::{MAGIC_OF_ZONES, SanitizerLayout, ZONE_BYTES};

use super::heap::{HeapError, bytes, is_marked};
use crate::outcome::FailureKind;

/// An error of memory.
pub(super) enum MemoryError {
    Heap(HeapError),
    Stack(StackError),
}

/// An access between two frames of the stack.
pub(super) struct StackError {
    what: What,
    /// The first byte that may not be touched.
    address: usize,
    /// Where the zone beyond a frame begins.
    zone: usize,
    /// Whose frame it is, by index.
    function: Option<u32>,
}

enum What {
    /// Of so many bytes.
    Read(u32),
    Write(u32),
    /// It was found later that something was written.
    Overwritten,
}

impl MemoryError {
    /// The error that a guest noted, of which these are the memory and its shadow.
    pub(super) fn of(
        (what, address, length): (u32, u32, u32),
        memory: &[u8],
        shadow: &[u8],
        sanitizer: &SanitizerLayout,
    ) -> MemoryError {
        let heap = || MemoryError::Heap(HeapError::of(what, (address, length), memory, shadow));
        if sanitizer.frames.is_none() || what == 3 || what == 4 {
            return heap();
        }
        match StackError::of((what, address, length), memory, shadow) {
            Some(error) => MemoryError::Stack(error),
            None => match heap() {
                // A mark of the heap belongs to a block.
                MemoryError::Heap(error) if error.is_of_none() => {
                    MemoryError::Stack(StackError::unknown((what, address, length), shadow))
                }
                error => error,
            },
        }
    }

    pub(super) fn kind(&self) -> FailureKind {
        match self {
            MemoryError::Heap(error) => error.kind(),
            MemoryError::Stack(_) => FailureKind::StackBufferOverflow,
        }
    }

    /// What is said of it; `name` gives the names of functions.
    pub(super) fn message(&self, name: &dyn Fn(u32) -> Option<String>) -> String {
        match self {
            MemoryError::Heap(error) => error.message(name),
            MemoryError::Stack(error) => error.message(name),
        }
    }
}

impl StackError {
    /// None if no zone is there.
    fn of((what, address, length): (u32, u32, u32), memory: &[u8], shadow: &[u8]) -> Option<StackError> {
        let unknown = StackError::unknown((what, address, length), shadow);
        if what == 5 {
            return Some(StackError { function: length.checked_sub(1), ..unknown });
        }
        let zone = unknown.zone;
        let is_zone =
            shadow.get(zone / 8..(zone + ZONE_BYTES as usize) / 8)?.iter().all(|bits| *bits == 0xff);
        let word = |at: usize| {
            let word = memory.get(at..at + 4)?;
            Some(u32::from_le_bytes(word.try_into().expect("four bytes")))
        };
        (is_zone && word(zone)? == zone as u32 ^ MAGIC_OF_ZONES).then(|| StackError {
            function: word(zone + 4).and_then(|index| index.checked_sub(1)),
            ..unknown
        })
    }

    /// Where the function is not known.
    fn unknown((what, address, length): (u32, u32, u32), shadow: &[u8]) -> StackError {
        let start = address as usize;
        let (what, end) = match what {
            1 => (What::Read(length), start + length as usize),
            2 => (What::Write(length), start + length as usize),
            _ => (What::Overwritten, start),
        };
        let address = (start..end).find(|at| is_marked(shadow, *at)).unwrap_or(start);
        let zone = address / ZONE_BYTES as usize * ZONE_BYTES as usize;
        StackError { what, address, zone, function: None }
    }

    fn message(&self, name: &dyn Fn(u32) -> Option<String>) -> String {
        let of = self.function.and_then(name);
        let frame = of.map_or_else(|| "a frame".to_string(), |name| format!("the frame of {name}"));
        let what = match self.what {
            What::Read(length) => format!("read of {}", bytes(length as usize)),
            What::Write(length) => format!("write of {}", bytes(length as usize)),
            What::Overwritten => {
                return format!("bytes beyond {frame} were overwritten, which was found when it returned");
            }
        };
        let (after, before) = (self.address - self.zone, self.zone + ZONE_BYTES as usize - self.address);
        let caller = if before < after {
            format!(", {} before that of its caller", bytes(before))
        } else {
            String::new()
        };
        format!("{what}, {} beyond {frame}{caller}", bytes(after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spelunk_instrumenter::FramesLayout;

    fn check(noted: (u32, u32, u32), expected: &str) {
        let (mut memory, mut shadow) = (vec![0; 256], vec![0; 32]);
        for (at, word) in [(64, 64 ^ MAGIC_OF_ZONES), (68, 3)] {
            memory[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
        }
        shadow[8..10].fill(0xff);
        shadow[20..22].fill(0xff);
        let frames = Some(FramesLayout { with_zone: 1, left_alone: 0 });
        let sanitizer = SanitizerLayout { record: 0, shadow: String::new(), frames };
        let error = MemoryError::of(noted, &memory, &shadow, &sanitizer);
        assert_eq!(error.kind(), FailureKind::StackBufferOverflow);
        assert_eq!(error.message(&|function| Some(format!("f{function}"))), expected);
    }

    #[test]
    fn a_place_is_told_by_the_frame_that_ends_there() {
        check((2, 60, 8), "write of 8 bytes, 0 bytes beyond the frame of f2");
        check((1, 72, 1), "read of 1 byte, 8 bytes beyond the frame of f2");
        let before = "write of 1 byte, 15 bytes beyond the frame of f2, 1 byte before that of its caller";
        check((2, 79, 1), before);
        check((1, 162, 1), "read of 1 byte, 2 bytes beyond a frame");
        let later = "were overwritten, which was found when it returned";
        check((5, 64, 3), &format!("bytes beyond the frame of f2 {later}"));
        check((5, 64, 0), &format!("bytes beyond a frame {later}"));
    }
}
