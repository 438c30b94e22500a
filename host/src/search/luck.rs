//! What pays: estimates, from what was found lately, of how often something finds what is new.
//!
//! They decide how runs are shared out between what checkpoints are kept for, and how often a run is looked at more closely, as
//! MOpt (Lyu et al., 2019) does between ways to change an input. What finds nothing keeps a small share.

use rand::{Rng, RngExt};

use super::energy::{NEWS, News};
use super::inputs::RUN_WORK;

/// What a try adds to an estimate, at most.
const RATE: f64 = 1.0 / 64.0;
/// The same of what should change only where nothing was found for long.
const SLOW_RATE: f64 = 1.0 / 128.0;
/// What something else than an edge is worth, beside one.
const SHOWN: f64 = 0.25;
/// So many times as many runs start from checkpoints that showed an edge, where both pay alike.
const EDGES: f64 = 3.0;
/// The least share of runs that start from checkpoints which showed something else than edges, and the largest.
const SHARES: (f64, f64) = (0.05, 0.5);
/// An estimate is never taken for less.
const LEAST: f64 = 1e-3;
const SLOW_LEAST: f64 = 1e-5;
/// The same of runs from what a closer look showed: where nothing is found, edges are more likely to come from other edges.
const SHOWN_STARTS_LEAST: f64 = LEAST / 4.0;
const LOWEST: f64 = 1e-12;
/// Below, nothing was found for long.
const BARREN: f64 = 1e-4;
/// Above, something was found often.
const FRUITFUL: f64 = 1.0 / 128.0;
/// A step that is further than this from the last state that was kept, or from the start, is late in its run.
const NEAR: usize = 4;
/// What an edge adds to how often they are found late, and above which runs are longer.
const LATE_RATE: f64 = 1.0 / 16.0;
const LATE: f64 = 0.2;
/// A run takes this part of the time of a closer look, about: of states, and of functions.
const PER_LOOK: [f64; 2] = [1.0 / 32.0, 1.0 / 64.0];
/// Of inputs that a closer look showed so many are looked at as are worth it, divided by this.
const SHOWN_LOOKS: f64 = 8.0;
/// One in so many runs from those is looked at in any case, and of all runs: of states, and of functions.
const SHOWN_LEAST: f64 = 1.0 / 128.0;
const LOOKS_LEAST: [f64; 2] = [1.0 / 1024.0, 1.0 / 4096.0];
/// From a state so many of the first runs are looked at for certain, about, and then fewer and fewer: a state that is the only way on is
/// left by few of them, and what these show would wait for one of the others.
const LOOKED_AT: f64 = 8.0;

/// Closer looks that may be taken at once, and that are added for a run of a state machine. To try what one suggests is a run of one
/// step.
const CREDIT_MAX: f64 = 512.0;
const CREDIT_RATE: f64 = 1.0 / 64.0;
const TRIAL_CREDIT: f64 = 0.05;
/// The share of runs that do so from a state which was selected seldom, how often that is, and the least share.
const TRIALS: f64 = 0.25;
const TRIED: f64 = 256.0;
const TRIALS_LEAST: f64 = 1.0 / 32.0;
/// Closer looks at inputs take this share of the time of runs, at most, where a guest step takes so many times as long, and a look by
/// itself as long as so many guest steps.
const LOOKS_SHARE: f64 = 0.0625;
const LOOK_STEP_WORK: f64 = 100.0;
const LOOK_WORK: f64 = 6000.0;

/// How many estimates there are.
pub const LUCKS: usize = NEWS + 4 + 2 * MOVES + MANNERS;

/// The estimates, each between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Luck {
    /// Of runs from checkpoints, by what those are kept for.
    starts: [f64; NEWS],
    /// Of runs from the start.
    fresh: f64,
    /// Of closer looks.
    looks: f64,
    /// So many closer looks may be taken now.
    credit: f64,
    /// Of edges, how many are found late in runs from states.
    late: f64,
    /// Of ways to change an input.
    moves: [f64; MOVES],
    /// The shares of these and of those before them, of the runs whose turn it is.
    shares: [f64; MOVES],
    /// Of ways to draw the steps of a run.
    manners: [f64; MANNERS],
}

