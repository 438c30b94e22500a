//! Choices by themselves, as exhaustive checking takes them: each alternative once.

use crate::abi;

/// Either way: `false` is the simplest, and is tried first.
///
/// ```
/// use spelunk_guest::prelude::*;
///
/// /// Reads a byte, or fails.
/// fn read(stream: &mut impl Iterator<Item = u8>) -> Result<u8, ()> {
///     if flip() { Err(()) } else { stream.next().ok_or(()) }
/// }
/// ```
pub fn flip() -> bool {
    abi::boolean(0.5)
}

/// One of `0..sides`. None at all is a deadlock, as with [`choose`].
pub fn roll(sides: u32) -> u32 {
    abi::index(sides as usize) as u32
}

/// One of `0..alternatives`. Where there is none, nothing can go on: the run ends as a finding, a deadlock.
///
/// ```
/// use spelunk_guest::prelude::*;
///
/// /// Lets one of the threads that can run take a step.
/// fn schedule(runnable: &mut Vec<Box<dyn FnMut()>>) {
///     let next = choose(runnable.len());
///     runnable[next]();
/// }
/// ```
pub fn choose(alternatives: usize) -> usize {
    abi::index(alternatives)
}

/// One of these: of a slice, by reference, or of whatever iterates and can do so twice, as a filtered range.
/// Where there is none, that is a deadlock.
///
/// ```
/// use spelunk_guest::prelude::*;
///
/// fn pick(names: &[String], is_busy: &[bool]) {
///     let name: &String = choose_from(names);
///     let idle: usize = choose_from((0..is_busy.len()).filter(|n| !is_busy[*n]));
/// }
/// ```
///
/// Unlike [`sampled_from`](crate::sampled_from) it is no strategy but the choice itself, and clones nothing.
pub fn choose_from<I: IntoIterator<IntoIter: Clone>>(values: I) -> I::Item {
    let mut values = values.into_iter();
    let place = abi::index(values.clone().count());
    values.nth(place).expect("the index is less than how many there are")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::play;

    #[test]
    fn each_is_one_choice() {
        let (drawn, log) = play(&[1, 5, 2], || (flip(), roll(6), choose(3)));
        assert_eq!((drawn, log.join(" ").as_str()), ((true, 5, 2), "boolean 0.50 index 6 index 3"));
    }

    #[test]
    fn values_are_borrowed_from_a_slice_and_counted_in_an_iterator() {
        struct NotClone(u8);
        let values = [NotClone(3), NotClone(4)];
        let (drawn, log) = play(&[1, 2], || {
            (choose_from(&values).0, choose_from((0..10u64).filter(|n| n.is_multiple_of(3))))
        });
        assert_eq!((drawn, log.join(" ").as_str()), ((4, 6), "index 2 index 4"));
    }

    #[test]
    #[should_panic = "deadlock"]
    fn among_none_there_is_no_choice() {
        play(&[], || choose_from([0; 0]));
    }
}
