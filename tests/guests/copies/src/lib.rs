//! Harnesses whose states a check copies.

#![forbid(unsafe_code)]

#[cfg(not(any(feature = "rarely", feature = "late", feature = "hidden")))]
mod desk;
#[cfg(feature = "late")]
mod door;
#[cfg(feature = "rarely")]
mod ring;
#[cfg(feature = "hidden")]
mod shelf;
