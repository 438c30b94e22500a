//! Protocols among participants that are alike. They are told apart by `Scalar`, so a check takes states for one that differ in
//! who is who.
//!
//! A feature takes the harness of one of them. The protocols themselves are compiled always, and the tests visit all of
//! their states without Spelunk, and count those that no order of the participants makes equal.

#![forbid(unsafe_code)]

use std::hash::Hash;

pub mod filter_lock;
pub mod flexible_paxos;
pub mod raft;
pub mod readers_writers;
pub mod two_phase_commit;

#[cfg(test)]
mod native;

/// What another tool needs to visit its states.
pub trait Protocol: Clone + Default + Eq + Hash {
    type Action;

    /// Adds all that may be done now.
    fn actions(&self, actions: &mut Vec<Self::Action>);

    fn perform(&mut self, action: Self::Action);

    /// What holds in every state in which nothing is wrong.
    fn is_right(&self) -> bool;
}
