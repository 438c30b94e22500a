//! How a run ends early, and what is said about it.

use std::fmt::Arguments;

use crate::abi;

/// Gives up a run that does not count, unless `condition` holds.
///
/// Where a strategy or a `#[precondition]` can say the same, prefer it: a run that is given up is wasted.
/// On native targets it panics.
#[track_caller]
pub fn assume(condition: bool) {
    if !condition {
        abi::reject();
    }
}

/// Ends the run as a finding, with a message: `fail!("{} coins are missing", n)`.
///
/// On native targets it panics.
#[macro_export]
macro_rules! fail {
    ($($message:tt)+) => {
        $crate::__private::fail_with(::core::format_args!($($message)+))
    };
}

/// Adds a line to the story of a finding: `note!("the queue holds {queue:?}")`.
///
/// Nothing is evaluated or formatted but where a finding is reported, so it must not change the state.
#[macro_export]
macro_rules! note {
    ($($message:tt)+) => {
        if $crate::__private::verbose() {
            $crate::__private::note(::core::format_args!($($message)+));
        }
    };
}

#[doc(hidden)]
#[track_caller]
pub fn fail_with(message: Arguments) -> ! {
    abi::fail(&message.to_string())
}

#[doc(hidden)]
pub fn note(text: Arguments) {
    abi::note(&text.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::play;

    #[test]
    fn notes_are_formatted_only_where_a_finding_is_told() {
        let ((), log) = play(&[1], || note!("{} and {}", 1, 2));
        assert_eq!(log, ["verbose", "note 1 and 2"]);
        let unwanted = || -> u8 { panic!("evaluated") };
        let ((), log) = play(&[0], || note!("{}", unwanted()));
        assert_eq!(log, ["verbose"]);
    }

    #[test]
    #[should_panic = "reject"]
    fn a_wrong_assumption_rejects_the_run() {
        assume(true);
        assume(false);
    }

    #[test]
    #[should_panic = "fail 3 coins are missing"]
    fn fail_formats_its_message() {
        fail!("{} coins are missing", 3);
    }
}
