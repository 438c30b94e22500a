//! The alternating bit protocol over channels that lose messages (Bartlett, Scantlebury and Wilkinson, 1969), with the actions and
//! the fairness of the specification in Lamport, "Specifying Systems" (2002), 14.1: a value that is sent is received in the end, if
//! what is received again and again gets through at last.

use std::collections::VecDeque;

pub const VALUES: u8 = 2;
/// Messages that a channel holds, at most.
const QUEUE_MAX: usize = 2;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AlternatingBit {
    /// From the sender: a bit and a value.
    messages: VecDeque<(bool, u8)>,
    /// From the receiver: bits.
    acks: VecDeque<bool>,
    /// The bit of the last message sent, of the last acknowledgement that came, and of the last message that came.
    sent_bit: bool,
    ack_bit: bool,
    received_bit: bool,
    sent: u8,
    received: u8,
}

impl AlternatingBit {
    pub fn has_room(&self) -> bool {
        self.messages.len() < QUEUE_MAX
    }

    pub fn has_room_for_ack(&self) -> bool {
        self.acks.len() < QUEUE_MAX
    }

    pub fn messages(&self) -> usize {
        self.messages.len()
    }

    pub fn acks(&self) -> usize {
        self.acks.len()
    }

    /// The last value was acknowledged.
    pub fn is_idle(&self) -> bool {
        self.sent_bit == self.ack_bit
    }

    pub fn send(&mut self, value: u8) {
        self.sent_bit = !self.sent_bit;
        self.sent = value;
        self.messages.push_back((self.sent_bit, value));
    }

    pub fn resend(&mut self) {
        self.messages.push_back((self.sent_bit, self.sent));
    }

    pub fn receive(&mut self) {
        let (bit, value) = self.messages.pop_front().expect("there is a message");
        (self.received_bit, self.received) = (bit, value);
    }

    pub fn acknowledge(&mut self) {
        self.acks.push_back(self.received_bit);
    }

    pub fn receive_ack(&mut self) {
        self.ack_bit = self.acks.pop_front().expect("there is an acknowledgement");
    }

    pub fn lose(&mut self, at: usize) {
        self.messages.remove(at);
    }

    pub fn lose_ack(&mut self, at: usize) {
        self.acks.remove(at);
    }

    /// A value is under way.
    pub fn is_sent(&self, value: u8) -> bool {
        !self.is_idle() && self.sent == value
    }

    pub fn is_received(&self, value: u8) -> bool {
        self.received == value
    }

    /// What was acknowledged has come.
    pub fn is_right(&self) -> bool {
        !self.is_idle() || self.sent == self.received || self.sent_bit != self.received_bit
    }
}

#[cfg(feature = "alternating-bit")]
mod harness {
    use spelunk_guest::prelude::*;

    use super::*;

    #[derive(Clone, Default, Hash)]
    struct Harness(AlternatingBit);

    #[harness]
    impl Harness {
        #[rule]
        #[unfair]
        #[precondition(self.0.is_idle() && self.0.has_room())]
        fn send(&mut self, #[draw(0..VALUES)] value: u8) {
            self.0.send(value);
        }

        #[rule]
        #[precondition(!self.0.is_idle() && self.0.has_room())]
        fn resend(&mut self) {
            self.0.resend();
        }

        #[cfg(not(feature = "mistake"))]
        #[rule]
        #[fair(strong)]
        #[precondition(self.0.messages() > 0)]
        fn receive(&mut self) {
            self.0.receive();
        }

        /// A message that is lost each time is fair to it.
        #[cfg(feature = "mistake")]
        #[rule]
        #[precondition(self.0.messages() > 0)]
        fn receive(&mut self) {
            self.0.receive();
        }

        #[rule]
        #[precondition(self.0.has_room_for_ack())]
        fn acknowledge(&mut self) {
            self.0.acknowledge();
        }

        #[rule]
        #[fair(strong)]
        #[precondition(self.0.acks() > 0)]
        fn receive_ack(&mut self) {
            self.0.receive_ack();
        }

        #[rule]
        #[unfair]
        #[precondition(self.0.messages() > 0)]
        fn lose(&mut self, #[draw(0..self.0.messages())] at: usize) {
            self.0.lose(at);
        }

        #[rule]
        #[unfair]
        #[precondition(self.0.acks() > 0)]
        fn lose_ack(&mut self, #[draw(0..self.0.acks())] at: usize) {
            self.0.lose_ack(at);
        }

        #[invariant]
        fn right(&self) -> bool {
            self.0.is_right()
        }

        #[invariant]
        fn progress(&self) {
            leads_to!("a 0 that is sent is received", self.0.is_sent(0), self.0.is_received(0));
            leads_to!("a 1 that is sent is received", self.0.is_sent(1), self.0.is_received(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{after, after_one, holds, reach};

    #[test]
    fn what_is_acknowledged_has_come() {
        let next = |state: &AlternatingBit| {
            let values = if state.is_idle() && state.has_room() { 0..VALUES } else { 0..0 };
            [
                after(state, values, AlternatingBit::send),
                after_one(state, !state.is_idle() && state.has_room(), AlternatingBit::resend),
                after_one(state, state.messages() > 0, AlternatingBit::receive),
                after_one(state, state.has_room_for_ack(), AlternatingBit::acknowledge),
                after_one(state, state.acks() > 0, AlternatingBit::receive_ack),
                after(state, 0..state.messages(), AlternatingBit::lose),
                after(state, 0..state.acks(), AlternatingBit::lose_ack),
            ]
            .concat()
        };
        assert_eq!(reach(next, AlternatingBit::is_right), holds(228, 1_144));
    }
}
