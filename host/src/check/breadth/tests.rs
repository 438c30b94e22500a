//! Checks that several processes share, as threads of this one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::claims::tests::elsewhere as hashes;
use super::long::tests::elsewhere;
use super::{Helpers, News, Part, Round, Soundness, Source};
use crate::check::tests::{flip, index, run};
use crate::check::{
    Bytes, Census, Checked, End, Findings, Hashes, Keeper, Keeping, Limit, Options, Progress, check_keeping,
    help, lock,
};
use crate::choice::{Chooser, mix};
use crate::model::{Model, fail};
use crate::outcome::{FailureKind, Outcome};
use crate::property::{Counts, PropertyKind};
use crate::target::{Holds, Liveness};
use crate::trace::{Action, Trace};

/// Where the processes of a check meet that are threads of this one.
#[derive(Default)]
struct Meeting {
    news: Mutex<Vec<Vec<u8>>>,
    round: Mutex<Option<Round>>,
    /// Parts to be looked at. Each is there twice, as one is whose lease ends too early.
    work: Mutex<VecDeque<(u64, u32)>>,
    done: Mutex<Vec<Vec<u8>>>,
    is_over: AtomicBool,
    given: AtomicU64,
}

impl Meeting {
    fn news(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        lock(&self.news)
    }
}

impl Keeper for Meeting {
    fn is_due(&self) -> bool {
        false
    }

    fn keep(&self, news: &News) {
        self.news().push(postcard::to_stdvec(news).unwrap());
    }
}

impl Helpers for Meeting {
    fn offer(&self, round: &Round) {
        *lock(&self.round) = Some(round.clone());
        *lock(&self.work) = (0..round.parts()).rev().flat_map(|part| [(round.kept, part); 2]).collect();
        // Others are given time to be first.
        std::thread::sleep(Duration::from_millis(1));
    }

    fn parts(&self) -> Vec<Part> {
        let done = std::mem::take(&mut *lock(&self.done)).into_iter();
        done.map(|bytes| postcard::from_bytes(&bytes).unwrap()).collect()
    }
}

/// One process that helps.
struct Helper<'m> {
    meeting: &'m Meeting,
    read: Mutex<usize>,
}

impl Source for Helper<'_> {
    fn next(&self) -> Option<(Vec<News>, Option<Round>)> {
        if self.meeting.is_over.load(Ordering::Relaxed) {
            return None;
        }
        let (news, mut read) = (self.meeting.news(), lock(&self.read));
        let new = news[*read..].iter().map(|bytes| postcard::from_bytes(bytes).unwrap()).collect();
        *read = news.len();
        let round = lock(&self.meeting.round).clone().filter(|round| round.kept == *read as u64);
        Some((new, round))
    }

    fn take(&self, round: &Round) -> Option<u32> {
        let mut work = lock(&self.meeting.work);
        let (kept, part) = work.pop_front()?;
        (kept == round.kept).then_some(part)
    }

    fn give(&self, part: &Part) {
        self.meeting.given.fetch_add(1, Ordering::Relaxed);
        lock(&self.meeting.done).push(postcard::to_stdvec(part).unwrap());
    }
}

type Counters = [u8; 3];

fn counted(at: &mut Counters, action: Action, chooser: &mut Chooser, _: &mut dyn FnMut(u32)) -> Outcome {
    if let Action::Rule(rule) = action {
        let rule = usize::from(rule);
        at[rule] = (at[rule] + 1 + u8::from(rule == 1 && flip(chooser))) % 20;
    }
    Outcome::Pass
}

fn failing(at: &mut Counters, action: Action, chooser: &mut Chooser, edges: &mut dyn FnMut(u32)) -> Outcome {
    counted(at, action, chooser, edges);
    if *at == [7, 9, 11] { fail("there") } else { Outcome::Pass }
}

/// Three counters, of which one may skip a number, and a fault; fails at one place where `fails`.
fn model(fails: bool) -> Model<Counters> {
    let rules = ["a", "b", "c"];
    match fails {
        false => Model::new([0; 3], &rules, &["fault"], counted),
        true => Model::new([0; 3], &rules, &["fault"], failing),
    }
}

