//! A set of ranges, of which those that touch are one. Its bug: a range that is put over three others or more keeps the end of the
//! last but one, where that is larger than its own.

#[derive(Default)]
pub(crate) struct Ranges(Vec<(u8, u8)>);

impl Ranges {
    pub(crate) fn add(&mut self, mut from: u8, mut to: u8) {
        let touching: Vec<usize> =
            (0..self.0.len()).filter(|at| self.0[*at].0 <= to && self.0[*at].1 >= from).collect();
        if let (Some(first), Some(last)) = (touching.first(), touching.last()) {
            from = from.min(self.0[*first].0);
            // The bug.
            let last = if touching.len() > 2 { last - 1 } else { *last };
            to = to.max(self.0[last].1);
        }
        for at in touching.into_iter().rev() {
            self.0.remove(at);
        }
        let at = self.0.partition_point(|range| range.0 < from);
        self.0.insert(at, (from, to));
    }

    pub(crate) fn remove(&mut self, from: u8, to: u8) {
        let ranges = std::mem::take(&mut self.0);
        for (start, end) in ranges {
            if start < from {
                self.0.push((start, end.min(from)));
            }
            if end > to {
                self.0.push((start.max(to), end));
            }
        }
    }

    pub(crate) fn holds(&self, value: u8) -> bool {
        self.0.iter().any(|(start, end)| (*start..*end).contains(&value))
    }
}
