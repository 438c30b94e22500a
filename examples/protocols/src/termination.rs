//! Detection that a computation on a ring has ended (Dijkstra, Feijen and van Gasteren, "Derivation of a termination detection
//! algorithm for distributed computations", EWD 840, 1983), as Merz specified it in the examples of TLA+.

pub const NODES: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ring {
    is_active: [bool; NODES],
    is_black: [bool; NODES],
    /// Where the token is.
    token: usize,
    is_token_black: bool,
}

impl Ring {
    pub fn new(is_active: [bool; NODES], is_black: [bool; NODES], token: usize) -> Ring {
        Ring { is_active, is_black, token, is_token_black: true }
    }

    /// The first node asks again.
    pub fn can_initiate(&self) -> bool {
        self.token == 0 && (self.is_token_black || self.is_black[0])
    }

    pub fn initiate(&mut self) {
        (self.token, self.is_token_black, self.is_black[0]) = (NODES - 1, false, false);
    }

    pub fn can_pass(&self) -> bool {
        let at = self.token;
        at != 0 && (!self.is_active[at] || self.is_black[at] || self.is_token_black)
    }

    pub fn pass(&mut self) {
        self.is_token_black |= self.is_black[self.token];
        self.is_black[self.token] = false;
        self.token -= 1;
    }

    pub fn active(&self) -> Vec<usize> {
        (0..NODES).filter(|node| self.is_active[*node]).collect()
    }

    pub fn deactivate(&mut self, node: usize) {
        self.is_active[node] = false;
    }

    /// A message makes the other one active.
    pub fn send(&mut self, from: usize, to: usize) {
        self.is_active[to] = true;
        self.is_black[from] |= to > from;
    }

    pub fn has_ended(&self) -> bool {
        self.active().is_empty()
    }

    pub fn is_detected(&self) -> bool {
        self.token == 0 && !(self.is_token_black || self.is_black[0] || self.is_active[0])
    }

    pub fn is_right(&self) -> bool {
        !self.is_detected() || self.has_ended()
    }
}

#[cfg(feature = "termination")]
mod harness {
    use spelunk_guest::prelude::*;

    use super::*;

    #[derive(Clone, Hash)]
    struct Harness(Ring);

    #[harness]
    impl Harness {
        #[setup]
        fn new(
            #[draw(any::<[bool; NODES]>())] active: [bool; NODES],
            #[draw(any::<[bool; NODES]>())] black: [bool; NODES],
            #[draw(0..NODES)] token: usize,
        ) -> Harness {
            Harness(Ring::new(active, black, token))
        }

        #[rule]
        #[precondition(self.0.can_initiate())]
        fn initiate(&mut self) {
            self.0.initiate();
        }

        #[rule]
        #[precondition(self.0.can_pass())]
        fn pass(&mut self) {
            self.0.pass();
        }

        #[rule]
        #[unfair]
        #[precondition(!self.0.has_ended())]
        fn deactivate(&mut self, #[draw(sampled_from(self.0.active()))] node: usize) {
            self.0.deactivate(node);
        }

        #[rule]
        #[unfair]
        #[precondition(!self.0.has_ended())]
        fn send(&mut self, #[draw(sampled_from(self.0.active()))] from: usize, #[draw(1..NODES)] by: usize) {
            self.0.send(from, (from + by) % NODES);
        }

        #[terminal]
        fn is_detected(&self) -> bool {
            self.0.is_detected()
        }

        #[invariant]
        fn right(&self) -> bool {
            self.0.is_right()
        }

        #[invariant]
        fn progress(&self) {
            leads_to!("an end is detected", self.0.has_ended(), self.0.is_detected());
            // The computation itself need not end.
            #[cfg(feature = "mistake")]
            eventually!("the computation ends", self.0.has_ended());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_is_detected_has_ended() {
        let bits = |number: usize| [0, 1, 2].map(|bit| number >> bit & 1 == 1);
        let mut states: Vec<Ring> = Vec::new();
        for (active, black) in (0..8).flat_map(|active| (0..8).map(move |black| (active, black))) {
            states.extend((0..NODES).map(|token| Ring::new(bits(active), bits(black), token)));
        }
        let (mut at, mut steps) = (0, 0);
        while let Some(ring) = states.get(at).cloned() {
            at += 1;
            assert!(ring.is_right());
            let mut next = Vec::new();
            let mut add = |change: &dyn Fn(&mut Ring)| {
                let mut after = ring.clone();
                change(&mut after);
                next.push(after);
            };
            if ring.can_initiate() {
                add(&Ring::initiate);
            }
            if ring.can_pass() {
                add(&Ring::pass);
            }
            for node in ring.active() {
                add(&|ring| ring.deactivate(node));
                let others: BTreeSet<usize> = (0..NODES).filter(|other| *other != node).collect();
                others.iter().for_each(|other| add(&|ring| ring.send(node, *other)));
            }
            steps += next.len();
            for after in next {
                if !states.contains(&after) {
                    states.push(after);
                }
            }
        }
        assert_eq!((states.len(), steps), (302, 1_625));
    }
}
