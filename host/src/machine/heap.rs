//! Errors of the heap, as the instrumented guest notes them: what they are, and what is said of them.

use spelunk_instrumenter::{HEADER_BYTES, MAGIC};
use wasmtime::{Instance, Memory, Store};

use super::host::Host;
use crate::outcome::FailureKind;

/// Bytes of a header, whose shadow is one word.
const HEADER: usize = HEADER_BYTES as usize;
/// Blocks begin at multiples of this.
const ALIGN: usize = 16;

/// An error of the heap.
pub(super) struct HeapError {
    what: What,
    /// The first byte that may not be touched.
    address: usize,
    block: Option<Block>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// Of so many bytes.
    Read(u32),
    Write(u32),
    Free,
}

/// A block that the allocator gave, as its header says.
#[derive(Clone, Copy)]
struct Block {
    start: usize,
    size: usize,
    is_freed: bool,
    /// Functions, by index.
    allocated_in: Option<u32>,
    freed_in: Option<u32>,
}

impl HeapError {
    /// The error that a guest noted, of which these are the memory and its shadow.
    pub(super) fn of(what: u32, (address, length): (u32, u32), memory: &[u8], shadow: &[u8]) -> HeapError {
        let what = match what {
            1 => What::Read(length),
            2 => What::Write(length),
            _ => What::Free,
        };
        let start = address as usize;
        let marked = (start..start + length as usize).find(|at| is_marked(shadow, *at));
        let address = marked.unwrap_or(start);
        HeapError { what, address, block: Block::at(address, memory, shadow) }
    }

    /// No block is there.
    pub(super) fn is_of_none(&self) -> bool {
        self.block.is_none()
    }

    pub(super) fn kind(&self) -> FailureKind {
        let Some(block) = &self.block else {
            return if self.what == What::Free {
                FailureKind::InvalidFree
            } else {
                FailureKind::UseAfterFree
            };
        };
        let is_inside = (block.start..block.start + block.size).contains(&self.address);
        match self.what {
            What::Free if block.is_freed && block.start == self.address => FailureKind::DoubleFree,
            What::Free => FailureKind::InvalidFree,
            _ if self.address < block.start => FailureKind::HeapBufferUnderflow,
            _ if is_inside => FailureKind::UseAfterFree,
            _ => FailureKind::HeapBufferOverflow,
        }
    }

    /// What is said of it; `name` gives the names of functions.
    pub(super) fn message(&self, name: &dyn Fn(u32) -> Option<String>) -> String {
        let what = match self.what {
            What::Read(length) => format!("read of {}", bytes(length as usize)),
            What::Write(length) => format!("write of {}", bytes(length as usize)),
            What::Free => "free".to_string(),
        };
        let Some(block) = &self.block else {
            return format!("{what} at {:#x}, which is no block", self.address);
        };
        let in_function = |verb: &str, function: Option<u32>| {
            function.and_then(name).map(|name| format!("{verb} in {name}"))
        };
        let of = format!("a block of {}", bytes(block.size));
        let allocated = in_function(" allocated", block.allocated_in).unwrap_or_default();
        let freed = match (block.is_freed, in_function(", freed", block.freed_in)) {
            (true, Some(freed)) => freed,
            (true, None) => ", which is freed".to_string(),
            (false, _) => String::new(),
        };
        let end = block.start + block.size;
        let place = match self.address {
            at if self.what == What::Free && at == block.start => "of".to_string(),
            at if at < block.start => format!("{} before", bytes(block.start - at)),
            at if at < end => format!("{} into", bytes(at - block.start)),
            at => format!("{} after", bytes(at - end)),
        };
        let comma = if place == "of" { "" } else { "," };
        format!("{what}{comma} {place} {of}{allocated}{freed}")
    }
}

impl Block {
    /// The block whose header, content or red zone an address is in: the one whose header it is in, or else the one before.
    fn at(address: usize, memory: &[u8], shadow: &[u8]) -> Option<Block> {
        let down = address.min(memory.len()) / ALIGN * ALIGN;
        let after = [down + ALIGN, down + 2 * ALIGN];
        let after = after.into_iter().filter(|start| *start <= address + HEADER);
        let before = (0..=down / ALIGN).rev().map(|at| at * ALIGN);
        after.chain(before).find_map(|start| Block::of(start, memory, shadow))
    }

