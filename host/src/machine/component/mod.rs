//! Components: linked into one core module, and called as their types say.

mod abi;
mod calls;
mod draw;
mod given;
mod guest;
mod handles;
mod imports;
mod instance;
mod interface;
mod lifted;
mod link;
mod provided;
mod resources;
mod rules;
mod shown;
mod stubbed;
mod transcode;
mod value;
mod wave;
mod wit;

pub(super) use calls::ComponentCall;
pub(super) use handles::{HOST, Handles};
pub(super) use imports::define;
pub(super) use instance::Linked;
pub(crate) use interface::Interface;
pub(crate) use link::{Linked as LinkedComponent, link};
pub(super) use provided::imports_system;
pub(crate) use rules::Component;
pub(super) use shown::WitValue;
pub(super) use value::Value;
pub(super) use wit::{imported, resources};

/// Whether these bytes are a component, and no module.
pub(crate) fn is_component(bytes: &[u8]) -> bool {
    wasmparser::Parser::is_component(bytes)
}