impl Default for Luck {
    fn default() -> Luck {
        // What leads to states that are new finds more than what starts anew, until it is known better.
        let manners = [1.0, 0.0, 0.0, 0.0, 0.0];
        let starts = [1.0; NEWS];
        Luck {
            starts,
            fresh: 0.0,
            looks: 1.0,
            credit: CREDIT_MAX,
            late: 0.0,
            moves: [1.0; MOVES],
            shares: [1.0; MOVES],
            manners,
        }
    }
}

/// A way to change an input of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Anything, anywhere.
    Vary,
    /// What it is compared with takes the place of parts of it.
    Hint,
    /// As with [`Move::Hint`], and then what no longer is equal is changed too.
    Mend,
    /// A comparison of what is computed is solved.
    Solve,
}

/// A way to draw the steps of a run of a state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// From a checkpoint few steps, mostly: what it promises is near.
    Near,
    /// Any number of steps.
    Even,
    /// More than usual.
    Long,
    /// One rule is called more often than others.
    Again,
    /// In each third other rules are left out.
    Phases,
}

/// How many there are, and their order.
const MANNERS: usize = 5;
const ALL_MANNERS: [Manner; MANNERS] =
    [Manner::Near, Manner::Even, Manner::Long, Manner::Again, Manner::Phases];
/// Steps that each takes, beside the others, and the least share of each.
const STEPS: [f64; MANNERS] = [9.0, 25.0, 100.0, 25.0, 25.0];
const PER_STEP: [f64; MANNERS] = [1.0 / 9.0, 1.0 / 25.0, 1.0 / 100.0, 1.0 / 25.0, 1.0 / 25.0];
const MANNERS_LEAST: [f64; MANNERS] = [0.5, 0.02, 0.005, 0.02, 0.02];

/// How many there are, and their order.
const MOVES: usize = 4;
const ALL: [Move; MOVES] = [Move::Vary, Move::Hint, Move::Mend, Move::Solve];
/// What each comes to for what it takes, where all find as much. Some run the second build, and are drawn so seldom that this does not
/// take most of the time.
const PER_COST: [f64; MOVES] = [1.0, 1.0 / 3.0, 1.0 / 1024.0, 1.0 / 256.0];
/// The least share of each.
const MOVES_LEAST: [f64; MOVES] = [0.125, 0.125, 1.0 / 4096.0, 1.0 / 4096.0];
/// From an input that was selected seldom it is not known yet what is compared.
const MOVED_MIN: u64 = 1024;

/// What a run begins with.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    /// What the checkpoint is kept for that it starts from.
    pub(super) start: Option<News>,
    /// How an input is changed.
    pub(super) moved: Option<Move>,
    /// How steps are drawn.
    pub(super) manner: Option<Manner>,
}

impl Luck {
    /// The estimates as they are stored, to the bit.
    pub fn to_bits(self) -> [u64; LUCKS] {
        let mut bits = [0; LUCKS];
        let all = self
            .starts
            .iter()
            .chain([&self.fresh, &self.looks, &self.credit, &self.late])
            .chain(&self.moves)
            .chain(&self.shares)
            .chain(&self.manners);
        for (bits, luck) in bits.iter_mut().zip(all) {
            *bits = luck.to_bits();
        }
        bits
    }

    /// What [`Luck::to_bits`] gave; `None` where it cannot have given that.
    pub fn from_bits(bits: [u64; LUCKS]) -> Option<Luck> {
        let [edges, shown, fresh, looks, credit, late, rest @ ..] = bits.map(f64::from_bits);
        let moves = std::array::from_fn(|at| rest[at]);
        let shares = std::array::from_fn(|at| rest[MOVES + at]);
        let manners = std::array::from_fn(|at| rest[2 * MOVES + at]);
        let luck = Luck { starts: [edges, shown], fresh, looks, credit, late, moves, shares, manners };
        let estimates = luck.starts.iter().chain([&fresh, &looks, &late]).chain(&moves).chain(&manners);
        let mut estimates = estimates.chain(&shares);
        let is_possible = estimates.all(|luck| (0.0..=1.0).contains(luck));
        (is_possible && (-1.0..=CREDIT_MAX).contains(&credit)).then_some(luck)
    }

