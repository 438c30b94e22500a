//! Exports that are called as their signatures say: what is drawn for their parameters, where it is put, and what comes back.

mod draw;
mod place;
mod plan;
mod pools;
mod roles;

use std::sync::Arc;

use wasmtime::{Func, Store, Val};

use super::against::{Returned, Text};
use super::host::{Host, Stop};
use super::imports::{slice, stop};
use crate::file::What;
use crate::outcome::{Failure, FailureKind};
use draw::Drawn;
pub(crate) use draw::label_of;
pub(super) use draw::{LABEL, more};
use place::Frame;
pub(super) use place::Placer;
pub(crate) use place::has_room;
use plan::Outcome;
pub(super) use plan::{Plan, Plans};
pub(super) use pools::{HANDLES_MAX, Pools};

/// Bytes of a text that an export returned, of those that are reported.
const TEXT_MAX: usize = 4096;

/// A call costs as much as reading so many bytes, besides what it does.
const CALL_BYTES: usize = 1024;

/// An export, prepared to be called.
pub(super) struct Signed {
    plan: Arc<Plan>,
    plans: Arc<Plans>,
    func: Func,
    placer: Option<Placer>,
    args: Vec<Val>,
    results: Vec<Val>,
    /// The text that the last call returned, and the handles that it wrote, by their pools, where they are to be compared.
    text: Option<Text>,
    written: Vec<(usize, i64)>,
}

impl Signed {
    pub(super) fn new(
        plan: &Arc<Plan>,
        plans: &Arc<Plans>,
        (func, placer): (Func, Option<&Placer>),
        store: &Store<Host>,
    ) -> Signed {
        let ty = func.ty(store);
        Signed {
            plan: plan.clone(),
            plans: plans.clone(),
            func,
            placer: placer.cloned(),
            args: ty.params().map(|ty| Val::default_for_ty(&ty).unwrap_or(Val::I32(0))).collect(),
            results: vec![Val::I32(0); ty.results().len()],
            text: None,
            written: Vec::new(),
        }
    }

    /// Whether the rule that this is may be called with these pools.
    pub(super) fn is_enabled(&self, pools: &Pools) -> bool {
        self.plans.is_enabled(&self.plan, pools)
    }

    /// What the last call returned, as what can be compared: not where a handle lies, but whether there is one.
    pub(super) fn returned(&mut self) -> Returned {
        let handle = |pool: usize, handle| !self.plans.pools[pool].null.is(handle);
        let returned = match (self.plan.result, number(&self.results)) {
            (Outcome::Text, _) => Returned::Text(self.text.take()),
            (Outcome::Handle(pool), Some(result)) => Returned::Handle(handle(pool, result)),
            _ => Returned::of(&self.results),
        };
        match self.written.iter().map(|(pool, written)| handle(*pool, *written)).collect::<Vec<_>>() {
            none if none.is_empty() => returned,
            written => Returned::Written(Box::new(returned), written),
        }
    }

    /// Calls it, or where it is called for each handle of a pool, as often; whether the result, or one of them, is 0, where there
    /// is one.
    pub(super) fn call(&mut self, store: &mut Store<Host>) -> wasmtime::Result<Option<i32>> {
        let pool = self.plan.slots.iter().find(|slot| matches!(slot.param.what, What::Handle(..)));
        let Some(pool) = pool.filter(|_| self.plan.is_for_each).and_then(|slot| slot.pool) else {
            return self.call_once(store, None);
        };
        for handle in store.data().guest.pools.handles(pool).to_vec() {
            if self.call_once(store, Some(handle))? == Some(0) && self.plan.is_invariant {
                let message = format!("it does not hold of the handle {handle}");
                return stop(FailureKind::Fail, None, message);
            }
        }
        Ok(None)
    }

    fn call_once(&mut self, store: &mut Store<Host>, given: Option<i64>) -> wasmtime::Result<Option<i32>> {
        // No code of the guest's counts the call.
        super::host::pay(store, CALL_BYTES)?;
        let drawn = draw::all(&self.plan, store, given)?;
        let mut frame = match &self.placer {
            Some(placer) => Some(placer.begin(store)?),
            None => None,
        };
        let addresses = self.place(store, &drawn, &mut frame)?;
        self.func.call(&mut *store, &self.args, &mut self.results)?;
        let written = self.written(store, &addresses)?;
        let result = number(&self.results);
        let text = match (self.plan.result, result) {
            (Outcome::Text, Some(at)) if store.data().step.is_verbose => Some(text_at(store, at as u32)),
            _ => None,
        };
        if store.data().step.effects.is_some() {
            self.written.clone_from(&written);
            self.text = match (self.plan.result, result) {
                (Outcome::Text, Some(at)) => whole_text(store, at as u32)?,
                _ => None,
            };
        }
        if let (Some(placer), Some(frame)) = (&self.placer, &frame) {
            placer.end(store, frame)?;
        }
        self.learn(store, &drawn, &written, (result, text))?;
        Ok(result.map(|result| i32::from(result != 0)))
    }

