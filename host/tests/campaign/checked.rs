//! Checks that are ended at any moment go on where they were, and come to what they come to at once.

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::place::{Place, Ran, files, number};

/// Three counters up to 40; the first is set out once. One of them may skip a number. Steps make choices without alternatives, so that
/// they take memory.
const GUEST: &str = r#"(module
  (import "spelunk" "reachable" (func $reachable (param i32 i32)))
  (import "spelunk" "boolean" (func $boolean (param f64) (result i32)))
  (import "spelunk" "index" (func $index (param i32) (result i32)))
  (memory 1) (data (i32.const 16) "first")
  (global $a (mut i32) (i32.const -1)) (global $b (mut i32) (i32.const 0)) (global $c (mut i32) (i32.const 0))
  (func $is_set (export "precondition:a") (export "precondition:b") (export "precondition:c") (result i32)
    (i32.ge_s (global.get $a) (i32.const 0)))
  (func $next (param $at i32) (result i32) (local $choices i32)
    (loop $again
      (drop (call $index (i32.const 1)))
      (local.set $choices (i32.add (local.get $choices) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $choices) (i32.const 12))))
    (i32.rem_u (i32.add (local.get $at) (i32.const 1)) (i32.const 40)))
  (func (export "precondition:start") (result i32) (i32.eqz (call $is_set)))
  (func (export "rule:start") (call $reachable (i32.const 16) (i32.const 5)) (global.set $a (i32.const 0)))
  (func (export "rule:a") (global.set $a (call $next (global.get $a))))
  (func (export "rule:b")
    (global.set $b (call $next (i32.add (global.get $b) (call $boolean (f64.const 0.5)))))
    (if (i32.and (i32.eq (global.get $b) (i32.const 7)) (i32.eq (global.get $c) (i32.const 9))) (then FAILS)))
  (func (export "rule:c") (global.set $c (call $next (global.get $c)))))"#;
const STATES: u64 = 40 * 40 * 40 + 1;

pub(crate) fn place(name: &str, fails: bool) -> Place {
    let place = Place::new(name);
    let guest = GUEST.replace("FAILS", if fails { "unreachable" } else { "" });
    std::fs::write(place.path("guest.wat"), guest).unwrap();
    place
}

/// What is kept, where something is.
fn kept(place: &Place) -> Option<PathBuf> {
    let folder = place.path(".spelunk/guest.wat");
    if !folder.exists() {
        return None;
    }
    let name = files(&folder).into_keys().find(|name| name.ends_with(".kept"));
    name.map(|name| folder.join(name))
}

/// What a check came to, but for the time that it took.
pub(crate) fn result(ran: &Ran) -> Value {
    let mut end = ran.event("end");
    let fields = end.as_object_mut().unwrap();
    fields.remove("seconds");
    fields.remove("saved");
    end
}

