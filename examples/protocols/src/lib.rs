//! Protocols as their authors describe them, each a plain Rust type and a harness whose rules are its actions.
//!
//! A feature takes the harness of one of them. The protocols themselves are compiled always, and the tests visit all of
//! their states without Spelunk.

#![forbid(unsafe_code)]

pub mod alternating_bit;
pub mod bakery;
pub mod crash_store;
pub mod filter_lock;
pub mod flexible_paxos;
pub mod jugs;
pub mod lock;
pub mod raft;
pub mod readers_writers;
pub mod ring;
pub mod termination;
pub mod treiber;

#[cfg(test)]
mod native;