    /// So many runs of a function follow that change one input, which was selected so often and takes so much work.
    pub(super) fn begin_turn(&mut self, runs: u32, selected: u64, work: u64) {
        let work = work as f64;
        let looks = LOOKS_SHARE * (RUN_WORK + work) / (LOOK_WORK + LOOK_STEP_WORK * work);
        self.credit += f64::from(runs) * looks;
        self.shares = match selected < MOVED_MIN {
            true => [1.0; MOVES],
            false => shares(self.moves.map(|luck| luck.max(LEAST)), PER_COST, MOVES_LEAST),
        };
    }

    /// How the input is changed whose turn it is.
    pub(super) fn draw_move(&self, rng: &mut impl Rng) -> Move {
        ALL[drawn(self.shares, rng)]
    }

    /// How the steps of a run are drawn: as long as short runs find something, it is those.
    pub(super) fn draw_manner(&self, rng: &mut impl Rng) -> Manner {
        if !self.is_barren() {
            return Manner::Near;
        }
        let luck = self.manners.map(|luck| luck.max(SLOW_LEAST));
        ALL_MANNERS[drawn(shares(luck, PER_STEP, MANNERS_LEAST), rng)]
    }

    /// Whether short runs found nothing for long.
    fn is_barren(&self) -> bool {
        self.manners[Manner::Near as usize] < BARREN
    }

    /// Whether short runs find something often.
    pub(super) fn is_fruitful(&self) -> bool {
        self.manners[Manner::Near as usize] > FRUITFUL
    }

    /// Whether much is found late in runs from states.
    pub(super) fn is_late(&self) -> bool {
        self.late > LATE
    }

    /// The share of runs that start anew, which is this as long as short runs find something, and half of it as long as they find much:
    /// those that start anew are long, and seldom get as far.
    pub(super) fn share_of_fresh(&self, least: f64) -> f64 {
        if !self.is_barren() {
            return if self.is_fruitful() { least / 2.0 } else { least };
        }
        let fresh = self.fresh.max(SLOW_LEAST) / STEPS[Manner::Even as usize];
        let guided = self.manners[Manner::Near as usize].max(SLOW_LEAST) / STEPS[Manner::Near as usize];
        (fresh / (fresh + guided)).max(least)
    }

    /// The share of runs from checkpoints that start from those kept for what a closer look showed.
    pub(super) fn share_of_shown(&self) -> f64 {
        let [edges, shown] = self.starts;
        let (edges, shown) = (edges.max(LEAST), shown.max(SHOWN_STARTS_LEAST));
        (shown / (shown + EDGES * edges)).clamp(SHARES.0, SHARES.1)
    }

    /// Whether there is room for a closer look: where all of them show something new they would take all of the time.
    pub(super) fn has_credit(&self) -> bool {
        self.credit >= 1.0
    }

    /// How likely a run is looked at that starts from what is kept for this and was selected so often. One from a state that was
    /// selected seldom is, more likely, and an input that a closer look showed.
    pub(super) fn share_of_looks(&self, is_function: bool, start: Option<(News, u64)>) -> f64 {
        let kind = usize::from(is_function);
        let share = (self.looks * PER_LOOK[kind]).max(LOOKS_LEAST[kind]);
        match (is_function, start) {
            (false, Some((_, selected))) => share.max(LOOKED_AT / (LOOKED_AT + selected as f64)),
            (true, Some((News::Shown, _))) => share.max(self.looks / SHOWN_LOOKS).max(SHOWN_LEAST),
            _ => share,
        }
    }

    /// How likely a run from a state that was selected so often only tries what a closer look of it suggests.
    pub(super) fn share_of_trials(selected: u64) -> f64 {
        (TRIALS * TRIED / selected.max(1) as f64).clamp(TRIALS_LEAST, TRIALS)
    }

