//! Which thread of the guest goes on: a choice among those that can. Under a bound it counts what the choices cost, and gives up
//! runs that cost more; where orders are left out, those too.
//!
//! The choice is among all of them in any case, so that a trace does not depend on the bound.

use std::sync::Arc;

use wasmtime::{Caller, Error, ImportType, Linker};

use super::Machine;
use super::host::{Host, Stop, pay};
use super::imports::{MODULE, choose_index, memory_of, slice, stop};
use super::keyed::{self, BLOCK};
use super::touched::{How, Reduction, Touched};
use crate::outcome::FailureKind;
use crate::schedules::Schedules;

/// Threads that may be chosen from.
const THREADS_MAX: u32 = 1 << 16;
/// The bit of a number that says that the thread gave way by itself.
const GAVE_WAY: u32 = 1 << 31;
/// What a module imports that has operations on memory which other threads may see late.
const RELAX: &str = "relax";
/// What it imports whose threads say what they touch.
const TOUCHES: &str = "touches";
/// The place of a block that is in no memory.
const PLACE: u64 = u64::MAX - 1;

/// What was scheduled in a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Schedule {
    /// One more than the number of the thread that ran last.
    last: u32,
    /// What the choices cost so far, under a bound.
    spent: u32,
}

/// What is left out of schedules.
#[derive(Debug, Default)]
pub(crate) struct Bound {
    /// What that of a run may cost.
    schedules: Option<Schedules>,
    /// Whether that left anything out.
    has_cut: bool,
    /// Which orders make no difference.
    reduction: Option<Box<Reduction>>,
}

impl Machine {
    /// From now on runs whose schedule costs more are given up.
    pub(crate) fn bound_schedules(&mut self, schedules: Option<Schedules>) {
        self.store.data_mut().guest.bound = Bound { schedules, ..Bound::default() };
    }

    /// Whether the guest does nothing but let threads go on that say what they touch.
    pub(crate) fn says_what_threads_touch(&self) -> bool {
        let (program, exports) = (&self.program, &self.program.exports);
        let tells = |import: ImportType| import.module() == MODULE && import.name() == TOUCHES;
        program.module.imports().any(tells)
            && exports.rules.len() == 1
            && exports.faults.is_empty()
            && exports.teardown.is_empty()
            && exports.invariants.len() <= 1
            && program.liveness.len() <= 1
            && program.against.is_none()
            && program.world.system.is_none()
    }

    /// From now on orders are left out that make no difference if threads touch nothing else.
    pub(crate) fn leave_out_orders(&mut self, assumed: Arc<Touched>) {
        let reduction = Some(Box::new(Reduction::new(assumed)));
        self.store.data_mut().guest.bound = Bound { reduction, ..Bound::default() };
    }

    /// From now on they are not. What came of it.
    pub(crate) fn leave_out_nothing(&mut self) -> Reduction {
        let bound = std::mem::take(&mut self.store.data_mut().guest.bound);
        bound.reduction.map_or_else(Reduction::default, |reduction| *reduction)
    }

    /// Whether the bound has left anything out.
    pub(crate) fn has_cut_schedules(&self) -> bool {
        self.store.data().guest.bound.has_cut
    }

    /// The hash of a state with what was scheduled: under a bound, two that differ in that are not equal.
    pub(super) fn scheduled(&self, hash: u128) -> u128 {
        let guest = &self.store.data().guest;
        if guest.bound.schedules.is_none() {
            return hash;
        }
        let mut block = [0; BLOCK];
        block[..4].copy_from_slice(&guest.schedule.last.to_le_bytes());
        block[4..8].copy_from_slice(&guest.schedule.spent.to_le_bytes());
        hash.wrapping_add(keyed::hash_of_block(&block, PLACE))
    }
}

/// Whether a module that imports this has such operations.
pub(super) fn relaxes(import: &ImportType) -> bool {
    import.module() == MODULE && import.name() == RELAX
}

pub(super) fn define(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "schedule", schedule)?;
    linker.func_wrap(MODULE, TOUCHES, touches)?;
    linker.func_wrap(MODULE, "reduces", |caller: Caller<'_, Host>| {
        u32::from(caller.data().guest.bound.reduction.is_some())
    })?;
    linker.func_wrap(MODULE, RELAX, || {})?;
    linker
        .func_wrap(MODULE, "relaxed", |caller: Caller<'_, Host>| u32::from(caller.data().guest.is_relaxed))?;
    linker.func_wrap(MODULE, "suspend", || replaced::<()>("suspend"))?;
    linker.func_wrap(MODULE, "resume", |_record: u32| replaced::<u32>("resume"))?;
    Ok(())
}

/// The instrumenter puts functions of the guest in the place of these; they are here for their types.
fn replaced<T>(name: &str) -> wasmtime::Result<T> {
    stop(FailureKind::Abi, None, format!("`{name}` is for a module that is instrumented"))
}

fn touches(
    mut caller: Caller<'_, Host>,
    thread: u32,
    how: u32,
    object: u32,
    joined: u64,
) -> wasmtime::Result<()> {
    let Some(told) = How::of(how, object) else {
        return stop(FailureKind::Abi, None, format!("touches: there is no way {how} to touch something"));
    };
    let guest = &mut caller.data_mut().guest;
    if let Some(reduction) = &mut guest.bound.reduction {
        reduction.touches(thread, told, joined, guest.schedule.last == 0);
    }
    Ok(())
}

fn schedule(mut caller: Caller<'_, Host>, pointer: u32, count: u32) -> wasmtime::Result<u32> {
    if count == 0 {
        return stop(FailureKind::Deadlock, None, "no thread can go on");
    }
    if count > THREADS_MAX {
        return stop(FailureKind::Abi, None, format!("schedule: there are more than {THREADS_MAX} threads"));
    }
    pay(&mut caller, count as usize * 4)?;
    let memory = memory_of(&mut caller)?;
    let bytes = slice(memory.data(&caller), pointer, count * 4)?;
    let threads: Vec<u32> = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let host = caller.data_mut();
    let priorities = &host.step.chooser.priorities;
    let preferred = priorities.preferred(&threads, |thread| (thread & !GAVE_WAY, thread & GAVE_WAY != 0));
    let chosen = match count {
        1 => 0,
        _ => choose_index(&mut host.step, count, preferred)?,
    };
    let number = threads[chosen as usize] & !GAVE_WAY;
    host.step.chooser.priorities.ran(number);
    let guest = &mut host.guest;
    let last = guest.schedule.last.checked_sub(1);
    if let Some(schedules) = guest.bound.schedules {
        let among = threads.iter().map(|thread| (thread & !GAVE_WAY, thread & GAVE_WAY != 0));
        let spent = guest.schedule.spent.saturating_add(schedules.cost(among, last, number));
        if spent > schedules.max() {
            guest.bound.has_cut = true;
            return Err(Error::from(Stop::Reject));
        }
        guest.schedule.spent = spent;
    }
    if let Some(reduction) = &mut guest.bound.reduction
        && reduction.leaves_out(number, threads.iter().map(|thread| thread & !GAVE_WAY))
    {
        return Err(Error::from(Stop::LeaveOut));
    }
    guest.schedule.last = number + 1;
    Ok(chosen)
}
