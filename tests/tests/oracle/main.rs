//! Random models: a naive interpreter says what a check of each must come to, and a check of the model as a WebAssembly
//! module must come to that, in every way of checking.
//!
//! 200 models are checked; `SPELUNK_MODELS=10000 cargo test --release --workspace --test oracle` checks as many
//! as it says. `SPELUNK_MODEL=17` checks the one of this seed, and prints it.

mod forgotten;
mod guest;
mod live;
mod model;
mod naive;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use model::Model;
use naive::{Found, Naive};
use spelunk::check::{self, Checked, Keeper, Keeping, Limit, News, Options, Order, Trouble, TroubleKind};
use spelunk::machine::{Edges, Limits, Machine, Program, Selection, on_guest_stack};
use spelunk::outcome::{Failure, FailureKind};
use spelunk::property::Counts;
use spelunk::replay::{Replayed, replay};
use spelunk::target::Target as _;
use spelunk::trace::Action;
use spelunk_tests::checks::seen;

/// Models that are checked where nothing else is asked for.
const MODELS: u64 = 200;
/// States of a model, and of a tree, at most; larger ones are left out.
const STATES_MAX: u64 = 400;
const TREE_MAX: u64 = 600;
const ORDERS: [Order; 2] = [Order::Depth, Order::Breadth];

/// What names a failure in both worlds.
fn key(failure: &Failure) -> String {
    let place = || failure.place.as_deref().and_then(|place| place.split('+').next());
    match failure.kind {
        FailureKind::Fail | FailureKind::Panic => failure.message.clone(),
        FailureKind::Deadlock => place().unwrap_or("deadlock").to_string(),
        FailureKind::Trap => place().unwrap_or_default().to_string(),
        _ => failure.subject.clone().unwrap_or_default(),
    }
}

/// A model as a module.
struct Subject {
    seed: u64,
    machines: Vec<Machine>,
    /// Without snapshots.
    replaying: Vec<Machine>,
    /// Their guests copy states, where they can.
    copying: Vec<Machine>,
}

impl Subject {
    fn new(seed: u64, model: &Model) -> Subject {
        let machines = |model: &Model, count| -> Vec<Machine> {
            let wasm = wat::parse_str(guest::module(model));
            let wasm = wasm.unwrap_or_else(|error| panic!("model {seed}: {error}"));
            let selection = Selection { edges: Edges::None, ..Selection::default() };
            let program = Arc::new(Program::load(&wasm, Limits::default(), selection).unwrap());
            (0..count).map(|_| Machine::new(program.clone()).unwrap()).collect()
        };
        let mut replaying = machines(model, 2);
        replaying.iter_mut().for_each(|machine| machine.set_uses_snapshots(false).unwrap());
        let can_copy = model.faults.is_empty() && model.teardown.is_none() && !model.has_size();
        let copying = match can_copy {
            true => machines(&Model { copies: true, ..model.clone() }, 3),
            false => Vec::new(),
        };
        Subject { seed, machines: machines(model, 3), replaying, copying }
    }

    /// Has the guest copy its states in so many machines, where such a check does.
    fn begin_copies(&mut self, workers: usize, options: &Options) -> bool {
        if self.copying.is_empty() || options.reduces || !options.prunes {
            return false;
        }
        let mut machines = self.copying[..workers].iter_mut();
        assert!(machines.all(|machine| machine.begin_copies()), "model {}", self.seed);
        true
    }

    /// Where the guest copies its states, all is the same, but for places in the module.
    fn copied(&mut self, options: &Options, one: &Result<Checked, Box<Trouble>>) {
        let seed = self.seed;
        let told = |checked: &Result<Checked, Box<Trouble>>| {
            let checked = checked.as_ref().unwrap_or_else(|trouble| panic!("model {seed}: {trouble:?}"));
            let found = checked.findings.iter();
            let found: Vec<_> =
                found.map(|found| (key(&found.failure), found.run, found.trace.len())).collect();
            (checked.census, found, checked.limit, checked.rules.clone(), checked.first.clone())
        };
        for workers in [1, 3] {
            if !self.begin_copies(workers, options) {
                return;
            }
            let checked = Subject::check(&mut self.copying[..workers], options);
            assert_eq!(
                told(&checked),
                told(one),
                "model {} with {workers} that copy: {options:?}",
                self.seed
            );
        }
    }

