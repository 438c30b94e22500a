//! Linear memories that the machine owns: able to shrink, and to change their size without a system call.
//!
//! What lies beyond a memory's size must not be accessible, since compiled code leaves it to the processor to
//! find accesses out of bounds. Changing what is accessible takes a system call and empties caches of all
//! cores. A guest that grows its memory in every run, as one whose heap begins empty does, would have it grow and shrink
//! each time. So the bytes are mapped at several places, the memory's windows, each with another size
//! accessible; a memory changes its size by going to another window. A size that it has for the first time gets none: the window in
//! use is changed. The kernel counts what was touched in each window anew, so a memory that only grows should have one.
//!
//! wasmtime has no call that shrinks a memory. It asks the [`LinearMemory`] for its size and place whenever the memory
//! grows, though, so setting the size here and growing by 0 makes the engine see it.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use crate::budget::Budget;

/// The windows of a memory, at most. Beyond, the one that was not used for longest is given another size.
const WINDOWS_MAX: usize = 32;
/// What an index of 32 bits reaches.
pub(super) const INDEXED: u64 = 1 << 32;
/// The largest memory.
const SIZE_MAX: usize = INDEXED as usize;
/// Bytes after a memory's base that compiled code relies on to be accessible where they are the memory's and
/// inaccessible elsewhere: what an index of 32 bits reaches, and an offset that costs no check.
pub(crate) const GUARD: u64 = INDEXED + (32 << 20);
/// Above so many bytes the kernel forgets faster than zeros are written.
const FORGET_BYTES: usize = 1 << 20;

