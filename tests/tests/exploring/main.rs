//! Explorations, and what they rest on: snapshots, limits, shrinking, closer looks.

mod cache;
mod challenges;
mod coverage;
mod crash;
mod examples;
mod guess;
mod hits;
mod identity;
mod inputs;
mod keeping;
mod large;
mod limits;
mod looks;
mod observe;
mod real;
mod shrinking;
mod snapshots;
mod systems;
