//! Turns: runs in a row that change one input of a function. To change what was just changed takes less than to select another, and to
//! read that from where it lies.

use serde::{Deserialize, Serialize};

use super::energy::Checkpoints;
use super::inputs::RUN_WORK;

/// Runs in a turn, at most.
const TURN_MAX: u32 = 64;

/// An input from which runs in a row start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Its index.
    pub index: usize,
    /// How many more runs do.
    pub left: u32,
}

/// A checkpoint that a run starts from.
#[derive(Clone, Copy)]
pub struct Selected {
    /// Its index.
    pub index: usize,
    /// The energy that it had.
    pub(super) energy: f64,
    /// So many runs were counted for it: a turn, or none where one goes on.
    pub(super) runs: u32,
    /// The turn that there was.
    pub(super) turn: Option<Turn>,
}

impl<S> Checkpoints<S> {
    /// The turn that is not over.
    pub fn turn(&self) -> Option<Turn> {
        self.turn
    }

    /// Goes on with a turn; one that cannot be is over.
    pub fn set_turn(&mut self, turn: Option<Turn>) {
        let can_be = |turn: &Turn| turn.index < self.list.len() && (1..=TURN_MAX).contains(&turn.left);
        self.turn = turn.filter(can_be).filter(|_| self.is_function);
    }

    /// Begins a turn, which has a run or more; a state has one. How many.
    pub(super) fn begin_turn(&mut self, index: usize) -> u32 {
        let share = RUN_WORK / (RUN_WORK + self.list[index].work as f64);
        // Where a run takes long, to select is nothing.
        let more = if self.is_function { (f64::from(TURN_MAX) * share) as u32 } else { 0 };
        self.turn = (more > 0).then_some(Turn { index, left: more });
        more + 1
    }

    /// The input whose turn it is, where it is one's.
    pub(super) fn go_on(&mut self) -> Option<Selected> {
        let turn = self.turn?;
        let Turn { index, left } = turn;
        self.turn = (left > 1).then_some(Turn { index, left: left - 1 });
        Some(Selected { index, energy: self.list[index].energy, runs: 0, turn: Some(turn) })
    }

    /// Takes back that a selection found nothing.
    pub fn take_back_energy(&mut self, selected: &Selected) {
        self.list[selected.index].energy = selected.energy;
        self.weigh(selected.index);
    }

    /// Takes back a selection, the last one that was made.
    pub fn take_back(&mut self, selected: &Selected) {
        self.list[selected.index].selected -= u64::from(selected.runs);
        self.turn = selected.turn;
        self.take_back_energy(selected);
    }
}