    fn check(machines: &mut [Machine], options: &Options) -> Result<Checked, Box<Trouble>> {
        check::check(machines, options, &|_| None, &mut |_, _| ())
    }

    /// Checks with one machine, with three, and in no room; all come to the same.
    fn everywhere(&mut self, options: &Options, replays: bool) -> Result<Checked, Box<Trouble>> {
        let one = Subject::check(&mut self.machines[..1], options);
        let note = |what: &str| format!("model {} with {what}: {options:?}", self.seed);
        assert_eq!(Subject::check(&mut self.machines, options), one, "{}", note("three workers"));
        if options.order == Order::Breadth {
            let small = Options { saved_bytes_max: 0, ..options.clone() };
            assert_eq!(Subject::check(&mut self.machines[..2], &small), one, "{}", note("no room"));
        }
        if replays {
            assert_eq!(Subject::check(&mut self.replaying, options), one, "{}", note("no snapshots"));
        }
        if options.order == Order::Breadth {
            self.in_parts(options, &one);
            self.drawn(options, &one);
            self.copied(options, &one);
        }
        one
    }

    /// Checks again, as if the process had been killed after the first part that was kept, and after others.
    fn in_parts(&mut self, options: &Options, one: &Result<Checked, Box<Trouble>>) {
        let parts = Parts::default();
        let note = |what: &str| format!("model {} {what}: {options:?}", self.seed);
        let kept = parts.go_on(&mut self.machines[..1], options, 0);
        assert_eq!(&kept, one, "{}", note("with parts that are kept"));
        let count = parts.0.lock().unwrap().len();
        for (workers, after) in [(3, 1), (1, count / 2), (2, count)] {
            let resumed = parts.go_on(&mut self.machines[..workers], options, after);
            assert_eq!(&resumed, one, "{}", note(&format!("after {after} of {count} parts")));
        }
    }

    /// The graph of a check changes nothing, and has what was counted.
    fn drawn(&mut self, options: &Options, one: &Result<Checked, Box<Trouble>>) {
        let (Ok(one), false) = (one, options.reduces) else { return };
        let drawn = Options { draws: true, ..options.clone() };
        let mut drawn = Subject::check(&mut self.machines[..2], &drawn).unwrap();
        let Some(picture) = drawn.picture.take() else { return assert_eq!(options.runs_max, Some(0)) };
        assert_eq!(&drawn, one, "model {}: {options:?}", self.seed);
        if self.begin_copies(1, options) {
            let copied = Subject::check(&mut self.copying[..1], &Options { draws: true, ..options.clone() });
            assert_eq!(copied.unwrap().picture, Some(picture.clone()), "model {} copies", self.seed);
        }
        let (census, rules) = (one.census, &one.rules);
        let has_setup = self.machines[0].has_setup();
        assert_eq!(picture.depths.len() as u64, census.states + u64::from(has_setup), "model {}", self.seed);
        let of = |rule| picture.steps.iter().filter(move |step| step.action == Action::Rule(rule));
        for (number, rule) in (0..).zip(rules) {
            assert_eq!(of(number).count() as u64, rule.taken, "model {}, rule {number}", self.seed);
            let depth = of(number).map(|step| picture.depths[step.from as usize] + 1).min();
            assert_eq!(depth, rule.depth, "model {}, rule {number}", self.seed);
            let from: BTreeSet<u32> = of(number).map(|step| step.from).collect();
            assert!(from.len() as u64 <= rule.enabled, "model {}, rule {number}", self.seed);
        }
    }

