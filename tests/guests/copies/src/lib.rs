//! Harnesses whose states a check copies.

#![forbid(unsafe_code)]

#[cfg(feature = "spare")]
mod buffer;
#[cfg(not(any(
    feature = "rarely",
    feature = "late",
    feature = "hidden",
    feature = "owned",
    feature = "spare"
)))]
mod desk;
#[cfg(feature = "late")]
mod door;
#[cfg(feature = "rarely")]
mod ring;
#[cfg(feature = "hidden")]
mod shelf;
#[cfg(feature = "owned")]
mod text;
