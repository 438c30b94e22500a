//! Exhaustive checks: verdicts and exact counts, whatever the way.

mod check;
mod check_examples;
mod copies;
mod deadlock;
mod hidden;
mod judged;
mod leftover;
mod liveness;
mod orderings;
mod orders;
mod protocols;
mod stopping;
mod symmetry;
mod threads;
