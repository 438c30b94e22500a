//! The leader election of Raft (Ongaro and Ousterhout, "In search of an understandable consensus algorithm", 2014) for
//! three servers and two terms.
//!
//! Logs are empty, so every candidate's is up to date. A message stays after it was received: it can come late, twice,
//! or never. A server that restarts has its term and its vote, which are on disk.

use std::collections::BTreeSet;

const SERVERS: usize = 3;
const TERM_MAX: u32 = 2;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Role {
    #[default]
    Follower,
    /// With the votes that it has.
    Candidate(BTreeSet<usize>),
    Leader,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Server {
    term: u32,
    voted_for: Option<usize>,
    role: Role,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Content {
    RequestVote,
    /// That is granted.
    Vote,
    /// To one who asks in an older term.
    Refusal,
    /// A leader's, without entries.
    AppendEntries,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message {
    term: u32,
    from: usize,
    to: usize,
    content: Content,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Raft {
    servers: [Server; SERVERS],
    messages: BTreeSet<Message>,
}

impl Raft {
    /// Servers that may hear of no leader for too long.
    pub fn can_time_out(&self) -> Vec<usize> {
        let can = |server: &Server| server.role != Role::Leader && server.term < TERM_MAX;
        (0..SERVERS).filter(|server| can(&self.servers[*server])).collect()
    }

    /// It stands for election in the next term.
    pub fn time_out(&mut self, server: usize) {
        let term = self.servers[server].term + 1;
        let role = Role::Candidate(BTreeSet::from([server]));
        self.servers[server] = Server { term, voted_for: Some(server), role };
        self.send_to_others(server, Content::RequestVote);
    }

    /// Servers that have something to forget.
    pub fn can_restart(&self) -> Vec<usize> {
        (0..SERVERS).filter(|server| self.servers[*server].role != Role::Follower).collect()
    }

    pub fn restart(&mut self, server: usize) {
        self.servers[server].role = Role::Follower;
    }

    pub fn messages(&self) -> &BTreeSet<Message> {
        &self.messages
    }

    pub fn receive(&mut self, message: Message) {
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

    fn count_vote(&mut self, server: usize, from: usize) {
        if let Role::Candidate(votes) = &mut self.servers[server].role {
            votes.insert(from);
            if 2 * votes.len() > SERVERS {
                self.servers[server].role = Role::Leader;
                self.send_to_others(server, Content::AppendEntries);
            }
        }
    }

    fn send_to_others(&mut self, from: usize, content: Content) {
        for to in (0..SERVERS).filter(|to| *to != from) {
            self.send(from, to, content.clone());
        }
    }

    fn send(&mut self, from: usize, to: usize, content: Content) {
        let term = self.servers[from].term;
        self.messages.insert(Message { term, from, to, content });
    }

    /// Everyone who has ever led, with the term: they all said so.
    fn leaders(&self) -> BTreeSet<(u32, usize)> {
        let said_so = |message: &&Message| message.content == Content::AppendEntries;
        self.messages.iter().filter(said_so).map(|message| (message.term, message.from)).collect()
    }

    pub fn has_one_leader_a_term_at_most(&self) -> bool {
        let leaders = self.leaders();
        let terms: BTreeSet<u32> = leaders.iter().map(|(term, _)| *term).collect();
        terms.len() == leaders.len()
    }

    pub fn has_leader_in_the_last_term(&self) -> bool {
        self.leaders().iter().any(|(term, _)| *term == TERM_MAX)
    }
}

#[cfg(feature = "raft")]
mod harness {
    use spelunk_guest::prelude::*;

    use super::*;

    #[derive(Clone, Default, Hash)]
    struct Harness(Raft);

    #[harness]
    impl Harness {
        #[rule]
        #[precondition(!self.0.can_time_out().is_empty())]
        fn time_out(&mut self, #[draw(sampled_from(self.0.can_time_out()))] server: usize) {
            self.0.time_out(server);
        }

        #[rule]
        #[precondition(!self.0.can_restart().is_empty())]
        fn restart(&mut self, #[draw(sampled_from(self.0.can_restart()))] server: usize) {
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
    use crate::native::{after, holds, reach};

    fn next(raft: &Raft) -> Vec<Raft> {
        let time_out = after(raft, raft.can_time_out(), Raft::time_out);
        let restart = after(raft, raft.can_restart(), Raft::restart);
        let receive = after(raft, raft.messages().clone(), Raft::receive);
        [time_out, restart, receive].concat()
    }

    #[test]
    fn nobody_leads_where_another_does() {
        assert_eq!(reach(next, Raft::has_one_leader_a_term_at_most), holds(42_149, 573_354));
    }
}
