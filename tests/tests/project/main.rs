//! The repository itself: what depends on what, what is published, and whether what the documentation shows works.

mod docs;
mod manifests;
mod tidy;