    /// A check that must come to what was found.
    fn agrees(&mut self, options: &Options, found: &Found, replays: bool) {
        let note = format!("model {}: {options:?}", self.seed);
        let checked =
            self.everywhere(options, replays).unwrap_or_else(|trouble| panic!("{note}: {trouble:?}"));
        assert_eq!(keys(&checked), found.failures, "{note}");
        assert_eq!(checked.limit, found.is_bound.then_some(Limit::Steps), "{note}");
        let is_reentered = options.order == Order::Depth && options.prunes && options.steps_max.is_some();
        if options.reduces {
            if options.prunes && options.steps_max.is_none() && found.failures.is_empty() {
                assert_eq!(checked.census.states, found.states, "{note}");
            }
        } else if is_reentered {
            // Where fewer steps lead to a state it is entered again; it is one state all the same.
            assert_eq!(checked.census.states, found.states, "{note}");
        } else {
            let c = checked.census;
            let counted = (c.runs, c.rejected, c.states, c.pruned, c.steps, c.choices);
            let f = found;
            assert_eq!(counted, (f.runs, f.rejected, f.states, f.pruned, f.steps, f.choices), "{note}");
        }
        for finding in &checked.findings {
            let (replayed, _) = replay(&mut self.machines[0], &finding.trace, false);
            assert_eq!(replayed, Replayed::Failed(Box::new(finding.failure.clone())), "{note}");
        }
    }
}

/// What was kept of a check, each part as bytes. It is always time for the next.
#[derive(Default)]
struct Parts(Mutex<Vec<Vec<u8>>>);

impl Keeper for Parts {
    fn is_due(&self) -> bool {
        true
    }

    fn keep(&self, news: &News) {
        self.0.lock().unwrap().push(postcard::to_stdvec(news).unwrap());
    }
}

impl Parts {
    /// Goes on after the first so many parts, and keeps more.
    fn go_on(
        &self,
        machines: &mut [Machine],
        options: &Options,
        after: usize,
    ) -> Result<Checked, Box<Trouble>> {
        let mut parts = self.0.lock().unwrap();
        let before = parts[..after.min(parts.len())].iter().map(|part| postcard::from_bytes(part).unwrap());
        let before = Box::new(before.collect::<Vec<_>>().into_iter());
        if after == 0 {
            parts.clear();
        }
        drop(parts);
        let keeping = (Some(Keeping { before, keeper: self, helpers: None }), &mut Counts::default());
        check::check_keeping(machines, options, (&|_| None, &mut |_, _| ()), keeping)
    }
}

fn keys(checked: &Checked) -> BTreeSet<String> {
    checked.findings.iter().map(|finding| key(&finding.failure)).collect()
}

/// What was done with a model.
#[derive(Default, Debug)]
struct Tally {
    checked: u64,
    failing: u64,
    reduced: u64,
    wrongly_declared: u64,
    detected: u64,
}

/// Checks one model in every way.
fn check_model(seed: u64, tally: &mut Tally) {
    let mut model = Model::random(seed);
    let all = |model: &Model| {
        let mut naive = Naive { model, met: BTreeSet::new() };
        naive.search(None, true, STATES_MAX).map(|found| (found, naive.met.clone(), naive.pairs()))
    };
    let Some((found, met, [independent, dependent])) = all(&model) else { return };
    // Now and then a pair is declared that is none.
    let wrong = dependent.first().filter(|_| seed.is_multiple_of(4)).copied();
    model.independent = independent.into_iter().chain(wrong).collect();
    let mut subject = Subject::new(seed, &model);
    tally.checked += 1;
    tally.failing += u64::from(!found.failures.is_empty());
    check_properties(&mut subject, &model, &met);
    let replays = seed.is_multiple_of(8);
    for order in ORDERS {
        let options = Options { order, findings_max: 0, ..Options::default() };
        subject.agrees(&options, &found, replays && found.states < 50);
        for steps in 0..4 {
            let options = Options { steps_max: Some(steps), ..options.clone() };
            let mut naive = Naive { model: &model, met: BTreeSet::new() };
            let bounded = naive.search(Some(steps), true, STATES_MAX).expect("it is a part of all states");
            subject.agrees(&options, &bounded, replays);
            if let Some(tree) = naive.search(Some(steps), false, TREE_MAX) {
                let options = Options { prunes: false, ..options.clone() };
                subject.agrees(&options, &tree, replays);
                check_runs(&mut subject, &options, &tree);
                if wrong.is_none() {
                    check_reduced(&mut subject, &Options { reduces: true, ..options }, &tree, tally);
                }
            }
        }
        let reduced = Options { reduces: true, ..options };
        match wrong {
            None => check_reduced(&mut subject, &reduced, &found, tally),
            Some(_) => check_wrong(&mut subject, &reduced, (&found, &dependent), tally),
        }
    }
}

