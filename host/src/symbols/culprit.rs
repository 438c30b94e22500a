//! Which place names a failure.
//!
//! Where a guest stops is seldom where it went wrong: it stops in `abort`, below the machinery of a panic, below a `die` of
//! its own. So the innermost frames are passed over as long as they belong to a library, or to a function that never
//! returns and that several call. The first other one is the culprit, by its line and column alone. Fuzzers that compare
//! more frames, as ClusterFuzz does with three, report one bug once for each way to it; here a shrinker would then be
//! kept from a simpler way.
//!
//! What the macro of a harness wrote has one line for all rules. It is at fault only where nothing else may be, as where it
//! evaluates a strategy.

use super::{Frame, Role};

/// The index of the frame that names the failure, of a stack from the innermost frame on; none of an empty one. `reported`
/// is what the guest said of its panic, as `file:line:column`. A function may say that its caller is to be blamed, as
/// `unwrap` does, so the search begins at the frame that is there, if one is.
pub fn culprit(frames: &[&Frame], reported: Option<&str>) -> Option<usize> {
    let start = reported.and_then(|reported| position(frames, reported)).unwrap_or(0);
    let roles = |role: Role| (start..frames.len()).filter(move |&index| frames[index].role == role);
    // What the harness was called through, and all that is further out.
    let slot = frames.iter().position(|frame| frame.function.starts_with("spelunk_guest::harness::Slot"));
    let is_written =
        |&index: &usize| slot.is_some_and(|slot| slot < index) || is_expanded(&frames[index].function);
    let own = roles(Role::Own).find(|index| !is_written(index));
    // Where all end the run, the outermost was called from one place.
    let end = || roles(Role::End).rev().find(|index| !is_written(index));
    let any = || roles(Role::Own).next().or_else(|| roles(Role::End).next_back());
    own.or_else(end).or_else(any).or_else(|| (start < frames.len()).then_some(start))
}

/// Whether the macro of a harness wrote a function: `bank::Bank::__spelunk_rule_pay`, `bank::_::_::rule::{{closure}}`.
fn is_expanded(function: &str) -> bool {
    function.contains("::__spelunk_") || function.contains("::_::_::")
}

/// The innermost frame at a place; one in the same line if none has the column.
fn position(frames: &[&Frame], reported: &str) -> Option<usize> {
    let mut parts = reported.rsplitn(3, ':');
    let (column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    let (column, line): (u32, u32) = (column.parse().ok()?, line.parse().ok()?);
    let is_there = |frame: &&&Frame| {
        frame.line == Some(line) && frame.file.as_ref().is_some_and(|shown| is_one_file(shown, file))
    };
    let there = || frames.iter().enumerate().filter(|(_, frame)| is_there(frame));
    let exact = there().find(|(_, frame)| frame.column == Some(column));
    exact.or_else(|| there().next()).map(|(index, _)| index)
}

/// Whether one path ends in the other: each is short in a way of its own.
fn is_one_file(one: &str, other: &str) -> bool {
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short).is_some_and(|front| front.is_empty() || front.ends_with('/'))
    };
    !one.is_empty() && !other.is_empty() && (ends(one, other) || ends(other, one))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame by its role and place: `own src/lib.rs:4:2`.
    fn frame(text: &str) -> Frame {
        let (role, place) = text.split_once(' ').unwrap();
        let parts: Vec<&str> = place.split(':').collect();
        let number = |index: usize| parts.get(index).map(|part| part.parse().unwrap());
        Frame {
            function: "f".into(),
            file: Some(parts[0].into()),
            compiled: None,
            line: number(1),
            column: number(2),
            offset: 0,
            role: match role {
                "own" => Role::Own,
                "end" => Role::End,
                _ => Role::Library,
            },
        }
    }

    #[track_caller]
    fn check(frames: &[&str], reported: Option<&str>, expected: Option<usize>) {
        let frames: Vec<Frame> = frames.iter().map(|text| frame(text)).collect();
        let frames: Vec<&Frame> = frames.iter().collect();
        assert_eq!(culprit(&frames, reported), expected);
    }

    #[test]
    fn what_ends_the_run_and_libraries_are_passed_over() {
        check(&[], None, None);
        check(&["own a:1:1", "own b:1:1"], None, Some(0));
        check(&["library a:1:1", "end b:1:1", "own c:1:1", "own d:1:1"], None, Some(2));
        // A closure of the guest that a library calls.
        check(&["own a:1:1", "library b:1:1", "own c:1:1"], None, Some(0));
    }

    #[test]
    fn there_is_always_one() {
        check(&["library a:1:1", "end b:1:1", "end c:1:1", "library d:1:1"], None, Some(2));
        check(&["library a:1:1", "library b:1:1"], None, Some(0));
    }

    /// A rule that always fails never returns, and neither does what calls it, which has one line for all rules.
    #[test]
    fn what_a_macro_wrote_is_seldom_at_fault() {
        let named = |text: &str, function: &str| Frame { function: function.into(), ..frame(text) };
        let called = [
            named("own lib.rs:7:1", "bank::Bank::__spelunk_rule_pay"),
            named("own lib.rs:7:1", "bank::_::_::rule::{{closure}}"),
            named("library harness.rs:25:16", "spelunk_guest::harness::Slot<T>::with"),
            named("own lib.rs:7:1", "rule:pay"),
        ];
        let check = |inner: &[Frame], expected| {
            let frames: Vec<&Frame> = inner.iter().chain(&called).collect();
            assert_eq!(culprit(&frames, None), Some(expected));
            // An invariant is called by the closure.
            let frames: Vec<&Frame> = inner.iter().chain(&called[1..]).collect();
            assert_eq!(culprit(&frames, None), Some(expected));
        };
        let pay = named("end lib.rs:16:9", "bank::Bank::pay");
        check(&[frame("library a:1:1"), pay.clone()], 1);
        check(&[frame("end die.rs:1:1"), pay], 1);
        check(&[frame("own a:1:1")], 0);
        check(&[frame("library a:1:1")], 1);
    }

    #[test]
    fn the_search_begins_where_the_guest_says() {
        let frames = [
            "library core/panic.rs:9:1",
            "own src/checks.rs:4:2",
            "own src/lib.rs:7:3",
            "own src/lib.rs:7:9",
        ];
        check(&frames, Some("src/lib.rs:7:9"), Some(3));
        check(&frames, Some("src/lib.rs:7:1"), Some(2));
        check(&frames, Some("/home/me/bank/src/lib.rs:7:3"), Some(2));
        check(&frames, Some("lib.rs:7:3"), Some(2));
        check(&frames, Some("my_src/lib.rs:7:3"), Some(1));
        check(&frames, Some("src/lib.rs:8:3"), Some(1));
        check(&frames, Some(":0:0"), Some(1));
        check(&frames, Some("nonsense"), Some(1));
        check(&["library a:1:1", "end src/die.rs:3:5", "own b:1:1"], Some("src/die.rs:3:5"), Some(2));
    }
}