    /// The block that begins at an address, where one does.
    fn of(start: usize, memory: &[u8], shadow: &[u8]) -> Option<Block> {
        // The shadow first: memory that nobody touched takes no room until it is read.
        let header = start.checked_sub(HEADER)?;
        if shadow.get(header / 8..start / 8) != Some(&[0xff; HEADER / 8]) {
            return None;
        }
        let header = memory.get(header..start)?;
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        (word(0) == start as u32 ^ MAGIC).then(|| Block {
            start,
            size: word(4) as usize,
            is_freed: word(16) != 1,
            allocated_in: word(20).checked_sub(1),
            freed_in: word(24).checked_sub(1),
        })
    }
}

pub(super) fn is_marked(shadow: &[u8], at: usize) -> bool {
    shadow.get(at / 8).is_some_and(|bits| bits >> (at % 8) & 1 == 1)
}

pub(super) fn bytes(count: usize) -> String {
    format!("{count} byte{}", if count == 1 { "" } else { "s" })
}

/// Pages of the shadow of a memory of so many bytes.
pub(super) fn shadow_pages(bytes: u64) -> u64 {
    (bytes >> 16) / 8 + 1
}

/// Has the shadow of a memory that the host let grow stand for all of it, where there is one.
pub(super) fn grow_shadow(instance: Instance, store: &mut Store<Host>, memory: Memory) -> Option<()> {
    let Some(name) = store.data().guest.shadow_export.clone() else { return Some(()) };
    let shadow = instance.get_memory(&mut *store, &name)?;
    let missing = shadow_pages(memory.data_size(&*store) as u64).saturating_sub(shadow.size(&*store));
    shadow.grow(&mut *store, missing).ok().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A memory with two blocks, at 64 and 160, of 20 and 8 bytes; of the second it is said whether it is freed.
    fn memory(is_freed: bool) -> (Vec<u8>, Vec<u8>) {
        let (mut memory, mut shadow) = (vec![0; 256], vec![0; 32]);
        for (start, size, state, sites) in [(64, 20, 1, [1, 0]), (160, 8, 1 + u32::from(is_freed), [2, 3])] {
            let words = [start ^ MAGIC, size, 0, 0, state, sites[0], sites[1], 0];
            for (at, word) in words.iter().enumerate() {
                let at = start as usize - HEADER + at * 4;
                memory[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
            let content = if state == 2 { 0..0 } else { start..start + size };
            for at in (start - 32..start + size + 16).filter(|at| !content.contains(at)) {
                shadow[at as usize / 8] |= 1 << (at % 8);
            }
        }
        (memory, shadow)
    }

    fn check(what: u32, at: (u32, u32), is_freed: bool, expected: (FailureKind, &str)) {
        let (memory, shadow) = memory(is_freed);
        let error = HeapError::of(what, at, &memory, &shadow);
        let name = |function| Some(format!("f{function}"));
        assert_eq!((error.kind(), &*error.message(&name)), expected);
    }

    #[test]
    fn a_place_is_told_by_the_block_that_it_belongs_to() {
        use FailureKind::*;
        let of_first = |text: &str| format!("{text} a block of 20 bytes allocated in f0");
        let overflow = of_first("write of 4 bytes, 0 bytes after");
        check(2, (82, 4), false, (HeapBufferOverflow, &overflow));
        let overflow = of_first("read of 1 byte, 15 bytes after");
        check(1, (99, 1), false, (HeapBufferOverflow, &overflow));
        let underflow = of_first("read of 1 byte, 32 bytes before");
        check(1, (32, 1), false, (HeapBufferUnderflow, &underflow));
        check(
            2,
            (159, 2),
            false,
            (HeapBufferUnderflow, "write of 2 bytes, 1 byte before a block of 8 bytes allocated in f1"),
        );
        let freed = "read of 8 bytes, 0 bytes into a block of 8 bytes allocated in f1, freed in f2";
        check(1, (160, 8), true, (UseAfterFree, freed));
        let again = "free of a block of 8 bytes allocated in f1, freed in f2";
        check(3, (160, 0), true, (DoubleFree, again));
        check(4, (68, 0), false, (InvalidFree, &of_first("free, 4 bytes into")));
    }

    #[test]
    fn what_no_header_tells_is_no_block() {
        let error = HeapError::of(4, (40, 0), &[0; 64], &[0xff; 8]);
        assert_eq!(error.kind(), FailureKind::InvalidFree);
        assert_eq!(error.message(&|_| None), "free at 0x28, which is no block");
        assert_eq!(HeapError::of(1, (u32::MAX, 16), &[], &[]).kind(), FailureKind::UseAfterFree);
    }
}