/// Has writing to a file beyond the limit of this process (`ulimit -f`) fail, and not end the process.
pub fn ignore_file_size_signal() {
    // SAFETY: no handler runs, and nothing else of this process sets one for this signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// A memory.
pub(crate) struct Mapping {
    bytes: Shared,
    /// Bytes that the memory may grow to.
    size_max: usize,
    /// Bytes of address space that a window takes: those it may grow to, with the guard behind.
    mapped: usize,
    /// It may have several windows.
    may_move: bool,
    windows: Mutex<Windows>,
    /// Base and size of the window in use.
    base: AtomicPtr<u8>,
    size: AtomicUsize,
}

/// The step budget of a call that was ended from outside. What the guest takes from it still does not make it as small as
/// the least number, nor as large as what is left of a budget that was spent.
const ENDED: i64 = i64::MIN / 2;

/// Whether a step budget is that of a call which [`Mapping::end_call`] ended.
pub(super) fn was_ended(budget: i64) -> bool {
    budget < ENDED / 2
}

/// The windows of a memory.
#[derive(Default)]
struct Windows {
    /// The one in use first, then those used last.
    list: Vec<Window>,
    /// Sizes that the memory had.
    sizes: BTreeSet<usize>,
}

/// One place at which a memory's bytes are mapped, of which the first `size` bytes can be accessed.
struct Window {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: the mapping is plain memory; whoever accesses it goes through the store that owns the instance,
// and that is borrowed exclusively meanwhile.
unsafe impl Send for Window {}

impl Mapping {
    /// One that may move.
    pub(super) fn new(size: usize, size_max: usize, guard: usize) -> std::io::Result<Mapping> {
        let size_max = size_max.max(size);
        Mapping::of(Shared::new(size_max.max(1))?, (size, size_max), size_max + guard, true)
    }

    /// One for which so many bytes of address space are `reserved`, and a guard behind them, so that it stays where it is.
    fn fixed(size: usize, size_max: usize, (reserved, guard): (usize, usize)) -> std::io::Result<Mapping> {
        let size_max = size_max.max(size);
        let mapped = size_max.max(reserved) + guard;
        Mapping::of(Shared::new(size_max.max(1))?, (size, size_max), mapped, false)
    }

    fn of(
        bytes: Shared,
        (size, size_max): (usize, usize),
        mapped: usize,
        may_move: bool,
    ) -> std::io::Result<Mapping> {
        let mapping = Mapping {
            bytes,
            size_max,
            mapped: mapped.max(1),
            may_move,
            windows: Mutex::default(),
            base: AtomicPtr::default(),
            size: AtomicUsize::new(0),
        };
        mapping.resize(size)?;
        Ok(mapping)
    }

    fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Makes the step budget at `at` negative, so that the guest traps where it pays next. Of a memory that does not grow,
    /// and so does not move; the guest may be using it.
    pub(super) fn end_call(&self, at: usize) {
        self.word(at).store(ENDED, Ordering::Relaxed);
    }

    /// The step budget at `at`, which the watchdog may write to.
    fn word(&self, at: usize) -> &AtomicI64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.size_max && self.size() == self.size_max);
        // SAFETY: it lies within the memory and is aligned. Nobody has a reference to it while the guest runs, and between
        // calls only a call's beginning writes there, and its end reads: a budget that is torn between the two is
        // impossible on processors that the engine compiles for, whose aligned words are written at once.
        unsafe { AtomicI64::from_ptr(self.base().add(at).cast()) }
    }

    #[cfg(test)]
    pub(super) fn budget(&self, at: usize) -> i64 {
        self.word(at).load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn set_budget(&self, at: usize, budget: i64) {
        self.word(at).store(budget, Ordering::Relaxed);
    }

    fn base(&self) -> *mut u8 {
        self.base.load(Ordering::Relaxed)
    }

    /// Goes to a window of this size. Bytes that are added are as they were left when they were taken away.
    fn resize(&self, size: usize) -> std::io::Result<()> {
        if size > self.size_max {
            return Err(std::io::ErrorKind::OutOfMemory.into());
        }
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let Windows { list, sizes } = &mut *windows;
        match list.iter().position(|window| window.size == size && self.may_move) {
            // Mostly there are two, by turns.
            Some(1) => list.swap(0, 1),
            Some(at) => list[..=at].rotate_right(1),
            None => {
                let is_new = sizes.insert(size);
                let has_room = list.len() < WINDOWS_MAX;
                let fresh = (list.is_empty() || !is_new && has_room && self.may_move)
                    .then(|| map_inaccessible(None, self.mapped));
                match fresh {
                    // Into the list first, so that it is unmapped whatever follows.
                    Some(Ok(base)) => list.insert(0, Window { base, size: 0 }),
                    Some(Err(error)) if list.is_empty() => return Err(error),
                    None if is_new => {}
                    // Few windows do as well, but slower.
                    _ => list.rotate_right(1),
                }
                list[0].resize(&self.bytes, size)?;
            }
        }
        self.base.store(list[0].base.as_ptr(), Ordering::Relaxed);
        self.size.store(size, Ordering::Relaxed);
        Ok(())
    }
}

impl Window {
    fn resize(&mut self, bytes: &Shared, size: usize) -> std::io::Result<()> {
        let old = self.size;
        // SAFETY: all of it lies within the window, since no memory grows beyond its maximum. No reference into
        // it is live: whoever changes a memory's size has the store to itself.
        let tail = unsafe { self.base.add(old.min(size)) };
        if size < old {
            map_inaccessible(Some(tail), old - size)?;
        } else if size > old {
            // SAFETY: as above.
            unsafe { bytes.map(old..size, tail)? };
        }
        self.size = size;
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        for window in &self.windows.get_mut().unwrap_or_else(PoisonError::into_inner).list {
            // SAFETY: the range was mapped by `resize`, and the last owner lets go of it here.
            unsafe { libc::munmap(window.base.as_ptr().cast(), self.mapped) };
        }
    }
}

/// Bytes that can be mapped at several places.
#[cfg(target_os = "linux")]
struct Shared {
    /// A place at which all of them are mapped; nobody uses it.
    all: NonNull<u8>,
    len: usize,
}

#[cfg(target_os = "linux")]
// SAFETY: it is a mapping that nobody uses, to make others of.
unsafe impl Send for Shared {}
#[cfg(target_os = "linux")]
// SAFETY: as above.
unsafe impl Sync for Shared {}

#[cfg(target_os = "linux")]
impl Shared {
    fn new(len: usize) -> std::io::Result<Shared> {
        // Where the kernel promises no more memory than there is, it promises none for a file. Elsewhere this comes first,
        // since what limits files does not limit it.
        Shared::of(len, libc::MAP_ANON, -1).or_else(|_| Shared::of_file(len))
    }

    fn of_file(len: usize) -> std::io::Result<Shared> {
        // SAFETY: the name is a string that ends with 0.
        let file = owned(unsafe { libc::memfd_create(c"spelunk".as_ptr(), libc::MFD_CLOEXEC) })?;
        file.set_len(len as u64)?;
        Shared::of(len, 0, file.as_raw_fd())
    }

    fn of(len: usize, flags: i32, file: i32) -> std::io::Result<Shared> {
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | flags;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel picks unused addresses.
        let all = mapped(unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, file, 0) })?;
        Ok(Shared { all, len })
    }

    /// Maps the bytes of `range` at `to` too.
    ///
    /// # Safety
    /// The caller owns the addresses, and no reference into them is live.
    unsafe fn map(&self, range: Range<usize>, to: NonNull<u8>) -> std::io::Result<()> {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: of a shared mapping no bytes are moved but mapped once more; the caller answers for the addresses.
        mapped(unsafe {
            let from = self.all.add(range.start).as_ptr().cast();
            libc::mremap(from, 0, range.len(), flags, to.as_ptr())
        })
        .map(drop)
    }
}

