//! Calendars. It is UTC everywhere.

use wasmtime::{Caller, Func, Store};

use super::super::host::{Host, pay};
use super::super::preview1::Done;
use super::CALL_BYTES;
use super::memory::{Call, Layout, get, put, put_u32};

/// The most seconds from 1970 that a date of JavaScript may be away.
const SECONDS_MAX: i64 = 8_640_000_000_000;
const DAY: i64 = 86_400;
/// What a function that knows no time returns: `EOVERFLOW` for seconds is -1, and for fields 1.
const UNKNOWN: i64 = -1;
/// The bytes of `struct tm`, and of those that `_gmtime_js` writes.
const FIELDS: usize = 40;
const DATE_FIELDS: usize = 32;

/// Days from 1970-01-01 to a day, of the calendar that goes on for ever. Months are counted from 0.
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = (year + month.div_euclid(12), month.rem_euclid(12));
    // Years begin in March, so that the day that some have is their last.
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The day so many days after 1970-01-01: year, month from 0, and day from 1.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = (era * 400 + year, month);
    if month < 10 { (year, month + 2, day) } else { (year + 1, month - 10, day) }
}

/// The fields of `struct tm`: seconds, minutes, hours, day, month, year from 1900, day of the week and of the year.
fn fields(time: i64) -> Option<[i32; 8]> {
    if !(-SECONDS_MAX..=SECONDS_MAX).contains(&time) {
        return None;
    }
    let (days, rest) = (time.div_euclid(DAY), time.rem_euclid(DAY));
    let (year, month, day) = date(days);
    let weekday = (days + 4).rem_euclid(7);
    let of_year = days - days_to(year, 0, 1);
    Some(
        [rest % 60, rest / 60 % 60, rest / 3600, day, month, year - 1900, weekday, of_year].map(|v| v as i32),
    )
}

fn bytes_of<const LEN: usize>(fields: [i32; 8]) -> [u8; LEN] {
    let layout = (0..).step_by(4).zip(fields);
    layout.fold(Layout::zeros(), |layout, (at, field)| layout.u32(at, field as u32)).0
}

pub(super) fn localtime(call: &mut Call<'_>, time: i64, out: u32) -> Done<i32> {
    let Some(fields) = fields(time) else { return Ok(1) };
    put(call, out, &bytes_of::<FIELDS>(fields))?;
    Ok(0)
}

pub(super) fn gmtime(call: &mut Call<'_>, time: i64, out: u32) -> Done<i32> {
    let Some(fields) = fields(time) else { return Ok(1) };
    put(call, out, &bytes_of::<DATE_FIELDS>(fields))?;
    Ok(0)
}

/// Seconds since 1970 of what the fields say, which may be out of their ranges; `sets_all` writes back what the date is.
pub(super) fn seconds(store: &mut Store<Host>, sets_all: bool) -> Func {
    Func::wrap(store, move |mut call: Caller<'_, Host>, at: u32| {
        pay(&mut call, CALL_BYTES)?;
        match seconds_of(&mut call, at, sets_all) {
            Ok(seconds) => Ok(seconds),
            Err(super::Fail::Errno(_)) => Ok(UNKNOWN),
            Err(super::Fail::Stop(error)) => Err(error),
        }
    })
}

fn seconds_of(call: &mut Call<'_>, at: u32, sets_all: bool) -> Done<i64> {
    let given: [u8; FIELDS] = get(call, at)?;
    let field =
        |index: usize| i64::from(i32::from_le_bytes(*given[index * 4..].first_chunk().expect("four bytes")));
    let days = days_to(field(5) + 1900, field(4), field(3));
    let seconds = days * DAY + field(2) * 3600 + field(1) * 60 + field(0);
    let Some(fields) = fields(seconds) else { return Ok(UNKNOWN) };
    if sets_all {
        put(call, at, &bytes_of::<DATE_FIELDS>(fields))?;
    } else {
        put_u32(call, at.wrapping_add(24), fields[6] as u32)?;
        put_u32(call, at.wrapping_add(28), fields[7] as u32)?;
    }
    Ok(seconds)
}

/// What the glue calls the zone that is no minutes from UTC.
const ZONE: &[u8; 9] = b"UTC-0000\0";

pub(super) fn tzset(call: &mut Call<'_>, zone: u32, daylight: u32, standard: u32, summer: u32) -> Done<i32> {
    put_u32(call, zone, 0)?;
    put_u32(call, daylight, 0)?;
    put(call, standard, ZONE)?;
    put(call, summer, ZONE)?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (time, shown) in [
            (0, "[0, 0, 0, 1, 0, 70, 4, 0]"),
            (-1, "[59, 59, 23, 31, 11, 69, 3, 364]"),
            (951_782_400, "[0, 0, 0, 29, 1, 100, 2, 59]"),
            (1_735_689_600, "[0, 0, 0, 1, 0, 125, 3, 0]"),
            (4_107_542_399, "[59, 59, 23, 28, 1, 200, 0, 58]"),
            (SECONDS_MAX, "[0, 0, 0, 13, 8, 273860, 6, 256]"),
        ] {
            assert_eq!(format!("{:?}", fields(time).unwrap()), shown, "{time}");
        }
        assert_eq!(fields(SECONDS_MAX + 1), None);
    }

    #[test]
    fn a_date_and_its_days_belong_together() {
        for days in (-1_000_000..1_000_000).step_by(997) {
            let (year, month, day) = date(days);
            assert_eq!(days_to(year, month, day), days);
            assert!((0..12).contains(&month) && (1..=31).contains(&day));
        }
        assert_eq!(days_to(2024, 14, 0), days_to(2025, 1, 28));
    }
}
