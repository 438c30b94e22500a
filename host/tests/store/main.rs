//! Snapshots as bytes and the campaign store, on guests in the text format.

mod damaged;
mod guest;
mod model;
mod saved;
mod snapshots;
