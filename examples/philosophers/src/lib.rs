//! Philosophers at a round table, with a fork between each two. Who wants to eat takes both.

#![forbid(unsafe_code)]

use std::rc::Rc;

use spelunk_guest::prelude::*;
use spelunk_guest::task::{self, Mutex};

const COUNT: usize = if cfg!(feature = "n2") {
    2
} else if cfg!(feature = "n4") {
    4
} else {
    3
};

const NAMES: [&str; 4] = ["Anscombe", "Beauvoir", "Conway", "Diotima"];

type Forks = Rc<[Mutex<u32>; COUNT]>;

/// The whole dinner at once: each interleaving is a run.
#[cfg(not(feature = "steps"))]
#[check]
fn dinner() {
    let forks = Forks::default();
    task::run({
        let forks = forks.clone();
        async move { sit_down(&forks) }
    });
    check_all_have_eaten(&forks);
}

/// The dinner step by step: runs that come to the same state go on as one.
#[cfg(feature = "steps")]
struct Dinner(Forks);

#[cfg(feature = "steps")]
#[harness]
impl Dinner {
    #[setup]
    fn new() -> Dinner {
        let forks = Forks::default();
        sit_down(&forks);
        Dinner(forks)
    }

    #[rule]
    #[precondition(!task::all_are_done())]
    fn step(&mut self) {
        task::step();
    }

    #[terminal]
    fn is_over(&self) -> bool {
        task::all_are_done()
    }

    #[teardown]
    fn end(self) {
        if task::all_are_done() {
            check_all_have_eaten(&self.0);
        }
    }
}

fn sit_down(forks: &Forks) {
    for (seat, name) in NAMES.into_iter().enumerate().take(COUNT) {
        task::spawn(eat(seat, forks.clone())).named(name);
    }
}

fn check_all_have_eaten(forks: &Forks) {
    let uses = forks.iter().map(|fork| *fork.try_lock().expect("all have left")).sum::<u32>();
    assert_eq!(uses as usize, 2 * COUNT, "each has eaten with two forks");
}

async fn eat(seat: usize, forks: Forks) {
    let (left, right) = (seat, (seat + 1) % COUNT);
    let (first, second) = match cfg!(feature = "fixed") {
        true => (left.min(right), left.max(right)),
        // The bug: when each has the left one, nobody ever gets the right one.
        false => (left, right),
    };
    let mut first_fork = forks[first].lock().await;
    note!("{} has fork {first}", NAMES[seat]);
    let mut second_fork = forks[second].lock().await;
    note!("{} has fork {second}, and eats", NAMES[seat]);
    *first_fork += 1;
    *second_fork += 1;
}
