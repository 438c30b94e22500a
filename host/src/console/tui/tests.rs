//! What is drawn of a picture made by hand, at several sizes.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::search::{Discovery, Progress, Symptom, SymptomKind};
use crate::session::{CalledRule, Left, Node, Row, View};

/// Colours and clears the screen, turns text around, breaks the line.
const HOSTILE: &str = "\x1b[31mevil\x1b[2J\u{202e}txet\nsecond 漢字";

fn picture() -> Picture {
    let rule = |name: &str, calls, found, discovery, faults: &[[u64; 2]]| Row {
        rule: CalledRule { name: name.to_string(), calls, found, discovery },
        faults: faults.to_vec(),
    };
    let node =
        |id, level, energy| Node { id, level, energy, selected: 3, new_edges: 2, step: 4, run: 10 * id };
    let deep = (10..30).map(|id| node(id, id as usize - 8, 0.5));
    let view = View {
        progress: Progress { runs: 2000, steps: 9000, edges: 40, findings: 2, ..Progress::default() },
        edges: 120,
        left: Left { runs: Some(8000), time: None },
        curve: vec![(0, 0), (1, 12), (40, 25), (300, 38), (900, 40), (2000, 40)],
        nodes: [node(1, 0, 4.0), node(2, 1, 0.25)].into_iter().chain(deep).collect(),
        nodes_left_out: 7,
        faults: vec!["disk_full".to_string(), HOSTILE.to_string()],
        rules: vec![
            rule("open", 1500, 12, Some(Discovery { runs: 700, found: 0 }), &[[20, 1], [0, 0]]),
            rule(HOSTILE, 900, 40, Some(Discovery { runs: 500, found: 4 }), &[[5, 0], [1, 1]]),
            rule("close", 0, 0, None, &[[0, 0], [0, 0]]),
        ],
        rules_left_out: 3,
        findings: vec![
            (900, format!("invariant conserved: {HOSTILE}")),
            (17, "trap: unreachable".to_string()),
        ],
        health: vec![Symptom { kind: SymptomKind::Uncalled, text: "never called: `close`".to_string() }],
        discovery: Some(Discovery { runs: 1000, found: 4 }),
    };
    let mut picture = Picture {
        target: HOSTILE.to_string(),
        progress: "runs 2000 (15k/s)  steps 9000 (70k/s)  edges 40/120 (3 new in the last minute)"
            .to_string(),
        phase: "shrinking: 9 steps left".to_string(),
        view,
        ..Picture::default()
    };
    (0..20).for_each(|line| picture.say(&format!("       Met line {line} {HOSTILE}")));
    picture
}

fn drawn(picture: &mut Picture, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::draw(frame, picture)).unwrap();
    let cells = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| cells[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| row(y).trim_end().to_string() + "\n").collect()
}

fn check(picture: &mut Picture, size: (u16, u16), name: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console/tui/golden").join(name);
    let found = drawn(picture, size);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    assert_eq!(
        found,
        std::fs::read_to_string(&path).unwrap(),
        "{name}: run again with BLESS=1 if this is right"
    );
}

#[test]
fn it_is_drawn_for_screens_of_several_sizes() {
    check(&mut picture(), (200, 50), "wider.txt");
    check(&mut picture(), (140, 40), "wide.txt");
    check(&mut picture(), (80, 24), "usual.txt");
    check(&mut picture(), (40, 12), "small.txt");
    check(&mut picture(), (12, 4), "tiny.txt");
    check(&mut Picture::default(), (100, 24), "empty.txt");
    let mut scrolled = picture();
    scrolled.scroll(5);
    scrolled.view.health.clear();
    check(&mut scrolled, (140, 40), "scrolled.txt");
}

#[test]
fn no_size_is_too_small_and_no_text_gets_through_that_a_terminal_obeys() {
    for width in (1..40).chain([79, 99, 100, 200]) {
        for height in (1..30).chain([60]) {
            for text in
                [drawn(&mut picture(), (width, height)), drawn(&mut Picture::default(), (width, height))]
            {
                let is_unfit = |c: char| c != '\n' && crate::text::line(&c.to_string()) != c.to_string();
                assert!(!text.contains(is_unfit), "{width}x{height}: {text:?}");
            }
        }
    }
}

#[test]
fn scrolling_ends_at_the_first_and_the_last() {
    let mut picture = picture();
    let mut after = |by| {
        picture.scroll(by);
        picture.first
    };
    assert_eq!([after(-1), after(3), after(10), after(-1), after(isize::MAX)], [0, 3, 13, 12, 21]);
    assert_eq!([after(1), after(isize::MIN)], [21, 0]);
    // Where there are fewer now than there were.
    after(isize::MAX);
    picture.view.nodes.truncate(2);
    assert!(drawn(&mut picture, (140, 40)).contains("checkpoints 2 to 2"));
    assert_eq!(picture.first, 1);
}

#[test]
fn a_panic_gives_the_screen_back() {
    restore_on_panic();
    IS_OURS.store(true, Ordering::Relaxed);
    let panics = || {
        let _screen = lock(&SCREEN);
        panic!("as where drawing fails");
    };
    assert!(std::thread::spawn(panics).join().is_err());
    assert!(!IS_OURS.load(Ordering::Relaxed));
}
