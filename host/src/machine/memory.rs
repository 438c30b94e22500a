//! Linear memories that the machine owns: mapped once, never moved, and able to shrink.
//!
//! wasmtime has no call that shrinks a memory. It asks the [`LinearMemory`] for its size whenever the memory
//! grows, though, so setting the size back here and growing by 0 makes the engine see the smaller memory.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

/// One reservation of address space, of which the first `size` bytes can be accessed.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    /// Bytes that the memory may grow to.
    reserved: usize,
    /// Bytes reserved with the guard behind.
    mapped: usize,
    size: AtomicUsize,
}

// SAFETY: the mapping is plain memory; whoever accesses it goes through the store that owns the instance,
// and that is borrowed exclusively meanwhile.
unsafe impl Send for Mapping {}
// SAFETY: as above; `size` is atomic.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(size: usize, reserved: usize, guard: usize) -> std::io::Result<Mapping> {
        let reserved = reserved.max(size);
        let mapped = (reserved + guard).max(1);
        let base = map_inaccessible(None, mapped)?;
        let mapping = Mapping { base, reserved, mapped, size: AtomicUsize::new(0) };
        mapping.resize(size)?;
        Ok(mapping)
    }

    fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Sets the accessible size. Bytes that are added are zero; bytes that are taken away are forgotten.
    fn resize(&self, size: usize) -> std::io::Result<()> {
        let old = self.size();
        if size > self.reserved {
            return Err(std::io::ErrorKind::OutOfMemory.into());
        }
        if size > old {
            // SAFETY: `old..size` lies within the mapping, which this value owns.
            let failed = unsafe {
                let from = self.base.as_ptr().add(old);
                libc::mprotect(from.cast(), size - old, libc::PROT_READ | libc::PROT_WRITE)
            };
            if failed != 0 {
                return Err(std::io::Error::last_os_error());
            }
        } else if size < old {
            // A fresh mapping on top forgets the bytes and forbids access in one system call.
            // SAFETY: `size..old` lies within the mapping; no reference into it is live, since the
            // machine holds the store exclusively here.
            let tail = unsafe { self.base.add(size) };
            map_inaccessible(Some(tail), old - size)?;
        }
        self.size.store(size, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and the last owner lets go of it here.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

/// Maps `len` bytes that cannot be accessed: anywhere, or at `at`, over what is there.
fn map_inaccessible(at: Option<NonNull<u8>>, len: usize) -> std::io::Result<NonNull<u8>> {
    let fixed = if at.is_some() { libc::MAP_FIXED } else { 0 };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE | fixed;
    let address = at.map_or(std::ptr::null_mut(), |p| p.as_ptr().cast());
    // SAFETY: without MAP_FIXED the kernel picks unused addresses; with it the caller owns the range.
    let base = unsafe { libc::mmap(address, len, libc::PROT_NONE, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| std::io::ErrorKind::OutOfMemory.into())
}

/// wasmtime's handle of a mapping.
struct Linear(Arc<Mapping>);

// SAFETY: the base never moves, `byte_size` bytes from it are accessible, and everything up to the reserved
// size and the guard behind it is mapped without access, as the engine's elided bounds checks need.
unsafe impl LinearMemory for Linear {
    fn byte_size(&self) -> usize {
        self.0.size()
    }

    fn byte_capacity(&self) -> usize {
        self.0.reserved
    }

    fn grow_to(&mut self, new_size: usize) -> wasmtime::Result<()> {
        Ok(self.0.resize(new_size)?)
    }

    fn as_ptr(&self) -> *mut u8 {
        self.0.base.as_ptr()
    }
}

/// Makes the memories of an engine and remembers their mappings until a machine claims them.
#[derive(Default)]
pub(crate) struct Memories {
    unclaimed: Mutex<Vec<Arc<Mapping>>>,
}

// SAFETY: `Mapping::new` reserves what it is asked for, with the guard, zero-filled.
unsafe impl MemoryCreator for Memories {
    fn new_memory(
        &self,
        _: MemoryType,
        minimum: usize,
        _: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        let reserved = reserved.unwrap_or(minimum);
        let mapping = Arc::new(Mapping::new(minimum, reserved, guard).map_err(|e| e.to_string())?);
        let mut unclaimed = self.unclaimed.lock().map_err(|e| e.to_string())?;
        // Those that only this list holds belonged to instances that were never claimed and are gone.
        unclaimed.retain(|mapping| Arc::strong_count(mapping) > 1);
        unclaimed.push(mapping.clone());
        Ok(Box::new(Linear(mapping)))
    }
}

impl Memories {
    /// The mapping at this base address.
    pub(crate) fn claim(&self, base: *mut u8) -> View {
        let mut unclaimed = self.unclaimed.lock().unwrap_or_else(|e| e.into_inner());
        let at = unclaimed.iter().position(|mapping| mapping.base.as_ptr() == base);
        View(unclaimed.swap_remove(at.expect("every memory of the engine is made here")))
    }
}

/// A memory as the machine sees it between steps.
pub(crate) struct View(Arc<Mapping>);

impl View {
    /// The memory's bytes at its current size.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the bytes are mapped and accessible. A view is used between calls into the guest only, by
        // the machine that owns the store, and the borrow of the view keeps it from entering the guest.
        unsafe { std::slice::from_raw_parts_mut(self.0.base.as_ptr(), self.0.size()) }
    }

    /// The size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.0.size()
    }

    /// Sets the size; the engine must be told by growing the memory by 0.
    pub(crate) fn resize(&mut self, size: usize) -> std::io::Result<()> {
        self.0.resize(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_shrinks_and_grows_back_as_zeros() {
        let mut view = View(Arc::new(Mapping::new(65536, 1 << 20, 65536).unwrap()));
        view.resize(3 * 65536).unwrap();
        view.bytes().fill(7);
        view.resize(65536).unwrap();
        view.resize(2 * 65536).unwrap();
        assert_eq!(view.size(), 2 * 65536);
        assert!(view.bytes()[..65536].iter().all(|b| *b == 7));
        assert!(view.bytes()[65536..].iter().all(|b| *b == 0));
        assert!(view.resize((1 << 20) + 65536).is_err());
    }
}
