//! The rows, printed as they are measured, and kept.

use std::time::Duration;

use spelunk_tests::ratios::{Direction, Ratio};

/// How much is measured.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Form {
    /// What shows whether something got worse, in fewer samples.
    Short,
    Usual,
    /// What takes minutes too.
    Full,
}

pub(crate) struct Table {
    form: Form,
    ratios: Vec<Ratio>,
}

impl Table {
    pub(crate) fn new(form: Form) -> Table {
        Table { form, ratios: Vec::new() }
    }

    pub(crate) fn is_short(&self) -> bool {
        self.form == Form::Short
    }

    pub(crate) fn is_full(&self) -> bool {
        self.form == Form::Full
    }

    pub(crate) fn into_ratios(self) -> Vec<Ratio> {
        self.ratios
    }

    /// A row whose ratio is better the lower it is.
    pub(crate) fn cost(&mut self, what: &str, figure: &str, beside: &str, ratio: f64) {
        self.row(Direction::Cost, (what, figure, beside), ratio);
    }

    /// A row whose ratio is better the higher it is.
    pub(crate) fn gain(&mut self, what: &str, figure: &str, beside: &str, ratio: f64) {
        self.row(Direction::Gain, (what, figure, beside), ratio);
    }

    fn row(&mut self, direction: Direction, (what, figure, beside): (&str, &str, &str), ratio: f64) {
        println!("| {what} | {figure} | {beside} | {ratio:.2} |");
        self.ratios.push(Ratio { what: what.to_string(), direction, ratio });
    }

    /// The mean of the middle half of many samples: some clocks tick in tens of nanoseconds, and a median does too.
    pub(crate) fn middle(&self, mut f: impl FnMut() -> Duration) -> Duration {
        let count = if self.is_short() { 501 } else { 2001 };
        let mut samples: Vec<Duration> = (0..count).map(|_| f()).collect();
        samples.sort_unstable();
        let half = &samples[samples.len() / 4..samples.len() * 3 / 4];
        half.iter().sum::<Duration>() / half.len() as u32
    }
}
