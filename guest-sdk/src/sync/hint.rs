//! As [`std::hint`].

use std::panic::Location;

use super::order;
use super::scheduler::{What, point};

pub use std::hint::{assert_unchecked, black_box, unreachable_unchecked};

/// Others may go first.
#[track_caller]
pub fn spin_loop() {
    point(What::Yield, std::ptr::null(), Location::caller());
    order::gave_way();
}
