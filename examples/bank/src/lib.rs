//! The ledger of a small bank, and its harness: what customers may do, and what must always hold.
//!
//! [`ledger`] and [`journal`] are the product; nothing in them is there for the test but the fault that the
//! disk below the journal may be full, and one property.

#![forbid(unsafe_code)]

pub mod journal;
pub mod ledger;

use spelunk_guest::prelude::*;

use ledger::{Ledger, Refused};

/// Each a customer.
const NAMES: &str = "abc";

#[derive(Default)]
struct Bank {
    ledger: Ledger,
    /// What was paid in and not paid out, by the harness' own books.
    expected: u64,
}

#[harness]
impl Bank {
    #[rule]
    #[precondition(self.names().len() < NAMES.len())]
    fn open(&mut self, #[draw(text(NAMES, 1))] name: String, #[draw(100..=1000)] amount: u32) {
        let result = self.ledger.open(&name, amount);
        self.count(result, i64::from(amount));
    }

    #[rule]
    #[precondition(!self.names().is_empty())]
    fn deposit(&mut self, #[draw(sampled_from(self.names()))] name: String, #[draw(10..=100)] amount: u32) {
        let result = self.ledger.deposit(&name, amount);
        self.count(result, i64::from(amount));
    }

    #[rule]
    #[precondition(!self.names().is_empty())]
    fn withdraw(&mut self, #[draw(sampled_from(self.names()))] name: String, #[draw(10..=100)] amount: u32) {
        let result = self.ledger.withdraw(&name, amount);
        self.count(result, -i64::from(amount));
    }

    #[rule]
    #[precondition(!self.names().is_empty())]
    fn transfer(
        &mut self,
        #[draw(sampled_from(self.names()))] from: String,
        #[draw(text(NAMES, 1))] to: String,
        #[draw(10..=100)] amount: u32,
    ) {
        let result = self.ledger.transfer(&from, &to, amount);
        self.count(result, 0);
    }

    #[rule]
    #[precondition(!self.names().is_empty())]
    fn close(&mut self, #[draw(sampled_from(self.names()))] name: String) {
        let result = self.ledger.close(&name);
        let paid_out = result.as_ref().copied().unwrap_or(0);
        self.count(result, -i64::from(paid_out));
    }

    /// Nothing gets lost and nothing comes from nowhere.
    #[invariant]
    fn conserved(&self) {
        let total = self.ledger.total();
        assert!(total == self.expected, "total is {total}, expected {}", self.expected);
    }

    /// After a crash the ledger would be what it is now.
    #[invariant]
    fn recoverable(&self) {
        let recovered = Ledger::recover(self.ledger.journal());
        assert!(
            recovered.balances() == self.ledger.balances(),
            "the journal says {:?}, the ledger {:?}",
            recovered.balances(),
            self.ledger.balances()
        );
    }

    fn names(&self) -> Vec<String> {
        self.ledger.balances().keys().cloned().collect()
    }

    /// Books the change of what is expected, if what was asked for was done.
    fn count<T>(&mut self, result: Result<T, Refused>, change: i64) {
        match &result {
            Ok(_) => self.expected = self.expected.strict_add_signed(change),
            Err(reason) => note!("refused: {reason:?}"),
        }
        sometimes!(matches!(result, Err(Refused::NotEnoughMoney)), "money is not enough");
        sometimes!(matches!(result, Err(Refused::Unavailable)), "the disk is full");
    }
}
