//! Two-phase commit as a model that keeps its state in the collections of the standard library.

use std::collections::BTreeSet;

use stateright::{Model, Property};

use super::COUNT;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Manager {
    Working,
    Prepared,
    Committed,
    Aborted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Decision {
    Open,
    Commit,
    Abort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Message {
    Prepared(usize),
    Commit,
    Abort,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    managers: Vec<Manager>,
    decision: Decision,
    votes: Vec<bool>,
    messages: BTreeSet<Message>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Event {
    Vote(usize),
    Decide(Decision),
    Prepare(usize),
    GiveUp(usize),
    Hear(usize, Decision),
}

pub(super) struct TwoPhaseCommit;

impl Model for TwoPhaseCommit {
    type State = State;
    type Action = Event;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            managers: vec![Manager::Working; COUNT],
            decision: Decision::Open,
            votes: vec![false; COUNT],
            messages: BTreeSet::new(),
        }]
    }

    fn actions(&self, state: &State, events: &mut Vec<Event>) {
        let is_open = state.decision == Decision::Open;
        if is_open && state.votes.iter().all(|voted| *voted) {
            events.push(Event::Decide(Decision::Commit));
        }
        if is_open {
            events.push(Event::Decide(Decision::Abort));
        }
        for rm in 0..COUNT {
            if is_open && state.messages.contains(&Message::Prepared(rm)) {
                events.push(Event::Vote(rm));
            }
            if state.managers[rm] == Manager::Working {
                events.extend([Event::Prepare(rm), Event::GiveUp(rm)]);
            }
            if state.messages.contains(&Message::Commit) {
                events.push(Event::Hear(rm, Decision::Commit));
            }
            if state.messages.contains(&Message::Abort) {
                events.push(Event::Hear(rm, Decision::Abort));
            }
        }
    }

    fn next_state(&self, state: &State, event: Event) -> Option<State> {
        let mut state = state.clone();
        match event {
            Event::Vote(rm) => state.votes[rm] = true,
            Event::Decide(decision) => {
                state.decision = decision;
                let is_commit = decision == Decision::Commit;
                state.messages.insert(if is_commit { Message::Commit } else { Message::Abort });
            }
            Event::Prepare(rm) => {
                state.managers[rm] = Manager::Prepared;
                state.messages.insert(Message::Prepared(rm));
            }
            Event::GiveUp(rm) | Event::Hear(rm, Decision::Abort | Decision::Open) => {
                state.managers[rm] = Manager::Aborted;
            }
            Event::Hear(rm, Decision::Commit) => state.managers[rm] = Manager::Committed,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("consistent", |_, state: &State| {
                let has = |manager| state.managers.contains(&manager);
                !(has(Manager::Committed) && has(Manager::Aborted))
            }),
            Property::sometimes("all commit", |_, state: &State| {
                state.managers.iter().all(|manager| *manager == Manager::Committed)
            }),
        ]
    }
}
