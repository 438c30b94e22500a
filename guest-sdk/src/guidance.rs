//! Where the exploration should go, and what happens on its way.

use std::fmt::Arguments;

use crate::abi;

/// Says how near this run is to something interesting: the exploration prefers what raises the score.
/// `target(queue.len() as f64)` makes for long queues. NaN is ignored.
///
/// Does nothing on native targets. Where there are several aims, give each a label with [`target_label`].
pub fn target(score: f64) {
    target_label(score, "");
}

/// A [`target`] with a label: scores of one label are compared with each other alone.
pub fn target_label(score: f64, label: &str) {
    abi::target(score, label);
}

/// Says that a number is of interest: where it is one that was not observed before under this name, the exploration goes on from
/// there, as from a new branch. `observe("place", (y * WIDTH + x) as i64)` makes for all the places of a map.
///
/// About 4,096 numbers of a name are told apart, and beyond that only their powers of two. Does nothing on native targets.
pub fn observe(name: &str, number: i64) {
    abi::observe(name, number);
}

/// Something happened, and the report says how often: `event!("retried")`,
/// `event!("{} requests at once", requests.len())`.
///
/// Each text is counted on its own, so let there be few. Does nothing on native targets.
#[macro_export]
macro_rules! event {
    ($($text:tt)+) => {
        $crate::__private::event(::core::format_args!($($text)+))
    };
}

#[doc(hidden)]
pub fn event(text: Arguments) {
    match text.as_str() {
        Some(text) => abi::event(text),
        None => abi::event(&text.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::play;

    #[test]
    fn the_host_is_told() {
        let ((), log) = play(&[], || {
            target(1.5);
            target_label(-2.0, "depth");
            observe("place", -7);
            event!("retried");
            event!("{} at once", 3);
        });
        assert_eq!(
            log,
            ["target  1.5", "target depth -2", "observe place -7", "event retried", "event 3 at once"]
        );
    }
}
