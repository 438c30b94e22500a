//! `wasi:sockets` and `wasi:http`: there is no network, and what would need one says so.

use super::super::component::Value;
use super::super::imports::stop;
use super::values::Args;
use super::{Call, Done, Function, interface};
use crate::outcome::FailureKind;

pub(super) const FUNCTIONS: &[Function] =
    &[("wasi:sockets/instance-network", "instance-network", "func() -> network", network)];

/// Errors that say so, the best first.
pub(in super::super) const REFUSALS: [&str; 3] = ["not-supported", "access-denied", "HTTP-request-denied"];

/// What a network is known by. It is none.
fn network(_: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    Ok(Some(Value::Handle(0)))
}

/// Whether functions of this interface need a network.
pub(in super::super) fn is_network(within: &str) -> bool {
    interface(within).is_some_and(|name| name.starts_with("wasi:sockets/") || name.starts_with("wasi:http/"))
}

/// What such a function answers, where its type has no error for it.
pub(in super::super) fn unsupported(name: &str) -> wasmtime::Result<Option<Value>> {
    stop(FailureKind::Abi, None, format!("it calls `{name}`, and there is no network"))
}
