//! Timers in a wheel: each in the slot of the time at which it is due, with the rounds that it waits before.

const SLOTS: usize = 8;

#[derive(Clone, Default)]
pub(crate) struct Wheel {
    now: usize,
    /// Numbers of timers, and their rounds.
    slots: [Vec<(usize, usize)>; SLOTS],
}

impl Wheel {
    pub(crate) fn add(&mut self, timer: usize, delay: usize) {
        self.slots[(self.now + delay) % SLOTS].push((timer, (delay - 1) / SLOTS));
    }

    /// Takes back a timer that was added with this delay. The bug: it is sought as if it had been added just now.
    pub(crate) fn cancel(&mut self, timer: usize, delay: usize) {
        self.slots[(self.now + delay) % SLOTS].retain(|(other, _)| *other != timer);
    }

    /// The timers that are due within these ticks.
    pub(crate) fn advance(&mut self, ticks: usize) -> Vec<usize> {
        let mut due = Vec::new();
        for _ in 0..ticks {
            self.now += 1;
            self.slots[self.now % SLOTS].retain_mut(|(timer, rounds)| match rounds {
                0 => {
                    due.push(*timer);
                    false
                }
                _ => {
                    *rounds -= 1;
                    true
                }
            });
        }
        due
    }
}
