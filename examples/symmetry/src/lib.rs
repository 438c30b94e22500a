//! Protocols among participants that are alike. They are told apart by `Scalar`, so a check takes states for one that differ in
//! who is who.
//!
//! A feature takes the harness of one of them. The protocols themselves are compiled always, and the tests visit all of
//! their states without Spelunk, and count those that no order of the participants makes equal.

#![forbid(unsafe_code)]

pub mod filter_lock;
pub mod raft;
pub mod two_phase_commit;

#[cfg(test)]
mod native;
