//! The accounts and what can be done with them.

use std::collections::BTreeMap;

use spelunk_guest::prelude::*;

use crate::journal::{DiskFull, Entry, Journal};

/// Accounts by name, and the journal from which they can be recovered.
#[derive(Debug, Default)]
pub struct Ledger {
    balances: BTreeMap<String, u32>,
    journal: Journal,
}

/// Why nothing was done.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    AlreadyOpen,
    NoSuchAccount,
    NotEnoughMoney,
    SameAccount,
    TooMuchMoney,
    Unavailable,
}

impl From<DiskFull> for Refused {
    fn from(DiskFull: DiskFull) -> Refused {
        Refused::Unavailable
    }
}

impl Ledger {
    /// The ledger as its journal tells it.
    pub fn recover(journal: &Journal) -> Ledger {
        let mut ledger = Ledger { balances: BTreeMap::new(), journal: journal.clone() };
        for entry in journal.entries() {
            ledger.apply(entry);
        }
        ledger
    }

    pub fn balances(&self) -> &BTreeMap<String, u32> {
        &self.balances
    }

    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    pub fn total(&self) -> u64 {
        self.balances.values().copied().map(u64::from).sum()
    }

    pub fn open(&mut self, name: &str, amount: u32) -> Result<(), Refused> {
        if self.balances.contains_key(name) {
            return Err(Refused::AlreadyOpen);
        }
        self.commit(Entry::Opened { name: name.into(), amount })
    }

    pub fn deposit(&mut self, name: &str, amount: u32) -> Result<(), Refused> {
        self.balance(name)?.checked_add(amount).ok_or(Refused::TooMuchMoney)?;
        self.commit(Entry::Deposited { name: name.into(), amount })
    }

    pub fn withdraw(&mut self, name: &str, amount: u32) -> Result<(), Refused> {
        self.balance(name)?.checked_sub(amount).ok_or(Refused::NotEnoughMoney)?;
        self.commit(Entry::Withdrawn { name: name.into(), amount })
    }

    /// Moves money; who has no account yet gets one with the first payment.
    pub fn transfer(&mut self, from: &str, to: &str, amount: u32) -> Result<(), Refused> {
        if from == to {
            return Err(Refused::SameAccount);
        }
        let left = self.balance(from)?.checked_sub(amount).ok_or(Refused::NotEnoughMoney)?;
        let received = self.balance(to).unwrap_or(0).checked_add(amount).ok_or(Refused::TooMuchMoney)?;

        // The bug: the payer's balance changes before the journal has the entry. If that cannot be written,
        // the money has left one account and never reaches the other.
        self.balances.insert(from.into(), left);
        self.journal.append(Entry::Transferred { from: from.into(), to: to.into(), amount })?;
        self.balances.insert(to.into(), received);

        sometimes!(left == 0, "an account is emptied by a transfer");
        Ok(())
    }

    /// Pays out what is left, and forgets the account.
    pub fn close(&mut self, name: &str) -> Result<u32, Refused> {
        let paid_out = self.balance(name)?;
        self.commit(Entry::Closed { name: name.into() })?;
        Ok(paid_out)
    }

    fn balance(&self, name: &str) -> Result<u32, Refused> {
        self.balances.get(name).copied().ok_or(Refused::NoSuchAccount)
    }

    /// Journal first, then the accounts.
    fn commit(&mut self, entry: Entry) -> Result<(), Refused> {
        self.journal.append(entry.clone())?;
        self.apply(&entry);
        Ok(())
    }

    /// What an entry of the journal means. It was checked before it was written.
    fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Opened { name, amount } => {
                self.balances.insert(name.clone(), *amount);
            }
            Entry::Deposited { name, amount } => self.add(name, *amount),
            Entry::Withdrawn { name, amount } => self.take(name, *amount),
            Entry::Transferred { from, to, amount } => {
                self.take(from, *amount);
                self.add(to, *amount);
            }
            Entry::Closed { name } => {
                self.balances.remove(name);
            }
        }
    }

    fn add(&mut self, name: &str, amount: u32) {
        *self.balances.entry(name.into()).or_default() += amount;
    }

    fn take(&mut self, name: &str, amount: u32) {
        *self.balances.entry(name.into()).or_default() -= amount;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_what_its_journal_tells() {
        let mut ledger = Ledger::default();
        ledger.open("a", 100).unwrap();
        ledger.transfer("a", "b", 40).unwrap();
        ledger.deposit("b", 2).unwrap();
        ledger.withdraw("b", 12).unwrap();
        ledger.open("c", 100).unwrap();
        assert_eq!(ledger.close("c"), Ok(100));
        assert_eq!(ledger.balances(), &BTreeMap::from([("a".into(), 60), ("b".into(), 30)]));
        assert_eq!(Ledger::recover(ledger.journal()).balances(), ledger.balances());
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let mut ledger = Ledger::default();
        ledger.open("a", 100).unwrap();
        assert_eq!(ledger.open("a", 1), Err(Refused::AlreadyOpen));
        assert_eq!(ledger.withdraw("b", 1), Err(Refused::NoSuchAccount));
        assert_eq!(ledger.withdraw("a", 101), Err(Refused::NotEnoughMoney));
        assert_eq!(ledger.deposit("a", u32::MAX), Err(Refused::TooMuchMoney));
        assert_eq!(ledger.transfer("a", "a", 1), Err(Refused::SameAccount));
        assert_eq!(ledger.total(), 100);
    }
}
