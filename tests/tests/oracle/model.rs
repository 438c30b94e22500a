//! A small random model, as data: cells of many kinds, rules with preconditions, faults, invariants, setup and teardown.

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// Where a value is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// In memory 0, across the border of two pages.
    First(u32),
    /// In the second memory.
    Second(u32),
    Global,
    /// As the function that stands in this slot of a table.
    Slot(u32),
    /// As the size of the second memory, which only grows.
    Size,
}

/// A number below `values`.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) place: Place,
    pub(super) values: u32,
    pub(super) start: u32,
}

#[derive(Clone, Debug)]
pub(super) enum Expr {
    Const(u32),
    Cell(usize),
    /// A cell's value and a constant.
    Sum(usize, u32),
    /// A drawn index.
    Index(u32),
    /// A drawn integer from -1 to this; with 1 added.
    Integer(u32),
    /// Among as many as a cell says; a deadlock at this site where that is none.
    Among(usize, usize),
}

#[derive(Clone, Debug)]
pub(super) enum Cond {
    Below(usize, u32),
    Is(usize, u32),
    Fault(usize),
    Flip,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Wrong {
    Trap,
    Fail,
    Panic,
    Always,
    Unreachable,
}

#[derive(Clone, Debug)]
pub(super) enum Stmt {
    Set(usize, Expr),
    If(Cond, Vec<Stmt>),
    /// Goes wrong, at this site.
    Wrong(usize, Wrong),
    Reject,
    Grow,
    /// The property of this number.
    Sometimes(usize, Cond),
}

/// A precondition. It may write to a cell, which counts up to its end.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub(super) counts: Option<usize>,
    pub(super) fails: Option<(Cond, usize)>,
    pub(super) holds: Cond,
}

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) guard: Option<Guard>,
    pub(super) body: Vec<Stmt>,
}

#[derive(Clone, Debug)]
pub(super) struct Invariant {
    pub(super) holds: Cond,
    pub(super) traps: bool,
}

/// What is claimed of runs without end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Claim {
    Eventually,
    AlwaysEventually,
    LeadsTo,
}

#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) claim: Claim,
    pub(super) from: Cond,
    pub(super) to: Cond,
}

/// How surely a rule is called.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fair {
    pub(super) is_strong: bool,
    pub(super) is_unfair: bool,
    /// In each way to answer its choices.
    pub(super) is_each: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) cells: Vec<Cell>,
    pub(super) rules: Vec<Rule>,
    /// What happens as each is toggled.
    pub(super) faults: Vec<Vec<Stmt>>,
    pub(super) invariants: Vec<Invariant>,
    pub(super) setup: Option<Vec<Stmt>>,
    pub(super) teardown: Option<Vec<Stmt>>,
    /// Where a run may end although no rule may be called.
    pub(super) terminal: Option<Cond>,
    /// Sites that were given out.
    pub(super) sites: usize,
    pub(super) properties: usize,
    /// It says what its state is, and leaves this cell out.
    pub(super) forgets: Option<usize>,
    /// It copies its states.
    pub(super) copies: bool,
    /// Pairs of rules that are declared independent.
    pub(super) independent: Vec<(usize, usize)>,
    pub(super) live: Vec<Live>,
    /// Of each rule, where anything is claimed of runs without end.
    pub(super) fair: Vec<Fair>,
}

/// Draws a model.
struct Drawing {
    rng: Xoshiro256PlusPlus,
    model: Model,
}

impl Model {
    pub(super) fn random(seed: u64) -> Model {
        let model = Model {
            cells: Vec::new(),
            rules: Vec::new(),
            faults: Vec::new(),
            invariants: Vec::new(),
            setup: None,
            teardown: None,
            terminal: None,
            sites: 0,
            properties: 0,
            forgets: None,
            copies: false,
            independent: Vec::new(),
            live: Vec::new(),
            fair: Vec::new(),
        };
        let mut drawing = Drawing { rng: Xoshiro256PlusPlus::seed_from_u64(seed), model };
        drawing.draw();
        drawing.model.terminal = match seed % 3 {
            0 => None,
            1 => Some(drawing.pure()),
            _ => Some(Cond::Below(0, u32::MAX)),
        };
        drawing.model
    }

    /// A random model of which something is claimed of runs without end.
    pub(super) fn random_live(seed: u64) -> Model {
        let rng = Xoshiro256PlusPlus::seed_from_u64(!seed);
        let mut drawing = Drawing { rng, model: Model::random(seed) };
        for _ in 0..drawing.rng.random_range(1..=3) {
            let claims = [Claim::Eventually, Claim::AlwaysEventually, Claim::LeadsTo];
            let claim = *claims.choose(&mut drawing.rng).expect("there are some");
            let live = Live { claim, from: drawing.pure(), to: drawing.pure() };
            drawing.model.live.push(live);
        }
        for _ in 0..drawing.model.rules.len() {
            let (is_unfair, is_strong) = (drawing.chance(4), drawing.chance(3));
            let is_each = drawing.chance(3);
            drawing.model.fair.push(Fair { is_unfair, is_strong: is_strong && !is_unfair, is_each });
        }
        drawing.model
    }

