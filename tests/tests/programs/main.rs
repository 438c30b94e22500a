//! Programs that nobody wrote for Spelunk, in many languages: how they are called, where they fail, and what of them was reached.

mod languages;
mod lines;
mod link;
mod reached;
mod sanitize;
mod signatures;
mod stack;
mod symbols;
