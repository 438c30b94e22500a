//! What the guest does not tell the host where it copies its states, and keeps in the instrumenter's memory.

use spelunk_instrumenter::InsideLayout;
pub(super) use spelunk_instrumenter::SAYS;
use wasmtime::{AsContextMut, Caller};

use crate::machine::host::{Host, Private};
use crate::machine::keyed::Hasher;

/// What the guest is called for, as our module says that calls it: anything, to load a state, to say what it is ([`SAYS`]), or to move it elsewhere.
pub(super) const STEPS: u32 = 0;
pub(super) const LOADS: u32 = 1;
pub(super) const MOVES: u32 = 3;
/// To evaluate invariants in the state that a step led to, which has ended.
pub(super) const JUDGES: u32 = 8;
/// The bit beside [`SAYS`]: it said so much that some of it is with the host already.
const SAID_MORE: u32 = 4;

/// Where that is in private memory.
#[derive(Clone, Copy)]
pub(crate) struct Inside {
    /// How many spans began, and how many of them are open.
    pub(super) spans: u32,
    pub(super) said_len: u32,
    pub(super) said: u32,
    pub(super) phase: u32,
    /// As much room as there is for what is said.
    pub(super) aside: u32,
}

impl Inside {
    pub(in crate::machine) fn of(layout: &InsideLayout) -> Inside {
        let InsideLayout { spans, said_len, phase, .. } = *layout;
        Inside { spans, said_len, said: layout.said.start, phase, aside: layout.aside.start }
    }

    fn said(self, private: &[u8]) -> &[u8] {
        let len = word(private, self.said_len) as usize;
        &private[self.said as usize..][..len]
    }
}

fn word(private: &[u8], at: u32) -> u32 {
    let bytes = &private[at as usize..][..4];
    u32::from_le_bytes(*bytes.first_chunk().expect("four bytes"))
}

fn set_word(private: &mut [u8], at: u32, word: u32) {
    private[at as usize..][..4].copy_from_slice(&word.to_le_bytes());
}

/// What the guest is called for.
pub(super) fn phase(store: &mut impl AsContextMut<Data = Host>) -> u32 {
    let store = store.as_context_mut();
    match store.data().guest.private {
        Some(Private { memory, inside: Some(inside), .. }) => {
            word(memory.data(&store), inside.phase) & !SAID_MORE
        }
        _ => STEPS,
    }
}

/// Whether what the guest does belongs to no step, although one is performed.
pub(in crate::machine) fn is_beside(caller: &mut Caller<'_, Host>) -> bool {
    counts(caller);
    phase(caller) != STEPS
}

/// The guest tells the host of something that counts.
pub(in crate::machine) fn counts(caller: &mut Caller<'_, Host>) {
    if phase(caller) == JUDGES {
        caller.data_mut().driven.tells();
    }
}

/// Takes from private memory what the guest says of its state, which is going on.
pub(in crate::machine) fn take_said(caller: &mut Caller<'_, Host>) {
    let Some(Private { memory, inside: Some(inside), .. }) = caller.data().guest.private else { return };
    let (private, host) = memory.data_and_store_mut(caller);
    let phase = word(private, inside.phase);
    if phase & !SAID_MORE == SAYS {
        set_word(private, inside.phase, phase | SAID_MORE);
        host.step.state.get_or_insert_with(Hasher::new);
    }
    if let Some(hasher) = &mut host.step.state {
        hasher.update(inside.said(private));
    }
    set_word(private, inside.said_len, 0);
}

/// The hash of what the guest said its state is since it was last to say it, and of what the host keeps of its state.
pub(in crate::machine) fn said_state(store: &mut impl AsContextMut<Data = Host>, with_system: bool) -> u128 {
    let mut store = store.as_context_mut();
    match store.data().guest.private {
        Some(Private { memory, inside: Some(inside), .. }) => {
            let (private, host) = memory.data_and_store_mut(&mut store);
            host.said_state(inside.said(private), with_system)
        }
        _ => store.data_mut().said_state(&[], with_system),
    }
}
