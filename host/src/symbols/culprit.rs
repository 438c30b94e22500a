//! Which place names a failure.
//!
//! Where a guest stops is seldom where it went wrong: it stops in `abort`, below the machinery of a panic, below a `die` of
//! its own. So the innermost frames are passed over as long as they belong to a library, or to a function that never
//! returns and that several call. The first other one is the culprit, by its line and column alone. Fuzzers that compare
//! more frames, as ClusterFuzz does with three, report one bug once for each way to it; here a shrinker would then be
//! kept from a simpler way.

use super::{Frame, Role};

/// The index of the frame that names the failure, of a stack from the innermost frame on; none of an empty one. `reported`
/// is what the guest said of its panic, as `file:line:column`. A function may say that its caller is to be blamed, as
/// `unwrap` does, so the search begins at the frame that is there, if one is.
pub fn culprit(frames: &[&Frame], reported: Option<&str>) -> Option<usize> {
    let start = reported.and_then(|reported| position(frames, reported)).unwrap_or(0);
    let first =
        |is_wanted: &dyn Fn(Role) -> bool| (start..frames.len()).find(|&index| is_wanted(frames[index].role));
    // Where all end the run, the outermost was called from the host, and so from one place.
    let outermost = || (start..frames.len()).rev().find(|&index| frames[index].role == Role::End);
    let found = first(&|role| role == Role::Own).or_else(outermost);
    found.or_else(|| (start < frames.len()).then_some(start))
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
