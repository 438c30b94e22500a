//! Why a call on the virtual system fails, as WASI numbers it.

use serde::{Deserialize, Serialize};

/// An error number of WASI preview 1. Preview 2 names the same errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u16)]
#[allow(missing_docs)]
pub(crate) enum Errno {
    Acces = 2,
    Again = 6,
    Badf = 8,
    Busy = 10,
    Exist = 20,
    Fbig = 22,
    Ilseq = 25,
    Intr = 27,
    Inval = 28,
    Io = 29,
    Isdir = 31,
    Loop = 32,
    Mfile = 33,
    Mlink = 34,
    Nametoolong = 37,
    Nodev = 43,
    Noent = 44,
    Nomem = 48,
    Nospc = 51,
    Notdir = 54,
    Notempty = 55,
    Notsock = 57,
    Notty = 59,
    Perm = 63,
    Range = 68,
    Spipe = 70,
    Xdev = 75,
    Notcapable = 76,
}

/// The result of a call on the virtual system.
pub(crate) type Answer<T> = Result<T, Errno>;
