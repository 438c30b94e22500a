use std::collections::BTreeSet;
use std::sync::Arc;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::walk::{Hits, Items, Walked, Who, walk};
use super::*;
use crate::budget::Budget;
use crate::choice::Chooser;
use crate::model::{Model, fail};
use crate::outcome::{Found, Outcome};
use crate::search::{History, edges_of};
use crate::trace::{Action, Trace};

/// A number that each rule changes, and that names the edge. It fails at 13.
fn numbers(uses_snapshots: bool) -> Model<u32> {
    let mut model = Model::new(0, &["a", "b", "c"], &[], |state, action, _: &mut Chooser, edge| {
        if let Action::Rule(rule) = action {
            *state = (*state * 5 + u32::from(rule) + 1) % 60;
            edge(*state);
        }
        if *state == 13 { fail("thirteen") } else { Outcome::Pass }
    });
    model.uses_snapshots = uses_snapshots;
    model
}

fn trace(rules: &[u16]) -> Trace {
    let mut trace = Trace::default();
    rules.iter().for_each(|rule| trace.push(Action::Rule(*rule), 1));
    trace
}

fn is_sound(rules: &[u16]) -> bool {
    let mut state = 0;
    rules.iter().all(|rule| {
        state = (state * 5 + u32::from(*rule) + 1) % 60;
        state != 13
    })
}

/// Checkpoints whose histories are a random tree, of which some lead to no checkpoint.
fn checkpoints(random: &mut Xoshiro256PlusPlus) -> Vec<(u64, Arc<History>)> {
    let mut histories = vec![(Arc::new(History::start()), Vec::new())];
    let mut checkpoints = Vec::new();
    for id in 1..random.random_range(2..30u64) {
        let (parent, before): (Arc<History>, Vec<u16>) =
            histories[random.random_range(0..histories.len())].clone();
        let own: Vec<u16> = (0..random.random_range(0..4)).map(|_| random.random_range(0..3)).collect();
        let all = [before, own.clone()].concat();
        if !is_sound(&all) {
            continue;
        }
        let history = Arc::new(History::new(id, Some(parent), trace(&own)));
        histories.push((history.clone(), all));
        if random.random_range(0..3) > 0 {
            checkpoints.push((id, history));
        }
    }
    checkpoints
}

fn flat(history: &History) -> Trace {
    let mut flat = Trace::default();
    history.flatten(&mut flat);
    flat
}

/// What each comes to by itself.
fn naive(checkpoints: &[(u64, Arc<History>)], shown: &[(u32, u32)], items: usize) -> Vec<Hits> {
    let mut hits = vec![Hits::default(); items];
    for (id, history) in checkpoints {
        let edges = edges_of(&mut numbers(true), &flat(history));
        let came: BTreeSet<u32> =
            shown.iter().filter(|(slot, _)| edges.contains(slot)).map(|(_, item)| *item).collect();
        for item in came {
            hits[item as usize].count += 1;
            hits[item as usize].first = hits[item as usize].first.or(Some(Who::Checkpoint(*id)));
        }
    }
    hits
}

#[test]
fn a_tree_is_walked_as_if_each_checkpoint_was_by_itself() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let (mut alone, mut several) = (0, 0);
    for _ in 0..300 {
        let checkpoints = checkpoints(&mut random);
        // An item may be shown by several counters, and a counter may show several.
        let shown: Vec<(u32, u32)> =
            (0..80).map(|_| (random.random_range(0..60), random.random_range(0..25))).collect();
        let items = Items::new(shown.clone(), 60, 25);
        let expected = naive(&checkpoints, &shown, 25);
        for uses_snapshots in [true, false] {
            let mut model = numbers(uses_snapshots);
            let walked = walk(&mut model, (&checkpoints, &[]), &items, &Budget::unlimited());
            let counts =
                |hits: &[Hits]| hits.iter().map(|hits| (hits.count, hits.alone())).collect::<Vec<_>>();
            assert_eq!(counts(&walked.hits), counts(&expected));
            assert_eq!((walked.checkpoints, walked.differing), (checkpoints.len() as u64, 0));
        }
        alone += expected.iter().filter(|hits| hits.alone().is_some()).count();
        several += expected.iter().filter(|hits| hits.count > 1).count();
    }
    assert!(alone > 500 && several > 500, "{alone} {several}");
}

