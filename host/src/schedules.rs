//! Bounds on how threads are scheduled.

use serde::{Deserialize, Serialize};

/// What a run may cost that does not let threads take their turns, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Schedules {
    /// One for each thread that could go on and did not (Musuvathi and Qadeer 2007).
    Preemptions(u32),
    /// One for each thread that is passed over: the turn is that of the thread that runs, and where it waits, yields or ends, that of the
    /// one with the next number (Emmi, Qadeer and Rakamarić 2011).
    Delays(u32),
}

impl Schedules {
    /// How much it may cost.
    pub fn max(self) -> u32 {
        match self {
            Schedules::Preemptions(max) | Schedules::Delays(max) => max,
        }
    }

    /// The same, with less or more.
    pub(crate) fn with_max(self, max: u32) -> Schedules {
        match self {
            Schedules::Preemptions(_) => Schedules::Preemptions(max),
            Schedules::Delays(_) => Schedules::Delays(max),
        }
    }

    /// What is counted.
    pub fn name(self) -> &'static str {
        match self {
            Schedules::Preemptions(_) => "preemptions",
            Schedules::Delays(_) => "delays",
        }
    }
}

impl Schedules {
    /// What it costs that this thread goes on, which is one of those that can, where `last` ran before. Each thread is given with whether it
    /// gave way by itself: its turn comes after that of others.
    pub(crate) fn cost(
        self,
        threads: impl Iterator<Item = (u32, bool)> + Clone,
        last: Option<u32>,
        chosen: u32,
    ) -> u32 {
        match self {
            // A thread that gave way by itself, or cannot go on, is not preempted.
            Schedules::Preemptions(_) => {
                let could_go_on =
                    threads.into_iter().any(|thread| Some(thread) == last.map(|last| (last, false)));
                u32::from(could_go_on && last != Some(chosen))
            }
            Schedules::Delays(_) => {
                let turn = |(thread, gave_way): (u32, bool)| (gave_way, thread < last.unwrap_or(0), thread);
                let own = threads.clone().find(|thread| thread.0 == chosen).map(turn);
                threads.filter(|thread| Some(turn(*thread)) < own).count() as u32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_taken_in_the_order_of_numbers_from_the_last_thread_on() {
        let costs = |bound: Schedules, threads: &[(u32, bool)], last| -> Vec<u32> {
            let cost = |thread: &(u32, bool)| bound.cost(threads.iter().copied(), last, thread.0);
            threads.iter().map(cost).collect()
        };
        let all = [(0, false), (1, false), (2, false), (3, false)];
        let delays = Schedules::Delays(0);
        assert_eq!(costs(delays, &all, None), [0, 1, 2, 3]);
        assert_eq!(costs(delays, &all, Some(2)), [2, 3, 0, 1]);
        // The last one waits.
        assert_eq!(costs(delays, &[(0, false), (1, false), (3, false)], Some(2)), [1, 2, 0]);
        // It gave way.
        assert_eq!(costs(delays, &[(0, false), (1, true), (2, false)], Some(1)), [1, 2, 0]);
        assert_eq!(costs(delays, &[(0, true), (1, true)], Some(1)), [1, 0]);
        let preemptions = Schedules::Preemptions(0);
        assert_eq!(costs(preemptions, &all, None), [0; 4]);
        assert_eq!(costs(preemptions, &all, Some(2)), [1, 1, 0, 1]);
        assert_eq!(costs(preemptions, &[(0, false), (1, false)], Some(2)), [0; 2]);
        assert_eq!(costs(preemptions, &[(0, false), (1, true)], Some(1)), [0; 2]);
    }
}
