//! Lamport's bakery ("A new solution of Dijkstra's concurrent programming problem", 1974). Each step is one read or
//! write of a shared variable.
//!
//! Tickets grow without end where the shop is never empty. Here a customer who would take one above a limit goes home,
//! as the paper allows a processor to fail.

pub const CUSTOMERS: usize = if cfg!(feature = "large") { 4 } else { 3 };
const TICKET_MAX: u32 = if cfg!(feature = "large") { 4 } else { 3 };

/// The next step of a customer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum At {
    #[default]
    Outside,
    /// The highest ticket is wanted, and is this so far.
    ReadTicket {
        highest: u32,
        of: usize,
    },
    TakeTicket {
        ticket: u32,
    },
    HasChosen,
    /// Waits until the other one is not choosing.
    AwaitChoice {
        of: usize,
    },
    /// Waits until the other one has no ticket, or a later one.
    AwaitTurn {
        of: usize,
    },
    Inside,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bakery {
    is_choosing: [bool; CUSTOMERS],
    tickets: [Option<u32>; CUSTOMERS],
    at: [At; CUSTOMERS],
}

impl Bakery {
    /// A step of this customer.
    pub fn step(&mut self, customer: usize) {
        self.at[customer] = match self.at[customer].clone() {
            At::Outside => {
                self.is_choosing[customer] = true;
                next_read(customer, 0, 0)
            }
            At::ReadTicket { highest, of } => {
                next_read(customer, highest.max(self.tickets[of].unwrap_or(0)), of + 1)
            }
            At::TakeTicket { ticket } if ticket > TICKET_MAX => {
                self.is_choosing[customer] = false;
                At::Outside
            }
            At::TakeTicket { ticket } => {
                self.tickets[customer] = Some(ticket);
                At::HasChosen
            }
            At::HasChosen => {
                self.is_choosing[customer] = false;
                next_wait(customer, 0)
            }
            At::AwaitChoice { of } if self.is_choosing[of] => At::AwaitChoice { of },
            At::AwaitChoice { of } => At::AwaitTurn { of },
            At::AwaitTurn { of } if self.is_before(of, customer) => At::AwaitTurn { of },
            At::AwaitTurn { of } => next_wait(customer, of + 1),
            At::Inside => {
                self.tickets[customer] = None;
                At::Outside
            }
        };
    }

    /// Of two with the same ticket the one with the lower number is before.
    fn is_before(&self, one: usize, other: usize) -> bool {
        self.tickets[one].is_some() && (self.tickets[one], one) < (self.tickets[other], other)
    }

    pub fn is_exclusive(&self) -> bool {
        self.at.iter().filter(|at| **at == At::Inside).count() <= 1
    }
}

/// To read the tickets of the others from this one on.
fn next_read(customer: usize, highest: u32, from: usize) -> At {
    match (from..CUSTOMERS).find(|other| *other != customer) {
        Some(of) => At::ReadTicket { highest, of },
        None => At::TakeTicket { ticket: highest + 1 },
    }
}

/// To wait for the others from this one on.
fn next_wait(customer: usize, from: usize) -> At {
    match (from..CUSTOMERS).find(|other| *other != customer) {
        Some(of) => At::AwaitChoice { of },
        None => At::Inside,
    }
}

#[cfg(feature = "bakery")]
mod harness {
    use spelunk_guest::prelude::*;

    use super::*;

    #[derive(Clone, Default, Hash)]
    struct Harness(Bakery);

    #[harness]
    impl Harness {
        #[rule]
        fn step(&mut self, #[draw(0..CUSTOMERS)] customer: usize) {
            self.0.step(customer);
        }

        #[invariant]
        fn exclusive(&self) {
            assert!(self.0.is_exclusive(), "{:?}", self.0);
        }
    }
}

#[cfg(all(test, not(feature = "large")))]
mod tests {
    use super::*;
    use crate::native::{after, holds, reach};

    #[test]
    fn one_customer_at_a_time_is_inside() {
        let next = |bakery: &Bakery| after(bakery, 0..CUSTOMERS, Bakery::step);
        assert_eq!(reach(next, Bakery::is_exclusive), holds(7_231, 21_693));
    }
}