    /// A run starts, from a checkpoint or not, and will be looked at or not; so far it found nothing. Of a state machine it adds
    /// credit.
    pub(super) fn tried(&mut self, begun: Begun, (is_looked_at, is_trial): (bool, bool), is_function: bool) {
        let Begun { start, moved, manner } = begun;
        if let Some(manner) = manner {
            lower(&mut self.manners[manner as usize], SLOW_RATE);
        }
        if start.is_none() {
            lower(&mut self.fresh, SLOW_RATE);
        }
        if let Some(moved) = moved {
            lower(&mut self.moves[moved as usize], RATE);
        }
        if let Some(news) = start {
            lower(&mut self.starts[news as usize], RATE);
        }
        if is_looked_at {
            lower(&mut self.looks, RATE);
        }
        let taken = if is_looked_at { 1.0 } else { 0.0 } + if is_trial { TRIAL_CREDIT } else { 0.0 };
        let credit = if is_function { 0.0 } else { CREDIT_RATE };
        self.credit = (self.credit + credit - taken).min(CREDIT_MAX);
    }

    /// A run found this.
    pub(super) fn found(&mut self, begun: Begun, news: News) {
        let Begun { start, moved, manner } = begun;
        if let (Some(moved), News::Edges) = (moved, news) {
            add(&mut self.moves[moved as usize], RATE);
        }
        let worth = if news == News::Edges { RATE } else { RATE * SHOWN };
        match start {
            Some(start) => add(&mut self.starts[start as usize], worth),
            None => add(&mut self.fresh, worth * SLOW_RATE / RATE),
        }
        if let Some(manner) = manner {
            add(&mut self.manners[manner as usize], worth * SLOW_RATE / RATE);
        }
    }

    /// A run from a state found an edge so many steps after the last state that was kept.
    pub(super) fn reached(&mut self, steps: usize) {
        lower(&mut self.late, LATE_RATE);
        if steps > NEAR {
            add(&mut self.late, LATE_RATE);
        }
    }

    /// A closer look found something.
    pub(super) fn looked(&mut self) {
        add(&mut self.looks, RATE);
    }
}

/// Lowers an estimate, but not to where a processor multiplies slowly.
fn lower(luck: &mut f64, rate: f64) {
    *luck = (*luck * (1.0 - rate)).max(LOWEST);
}

/// Adds to an estimate.
fn add(luck: &mut f64, worth: f64) {
    *luck = (*luck + worth).min(1.0);
}

/// The shares of several and of those before them, by what each found and what that is worth, none less than its least.
fn shares<const N: usize>(luck: [f64; N], worth: [f64; N], least: [f64; N]) -> [f64; N] {
    let weights: [f64; N] = std::array::from_fn(|at| luck[at] * worth[at]);
    let scale = 1.0 / weights.iter().sum::<f64>();
    let mut sums: [f64; N] = std::array::from_fn(|at| (weights[at] * scale).max(least[at]));
    (1..N).for_each(|at| sums[at] += sums[at - 1]);
    sums.map(|sum| sum / sums[N - 1])
}

/// One of several with such shares.
fn drawn<const N: usize>(shares: [f64; N], rng: &mut impl Rng) -> usize {
    let drawn: f64 = rng.random();
    // Without a branch: which it is cannot be predicted. None is above the last.
    shares[..N - 1].iter().map(|share| usize::from(drawn >= *share)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_that_cannot_be_are_not_taken_over() {
        let mut luck = Luck::default();
        let begun = Begun { start: Some(News::Edges), moved: Some(Move::Hint), manner: Some(Manner::Near) };
        for _ in 0..10_000 {
            luck.begin_turn(2, MOVED_MIN, 100);
            luck.tried(begun, (luck.has_credit(), luck.has_credit()), true);
            luck.found(begun, News::Edges);
            luck.found(begun, News::Shown);
            luck.looked();
            luck.reached(NEAR + 1);
            assert_eq!(Luck::from_bits(luck.to_bits()), Some(luck));
        }
        for at in 0..LUCKS {
            for damaged in [f64::NAN, f64::INFINITY, -2.0, 1e9] {
                let mut bits = luck.to_bits();
                bits[at] = damaged.to_bits();
                assert_eq!(Luck::from_bits(bits), None);
            }
        }
    }
}