#[cfg(target_os = "linux")]
impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `of`.
        unsafe { libc::munmap(self.all.as_ptr().cast(), self.len) };
    }
}

/// Bytes that can be mapped at several places: a file in memory, whose name is taken away at once.
#[cfg(not(target_os = "linux"))]
struct Shared(File);

#[cfg(not(target_os = "linux"))]
impl Shared {
    fn new(len: usize) -> std::io::Result<Shared> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = std::ffi::CString::new(format!("/spelunk-{}-{number}", std::process::id()))?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        // SAFETY: the name is a string that ends with 0.
        let file = owned(unsafe { libc::shm_open(name.as_ptr(), flags, 0o600) })?;
        // SAFETY: as above.
        unsafe { libc::shm_unlink(name.as_ptr()) };
        file.set_len(len as u64)?;
        Ok(Shared(file))
    }

    /// Maps the bytes of `range` at `to` too.
    ///
    /// # Safety
    /// The caller owns the addresses, and no reference into them is live.
    unsafe fn map(&self, range: Range<usize>, to: NonNull<u8>) -> std::io::Result<()> {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
        let (address, from) = (to.as_ptr().cast(), range.start as libc::off_t);
        // SAFETY: the caller answers for the addresses.
        mapped(unsafe { libc::mmap(address, range.len(), access, flags, self.0.as_raw_fd(), from) }).map(drop)
    }
}