/// Checks with ever more room for states, so that it is kept in parts, and stops before it is complete.
fn check_in_parts(place: &Place, parts: u64) -> Vec<u8> {
    for mib in 1..=parts {
        let ran = place.run(&format!("check guest.wat --json --memory {mib}"));
        let end = ran.event("end");
        assert_eq!((&end["limit"], &end["kept"]), (&"memory".into(), &true.into()), "{mib}: {}", ran.err);
        assert_eq!(mib > 1, ran.err.contains("Resumed the check at"), "{}", ran.err);
        assert_eq!(mib > 1, ran.out.contains(r#""type":"resumed""#), "{}", ran.out);
    }
    std::fs::read(kept(place).unwrap()).unwrap()
}

/// A file is as long as it was when the process was killed.
#[test]
fn a_check_that_is_killed_at_any_moment_comes_to_what_it_does_at_once() {
    for fails in [false, true] {
        let place = place(if fails { "killed-failing" } else { "killed-passing" }, fails);
        let at_once = place.run("check guest.wat --json --in-memory");
        let expected = result(&at_once);
        let counts = (number(&expected["states"]), number(&expected["findings"]), &expected["verdict"]);
        assert!(kept(&place).is_none(), "nothing is kept in memory");
        let verdict = if fails { "fails" } else { "holds" };
        assert_eq!(counts, (STATES, u64::from(fails), &verdict.into()));
        drop(std::fs::remove_dir_all(place.path(".spelunk")));
        let whole = check_in_parts(&place, 4);
        let path = kept(&place).unwrap();
        let mut resumed = 0;
        for moment in 0..=50 {
            std::fs::write(&path, &whole[..whole.len() * moment / 50]).unwrap();
            let ran = place.run(&format!("check guest.wat --json --workers {}", 1 + moment % 3));
            resumed += u32::from(ran.err.contains("Resumed the check at"));
            assert_eq!(result(&ran), expected, "{moment}: {}", ran.err);
            assert_eq!(ran.exit, at_once.exit, "{moment}");
            assert!(kept(&place).is_none(), "it is complete");
        }
        // The first of the four parts is not whole before.
        assert!(resumed > 35, "{resumed}");
    }
}

#[test]
fn a_check_that_is_killed_goes_on() {
    let place = Place::new("killed-checking");
    let guest = GUEST.replace("FAILS", "").replace("(i32.const 40)", "(i32.const 200)");
    std::fs::write(place.path("guest.wat"), guest).unwrap();
    let len = || kept(&place).and_then(|path| path.metadata().ok()).map_or(0, |metadata| metadata.len());
    let mut before = 0;
    for kill in 0..2 {
        let mut check = place.start("check guest.wat --workers 1", &place.path("out"));
        while len() <= before.max(100) {
            assert!(check.try_wait().unwrap().is_none(), "{kill}: it goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
        // Long enough for the part to be whole, and not for the next.
        std::thread::sleep(Duration::from_millis(500));
        check.kill().unwrap();
        check.wait().unwrap();
        before = len();
    }
    let ran = place.run("check guest.wat --time 1s --json");
    assert!(ran.err.contains("Resumed the check at"), "{}", ran.err);
    assert!(number(&ran.event("end")["states"]) > 100_000);
}

#[test]
fn a_check_whose_states_do_not_fit_in_memory_comes_to_the_same() {
    let place = Place::new("beside-memory");
    let guest = GUEST.replace("FAILS", "").replace("(i32.const 12)", "(i32.const 1)");
    std::fs::write(place.path("guest.wat"), guest).unwrap();
    let expected = result(&place.run("check guest.wat --json --in-memory"));
    assert_eq!((&expected["verdict"], number(&expected["states"])), (&"holds".into(), STATES));
    let nowhere = place.run("check guest.wat --json --in-memory --memory 3").exits(3);
    assert_eq!(nowhere.event("end")["limit"], "memory");
    let folder = place.path(".spelunk/guest.wat");
    for words in ["--memory 3", "--memory 3 --workers 2", "--memory 1", "--memory 3"] {
        let ran = place.run(&format!("check guest.wat --json {words}"));
        match words {
            "--memory 1" => assert_eq!(ran.event("end")["limit"], "memory"),
            _ => {
                assert_eq!(result(&ran), expected, "{words}");
                assert_eq!(files(&folder).into_keys().collect::<Vec<_>>(), [""; 0], "{words}");
            }
        }
    }
}

/// Who else could write such a file could have it say that all states were looked at.
#[test]
fn what_somebody_else_wrote_is_not_believed() {
    let place = place("forged", true);
    let whole = check_in_parts(&place, 3);
    let path = kept(&place).unwrap();
    let expected = result(&place.run("check guest.wat --json --in-memory"));
    let check = |why: &str, words: &str| {
        let ran = place.run(&format!("check guest.wat --json {words}"));
        assert_eq!(result(&ran)["verdict"], "fails", "{why}");
        assert_eq!(result(&ran)["states"], expected["states"], "{why}");
        assert!(ran.err.contains(why), "{why} in {}", ran.err);
    };
    for at in [0, 20, 40, 70] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        check("the check begins anew: what was kept is", "");
    }
    for at in [100, 200, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        check("", "");
    }
    // Parts in another order, and one of them twice.
    let first = 104 + u64::from_le_bytes(whole[96..104].try_into().unwrap()) as usize + 32;
    let swapped = [&whole[..96], &whole[first..], &whole[96..first]].concat();
    let twice = [&whole[..first], &whole[96..first], &whole[first..]].concat();
    for bytes in [swapped, twice] {
        std::fs::write(&path, bytes).unwrap();
        check("", "");
    }
    std::fs::write(&path, &whole).unwrap();
    std::fs::write(place.path("guest.wat"), GUEST.replace("FAILS", "nop unreachable")).unwrap();
    check("is of another build of the module or of Spelunk", "");
    std::fs::write(&path, &whole).unwrap();
    let other = place.run_with(("XDG_DATA_HOME", &place.path("data")), "check guest.wat --json");
    assert!(other.err.contains("is not of this user, or damaged"), "{}", other.err);
    assert_eq!(result(&other)["verdict"], "fails");
}

#[test]
fn where_nothing_can_be_kept_a_check_goes_on_without() {
    let place = place("unkept", false);
    check_in_parts(&place, 2);
    let path = kept(&place).unwrap();
    let check = |why: &str, ran: Ran| {
        assert!(ran.err.contains(why), "{why} in {}", ran.err);
        assert_eq!(number(&ran.event("end")["states"]), STATES);
    };
    // Other settings have a file of their own.
    place.run("check guest.wat --json --steps 5").exits(3);
    assert!(path.exists());
    check("", place.run("check guest.wat --json --fresh").passed());
    std::fs::write(place.path("victim"), "mine").unwrap();
    std::os::unix::fs::symlink(place.path("victim"), &path).unwrap();
    check("the check is not kept, so it cannot be resumed", place.run("check guest.wat --json").passed());
    assert_eq!(std::fs::read(place.path("victim")).unwrap(), b"mine");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    check("the check is not kept, so it cannot be resumed", place.run("check guest.wat --json").passed());
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, "a part").unwrap();
    std::fs::hard_link(&path, place.path("second")).unwrap();
    check("has a second name", place.run("check guest.wat --json").passed());
    assert_eq!(std::fs::read(&path).unwrap(), b"a part");
    std::fs::remove_file(&path).unwrap();
    // More than there is room for is left as it is, and so is what there is no time to read.
    File::create(&path).unwrap().set_len(33 << 20).unwrap();
    let large = place.run("check guest.wat --json --memory 2").exits(3);
    assert!(large.err.contains("what was kept takes 34603008 bytes: give more --memory"), "{}", large.err);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 33 << 20);
    std::fs::remove_file(&path).unwrap();
    let whole = check_in_parts(&place, 2);
    let late = place.run("check guest.wat --json --time 0s");
    assert_eq!(std::fs::read(&path).unwrap(), whole, "{}", late.err);
    std::fs::remove_file(&path).unwrap();
    let key = place.path("open/spelunk/cache.key");
    std::fs::create_dir_all(key.parent().unwrap()).unwrap();
    std::fs::write(&key, [7; 32]).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = ("XDG_DATA_HOME", place.path("open"));
    check("others may access it", place.run_with((open.0, &open.1), "check guest.wat --json").passed());
    // A disk that is full at some time.
    let full = place.run_on_full_disk(4, "check guest.wat --json --memory 2").exits(3);
    assert!(full.err.contains("not all of the check is kept"), "{}", full.err);
    assert_eq!(full.event("end")["kept"], false);
    check("", place.run("check guest.wat --json").passed());
}

#[test]
fn one_process_at_a_time_keeps_a_check() {
    let place = Place::new("locked-check");
    let guest = GUEST.replace("FAILS", "").replace("(i32.const 40)", "(i32.const 400)");
    std::fs::write(place.path("guest.wat"), guest).unwrap();
    let mut first = place.start("check guest.wat --workers 1 --time 600s", &place.path("out"));
    while kept(&place).is_none() {
        assert!(first.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = place.run("check guest.wat --time 300ms --json").exits(3);
    assert!(second.err.contains("another process checks this target"), "{}", second.err);
    first.kill().unwrap();
    first.wait().unwrap();
}
