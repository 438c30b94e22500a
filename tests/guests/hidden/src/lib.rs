//! States that no edge shows: what was reached is a number in memory, on which no branch depends until the end. The rules of one
//! game begin with its name; each is played by itself.

use std::hint::black_box;

use spelunk_guest::prelude::*;

/// The keys of the locks, which no instruction names.
static KEYS: [u8; 32] = [
    203, 17, 94, 251, 66, 140, 8, 179, 35, 222, 113, 59, 187, 4, 240, 77, 131, 26, 165, 98, 214, 51, 149, 12,
    233, 86, 120, 43, 194, 71, 158, 229,
];

/// A maze of which each wall sends back to the start.
const TRAPS: [&[u8; 16]; 10] = [
    b"################",
    b"#  ###     #####",
    b"## ### ### #####",
    b"##     ### #####",
    b"########## #####",
    b"#          #####",
    b"# ##############",
    b"#            ###",
    b"############  *#",
    b"################",
];

/// One of which the walls hold nobody up for long, and that is wide.
const ROOMS: [&[u8; 24]; 12] = [
    b"########################",
    b"#      #       #       #",
    b"#      #   #   #   #   #",
    b"#  #   #   #   #   #   #",
    b"#  #   #   #   #   #   #",
    b"#  #       #       #   #",
    b"#  #########  ######   #",
    b"#          #  #        #",
    b"########   #  #   ######",
    b"#      #   #  #        #",
    b"# *        #      #    #",
    b"########################",
];

#[derive(Default)]
struct Node {
    key: u16,
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
}

#[derive(Default)]
struct Hidden {
    short: usize,
    long: usize,
    traps: Option<(usize, usize)>,
    rooms: Option<(usize, usize)>,
    stack: Vec<u8>,
    tree: Option<Box<Node>>,
    level: u32,
}

/// How many keys were right, after this one.
fn turn(turned: usize, key: u8) -> usize {
    let is_right = KEYS[turned % KEYS.len()] == key;
    // Without a branch.
    black_box(usize::from(is_right)) * (turned + 1)
}

fn moved((x, y): (usize, usize), direction: u8) -> (usize, usize) {
    let dx = [0, 1, 0, -1][usize::from(direction)];
    let dy = [-1, 0, 1, 0][usize::from(direction)];
    (x.wrapping_add_signed(dx), y.wrapping_add_signed(dy))
}

#[harness]
impl Hidden {
    #[rule]
    fn short_turn(&mut self, key: u8) {
        self.short = turn(self.short, key);
        assert!(self.short < 12);
    }

    #[rule]
    fn long_turn(&mut self, key: u8) {
        self.long = turn(self.long, key);
        assert!(self.long < 32);
    }

    #[rule]
    fn traps_walk(&mut self, #[draw(0..=3)] direction: u8) {
        let next = moved(self.traps.unwrap_or((1, 1)), direction);
        let place = TRAPS[next.1][next.0];
        assert!(place != b'*');
        self.traps = Some(if place == b' ' { next } else { (1, 1) });
    }

    #[rule]
    fn rooms_walk(&mut self, #[draw(0..=3)] direction: u8) {
        let at = self.rooms.unwrap_or((1, 1));
        let next = moved(at, direction);
        let place = ROOMS[next.1][next.0];
        assert!(place != b'*');
        self.rooms = Some(if place == b' ' { next } else { at });
    }

    #[rule]
    fn stack_push(&mut self, value: u8) {
        self.stack.push(value);
        assert!(self.stack.len() < 100);
    }

    #[rule]
    fn stack_pop(&mut self) {
        self.stack.pop();
    }

    #[rule]
    fn tree_insert(&mut self, key: u16) {
        let (mut place, mut depth) = (&mut self.tree, 0);
        while let Some(node) = place {
            place = if key < node.key { &mut node.left } else { &mut node.right };
            depth += 1;
        }
        *place = Some(Box::new(Node { key, ..Node::default() }));
        assert!(depth < 24);
    }

    #[rule]
    fn tree_clear(&mut self) {
        self.tree = None;
    }

    #[rule]
    fn level_up(&mut self) {
        self.level += 1;
        assert!(self.level < 60);
    }

    #[rule]
    fn level_down(&mut self) {
        self.level /= 2;
    }
}
