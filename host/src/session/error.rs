//! Why a session could not do its job.

use std::fmt;

use crate::budget::Stopped;
use crate::store::Trouble;

/// What could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting.
    Config,
    /// The target: it cannot be read, built, instrumented or compiled.
    Target,
    /// What is asked of a check cannot be answered: a choice has too many alternatives, or the guest fails to say
    /// what its state is.
    Check,
    /// The campaign: it is damaged, of a newer version, open in another process, or cannot be written.
    Campaign,
    /// This machine has too little memory, address space or threads.
    Host,
    /// A file or a stream.
    Io,
    /// The budget ended before there was anything to report.
    Stopped,
}

/// Why a session could not do its job. Its text says what to do.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    source: anyhow::Error,
}

impl Error {
    pub(super) fn new(kind: ErrorKind, source: anyhow::Error) -> Error {
        let kind = if source.is::<Stopped>() { ErrorKind::Stopped } else { kind };
        // What is known already is not put aside.
        match source.downcast::<Error>() {
            Ok(error) => error,
            Err(source) => Error { kind, source },
        }
    }

    /// The kind is read off the cause.
    pub(super) fn of(source: anyhow::Error) -> Error {
        let kind = match () {
            () if source.is::<Trouble>() => ErrorKind::Campaign,
            () if source.is::<Stopped>() => ErrorKind::Stopped,
            () => ErrorKind::Io,
        };
        Error::new(kind, source)
    }

    /// What could not be used.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the stream that answers go to was closed by its reader.
    pub fn is_broken_pipe(&self) -> bool {
        let io = self.source.downcast_ref::<std::io::Error>();
        io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.source)
    }
}

impl std::error::Error for Error {}
