//! Faults: what the explorer may break.

use std::sync::atomic::{AtomicBool, Ordering};

/// Something that may go wrong, and that the explorer turns on and off between steps. Declared by [`fault!`].
///
/// [`fault!`]: crate::fault!
#[derive(Debug)]
pub struct Fault {
    name: &'static str,
    /// Atomic because a static must be; in a guest, which has one thread, it is a plain byte.
    active: AtomicBool,
}

impl Fault {
    #[doc(hidden)]
    pub const fn new(name: &'static str) -> Fault {
        Fault { name, active: AtomicBool::new(false) }
    }

    /// The name of this fault in findings.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the fault is on now. A load from memory, so ask as often as you like; never true on native
    /// targets, but in a run of `native`.
    #[inline]
    pub fn is_active(&self) -> bool {
        #[cfg(target_family = "wasm")]
        return self.active.load(Ordering::Relaxed);
        #[cfg(not(target_family = "wasm"))]
        crate::native::host::is_fault_on(self.name)
    }

    /// What the export of the fault calls.
    #[doc(hidden)]
    pub fn set(&self, active: bool) {
        self.active.store(active, Ordering::Relaxed);
    }
}

/// Declares a fault: `fault!(pub DISK_FULL, "disk_full");`.
///
/// The static is a [`Fault`], to be asked with [`Fault::is_active`] where the thing may fail, as deep in the
/// code under test as that is. The explorer turns it on and off between the steps of a run.
///
/// ```
/// use spelunk_guest::prelude::*;
///
/// fault!(
///     /// No space is left.
///     pub DISK_FULL, "disk_full"
/// );
///
/// fn write(disk: &mut Vec<u8>, bytes: &[u8]) -> Result<(), &'static str> {
///     if DISK_FULL.is_active() {
///         return Err("no space left");
///     }
///     disk.extend(bytes);
///     Ok(())
/// }
/// # assert_eq!(write(&mut Vec::new(), b"x"), Ok(()));
/// ```
#[macro_export]
macro_rules! fault {
    ($(#[$attribute:meta])* $visibility:vis $ident:ident, $name:literal $(,)?) => {
        $(#[$attribute])*
        $visibility static $ident: $crate::Fault = $crate::Fault::new($name);

        #[allow(dead_code)]
        const _: () = {
            #[cfg_attr(target_family = "wasm", unsafe(export_name = ::core::concat!("fault:", $name)))]
            extern "C" fn toggle(on: i32) {
                $ident.set(on != 0);
            }
        };
    };
}

#[cfg(test)]
mod tests {
    fault!(
        /// Documented.
        pub(super) BROKEN,
        "broken",
    );

    #[test]
    fn a_fault_is_never_active_outside_a_guest() {
        assert_eq!(BROKEN.name(), "broken");
        BROKEN.set(true);
        assert!(!BROKEN.is_active());
    }
}
