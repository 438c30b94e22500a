//! Times.

use std::time::{Duration, SystemTime};

use super::Arbitrary;
use crate::Number;

/// Up to `Duration::MAX`. A range draws shorter ones: `#[draw(Duration::ZERO..Duration::from_secs(60))]`.
impl Arbitrary for Duration {
    fn arbitrary() -> Duration {
        Number::between(Duration::ZERO, Duration::MAX)
    }
}

/// From the start of 1970, the simplest, to the end of 9999.
impl Arbitrary for SystemTime {
    fn arbitrary() -> SystemTime {
        const END: Duration = Duration::new(253_402_300_799, 999_999_999);
        SystemTime::UNIX_EPOCH + Duration::between(Duration::ZERO, END)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any;
    use crate::strategy::tests::{check, check_simplest};

    #[test]
    fn times_are_seconds_and_nanoseconds() {
        let nanoseconds = "integer 0..=999999999 0";
        check(
            any::<Duration>(),
            &[2, 5],
            Duration::new(2, 5),
            &format!("duration( unsigned 0..=18446744073709551615 0 {nanoseconds} )"),
        );
        check(
            any::<SystemTime>(),
            &[2, 5],
            SystemTime::UNIX_EPOCH + Duration::new(2, 5),
            &format!("duration( unsigned 0..=253402300799 0 {nanoseconds} )"),
        );
        check_simplest(any::<(Duration, SystemTime)>(), (Duration::ZERO, SystemTime::UNIX_EPOCH));
    }
}
