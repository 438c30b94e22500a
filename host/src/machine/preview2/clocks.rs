//! `wasi:clocks` and `wasi:io/poll`: time, and waiting for it.

use super::super::component::Value;
use super::super::host::pay;
use super::super::preview1::{change, jump, system};
use super::super::system::{Awaited, Resource, TICK};
use super::values::{Args, datetime};
use super::{Call, Done, Function, add, broken};

const MONOTONIC: &str = "wasi:clocks/monotonic-clock";
const WALL: &str = "wasi:clocks/wall-clock";
const TIMEZONE: &str = "wasi:clocks/timezone";
const POLL: &str = "wasi:io/poll";

pub(super) const FUNCTIONS: &[Function] = &[
    (MONOTONIC, "now", "func() -> instant", now),
    (MONOTONIC, "resolution", "func() -> duration", resolution),
    (MONOTONIC, "subscribe-instant", "func(when: instant) -> pollable", subscribe_instant),
    (MONOTONIC, "subscribe-duration", "func(when: duration) -> pollable", subscribe_duration),
    (WALL, "now", "func() -> datetime", real_now),
    (WALL, "resolution", "func() -> datetime", real_resolution),
    (TIMEZONE, "display", "func(when: datetime) -> timezone-display", display),
    (TIMEZONE, "utc-offset", "func(when: datetime) -> s32", utc_offset),
    (POLL, "[method]pollable.ready", "func(self: borrow<pollable>) -> bool", ready),
    (POLL, "[method]pollable.block", "func(self: borrow<pollable>)", block),
    (POLL, "poll", "func(in: list<borrow<pollable>>) -> list<u32>", poll),
];

/// Looking at one pollable costs as much as reading so many bytes.
const POLLABLE_BYTES: usize = 256;

fn now(call: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    jump(call, "monotonic-clock.now", false)?;
    Ok(Some(Value::Unsigned(change(call).read_clock().1)))
}

fn resolution(_: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    Ok(Some(Value::Unsigned(TICK)))
}

fn real_now(call: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    jump(call, "wall-clock.now", true)?;
    Ok(Some(datetime(change(call).read_clock().0)))
}

fn real_resolution(_: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    Ok(Some(datetime(TICK)))
}

/// It is UTC everywhere.
fn display(_: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    Ok(Some(Value::Record(vec![Value::Signed(0), Value::text("UTC"), Value::Bool(false)])))
}

fn utc_offset(_: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    Ok(Some(Value::Signed(0)))
}

fn subscribe_instant(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let when = args.number()?;
    let system = system(call);
    let until = system.later(when.saturating_sub(system.monotonic()));
    add(call, Resource::Pollable(Awaited::Time(until))).map(Some)
}

fn subscribe_duration(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let until = system(call).later(args.number()?);
    add(call, Resource::Pollable(Awaited::Time(until))).map(Some)
}

/// When it is ready: now, or at a time that may have passed.
fn awaited(call: &Call<'_>, number: u32) -> Done<u64> {
    match system(call).resource(number) {
        Some(Resource::Pollable(Awaited::Nothing)) => Ok(0),
        Some(Resource::Pollable(Awaited::Time(until))) => Ok(*until),
        _ => broken("there is no such pollable"),
    }
}

/// Whether it is ready. Asking takes a while, so that who asks for ever is answered.
fn ready(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let until = awaited(call, args.resource()?)?;
    let is_ready = until <= system(call).monotonic();
    if !is_ready {
        change(call).pass(TICK);
    }
    Ok(Some(Value::Bool(is_ready)))
}

/// Has the clock move to a time.
fn wait(call: &mut Call<'_>, until: u64) {
    let now = system(call).monotonic();
    if until > now {
        change(call).pass(until - now);
    }
}

fn block(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let until = awaited(call, args.resource()?)?;
    wait(call, until);
    Ok(None)
}

fn poll(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let pollables = args.resources()?;
    pay(call, pollables.len() * POLLABLE_BYTES)?;
    let times = pollables.iter().map(|pollable| awaited(call, *pollable));
    let times: Vec<u64> = times.collect::<Done<_>>()?;
    let Some(first) = times.iter().min() else {
        return broken("it waits for one of no pollables");
    };
    wait(call, *first);
    let now = system(call).monotonic();
    let ready = (0..).zip(&times).filter(|(_, until)| **until <= now);
    Ok(Some(Value::List(ready.map(|(index, _)| Value::Unsigned(index)).collect())))
}
