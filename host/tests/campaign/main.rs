//! Campaigns and checks that are killed, cut short, moved, damaged and put together, through the binary.
//!
//! `SPELUNK_FLEET_SECONDS=60` has fleets explore for a minute, with a worker killed in each second, instead of 8 seconds.
//! `SPELUNK_KILLS=200 cargo test --release --workspace --test campaign` kills one campaign 200 times instead of 20.

mod checked;
mod disk;
mod documented;
mod fleet;
mod forged;
mod guests;
mod moved;
mod older;
mod place;
mod refused;
mod resumed;
mod server;
