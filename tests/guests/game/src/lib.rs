//! The harness of a sliding puzzle: which moves are legal depends on the board, and so on all moves before.

#![forbid(unsafe_code)]

mod board;

use spelunk_guest::prelude::*;

use board::{Board, Slide};

#[derive(Default)]
struct Game {
    board: Board,
}

#[harness]
impl Game {
    #[steps]
    fn steps(&self) -> impl Strategy<Value = Slide> {
        sampled_from(self.board.legal())
    }

    #[execute]
    fn execute(&mut self, step: Slide) {
        assert!(self.board.neighbour(step).is_some(), "{step:?} is illegal");
        self.board.slide(step);
        note!("{:?}", self.board);
    }

    /// The board knows where its gap is.
    #[invariant]
    fn gap_is_known(&self) {
        let found = self.board.find_gap();
        assert!(found == self.board.gap, "the gap is at {found}, expected {}", self.board.gap);
    }
}
