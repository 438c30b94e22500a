//! Campaigns and checks that are killed, cut short, moved, damaged and put together, through the binary.
//!
//! `SPELUNK_KILLS=200 cargo test --release --workspace --test campaign` kills one campaign 200 times instead of 20.

mod checked;
mod disk;
mod guests;
mod moved;
mod older;
mod place;
mod refused;
mod resumed;
