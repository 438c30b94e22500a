//! Components: what is passed to them and returned, and what they are explored for.

mod against;
mod boxes;
mod given;
mod harness;
mod hostile;
mod languages;
mod oracle;
mod specification;
mod types;