fn shared(fails: bool, options: &Options, rounds_of_first: u64) -> (Checked, u64) {
    let meeting = Meeting::default();
    let endless = |_: &Progress| None;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let helper = Helper { meeting: &meeting, read: Mutex::new(0) };
                help(&mut [model(fails), model(fails)], options, &endless, &helper).unwrap();
            });
        }
        let lead = |goes_on: &(dyn Fn(&Progress) -> Option<Limit> + Sync)| {
            let before: Vec<News> =
                meeting.news().iter().map(|bytes| postcard::from_bytes(bytes).unwrap()).collect();
            let keeping =
                Keeping { before: Box::new(before.into_iter()), keeper: &meeting, helpers: Some(&meeting) };
            let told = &mut |_: &Trace, _: &End| {};
            let mut counts = Counts::default();
            check_keeping(&mut [model(fails)], options, (goes_on, told), (Some(keeping), &mut counts))
                .unwrap()
        };
        // The first who leads is gone in the middle of a round, and the next begins that anew.
        let asked = AtomicU64::new(0);
        lead(&|_| {
            let is_gone =
                meeting.news().len() as u64 >= rounds_of_first && asked.fetch_add(1, Ordering::Relaxed) > 20;
            is_gone.then_some(Limit::Interrupt)
        });
        let checked = lead(&endless);
        meeting.is_over.store(true, Ordering::Relaxed);
        (checked, meeting.given.load(Ordering::Relaxed))
    })
}

#[test]
fn a_check_with_helpers_comes_to_what_it_does_alone() {
    for (fails, prunes_all) in [(false, true), (true, true), (false, false)] {
        let steps_max = if prunes_all { None } else { Some(6) };
        let options = Options { prunes: prunes_all, steps_max, ..Options::default() };
        let endless = |_: &Progress| None;
        let told = &mut |_: &Trace, _: &End| {};
        let alone =
            check_keeping(&mut [model(fails)], &options, (&endless, told), (None, &mut Counts::default()));
        let alone = alone.unwrap();
        for rounds_of_first in [0, 3, 9] {
            let (checked, given) = shared(fails, &options, rounds_of_first);
            assert_eq!(checked.census, alone.census, "{fails} {prunes_all} {rounds_of_first}");
            assert_eq!(checked.rules, alone.rules);
            assert_eq!(checked.limit, alone.limit);
            let failures = |checked: &Checked| {
                let found = checked.findings.iter();
                found.map(|found| (found.failure.clone(), found.run, found.trace.clone())).collect::<Vec<_>>()
            };
            assert_eq!(failures(&checked), failures(&alone));
            assert!(given > 0, "nobody helped");
        }
    }
}

/// Counters up to three, which come to [1, 1, 1] at last, where `claims`; not in each run. And with a setup, or without.
fn small((claims, has_setup): (bool, bool)) -> Model<Counters> {
    fn step(at: &mut Counters, action: Action, chooser: &mut Chooser, _: &mut dyn FnMut(u32)) -> Outcome {
        if let Action::Rule(rule) = action {
            let rule = usize::from(rule);
            at[rule] = (at[rule] + 1 + u8::from(rule == 1 && flip(chooser))) % 3;
        }
        if *at == [2, 2, 2] { fail("there") } else { Outcome::Pass }
    }
    let mut model = Model::new([0; 3], &["a", "b", "c"], &["fault"], step);
    model.has_setup = has_setup;
    if claims {
        let claim = Liveness { kind: PropertyKind::Eventually, name: "ones".to_string() };
        model.liveness = (vec![claim], |at| Holds { from: 0, to: u64::from(*at == [1; 3]) });
    }
    model
}

/// A copy of these bytes that differs from them, or from its beginning on has those of another value.
fn damaged(bytes: &[u8], other: &[u8], seed: u64) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    let place = |by: u64, len: usize| mix(seed, by) as usize % len.max(1);
    match mix(seed, 0) % 8 {
        0 => copy.truncate(place(1, copy.len())),
        1 => copy = other.to_vec(),
        2 => {
            copy.splice(place(1, copy.len()).., other[place(2, other.len())..].iter().copied()).for_each(drop)
        }
        3 => drop(copy.remove(place(1, copy.len()))),
        4 => copy.insert(place(1, copy.len()), mix(seed, 2) as u8),
        more => {
            for by in 0..more - 4 {
                let at = place(10 + by, copy.len());
                copy[at] = match mix(seed, 20 + by) % 3 {
                    0 => copy[at] ^ 1 << (mix(seed, 30 + by) % 8),
                    1 => copy[at].wrapping_add(1),
                    _ => mix(seed, 40 + by) as u8,
                };
            }
        }
    }
    copy
}

/// A server that hands out what somebody changed.
struct Hostile<'h> {
    parts: &'h [Vec<u8>],
    seed: AtomicU64,
    taken: AtomicU64,
}

impl Keeper for Hostile<'_> {
    fn is_due(&self) -> bool {
        false
    }

    fn keep(&self, _: &News) {}
}

impl Helpers for Hostile<'_> {
    fn offer(&self, _: &Round) {}

    fn parts(&self) -> Vec<Part> {
        let seed = self.seed.fetch_add(1, Ordering::Relaxed);
        let [one, other] = [1, 2].map(|by| &self.parts[mix(seed, by) as usize % self.parts.len()]);
        let part = postcard::from_bytes(&damaged(one, other, seed));
        self.taken.fetch_add(u64::from(part.is_ok()), Ordering::Relaxed);
        part.into_iter().collect()
    }
}

