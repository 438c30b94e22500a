//! Harnesses whose states a check copies.

#![forbid(unsafe_code)]

#[cfg(not(feature = "rarely"))]
mod desk;
#[cfg(feature = "rarely")]
mod ring;
