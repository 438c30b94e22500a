//! What a copy of a harness hides, or shows alone, is not believed.

use std::path::Path;
use std::sync::Arc;

use spelunk::check::{self, TroubleKind};
use spelunk::machine::{Machine, Program, on_guest_stack};
use spelunk::session::{Caching, Config, Keep, Session, Verdict};
use spelunk::target::Target as _;
use spelunk_tests::checks::{default_options, machines, program};

use crate::copies::{PATH, without};

/// Why a check of a guest that can copy its states is made without that.
fn why_without(program: &Arc<Program>) -> &'static str {
    let mut machines: Vec<Machine> = machines(program, 1);
    assert!(machines[0].begin_copies(), "the guest can copy its states");
    match check::check(&mut machines, &default_options(program), &|_| None, &mut |_, _| ()) {
        Err(trouble) => match trouble.kind {
            TroubleKind::Without(why) => why,
            TroubleKind::Copies => "they differ",
            _ => panic!("{trouble:?}"),
        },
        Ok(checked) => panic!("{checked:?}"),
    }
}

/// A copy shares what is behind an `Rc`, so that nobody has it alone.
#[test]
fn who_shares_something_is_not_copied() {
    on_guest_stack(|| {
        for features in [&["owned"][..], &["owned", "told"]] {
            let program = program(PATH, features);
            assert_eq!(why_without(&program), "since what is behind an `Rc` or `Arc` counts who shares it");
            assert_eq!(without(&program).findings.len(), 1);
        }
    });
}

/// What is seen of copies alone counts neither as seen nor as never seen.
#[test]
fn what_copies_show_or_hide_is_not_believed() {
    on_guest_stack(|| {
        assert_eq!(why_without(&program(PATH, &["spare", "cloned"])), "they differ");
    });
    // What is not seen is looked for without copies.
    let folder = tempfile::tempdir().unwrap();
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/copies");
    let config = Config {
        out: folder.path().into(),
        guest_features: vec!["spare".into()],
        keep: Keep::Findings,
        cache: Caching::Off,
        ..Config::check()
    };
    let summary = Session::open(&target).unwrap().config(config).run(&mut ()).unwrap();
    assert_eq!(summary.verdict, Verdict::Passed);
}