/// What was seen is what can be seen.
fn check_properties(subject: &mut Subject, model: &Model, met: &BTreeSet<usize>) {
    let properties =
        seen(&mut subject.machines[..1], &Options { findings_max: 0, ..Options::default() }).into_iter();
    let seen = properties.filter(|property| property.name.starts_with('p') && property.held > 0);
    let seen: BTreeSet<usize> = seen.map(|property| property.name[1..].parse().unwrap()).collect();
    assert_eq!(&seen, met, "model {}", subject.seed);
    assert!(seen.len() <= model.properties);
}

/// A bound on runs is exact.
fn check_runs(subject: &mut Subject, options: &Options, tree: &Found) {
    for runs in [0, 1, tree.runs / 2, tree.runs] {
        let bounded = Options { runs_max: Some(runs), ..options.clone() };
        let checked = subject.everywhere(&bounded, false).unwrap();
        let note = format!("model {}: {bounded:?}", subject.seed);
        assert!(checked.census.runs <= runs, "{note}: {:?}", checked.census);
        assert!(keys(&checked).is_subset(&tree.failures), "{note}");
        if runs < tree.runs {
            assert_eq!((checked.census.runs, checked.limit), (runs, Some(Limit::Runs)), "{note}");
        }
    }
}

/// With pairs that are independent the verdict is the same.
fn check_reduced(subject: &mut Subject, options: &Options, found: &Found, tally: &mut Tally) {
    tally.reduced += 1;
    subject.agrees(options, found, false);
}

/// With one that is not, the check says so, or comes to what is true.
fn check_wrong(
    subject: &mut Subject,
    options: &Options,
    (found, dependent): (&Found, &[(usize, usize)]),
    tally: &mut Tally,
) {
    tally.wrongly_declared += 1;
    match subject.everywhere(options, false) {
        Ok(checked) => {
            let note = format!("model {}: {options:?}", subject.seed);
            assert!(keys(&checked).is_subset(&found.failures), "{note}");
            assert_eq!(checked.findings.is_empty(), found.failures.is_empty(), "{note}");
        }
        Err(trouble) => {
            let TroubleKind::Dependent { rules: [a, b], .. } = trouble.kind else { panic!("{trouble:?}") };
            let pair = (usize::from(a.min(b)), usize::from(a.max(b)));
            assert!(dependent.contains(&pair), "model {}: {pair:?} commute", subject.seed);
            tally.detected += 1;
        }
    }
}

/// What declaring rules independent that are not came to.
#[derive(Default, Debug)]
struct Declared {
    pairs: u64,
    told: u64,
    /// Not told, and something is not found.
    lost: u64,
}

/// Declares each pair of rules of a model independent that are not.
fn declare(seed: u64, declared: &mut Declared) {
    let mut model = Model::random(seed);
    let mut naive = Naive { model: &model, met: BTreeSet::new() };
    let Some(found) = naive.search(None, true, STATES_MAX) else { return };
    let [_, dependent] = naive.pairs();
    for pair in dependent {
        model.independent = vec![pair];
        let mut subject = Subject::new(seed, &model);
        for order in ORDERS {
            let options = Options { order, findings_max: 0, reduces: true, ..Options::default() };
            declared.pairs += 1;
            match Subject::check(&mut subject.machines[..1], &options) {
                Ok(checked) => {
                    let is_lost = keys(&checked) != found.failures || checked.census.states != found.states;
                    if is_lost {
                        println!("model {seed}, {pair:?}, {order:?}");
                    }
                    declared.lost += u64::from(is_lost);
                }
                Err(trouble) => {
                    assert!(matches!(trouble.kind, TroubleKind::Dependent { .. }), "{trouble:?}");
                    declared.told += 1;
                }
            }
        }
    }
}

/// What judging claims of runs without end came to.
#[derive(Default, Debug)]
struct Judged {
    models: u64,
    kept: u64,
    broken: u64,
    /// A loop of no step.
    stays: u64,
}