/// Of a check by one: what was kept of it, in order, and its parts.
fn kept(claims: (bool, bool), options: &Options) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let meeting = Meeting::default();
    let all_done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let helper = Helper { meeting: &meeting, read: Mutex::new(0) };
            help(&mut [small(claims)], options, &|_: &Progress| None, &helper).unwrap();
        });
        let keeping = Keeping {
            before: Box::new(std::iter::empty()),
            keeper: &meeting,
            helpers: Some(&Recorded(&meeting, &all_done)),
        };
        walk(claims, options, keeping);
        meeting.is_over.store(true, Ordering::Relaxed);
    });
    let kept = std::mem::take(&mut *meeting.news());
    (kept, all_done.into_inner().unwrap())
}

/// Keeps the parts, too.
struct Recorded<'m>(&'m Meeting, &'m Mutex<Vec<Vec<u8>>>);

impl Helpers for Recorded<'_> {
    fn offer(&self, round: &Round) {
        self.0.offer(round);
        // As often as it takes for one to be looked at by the other.
        std::thread::sleep(Duration::from_millis(20));
    }

    fn parts(&self) -> Vec<Part> {
        lock(self.1).extend(lock(&self.0.done).iter().cloned());
        self.0.parts()
    }
}

fn walk(claims: (bool, bool), options: &Options, keeping: Keeping<'_>) -> Checked {
    let asked = AtomicU64::new(0);
    // What is forged may be without end.
    let goes_on = |_: &Progress| (asked.fetch_add(1, Ordering::Relaxed) > 2_000).then_some(Limit::Interrupt);
    let told = &mut |_: &Trace, _: &End| {};
    let mut counts = Counts::default();
    match check_keeping(&mut [small(claims)], options, (&goes_on, told), (Some(keeping), &mut counts)) {
        Ok(checked) => checked,
        // Steps that were forged lead elsewhere.
        Err(_) => Checked::of(Census::default(), Findings::default(), None),
    }
}

/// Whoever may write to the server is believed, but stops no process and has none read beside what there is.
#[test]
fn what_is_forged_ends_no_process() {
    let options = Options { findings_max: 100, ..Options::default() };
    for claims in [(false, false), (true, false), (false, true), (true, true)] {
        let (kept, parts) = kept(claims, &options);
        assert!(kept.len() > 3 && parts.len() > 3, "{} {}", kept.len(), parts.len());
        let mut soundness = Soundness::new((3, 1), claims.0);
        let is_sound = |news: &Vec<u8>| soundness.takes(&postcard::from_bytes(news).unwrap());
        assert!(kept.iter().all(is_sound), "what nobody changed is sound");
        let hostile = Hostile { parts: &parts, seed: AtomicU64::new(0), taken: AtomicU64::new(0) };
        let mut sound = 0;
        for seed in 0..2_000 {
            let at = mix(seed, 3) as usize % kept.len();
            let other = &kept[mix(seed, 4) as usize % kept.len()];
            let mut before: Vec<News> =
                kept[..at].iter().map(|news| postcard::from_bytes(news).unwrap()).collect();
            before.extend(postcard::from_bytes::<News>(&damaged(&kept[at], other, seed)).ok());
            let mut soundness = Soundness::new((3, 1), claims.0);
            if before.iter().all(|news| soundness.takes(news)) {
                sound += u32::from(before.len() > at);
                walk(
                    claims,
                    &options,
                    Keeping {
                        before: Box::new(before.into_iter()),
                        keeper: &hostile,
                        helpers: Some(&hostile),
                    },
                );
            }
        }
        assert!(sound > 200 && hostile.taken.load(Ordering::Relaxed) > 200, "{sound} {:?}", hostile.taken);
    }
}

/// What is stopped while it judges goes on with that.
#[test]
fn what_was_met_is_kept_before_it_is_judged() {
    let options = Options { findings_max: 100, ..Options::default() };
    let checked = |before: Vec<News>, meeting: &Meeting| {
        let keeping = Keeping { before: Box::new(before.into_iter()), keeper: meeting, helpers: None };
        walk((true, true), &options, keeping)
    };
    let (first, second) = (Meeting::default(), Meeting::default());
    let all = checked(Vec::new(), &first);
    let kept: Vec<News> = first.news().iter().map(|news| postcard::from_bytes(news).unwrap()).collect();
    assert_eq!(kept.iter().map(|news| news.nodes.len() as u64).sum::<u64>(), all.census.states);
    assert!(all.findings.iter().any(|found| found.failure.kind == FailureKind::Liveness));
    assert_eq!(checked(kept, &second), all);
    let more = second
        .news()
        .iter()
        .map(|news| postcard::from_bytes::<News>(news).unwrap().nodes.len())
        .sum::<usize>();
    assert_eq!(more, 0);
}