    pub(super) fn has_size(&self) -> bool {
        self.cells.iter().any(|cell| cell.place == Place::Size)
    }
}

impl Drawing {
    fn chance(&mut self, one_in: u32) -> bool {
        self.rng.random_range(0..one_in) == 0
    }

    fn draw(&mut self) {
        for index in 0..self.rng.random_range(1..=4u32) {
            let values = self.rng.random_range(2..=4);
            let place = match self.rng.random_range(0..9) {
                0..3 => Place::First(index),
                3..5 => Place::Second(index),
                5..7 => Place::Global,
                7 => Place::Slot(index),
                _ if self.model.has_size() => Place::Global,
                _ => Place::Size,
            };
            let (values, start) =
                if place == Place::Size { (3, 0) } else { (values, self.rng.random_range(0..values)) };
            self.model.cells.push(Cell { place, values, start });
        }
        let faults = self.rng.random_range(0..4u32).saturating_sub(1) as usize;
        self.model.faults = vec![Vec::new(); faults];
        for fault in 0..faults {
            if self.chance(2) {
                self.model.faults[fault] = self.body(1);
            }
        }
        for _ in 0..self.rng.random_range(1..=4) {
            let guard = if self.chance(2) { Some(self.guard()) } else { None };
            let body = self.body(2);
            self.model.rules.push(Rule { guard, body });
        }
        for _ in 0..self.rng.random_range(0..5u32).saturating_sub(2) {
            let holds = match self.rng.random_range(0..6) {
                0 => Cond::Flip,
                1 => self.cond(),
                // Seldom wrong.
                _ => {
                    let cell = self.cell();
                    Cond::Below(cell, self.model.cells[cell].values - self.rng.random_range(0..2))
                }
            };
            let traps = self.chance(2);
            self.model.invariants.push(Invariant { holds, traps });
        }
        if self.chance(3) {
            self.model.setup = Some(self.body(2));
        }
        if self.chance(3) {
            self.model.teardown = Some(self.body(2));
        }
    }

    fn cell(&mut self) -> usize {
        self.rng.random_range(0..self.model.cells.len())
    }

    /// One that can be set.
    fn settable(&mut self) -> Option<usize> {
        let cells = self.model.cells.iter().enumerate();
        let settable: Vec<usize> =
            cells.filter(|(_, cell)| cell.place != Place::Size).map(|(index, _)| index).collect();
        settable.choose(&mut self.rng).copied()
    }

    fn site(&mut self) -> usize {
        self.model.sites += 1;
        self.model.sites - 1
    }

    fn guard(&mut self) -> Guard {
        let counts = if self.chance(4) { self.settable() } else { None };
        let fails = self.chance(12).then(|| (self.pure(), self.site()));
        Guard { counts, fails, holds: self.pure() }
    }

    /// A condition that draws nothing.
    fn pure(&mut self) -> Cond {
        match self.cond() {
            Cond::Flip => Cond::Is(0, 0),
            cond => cond,
        }
    }

    fn cond(&mut self) -> Cond {
        let cell = self.cell();
        let values = self.model.cells[cell].values;
        match self.rng.random_range(0..10) {
            0 => Cond::Flip,
            1..3 if !self.model.faults.is_empty() => {
                Cond::Fault(self.rng.random_range(0..self.model.faults.len()))
            }
            3..7 => Cond::Below(cell, self.rng.random_range(1..=values)),
            _ => Cond::Is(cell, self.rng.random_range(0..values)),
        }
    }

    fn expr(&mut self) -> Expr {
        let cell = self.cell();
        match self.rng.random_range(0..14) {
            0..3 => Expr::Const(self.rng.random_range(0..4)),
            3..5 => Expr::Cell(cell),
            5..10 => Expr::Sum(cell, self.rng.random_range(1..3)),
            10..12 => Expr::Index(self.rng.random_range(1..=3)),
            12 => Expr::Integer(self.rng.random_range(0..2)),
            _ => Expr::Among(cell, self.site()),
        }
    }

    fn body(&mut self, depth: u32) -> Vec<Stmt> {
        (0..self.rng.random_range(1..=3)).map(|_| self.stmt(depth)).collect()
    }

    fn stmt(&mut self, depth: u32) -> Stmt {
        match self.rng.random_range(0..20) {
            0..5 if depth > 0 => Stmt::If(self.cond(), self.body(depth - 1)),
            // Mostly below a condition, or all runs would end there.
            5 if depth < 2 => {
                let wrong = [Wrong::Trap, Wrong::Fail, Wrong::Panic, Wrong::Always, Wrong::Unreachable];
                let wrong = *wrong.choose(&mut self.rng).expect("there are some");
                Stmt::Wrong(self.site(), wrong)
            }
            6 if depth < 2 => Stmt::Reject,
            7..9 if self.model.has_size() => Stmt::Grow,
            9 => {
                self.model.properties += 1;
                Stmt::Sometimes(self.model.properties - 1, self.pure())
            }
            _ => match self.settable() {
                Some(cell) => Stmt::Set(cell, self.expr()),
                None => Stmt::Grow,
            },
        }
    }
}
