//! The ratios that the benchmark came to when they were recorded, and which have got worse since.

use std::fmt::{self, Display};

use anyhow::{Context, Result};

/// Which way a ratio gets worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Direction {
    /// Lower is better.
    Cost,
    /// Higher is better.
    Gain,
}

impl Direction {
    const ALL: [Direction; 2] = [Direction::Cost, Direction::Gain];

    fn name(self) -> &'static str {
        match self {
            Direction::Cost => "cost",
            Direction::Gain => "gain",
        }
    }

    /// How many times as bad one ratio is as another.
    fn times(self, now: f64, before: f64) -> f64 {
        match self {
            Direction::Cost => now / before,
            Direction::Gain => before / now,
        }
    }
}

/// A row of the benchmark's table.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// Its name, which no other row has.
    pub what: String,
    pub direction: Direction,
    pub ratio: f64,
}

impl Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} | {} | {:.3}", self.what, self.direction.name(), self.ratio)
    }
}

/// The rows of a file, a row a line. Lines that begin with `#` are remarks.
///
/// # Errors
/// A line that is no row.
pub fn read(text: &str) -> Result<Vec<Ratio>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| row(line).with_context(|| format!("`{line}` is not `what | cost or gain | ratio`")))
        .collect()
}

fn row(line: &str) -> Option<Ratio> {
    let [what, direction, ratio] = line.split(" | ").collect::<Vec<_>>().try_into().ok()?;
    let direction = Direction::ALL.into_iter().find(|known| known.name() == direction)?;
    Some(Ratio { what: what.to_string(), direction, ratio: ratio.parse().ok()? })
}

/// Takes over what was measured again: of each row the better ratio.
pub fn improve(rows: &mut [Ratio], again: &[Ratio]) {
    for row in rows {
        let better = again
            .iter()
            .find(|other| other.what == row.what && row.direction.times(other.ratio, row.ratio) < 1.0);
        if let Some(better) = better {
            row.ratio = better.ratio;
        }
    }
}

/// Of each row the middle ratio of several measurements.
pub fn middle(times: &[Vec<Ratio>]) -> Vec<Ratio> {
    let rows = times.first().into_iter().flatten().map(|row| {
        let same = times.iter().flatten().filter(|other| other.what == row.what);
        let mut ratios: Vec<f64> = same.map(|other| other.ratio).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        Ratio { ratio: ratios[ratios.len() / 2], ..row.clone() }
    });
    rows.collect()
}

/// What is wrong with these rows beside those recorded, a line each: a ratio that is worse by more than half, and a row
/// of which nothing is recorded.
pub fn worse(now: &[Ratio], recorded: &[Ratio]) -> Vec<String> {
    let said = now.iter().filter_map(|row| {
        let what = &row.what;
        let Some(before) = recorded.iter().find(|before| before.what == *what) else {
            return Some(format!("{what}: {:.3}, and none is recorded", row.ratio));
        };
        if row.direction != before.direction {
            return Some(format!(
                "{what}: a {}, recorded as a {}",
                row.direction.name(),
                before.direction.name()
            ));
        }
        // Written so that what is no number is worse.
        let is_fine = row.direction.times(row.ratio, before.ratio) <= 1.5;
        let line = format!(
            "{what}: {:.3}, and {:.3} is recorded ({})",
            row.ratio,
            before.ratio,
            row.direction.name()
        );
        (!is_fine).then_some(line)
    });
    said.collect()
}

/// Rows that are recorded and were not measured, a line each.
pub fn missing(now: &[Ratio], recorded: &[Ratio]) -> Vec<String> {
    let is_missing = |before: &&Ratio| now.iter().all(|row| row.what != before.what);
    let line =
        |before: &Ratio| format!("{}: {:.3} is recorded, and it was not measured", before.what, before.ratio);
    recorded.iter().filter(is_missing).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(what: &str, ratio: f64) -> Ratio {
        Ratio { what: what.to_string(), direction: Direction::Cost, ratio }
    }

    fn gain(what: &str, ratio: f64) -> Ratio {
        Ratio { direction: Direction::Gain, ..cost(what, ratio) }
    }

    #[test]
    fn what_got_worse_by_more_than_half_is_named() {
        let recorded = [cost("a", 2.0), gain("b", 3.0)];
        assert!(worse(&[cost("a", 2.99), gain("b", 2.01)], &recorded).is_empty());
        assert!(worse(&[cost("a", 0.1), gain("b", 100.0)], &recorded).is_empty());
        assert_eq!(
            worse(&[cost("a", 3.01), gain("b", 1.99)], &recorded),
            ["a: 3.010, and 2.000 is recorded (cost)", "b: 1.990, and 3.000 is recorded (gain)"]
        );
        assert_eq!(worse(&[cost("a", f64::NAN), gain("b", 0.0)], &recorded).len(), 2);
    }

    #[test]
    fn what_is_on_one_side_only_is_named() {
        let (now, recorded) = ([cost("a", 1.0), cost("c", 1.0)], [gain("a", 1.0), cost("b", 1.0)]);
        assert_eq!(
            worse(&now, &recorded),
            ["a: a cost, recorded as a gain", "c: 1.000, and none is recorded"]
        );
        assert_eq!(missing(&now, &recorded), ["b: 1.000 is recorded, and it was not measured"]);
    }

    #[test]
    fn the_best_of_several_counts() {
        let mut rows = [cost("a", 2.0), gain("b", 2.0), cost("c", 2.0)];
        improve(&mut rows, &[cost("a", 1.0), gain("b", 3.0)]);
        improve(&mut rows, &[cost("a", 4.0), gain("b", 1.0), cost("c", 3.0)]);
        assert_eq!(rows, [cost("a", 1.0), gain("b", 3.0), cost("c", 2.0)]);
    }

    #[test]
    fn the_middle_of_several_is_recorded() {
        let times = [4.0, 1.0, 2.0].map(|ratio| vec![cost("a", ratio), gain("b", 1.0 / ratio)]);
        assert_eq!(middle(&times), [cost("a", 2.0), gain("b", 0.5)]);
        assert!(middle(&[]).is_empty());
    }

    #[test]
    fn what_is_written_is_read() {
        let rows = [cost("restore, 1 dirty page", 1.25), gain("kv", 0.125)];
        let text = format!("# A remark.\n{}\n{}\n", rows[0], rows[1]);
        assert_eq!(read(&text).unwrap(), rows);
        assert!(read("a | dear | 1").is_err() && read("a | cost").is_err());
    }
}
