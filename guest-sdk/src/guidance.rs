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
            event!("retried");
            event!("{} at once", 3);
        });
        assert_eq!(log, ["target  1.5", "target depth -2", "event retried", "event 3 at once"]);
    }
}
