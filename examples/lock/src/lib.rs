//! A combination lock: the exact keys, one after the other, open it.
//!
//! Nobody guesses eight keys of ten at once. But each right key takes a branch that no run took before, so
//! an explorer that keeps the states from which it saw something new gets further key by key.

use std::hint::black_box;

use spelunk_guest::prelude::*;

#[derive(Default)]
struct Lock {
    /// How many keys were right so far.
    turned: u8,
}

#[harness]
impl Lock {
    #[rule]
    fn press(&mut self, #[draw(0..=9)] key: u8) {
        self.turned = turn(self.turned, key);
        if self.turned == LEN {
            panic!("the lock is open");
        }
    }
}

/// Writes `turn`, with one arm for each key of the combination, and `LEN`, how many these are.
macro_rules! combination {
    ($($place:literal: $key:literal)*) => {
        const LEN: u8 = [$($key),*].len() as u8;

        /// How many keys are right after this one: one more, or none.
        fn turn(turned: u8, key: u8) -> u8 {
            match turned {
                // `black_box` keeps the optimiser from making one table lookup of all arms.
                $($place if key == $key => black_box($place + 1),)*
                _ => 0,
            }
        }
    };
}

#[cfg(not(feature = "n16"))]
combination! { 0:7 1:2 2:9 3:0 4:4 5:1 6:8 7:3 }

#[cfg(all(feature = "n16", not(feature = "n32")))]
combination! {
    0:7 1:2 2:9 3:0 4:4 5:1 6:8 7:3
    8:5 9:6 10:0 11:8 12:2 13:7 14:4 15:9
}

#[cfg(feature = "n32")]
combination! {
    0:7 1:2 2:9 3:0 4:4 5:1 6:8 7:3
    8:5 9:6 10:0 11:8 12:2 13:7 14:4 15:9
    16:1 17:3 18:6 19:2 20:9 21:5 22:0 23:7
    24:8 25:4 26:3 27:1 28:5 29:0 30:9 31:6
}
