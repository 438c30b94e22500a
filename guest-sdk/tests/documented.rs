//! The Rust in the pages of the documentation, with what these leave out as `…`. `tests/tests/project/docs.rs` says that they show nothing else.

#![allow(dead_code)]

use spelunk_guest::prelude::*;

/// README: a harness in Rust.
mod bank {
    use spelunk_guest::prelude::*;

    fault!(pub DISK_FULL, "disk_full");

    #[derive(Default)]
    struct Bank {
        names: Vec<String>,
        amounts: Vec<u32>,
        expected: u32,
    }

    impl Bank {
        fn total(&self) -> u32 {
            self.amounts.iter().sum()
        }
    }

    #[harness]
    impl Bank {
        #[rule]
        #[precondition(self.names.len() < 4)]
        fn open(&mut self, #[draw(text("abc", 1..=1))] name: String, #[draw(0..=100)] amount: u32) {
            self.names.push(name);
            self.amounts.push(amount);
            self.expected += amount;
        }

        #[rule]
        #[precondition(!self.names.is_empty())]
        fn transfer(&mut self, #[draw(sampled_from(&self.names))] from: String, #[draw(0..=9)] amount: u32) {
            let at = self.names.iter().position(|name| *name == from).unwrap();
            let amount = amount.min(self.amounts[at]);
            self.amounts[at] -= amount;
            self.amounts[0] += amount;
        }

        #[invariant]
        fn conserved(&self) {
            assert_eq!(self.total(), self.expected, "money was made or lost");
        }
    }

    /// docs/native.md.
    #[test]
    fn the_bank_holds() {
        spelunk_guest::native::explore::<Bank>(1, 10_000, 30);
    }
}

#[derive(Default)]
struct Bank;

#[harness]
impl Bank {
    #[rule]
    fn open(&mut self, #[draw(0..=100)] _amount: u32) {}
}

/// docs/native.md, with a trace that passes.
#[test]
fn invariant_conserved_total_is_90_expected_100() -> Result<(), spelunk_guest::native::Misfit> {
    spelunk_guest::native::replay::<crate::Bank>(r#"{"spelunk":1,"steps":[{"step":"setup","choices":[]}]}"#)
}

/// README: what must come at last.
mod progress {
    use spelunk_guest::prelude::*;

    const WRITER: usize = 0;

    #[derive(Default)]
    struct Lock {
        is_waiting: [bool; 2],
        is_writing: [bool; 2],
    }

    impl Lock {
        fn waits(&self, who: usize) -> bool {
            self.is_waiting[who]
        }

        fn writes(&self, who: usize) -> bool {
            self.is_writing[who]
        }
    }

    #[harness]
    impl Lock {
        #[rule]
        fn wait(&mut self) {
            self.is_waiting[WRITER] = true;
        }

        #[invariant]
        fn progress(&self) {
            leads_to!("a writer who waits writes", self.waits(WRITER), self.writes(WRITER));
        }
    }
}

/// docs/threads.md.
mod threads {
    use spelunk_guest::sync::atomic::{AtomicU32, Ordering};
    use spelunk_guest::sync::{Arc, thread};

    #[spelunk_guest::threads]
    fn race() {
        let total = Arc::new(AtomicU32::new(0));
        let other = total.clone();
        let thread = thread::spawn(move || other.store(other.load(Ordering::SeqCst) + 1, Ordering::SeqCst));
        total.store(total.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread.join().unwrap();
        assert_eq!(total.load(Ordering::SeqCst), 2);
    }
}
