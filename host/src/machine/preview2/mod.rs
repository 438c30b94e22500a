//! WASI preview 2: the functions that components import, on the virtual system.
//!
//! Each is in a table with its name and its type as WIT writes it. What a component imports under that name must have that type.
//! A stream, a pollable, an error or a listing is a number in the system, and a descriptor is one of the table that preview 1
//! has too. The interfaces have versions of which `0.2` counts.
//!
//! | file | what |
//! |---|---|
//! | `cli` | arguments, variables, standard streams, the end of a program |
//! | `clocks` | time, and waiting for it |
//! | `random` | randomness |
//! | `streams` | reading, writing, and why that failed |
//! | `files` | descriptors, folders, listings |
//! | `paths` | what is done by a path |
//! | `network` | what there is not: sockets and HTTP |
//! | `types`, `values` | the types of the functions, and values of them |

mod cli;
mod clocks;
mod files;
mod network;
mod paths;
mod random;
mod streams;
mod types;
mod values;

use anyhow::{Result, bail};
use wasmtime::{Caller, Error};

use super::component::Value;
use super::host::{Host, pay};
use super::imports::stop;
use super::preview1::{self, change, system};
use super::system::{Errno, RESOURCES_MAX, Resource, State, System};
use crate::outcome::FailureKind;
pub(super) use network::{REFUSALS, is_network, unsupported};
use values::Args;

type Call<'c> = Caller<'c, Host>;

/// What a function does.
type Does = fn(&mut Call<'_>, &mut Args) -> Done<Option<Value>>;

/// A function: its interface, its name, its type, and what it does.
type Function = (&'static str, &'static str, &'static str, Does);

/// A new resource costs as much as reading so many bytes for each that there is: a free number is looked for among them.
const RESOURCE_BYTES: usize = 4;

/// Why a function did not do what it was asked for.
enum Fail {
    /// What the system says.
    Errno(Errno),
    /// A stream failed now.
    Stream { errno: Errno, is_of_file: bool },
    /// A stream has ended, or failed before.
    Closed,
    /// The component does not go on.
    Stop(Error),
}

type Done<T = ()> = Result<T, Fail>;

impl From<Errno> for Fail {
    fn from(errno: Errno) -> Fail {
        Fail::Errno(errno)
    }
}

impl From<Error> for Fail {
    fn from(error: Error) -> Fail {
        Fail::Stop(error)
    }
}

impl From<preview1::Fail> for Fail {
    fn from(fail: preview1::Fail) -> Fail {
        match fail {
            preview1::Fail::Errno(errno) => Fail::Errno(errno),
            preview1::Fail::Stop(error) => Fail::Stop(error),
        }
    }
}

/// The component does what it may not.
fn broken<T>(message: impl Into<String>) -> Done<T> {
    Ok(stop(FailureKind::Abi, None, message)?)
}

/// A new resource, as its handle.
fn add(call: &mut Call<'_>, resource: Resource) -> Done<Value> {
    pay(call, system(call).resources_len() * RESOURCE_BYTES)?;
    match change(call).add_resource(resource) {
        Some(number) => Ok(Value::Handle(number)),
        None => broken(format!(
            "it has more than {RESOURCES_MAX} streams, pollables, errors and listings at once"
        )),
    }
}

/// A function that is provided.
#[derive(Clone, Copy)]
pub(super) struct Provided {
    name: &'static str,
    ty: &'static str,
    does: Does,
}

/// The interface without its version, where it is one of WASI 0.2.
pub(super) fn interface(name: &str) -> Option<&str> {
    let (interface, version) = name.split_once('@')?;
    let patch = version.strip_prefix("0.2.")?;
    let is_number = !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit());
    (interface.starts_with("wasi:") && is_number).then_some(interface)
}

/// The function that a component imports under this name, where there is one; `ty` is the type it has there.
///
/// # Errors
/// It is imported with another type.
pub(super) fn function(within: &str, name: &str, ty: &str) -> Result<Option<Provided>> {
    let Some(interface) = interface(within) else { return Ok(None) };
    let found = functions().find(|(of, known, ..)| *of == interface && *known == name);
    let Some(&(_, name, known, does)) = found else { return Ok(None) };
    if types::written_out(known) != ty {
        bail!("the component imports `{within}#{name}` as `{ty}`; it is `{known}`");
    }
    Ok(Some(Provided { name, ty: known, does }))
}

fn functions() -> impl Iterator<Item = &'static Function> {
    let all = [
        cli::FUNCTIONS,
        clocks::FUNCTIONS,
        random::FUNCTIONS,
        streams::FUNCTIONS,
        files::FUNCTIONS,
        paths::FUNCTIONS,
        network::FUNCTIONS,
    ];
    all.into_iter().flatten()
}

impl Provided {
    /// Answers a call.
    pub(super) fn call(self, call: &mut Call<'_>, values: Vec<Value>) -> wasmtime::Result<Option<Value>> {
        let done = (self.does)(call, &mut Args::new(values));
        self.told(call, done)
    }

    /// What a component is told, by the error that the function may return.
    fn told(self, call: &mut Call<'_>, done: Done<Option<Value>>) -> wasmtime::Result<Option<Value>> {
        let (is_file, is_stream) = (self.ty.ends_with(", error-code>"), self.ty.ends_with(", stream-error>"));
        let error = match done {
            Ok(value) if is_file || is_stream => return Ok(Some(values::ok(value))),
            Ok(value) => return Ok(value),
            Err(Fail::Stop(error)) => return Err(error),
            Err(Fail::Errno(errno)) if is_file => Value::Variant(files::code(errno).0, None),
            Err(Fail::Errno(errno)) if is_stream => self.stream_error(call, errno, true)?,
            Err(Fail::Stream { errno, is_of_file }) if is_stream => {
                self.stream_error(call, errno, is_of_file)?
            }
            Err(Fail::Closed) if is_stream => Value::Variant(1, None),
            Err(Fail::Errno(errno) | Fail::Stream { errno, .. }) => {
                let message =
                    format!("`{}` failed, and has no value for that: {}", self.name, files::code(errno).1);
                return stop(FailureKind::Abi, None, message);
            }
            Err(Fail::Closed) => {
                return stop(
                    FailureKind::Abi,
                    None,
                    format!("`{}` was called of a stream that is closed", self.name),
                );
            }
        };
        Ok(Some(values::error(error)))
    }

    fn stream_error(self, call: &mut Call<'_>, errno: Errno, is_of_file: bool) -> wasmtime::Result<Value> {
        let error = add(call, Resource::Error { errno, is_of_file });
        match error {
            Ok(handle) => Ok(Value::Variant(0, Some(Box::new(handle)))),
            Err(Fail::Stop(error)) => Err(error),
            Err(_) => stop(FailureKind::Abi, None, "there is no room for an error"),
        }
    }
}

/// Drops a resource of an interface of WASI. One that was never made is not there.
pub(super) fn dropped(host: &mut Host, name: &str, number: u32) {
    let Some(system) = &mut host.system else { return };
    let is_it = |state: &State| match name {
        "descriptor" => state.opened(number).is_some(),
        _ => matches!(
            (name, state.resource(number)),
            ("input-stream", Some(Resource::Input(_)))
                | ("output-stream", Some(Resource::Output(_)))
                | ("pollable", Some(Resource::Pollable(_)))
                | ("error", Some(Resource::Error { .. }))
                | ("directory-entry-stream", Some(Resource::Listing { .. }))
        ),
    };
    if !is_it(System::get(system)) {
        return;
    }
    match name {
        "descriptor" => drop(system.change().close(number)),
        _ => system.change().drop_resource(number),
    }
}
