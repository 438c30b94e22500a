//! The leader election of Raft (Ongaro and Ousterhout, "In search of an understandable consensus algorithm", 2014) for
//! three servers and two terms.
//!
//! Logs are empty, so every candidate's is up to date. A message stays after it was received: it can come late, twice,
//! or never. A server that restarts has its term and its vote, which are on disk.

use std::collections::BTreeSet;

use spelunk_guest::prelude::*;

use crate::Protocol;

const SERVERS: usize = 3;
/// With the bug, one is enough, and there are many more states.
const TERM_MAX: u32 = if cfg!(feature = "mistake") { 1 } else { 2 };

/// Tells their ids from others.
pub struct OfServers;

type Id = Scalar<SERVERS, OfServers>;
type Ids = ScalarSet<SERVERS, OfServers>;
type Per<T> = PerScalar<SERVERS, T, OfServers>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Role {
    #[default]
    Follower,
    /// With the votes that it has.
    Candidate(Ids),
    Leader,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Server {
    term: u32,
    voted_for: Option<Id>,
    role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Content {
    RequestVote,
    /// That is granted.
    Vote,
    /// To one who asks in an older term.
    Refusal,
    /// A leader's, without entries.
    AppendEntries,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    term: u32,
    from: Id,
    to: Id,
    content: Content,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Raft {
    servers: Per<Server>,
    /// What each server has sent to each, with its term.
    sent: Per<Per<BTreeSet<(u32, Content)>>>,
}

impl Raft {
    /// Servers that may hear of no leader for too long.
    fn can_time_out(&self) -> Ids {
        self.servers.ids(|server| server.role != Role::Leader && server.term < TERM_MAX)
    }

    /// It stands for election in the next term.
    fn time_out(&mut self, server: Id) {
        let term = self.servers[server].term + 1;
        let role = Role::Candidate(Ids::from_iter([server]));
        self.servers[server] = Server { term, voted_for: Some(server), role };
        self.send_to_others(server, Content::RequestVote);
    }

    /// Servers that have something to forget.
    fn can_restart(&self) -> Ids {
        self.servers.ids(|server| server.role != Role::Follower)
    }

    fn restart(&mut self, server: Id) {
        self.servers[server].role = Role::Follower;
        if cfg!(feature = "mistake") {
            self.servers[server].voted_for = None;
        }
    }

    fn messages(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        for (from, sent) in self.sent.iter() {
            for (to, sent) in sent.iter() {
                messages.extend(sent.iter().map(|(term, content)| Message {
                    term: *term,
                    from,
                    to,
                    content: *content,
                }));
            }
        }
        messages
    }

    fn receive(&mut self, message: Message) {
        let Message { term, from, to, content } = message;
        let server = &mut self.servers[to];
        if term > server.term {
            *server = Server { term, ..Server::default() };
        }
        let is_current = term == server.term;
        match content {
            Content::RequestVote
                if is_current && server.voted_for.is_none_or(|candidate| candidate == from) =>
            {
                server.voted_for = Some(from);
                self.send(to, from, Content::Vote);
            }
            Content::RequestVote if !is_current => self.send(to, from, Content::Refusal),
            Content::Vote if is_current => self.count_vote(to, from),
            Content::AppendEntries if is_current => server.role = Role::Follower,
            // A second request in a term is ignored: to refuse it would change nothing.
            _ => (),
        }
    }

    fn count_vote(&mut self, server: Id, from: Id) {
        if let Role::Candidate(votes) = &mut self.servers[server].role {
            votes.insert(from);
            if 2 * votes.len() > SERVERS {
                self.servers[server].role = Role::Leader;
                self.send_to_others(server, Content::AppendEntries);
            }
        }
    }

    fn send_to_others(&mut self, from: Id, content: Content) {
        for to in Id::all().iter().filter(|to| *to != from) {
            self.send(from, to, content);
        }
    }

    fn send(&mut self, from: Id, to: Id, content: Content) {
        let term = self.servers[from].term;
        self.sent[from][to].insert((term, content));
    }

    /// Those who have led in this term: they all said so.
    fn leaders(&self, term: u32) -> Ids {
        let said_so = |sent: &BTreeSet<(u32, Content)>| sent.contains(&(term, Content::AppendEntries));
        self.sent.ids(|sent| sent.values().any(said_so))
    }

    fn has_one_leader_a_term_at_most(&self) -> bool {
        (1..=TERM_MAX).all(|term| self.leaders(term).len() <= 1)
    }

    pub fn has_leader_in_the_last_term(&self) -> bool {
        !self.leaders(TERM_MAX).is_empty()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    TimeOut(Id),
    Restart(Id),
    Receive(Message),
}

impl Protocol for Raft {
    type Action = Action;

    fn actions(&self, actions: &mut Vec<Action>) {
        actions.extend(self.can_time_out().iter().map(Action::TimeOut));
        actions.extend(self.can_restart().iter().map(Action::Restart));
        actions.extend(self.messages().into_iter().map(Action::Receive));
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::TimeOut(server) => self.time_out(server),
            Action::Restart(server) => self.restart(server),
            Action::Receive(message) => self.receive(message),
        }
    }

    fn is_right(&self) -> bool {
        self.has_one_leader_a_term_at_most()
    }
}

#[cfg(feature = "raft")]
mod harness {
    use super::*;

    #[derive(Clone, Default, Hash)]
    struct Harness(Raft);

    #[harness]
    impl Harness {
        #[rule]
        #[precondition(!self.0.can_time_out().is_empty())]
        fn time_out(&mut self, #[draw(sampled_from(self.0.can_time_out()))] server: Id) {
            self.0.time_out(server);
        }

        #[rule]
        #[precondition(!self.0.can_restart().is_empty())]
        fn restart(&mut self, #[draw(sampled_from(self.0.can_restart()))] server: Id) {
            self.0.restart(server);
        }

        #[rule]
        #[precondition(!self.0.messages().is_empty())]
        fn receive(&mut self, #[draw(sampled_from(self.0.messages()))] message: Message) {
            self.0.receive(message);
            sometimes!(self.0.has_leader_in_the_last_term(), "there is a leader in the last term");
        }

        #[invariant]
        fn one_leader_a_term_at_most(&self) {
            assert!(self.0.has_one_leader_a_term_at_most(), "{:?}", self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{Reached, Renamed, orders, reach};

    impl Renamed for Raft {
        fn renamed(&self) -> Vec<Raft> {
            orders::<SERVERS, OfServers>()
                .iter()
                .map(|to| {
                    let mut renamed = Raft::default();
                    for (id, Server { term, voted_for, role }) in self.servers.iter() {
                        let role = match role {
                            Role::Candidate(votes) => {
                                Role::Candidate(votes.iter().map(|id| to[id]).collect())
                            }
                            role => role.clone(),
                        };
                        renamed.servers[to[id]] =
                            Server { term: *term, voted_for: voted_for.map(|id| to[id]), role };
                        for (other, sent) in self.sent[id].iter() {
                            renamed.sent[to[id]][to[other]] = sent.clone();
                        }
                    }
                    renamed
                })
                .collect()
        }
    }

    #[test]
    fn whoever_is_who_there_are_fewer_states() {
        let expected = match cfg!(feature = "mistake") {
            false => Reached { states: 42_149, orbits: 7_122, steps: 96_839, failure: None },
            true => Reached { states: 434, orbits: 84, steps: 662, failure: Some(7) },
        };
        assert_eq!(reach::<Raft>(), expected);
    }
}