/// Judges what is claimed of the runs without end of a model.
fn judge(seed: u64, judged: &mut Judged) {
    let model = Model::random_live(seed);
    let mut naive = Naive { model: &model, met: BTreeSet::new() };
    let Some(found) = naive.search(None, true, STATES_MAX) else { return };
    let Some(broken) = naive.broken() else { return };
    judged.models += 1;
    judged.broken += broken.len() as u64;
    judged.kept += (model.live.len() - broken.len()) as u64;
    let mut subject = Subject::new(seed, &model);
    let note = format!("model {seed}");
    let options = Options { findings_max: 0, ..Options::default() };
    let checked = subject.everywhere(&options, false).unwrap_or_else(|trouble| panic!("{note}: {trouble:?}"));
    let mut expected = found.failures.clone();
    expected.extend(broken.iter().map(|claim| format!("l{claim:03}")));
    assert_eq!((keys(&checked), checked.limit), (expected.clone(), None), "{note}");
    let c = checked.census;
    let counted = (c.runs, c.rejected, c.states, c.pruned, c.steps, c.choices);
    let f = &found;
    assert_eq!(counted, (f.runs, f.rejected, f.states, f.pruned, f.steps, f.choices), "{note}");
    for finding in &checked.findings {
        let (replayed, _) = replay(&mut subject.machines[0], &finding.trace, false);
        assert_eq!(replayed, Replayed::Failed(Box::new(finding.failure.clone())), "{note}");
        if finding.failure.kind == FailureKind::Liveness {
            let steps = finding.trace.steps();
            judged.stays += u64::from(steps[steps.len() - 2].action == Action::Loop);
        }
    }
    for steps in 0..4 {
        let bounded =
            subject.everywhere(&Options { steps_max: Some(steps), ..options.clone() }, false).unwrap();
        assert!(keys(&bounded).is_subset(&expected), "{note}: {steps} steps");
    }
    let depth = Options { order: Order::Depth, ..options };
    let depth = Subject::check(&mut subject.machines[..1], &depth).unwrap();
    assert_eq!((keys(&depth), depth.limit), (found.failures, Some(Limit::Liveness)), "{note}");
}

#[test]
fn claims_of_runs_without_end_are_judged_as_a_naive_interpreter_does() {
    on_guest_stack(|| {
        let mut judged = Judged::default();
        let models =
            std::env::var("SPELUNK_MODELS").map_or(400, |text| text.parse().expect("it is a number"));
        (0..models).for_each(|seed| judge(seed, &mut judged));
        println!("{judged:?}");
        assert!(judged.kept * 5 > judged.models && judged.broken * 5 > judged.models, "{judged:?}");
        assert!(judged.stays > 0 && judged.stays < judged.broken, "{judged:?}");
    });
}

#[test]
fn rules_that_are_wrongly_declared_independent_are_told() {
    on_guest_stack(|| {
        let mut declared = Declared::default();
        (0..400).for_each(|seed| declare(seed, &mut declared));
        println!("{declared:?}");
        assert_eq!(declared.lost, 0, "{declared:?}");
    });
}

#[test]
fn checks_come_to_what_a_naive_interpreter_says() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("it is a number"));
    if let Some(seed) = number("SPELUNK_MODEL") {
        println!("{:#?}\n{}", Model::random(seed), guest::module(&Model::random(seed)));
        return on_guest_stack(|| check_model(seed, &mut Tally::default()));
    }
    let models = number("SPELUNK_MODELS").unwrap_or(MODELS);
    let threads = 2;
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let start = |thread| {
            scope.spawn(move || {
                on_guest_stack(|| {
                    let mut tally = Tally::default();
                    (thread..models).step_by(threads as usize).for_each(|seed| check_model(seed, &mut tally));
                    tally
                })
            })
        };
        let handles: Vec<_> = (0..threads).map(start).collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, Tally>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        handles.into_iter().map(join).collect()
    });
    let sum = |count: fn(&Tally) -> u64| tallies.iter().map(count).sum::<u64>();
    println!("{tallies:?}");
    assert!(sum(|t| t.checked) * 3 > models * 2, "{tallies:?}");
    assert!(sum(|t| t.failing) * 5 > models && sum(|t| t.failing) * 5 < models * 4, "{tallies:?}");
    assert!(sum(|t| t.reduced) > models, "{tallies:?}");
    assert!(sum(|t| t.detected) * 2 > sum(|t| t.wrongly_declared), "{tallies:?}");
}
