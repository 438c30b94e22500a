//! Which values the threads of a small program read, as events.

use spelunk_guest::prelude::*;

use crate::programs::PROGRAMS;

#[spelunk_guest::threads]
fn litmus() {
    let (name, program) = PROGRAMS[choose(PROGRAMS.len())];
    let read = program();
    event!("{name}: {read:?}");
}