/// Keeps something now and then, and has room elsewhere for bytes that can be read so often.
struct Roomy {
    asked: AtomicU64,
    reads: Option<usize>,
    places: AtomicU64,
}

impl Keeper for Roomy {
    fn is_due(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= 8
    }

    fn keep(&self, _: &News) {
        self.asked.store(0, Ordering::Relaxed);
    }

    fn hashes(&self) -> Option<Box<dyn Hashes>> {
        hashes(1 << 20, u64::MAX)
    }

    fn bytes(&self) -> Option<Box<dyn Bytes>> {
        self.places.fetch_add(1, Ordering::Relaxed);
        elsewhere(usize::MAX, self.reads?)
    }
}

/// Fails at one place; the last of three counters may skip a number.
fn skipping(at: &mut Counters, action: Action, chooser: &mut Chooser, _: &mut dyn FnMut(u32)) -> Outcome {
    if let Action::Rule(rule) = action {
        let rule = usize::from(rule);
        at[rule] = (at[rule] + 1 + u8::from(rule == 2 && flip(chooser))) % 20;
    }
    if *at == [7, 19, 11] { fail("there") } else { Outcome::Pass }
}

/// What a check with so much memory comes to, which saves states or reaches each by its steps, and how many lists were moved.
fn roomy((memory, saves): (usize, bool), reads: Option<usize>, workers: usize) -> (Checked, u64) {
    let make = |_| {
        let mut model = Model::new([0; 3], &["a", "b", "c"], &["fault"], skipping);
        model.uses_snapshots = saves;
        model
    };
    let mut models: Vec<_> = (0..workers).map(make).collect();
    let options = Options { met_bytes_max: memory, findings_max: 2, ..Options::default() };
    let keeper = Roomy { asked: AtomicU64::new(0), reads, places: AtomicU64::new(0) };
    let keeping = Keeping { before: Box::new(std::iter::empty()), keeper: &keeper, helpers: None };
    let (told, mut counts) = (&mut |_: &Trace, _: &End| {}, Counts::default());
    let checked = check_keeping(&mut models, &options, (&|_| None, told), (Some(keeping), &mut counts));
    (checked.unwrap(), keeper.places.load(Ordering::Relaxed))
}

#[test]
fn steps_that_do_not_fit_in_memory_are_elsewhere() {
    const MEMORY: usize = 320 << 10;
    for saves in [true, false] {
        let (all, places) = roomy((1 << 30, saves), None, 1);
        assert_eq!((places, all.limit, all.findings.len()), (0, None, 1));
        for workers in [1, 2] {
            let (some, places) = roomy((MEMORY, saves), Some(usize::MAX), workers);
            assert_eq!(some, all);
            assert_eq!(places, 2);
        }
        // Where they cannot be moved, or not be read, it is over, and nothing is told that is not so.
        for reads in [None, Some(0), Some(1), Some(7), Some(20)] {
            let (some, places) = roomy((MEMORY, saves), reads, 1);
            assert!(places > 0 && some.limit == Some(Limit::Memory), "{some:?}");
            assert!(some.findings.is_empty() || some.findings == all.findings, "{some:?}");
        }
    }
}

/// The first rule fails under the first of its answers, the second one after a further answer, and a later one of both stops the target.
fn stopping(_: &mut u8, action: Action, chooser: &mut Chooser, _: &mut dyn FnMut(u32)) -> Outcome {
    match (action, index(chooser, 3)) {
        (Action::Rule(0), 0) => fail("at once"),
        (Action::Rule(1), 0) => match flip(chooser) {
            false => Outcome::Pass,
            true => fail("after another answer"),
        },
        (Action::Rule(_), 2) => Outcome::Stopped,
        _ => Outcome::Pass,
    }
}

#[test]
fn what_failed_before_a_step_was_stopped_is_told() {
    for (rule, expected) in [(0, "at once"), (1, "after another answer")] {
        let mut model = Model::new(0u8, &["even", "uneven"], &[], stopping);
        model.guard = if rule == 0 { |_, rule| rule == 0 } else { |_, rule| rule == 1 };
        let checked = run(model, &Options::default());
        assert_eq!(checked.limit, Some(Limit::Interrupt));
        let failures: Vec<&str> =
            checked.findings.iter().map(|found| found.failure.message.as_str()).collect();
        assert_eq!(failures, [expected]);
        assert_eq!(checked.rules[rule].enabled, 1);
    }
}