    /// Puts what was drawn where it is passed; the addresses of what is passed by them.
    fn place(
        &mut self,
        store: &mut Store<Host>,
        drawn: &[Drawn],
        frame: &mut Option<Frame>,
    ) -> wasmtime::Result<Vec<Option<u32>>> {
        let mut addresses = Vec::new();
        for (slot, drawn) in self.plan.slots.iter().zip(drawn) {
            let (bytes, len, is_kept): (&[u8], usize, bool) = match drawn {
                Drawn::Number(value) => {
                    self.args[slot.at] = *value;
                    addresses.push(None);
                    continue;
                }
                Drawn::Bytes(bytes) => {
                    let What::Buffer(buffer) = &slot.param.what else {
                        unreachable!("bytes are of a buffer")
                    };
                    (bytes, bytes.len() + usize::from(buffer.ends_in_zero), buffer.is_kept)
                }
                Drawn::Room(len) => (&[], *len as usize, false),
            };
            let (Some(placer), Some(frame)) = (&self.placer, &mut *frame) else {
                unreachable!("there is a placer where anything is placed")
            };
            let whose = (&*slot.param.name, &*self.plan.export);
            let at = placer.put(store, frame, (bytes, len as u32, is_kept), whose)?;
            super::host::pay(store, len)?;
            self.args[slot.at] = Val::I32(at as i32);
            if slot.is_followed {
                self.args[slot.at + 1] = Val::I32(bytes.len() as i32);
            }
            addresses.push(Some(at));
        }
        Ok(addresses)
    }

    /// The handles that the export wrote where it was told to, by their parameters.
    fn written(&self, store: &Store<Host>, addresses: &[Option<u32>]) -> wasmtime::Result<Vec<(usize, i64)>> {
        let mut written = Vec::new();
        for (slot, at) in self.plan.slots.iter().zip(addresses) {
            let (What::OutHandle(_, is_long), Some(at), Some(pool)) = (&slot.param.what, at, slot.pool)
            else {
                continue;
            };
            let memory = store.data().guest.memory.map_or(&[][..], |memory| memory.data(store));
            let bytes = slice(memory, *at, 8)?;
            let long = i64::from_le_bytes(*bytes.first_chunk().expect("eight bytes"));
            written.push((pool, if *is_long { long } else { i64::from(long as i32) }));
        }
        Ok(written)
    }

    /// What a call that returned means: for the pools, and for the run.
    fn learn(
        &self,
        store: &mut Store<Host>,
        drawn: &[Drawn],
        written: &[(usize, i64)],
        (result, text): (Option<i64>, Option<String>),
    ) -> wasmtime::Result<()> {
        let Plan { export, result: kind, error_when, fails_when, .. } = &*self.plan;
        let told = match (result, text) {
            (_, Some(text)) => Some(format!("returns {text}")),
            (Some(result), None) => Some(format!("returns {result}")),
            (None, None) => None,
        };
        if let (Some(result), Some(when)) = (result, fails_when)
            && when.is(result)
        {
            let message = format!("`{export}` returned {result}, which its signature calls a failure");
            let place = Some(export.clone());
            return Err(Stop::Fail(Failure { kind: FailureKind::Fail, subject: None, message, place }).into());
        }
        let is_error = result.zip(*error_when).is_some_and(|(result, when)| when.is(result));
        let told = told.map(|told| if is_error { told + ", an error" } else { told });
        // What is held of the state after a step is no part of what the step did.
        if let Some(told) = told.filter(|_| !self.plan.is_invariant) {
            note(store, told);
        }
        if is_error {
            return Ok(());
        }
        for (slot, drawn) in self.plan.slots.iter().zip(drawn) {
            if let (What::Handle(_, true), Drawn::Number(value), Some(pool)) =
                (&slot.param.what, drawn, slot.pool)
            {
                let is_it =
                    |handle| draw::number_of(&draw::value(&slot.ty, handle)) == draw::number_of(value);
                store.data_mut().guest.pools.take(pool, is_it);
            }
        }
        let returned = match (kind, result) {
            (Outcome::Handle(pool), Some(handle)) => Some((*pool, handle)),
            _ => None,
        };
        for (pool, handle) in written.iter().copied().chain(returned) {
            let described = &self.plans.pools[pool];
            if described.null.is(handle) {
                continue;
            }
            if !store.data_mut().guest.pools.add(pool, handle) {
                let message = format!(
                    "the pool `{0}` has more than {HANDLES_MAX} handles; set `max` in `[pools.{0}]`, and rules that add to \
                     it are not called where it is full",
                    described.name
                );
                return stop(FailureKind::Abi, None, message);
            }
            note(store, format!("into {}: {handle}", described.name));
        }
        Ok(())
    }
}

/// A line below the step, where it is reported.
fn note(store: &mut Store<Host>, text: String) {
    store.data_mut().step.note(|| text);
}

/// The only result, where it is an integer.
fn number(results: &[Val]) -> Option<i64> {
    match results {
        [Val::I32(result)] => Some(i64::from(*result)),
        [Val::I64(result)] => Some(*result),
        _ => None,
    }
}

/// The text at an address up to its zero byte, for which the guest pays; nothing where there is none.
fn whole_text(store: &mut Store<Host>, at: u32) -> wasmtime::Result<Option<Text>> {
    let memory = store.data().guest.memory.map_or(&[][..], |memory| memory.data(&*store));
    let bytes = memory.get(at as usize..).filter(|_| at != 0);
    let text = bytes.map(|bytes| bytes.split(|byte| *byte == 0).next().unwrap_or_default());
    let (text, len) = (text.map(Text::of), text.map_or(0, <[u8]>::len));
    super::host::pay(store, len)?;
    Ok(text)
}

/// The text at an address up to its zero byte, as it is reported.
fn text_at(store: &Store<Host>, at: u32) -> String {
    let memory = store.data().guest.memory.map_or(&[][..], |memory| memory.data(store));
    if at == 0 {
        return "0".to_string();
    }
    let Some(bytes) = memory.get(at as usize..) else {
        return format!("{at:#x}, which is outside of memory");
    };
    let end = bytes.iter().take(TEXT_MAX).position(|byte| *byte == 0);
    let text = String::from_utf8_lossy(&bytes[..end.unwrap_or(TEXT_MAX.min(bytes.len()))]);
    format!("{text:?}{}", if end.is_none() { " …" } else { "" })
}
