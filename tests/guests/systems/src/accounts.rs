//! Accounts in slots that are used again. A handle says which account of its slot it means.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Handle {
    slot: usize,
    generation: u32,
}

#[derive(Clone, Default)]
struct Slot {
    generation: u32,
    balance: Option<u64>,
}

#[derive(Clone, Default)]
pub(crate) struct Accounts {
    slots: Vec<Slot>,
}

impl Accounts {
    /// Opens an account, in the first slot that is free.
    pub(crate) fn open(&mut self) -> Handle {
        let free = self.slots.iter().position(|slot| slot.balance.is_none());
        let slot = free.unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(Slot::default());
        }
        self.slots[slot].balance = Some(0);
        Handle { slot, generation: self.slots[slot].generation }
    }

    fn balance_mut(&mut self, handle: Handle) -> Option<&mut u64> {
        let slot = &mut self.slots[handle.slot];
        slot.balance.as_mut().filter(|_| slot.generation == handle.generation)
    }

    pub(crate) fn balance(&self, handle: Handle) -> Option<u64> {
        self.clone().balance_mut(handle).copied()
    }

    pub(crate) fn deposit(&mut self, handle: Handle, amount: u64) {
        if let Some(balance) = self.balance_mut(handle) {
            *balance += amount;
        }
    }

    pub(crate) fn close(&mut self, handle: Handle) {
        if self.balance_mut(handle).is_some() {
            self.slots[handle.slot].balance = None;
            self.slots[handle.slot].generation += 1;
        }
    }

    /// The bug: that the receiver's account is still the same is not looked at.
    pub(crate) fn transfer(&mut self, from: Handle, to: Handle, amount: u64) {
        if self.slots[to.slot].balance.is_none() {
            return;
        }
        let Some(balance) = self.balance_mut(from).filter(|balance| **balance >= amount) else { return };
        *balance -= amount;
        *self.slots[to.slot].balance.as_mut().expect("it was looked at") += amount;
    }
}
