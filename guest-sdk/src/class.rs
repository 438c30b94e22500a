//! The characters that may stand at one place of a regular expression.

use std::ops::RangeInclusive;

use crate::abi;
use crate::character::{PRINTABLE, RARE, at, position};

/// Characters, by how many come before each: those that one can read and type, and the others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Class {
    printable: Vec<RangeInclusive<u32>>,
    others: Vec<RangeInclusive<u32>>,
}

impl Class {
    /// These characters, the first of which is the simplest; none of the ranges is empty.
    pub(crate) fn of(ranges: impl IntoIterator<Item = RangeInclusive<char>>) -> Class {
        Class::new(ranges.into_iter().map(|range| position(*range.start())..=position(*range.end())))
    }

    fn new(ranges: impl IntoIterator<Item = RangeInclusive<u32>>) -> Class {
        let (first, last) = (position(*PRINTABLE.start()), position(*PRINTABLE.end()));
        let mut class = Class { printable: Vec::new(), others: Vec::new() };
        for range in ranges {
            let (start, end) = range.into_inner();
            class.printable.push(start.max(first)..=end.min(last));
            class.others.extend([start..=end.min(first - 1), start.max(last + 1)..=end]);
        }
        class.printable.retain(|range| !range.is_empty());
        class.others.retain(|range| !range.is_empty());
        class
    }

    /// All characters but these.
    pub(crate) fn opposite(&self) -> Class {
        let mut ranges: Vec<_> = self.ranges().cloned().collect();
        ranges.sort_unstable_by_key(|range| *range.start());
        let mut next = 0;
        let mut gaps = Vec::new();
        for range in ranges {
            let (start, end) = range.into_inner();
            if next < start {
                gaps.push(next..=start - 1);
            }
            next = next.max(end + 1);
        }
        if next <= position(char::MAX) {
            gaps.push(next..=position(char::MAX));
        }
        Class::new(gaps)
    }

    /// All characters of both, the first of the first being the simplest.
    pub(crate) fn and(mut self, other: Class) -> Class {
        self.printable.extend(other.printable);
        self.others.extend(other.others);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges().next().is_none()
    }

    pub(crate) fn draw(&self) -> char {
        let is_rare = match (self.printable.is_empty(), self.others.is_empty()) {
            (false, false) => abi::boolean(RARE),
            (is_rare, _) => is_rare,
        };
        let ranges = if is_rare { &self.others } else { &self.printable };
        let mut place = abi::index(ranges.iter().map(len).sum::<u32>() as usize) as u32;
        for range in ranges {
            match place.checked_sub(len(range)) {
                Some(rest) => place = rest,
                None => return at(range.start() + place),
            }
        }
        unreachable!("the index is less than the sum of the lengths")
    }

    fn ranges(&self) -> impl Iterator<Item = &RangeInclusive<u32>> {
        self.printable.iter().chain(&self.others)
    }
}

fn len(range: &RangeInclusive<u32>) -> u32 {
    range.end() - range.start() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::play;

    #[track_caller]
    fn check(class: &Class, answers: &[u64], expected: char, calls: &str) {
        let (drawn, log) = play(answers, || class.draw());
        assert_eq!((drawn, log.join(" ")), (expected, calls.into()));
    }

    #[test]
    fn ranges_stand_one_after_the_other() {
        let class = Class::of(['x'..='z', 'a'..='b']);
        check(&class, &[0], 'x', "index 5");
        check(&class, &[4], 'b', "index 5");
    }

    #[test]
    fn what_is_not_printable_is_rare() {
        let class = Class::of(['~'..='\u{80}']);
        check(&class, &[0, 0], '~', "boolean 0.20 index 1");
        check(&class, &[1, 1], '\u{80}', "boolean 0.20 index 2");
        check(&Class::of(['\n'..='\n']), &[0], '\n', "index 1");
    }

    #[test]
    fn opposites() {
        let class = Class::of(['b'..='c', 'a'..='b', '\u{100}'..=char::MAX]);
        let opposite = class.opposite();
        check(&opposite, &[0, 0], ' ', "boolean 0.20 index 92");
        check(&opposite, &[0, 65], 'd', "boolean 0.20 index 92");
        check(&opposite, &[1, 160], '\u{ff}', "boolean 0.20 index 161");
        assert!(Class::of(['\0'..=char::MAX]).opposite().is_empty());
    }
}
