//! Eight tiles in a square of nine places.

use std::fmt;

const WIDTH: usize = 3;
const PLACES: usize = WIDTH * WIDTH;

/// What stands where no tile is.
const GAP: u8 = 0;

/// The tiles row by row.
pub(crate) struct Board {
    tiles: [u8; PLACES],
    /// Where no tile is, so that nobody has to look for it.
    pub(crate) gap: usize,
}

/// Where the gap goes, as the tile that is there slides into it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slide {
    Up,
    Left,
    Right,
    Down,
}

impl Slide {
    const ALL: [Slide; 4] = [Slide::Up, Slide::Left, Slide::Right, Slide::Down];
}

/// The gap is in the first place.
impl Default for Board {
    fn default() -> Board {
        Board { tiles: std::array::from_fn(|place| place as u8), gap: 0 }
    }
}

impl Board {
    /// The moves that are possible now; there are always two at least.
    pub(crate) fn legal(&self) -> Vec<Slide> {
        Slide::ALL.into_iter().filter(|slide| self.neighbour(*slide).is_some()).collect()
    }

    /// The place to which the gap would go, if it is on the board.
    pub(crate) fn neighbour(&self, slide: Slide) -> Option<usize> {
        let (row, column) = (self.gap / WIDTH, self.gap % WIDTH);
        match slide {
            Slide::Up => (row > 0).then(|| self.gap - WIDTH),
            Slide::Left => (column > 0).then(|| self.gap - 1),
            Slide::Right => (column + 1 < WIDTH).then(|| self.gap + 1),
            Slide::Down => (row + 1 < WIDTH).then(|| self.gap + WIDTH),
        }
    }

    /// Makes a legal move.
    pub(crate) fn slide(&mut self, slide: Slide) {
        let from = self.neighbour(slide).expect("the move is legal");
        self.tiles.swap(self.gap, from);
        // The bug: a gap that leaves the last place upwards is still looked for there.
        let is_forgotten = self.gap == PLACES - 1 && matches!(slide, Slide::Up);
        if !is_forgotten {
            self.gap = from;
        }
    }

    /// Where the gap really is.
    pub(crate) fn find_gap(&self) -> usize {
        self.tiles.iter().position(|tile| *tile == GAP).expect("no tile is ever lost")
    }
}

/// As `_12/345/678`.
impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (place, tile) in self.tiles.iter().enumerate() {
            if place > 0 && place % WIDTH == 0 {
                f.write_str("/")?;
            }
            match *tile {
                GAP => f.write_str("_")?,
                tile => write!(f, "{tile}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_moves_and_the_tiles_make_room() {
        let mut board = Board::default();
        assert_eq!(format!("{:?} {:?}", board.legal(), board), "[Right, Down] _12/345/678");
        board.slide(Slide::Down);
        board.slide(Slide::Right);
        assert_eq!(format!("{board:?}"), "312/4_5/678");
        assert_eq!((board.gap, board.find_gap(), board.legal().len()), (4, 4, 4));
    }
}