/// Each counter shows itself.
fn plain() -> Items {
    Items::new((0..60).map(|slot| (slot, slot)).collect(), 60, 60)
}

fn slots(walked: &Walked) -> Vec<u32> {
    (0..).zip(&walked.hits).filter(|(_, hits)| hits.any()).map(|(slot, _)| slot).collect()
}

#[test]
fn shared_steps_are_executed_once_where_states_are_saved() {
    let start = Arc::new(History::start());
    let first = Arc::new(History::new(1, Some(start), trace(&[0, 0, 0])));
    let branch = |id| (id, Arc::new(History::new(id, Some(first.clone()), trace(&[(id % 3) as u16]))));
    let checkpoints: Vec<_> = (2..102).map(branch).collect();
    let mut steps = Vec::new();
    for uses_snapshots in [true, false] {
        let mut model = numbers(uses_snapshots);
        let walked = walk(&mut model, (&checkpoints, &[]), &plain(), &Budget::unlimited());
        assert_eq!(walked.checkpoints, 100);
        steps.push(model.steps);
    }
    assert_eq!(steps, [3 + 100, 3 + 100 + 99 * 3]);
}

#[test]
fn a_finding_counts_with_its_last_step() {
    // 0, then 2 * 5 + 3 = 13.
    let failure = match fail("thirteen") {
        Outcome::Fail(failure) => *failure,
        other => unreachable!("{other:?}"),
    };
    let finding = Arc::new(Found { failure, run: 1, trace: trace(&[1, 2]) });
    let walked = walk(&mut numbers(true), (&[], &[finding]), &plain(), &Budget::unlimited());
    assert_eq!((walked.findings, walked.differing, slots(&walked)), (1, 0, vec![2, 13]));
    assert_eq!(walked.hits[13], Hits { count: 1, first: Some(Who::Finding(0)) });
    assert_eq!(walked.hits[13].alone(), None);
}

#[test]
fn what_does_not_go_as_before_is_told_and_the_rest_counts() {
    let start = Arc::new(History::start());
    let fails = Arc::new(History::new(1, Some(start.clone()), trace(&[1, 2])));
    let beyond = Arc::new(History::new(2, Some(fails.clone()), trace(&[0])));
    let other = Arc::new(History::new(3, Some(start), trace(&[0])));
    let checkpoints = [(1, fails), (2, beyond), (3, other)];
    let walked = walk(&mut numbers(true), (&checkpoints, &[]), &plain(), &Budget::unlimited());
    let why = "step 2: it fails: panic: thirteen".to_string();
    assert_eq!((walked.checkpoints, walked.differing), (1, 2));
    assert_eq!(walked.differs, Some((Who::Checkpoint(1), why)));
    assert!(walked.hits[1].any());
}

#[test]
fn a_budget_that_is_over_ends_it() {
    let budget = Budget::unlimited();
    budget.interrupt();
    let start = Arc::new(History::start());
    let history = Arc::new(History::new(1, Some(start), trace(&[0])));
    let walked = walk(&mut numbers(true), (&[(1, history)], &[]), &plain(), &budget);
    assert!(walked.is_stopped && walked.checkpoints == 0);
}

#[test]
fn a_share_is_rounded_down() {
    let share = |hit, all| Share { hit, all }.percent();
    assert_eq!(
        [share(0, 0), share(0, 3), share(2, 3), share(1999, 2000), share(5, 5)],
        ["-", "0.0 %", "66.6 %", "99.9 %", "100.0 %"]
    );
}
