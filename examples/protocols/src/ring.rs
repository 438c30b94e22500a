//! Leader election on a ring (Chang and Roberts, "An improved algorithm for decentralized extrema-finding in circular
//! configurations of processes", 1979), with participants, and a second round that announces the leader.

use std::array;
use std::collections::VecDeque;

/// Those of the first N processes, in the order in which most messages are sent.
const NUMBERS: [u32; 5] = [5, 4, 3, 2, 1];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Message {
    /// The highest number of those who have seen it.
    Election(u32),
    Leader(u32),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Process {
    is_participant: bool,
    leader: Option<u32>,
}

/// Each process sends to the next one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ring<const N: usize> {
    processes: [Process; N],
    /// What was sent to each of them, the oldest first.
    channels: [VecDeque<Message>; N],
}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Self {
        Ring {
            processes: array::from_fn(|_| Process::default()),
            channels: array::from_fn(|_| VecDeque::new()),
        }
    }
}

impl<const N: usize> Ring<N> {
    /// Those who may start an election: they know neither of one nor of a leader.
    pub fn can_start(&self) -> Vec<usize> {
        let is_idle = |at: &usize| self.processes[*at] == Process::default();
        (0..N).filter(is_idle).collect()
    }

    pub fn start(&mut self, at: usize) {
        self.take_part(at, NUMBERS[at]);
    }

    /// Those to whom something was sent.
    pub fn can_receive(&self) -> Vec<usize> {
        (0..N).filter(|at| !self.channels[*at].is_empty()).collect()
    }

    pub fn receive(&mut self, at: usize) {
        let own = NUMBERS[at];
        let is_participant = self.processes[at].is_participant;
        match self.channels[at].pop_front().expect("something was sent") {
            Message::Election(number) if number > own => self.take_part(at, number),
            Message::Election(number) if number == own => self.learn(at, own),
            // One who takes part has sent a higher number before.
            Message::Election(_) if is_participant => (),
            Message::Election(_) => self.take_part(at, own),
            // It has been at everyone.
            Message::Leader(number) if number == own => (),
            Message::Leader(number) => self.learn(at, number),
        }
    }

    fn take_part(&mut self, at: usize, number: u32) {
        self.processes[at].is_participant = true;
        self.send(at, Message::Election(number));
    }

    fn learn(&mut self, at: usize, leader: u32) {
        self.processes[at] = Process { is_participant: false, leader: Some(leader) };
        self.send(at, Message::Leader(leader));
    }

    fn send(&mut self, from: usize, message: Message) {
        self.channels[(from + 1) % N].push_back(message);
    }

    /// Nobody takes for the leader who has not the highest number.
    pub fn is_led_by_the_highest(&self) -> bool {
        let highest = NUMBERS[..N].iter().max();
        self.processes
            .iter()
            .filter_map(|process| process.leader.as_ref())
            .all(|leader| Some(leader) == highest)
    }

    pub fn has_one_leader_at_most(&self) -> bool {
        let leads = |at: &usize| self.processes[*at].leader == Some(NUMBERS[*at]);
        (0..N).filter(leads).count() <= 1
    }

    /// All know it, and nothing is under way.
    pub fn is_over(&self) -> bool {
        self.processes.iter().all(|process| process.leader.is_some())
            && self.channels.iter().all(VecDeque::is_empty)
    }
}

#[cfg(feature = "ring")]
mod harness {
    use spelunk_guest::prelude::*;

    use super::*;

    #[derive(Clone, Default, Hash)]
    struct Harness(Ring<{ if cfg!(feature = "n5") { 5 } else { 4 } }>);

    #[harness]
    impl Harness {
        #[rule]
        #[precondition(!self.0.can_start().is_empty())]
        fn start(&mut self, #[draw(sampled_from(self.0.can_start()))] at: usize) {
            self.0.start(at);
        }

        #[rule]
        #[precondition(!self.0.can_receive().is_empty())]
        fn receive(&mut self, #[draw(sampled_from(self.0.can_receive()))] at: usize) {
            self.0.receive(at);
            sometimes!(self.0.is_over(), "all know the leader");
        }

        #[terminal]
        fn all_know_the_leader(&self) -> bool {
            self.0.is_over()
        }

        #[invariant]
        fn led_by_the_highest(&self) {
            assert!(self.0.is_led_by_the_highest(), "{:?}", self.0);
        }

        #[invariant]
        fn one_leader_at_most(&self) {
            assert!(self.0.has_one_leader_at_most(), "{:?}", self.0);
        }

        #[invariant]
        fn progress(&self) {
            eventually!("all know the leader at last", self.0.is_over());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{Reached, after, holds, reach};

    fn reached<const N: usize>() -> Reached {
        let next = |ring: &Ring<N>| {
            [after(ring, ring.can_start(), Ring::start), after(ring, ring.can_receive(), Ring::receive)]
                .concat()
        };
        reach(next, |ring| ring.is_led_by_the_highest() && ring.has_one_leader_at_most())
    }

    #[test]
    fn the_highest_number_leads() {
        assert_eq!(reached::<4>(), holds(116, 281));
        assert_eq!(reached::<5>(), holds(489, 1_428));
    }
}