fn owned(descriptor: i32) -> std::io::Result<File> {
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: it was just opened, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

fn mapped(address: *mut libc::c_void) -> std::io::Result<NonNull<u8>> {
    if address == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(|| std::io::ErrorKind::OutOfMemory.into())
}

/// Maps `len` bytes that cannot be accessed: anywhere, or at `at`, over what is there.
fn map_inaccessible(at: Option<NonNull<u8>>, len: usize) -> std::io::Result<NonNull<u8>> {
    let fixed = if at.is_some() { libc::MAP_FIXED } else { 0 };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE | fixed;
    let address = at.map_or(std::ptr::null_mut(), |p| p.as_ptr().cast());
    // SAFETY: without MAP_FIXED the kernel picks unused addresses; with it the caller owns the range.
    mapped(unsafe { libc::mmap(address, len, libc::PROT_NONE, flags, -1, 0) })
}

/// wasmtime's handle of a mapping.
struct Linear {
    mapping: Arc<Mapping>,
    budget: Budget,
}

// SAFETY: the base moves where the size changes only, `byte_size` bytes from it are accessible, and everything from there
// to the end of the guard is mapped without access, as the engine's elided bounds checks need.
unsafe impl LinearMemory for Linear {
    fn byte_size(&self) -> usize {
        self.mapping.size()
    }

    /// As far as the memory grows without moving, which is not at all where it may move.
    fn byte_capacity(&self) -> usize {
        if self.mapping.may_move { self.mapping.size() } else { self.mapping.size_max }
    }

    fn grow_to(&mut self, new_size: usize) -> wasmtime::Result<()> {
        if new_size == self.mapping.size() {
            return Ok(());
        }
        let resized = self.mapping.resize(new_size);
        if let Err(error) = &resized
            && new_size <= self.mapping.size_max
        {
            // The guest is told that it cannot grow, which is not so: nothing that it does counts any more.
            self.budget.exhaust(format!("{EXHAUSTED}: {error}"));
        }
        Ok(resized?)
    }

    fn as_ptr(&self) -> *mut u8 {
        self.mapping.base()
    }
}

/// Makes the memories of an engine and remembers their mappings until a machine claims them.
#[derive(Default)]
pub(crate) struct Memories {
    budget: Budget,
    unclaimed: Mutex<Vec<Arc<Mapping>>>,
}

/// What is said where this machine has no room for the memory of a guest.
pub(super) const EXHAUSTED: &str = "there is no more address space for the memory of guests; take fewer --workers, a \
     smaller --memory-max, or a higher limit of this process (`ulimit -v`)";

// SAFETY: `Mapping::new` maps what it is asked for, with the guard, zero-filled.
unsafe impl MemoryCreator for Memories {
    fn new_memory(
        &self,
        _: MemoryType,
        minimum: usize,
        maximum: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        let size_max = maximum.map_or(SIZE_MAX, |maximum| maximum.min(SIZE_MAX));
        let mapping = match reserved.unwrap_or_default() {
            0 => Mapping::new(minimum, size_max, guard),
            reserved => Mapping::fixed(minimum, size_max, (reserved, guard)),
        };
        let mapping = mapping.map_err(|error| {
            self.budget.exhaust(format!("{EXHAUSTED}: {error}"));
            error.to_string()
        })?;
        let mapping = Arc::new(mapping);
        let mut unclaimed = self.unclaimed.lock().map_err(|e| e.to_string())?;
        // Those that only this list holds belonged to instances that were never claimed and are gone.
        unclaimed.retain(|mapping| Arc::strong_count(mapping) > 1);
        unclaimed.push(mapping.clone());
        Ok(Box::new(Linear { mapping, budget: self.budget.clone() }))
    }
}

impl Memories {
    /// Of guests that are stopped with this budget.
    pub(crate) fn new(budget: Budget) -> Memories {
        Memories { budget, unclaimed: Mutex::default() }
    }

    /// Ends the calls of all instances that are being made whose step budget is at `at` of a memory of this size, which
    /// does not grow.
    pub(super) fn end_calls(&self, size: usize, at: usize) {
        let unclaimed = self.unclaimed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_private = |mapping: &&Arc<Mapping>| (mapping.size(), mapping.size_max) == (size, size);
        unclaimed.iter().filter(is_private).for_each(|mapping| mapping.end_call(at));
    }

    /// The mapping at this base address.
    pub(crate) fn claim(&self, base: *mut u8) -> View {
        let mut unclaimed = self.unclaimed.lock().unwrap_or_else(|e| e.into_inner());
        let at = unclaimed.iter().position(|mapping| mapping.base() == base);
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
        unsafe { std::slice::from_raw_parts_mut(self.0.base(), self.0.size()) }
    }

    /// The size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.0.size()
    }

    /// The memory itself.
    pub(super) fn mapping(&self) -> &Arc<Mapping> {
        &self.0
    }

    /// Sets the size; the engine must be told by growing the memory by 0. Bytes that are added must be zero, so those
    /// that are taken away, of which `stale` are not, are wiped: pages by their number, of so many bytes.
    pub(crate) fn resize(&mut self, size: usize, stale: &[u32], page: usize) -> std::io::Result<()> {
        if stale.len() * page > FORGET_BYTES && size < self.size() {
            self.forget(size);
        } else {
            stale.iter().for_each(|index| self.bytes()[*index as usize * page..][..page].fill(0));
        }
        self.0.resize(size)
    }

    /// Zeroes all from `from` on.
    fn forget(&mut self, from: usize) {
        let tail = &mut self.bytes()[from..];
        #[cfg(target_os = "linux")]
        // SAFETY: it is mapped memory that this borrow has to itself, whole pages, and zeros may stand in it.
        if unsafe { libc::madvise(tail.as_mut_ptr().cast(), tail.len(), libc::MADV_REMOVE) } == 0 {
            return;
        }
        tail.fill(0);
    }
}

#[cfg(test)]
mod tests;
