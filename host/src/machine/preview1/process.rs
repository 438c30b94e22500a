//! Arguments, variables, clocks, randomness, waiting, and the end of a program.

use std::sync::Arc;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use wasmtime::{Caller, Trap};

use super::super::host::{Host, Stop, pay};
use super::super::imports::{choose, mark, memory_of, slice, stop};
use super::super::system::{Errno, INPUT, Open, TICK, rights};
use super::descriptors::stdin_left;
use super::memory::{Call, change, get, put, put_u32, put_u64, system};
use super::{Done, Fail, WAIT, struck};
use crate::choice::{Kind, Value};
use crate::file::{Environment, HostFault};
use crate::outcome::FailureKind;

/// The name that a program is called by.
pub(in super::super) const PROGRAM: &str = "guest";
/// A text costs as much as so many bytes, besides those that it has.
const TEXT_BYTES: usize = 64;
/// Events that one call may wait for.
const SUBSCRIPTIONS_MAX: u32 = 4096;
/// Looking at one of them costs as much as reading so many bytes.
const SUBSCRIPTION_BYTES: usize = 256;
const SUBSCRIPTION: u32 = 48;
const EVENT: usize = 32;

/// Texts that are copied for a guest, which pays for them.
fn copied(call: &mut Call<'_>, texts: impl Fn(&Host) -> Vec<String>) -> Done<Vec<String>> {
    let texts = texts(call.data());
    pay(call, texts.iter().map(|text| text.len() + TEXT_BYTES).sum())?;
    Ok(texts)
}

pub(in super::super) fn args(host: &Host) -> Vec<String> {
    let path = format!("/{INPUT}");
    let given = host.environment.args.iter().map(|arg| arg.replace(Environment::FILE, &path));
    std::iter::once(PROGRAM.to_string()).chain(given).chain(host.step.args.iter().cloned()).collect()
}

pub(in super::super) fn vars(host: &Host) -> Vec<String> {
    host.environment.vars.clone()
}

/// Writes a list of addresses, and the texts that they are of, each ended by a 0.
fn put_list(call: &mut Call<'_>, texts: Vec<String>, mut list: u32, mut bytes: u32) -> Done {
    for mut text in texts {
        put_u32(call, list, bytes)?;
        text.push('\0');
        put(call, bytes, text.as_bytes())?;
        // Past the end of memory the next one traps.
        (list, bytes) = (list.wrapping_add(4), bytes.wrapping_add(text.len() as u32));
    }
    Ok(())
}

fn put_sizes(call: &mut Call<'_>, texts: Vec<String>, count: u32, size: u32) -> Done {
    put_u32(call, count, texts.len() as u32)?;
    put_u32(call, size, texts.iter().map(|text| text.len() as u32 + 1).sum())
}

pub(super) fn args_get(call: &mut Call<'_>, list: u32, bytes: u32) -> Done {
    let texts = copied(call, args)?;
    put_list(call, texts, list, bytes)
}

pub(super) fn args_sizes_get(call: &mut Call<'_>, count: u32, size: u32) -> Done {
    let texts = copied(call, args)?;
    put_sizes(call, texts, count, size)
}

pub(super) fn environ_get(call: &mut Call<'_>, list: u32, bytes: u32) -> Done {
    let texts = copied(call, vars)?;
    put_list(call, texts, list, bytes)
}

pub(super) fn environ_sizes_get(call: &mut Call<'_>, count: u32, size: u32) -> Done {
    let texts = copied(call, vars)?;
    put_sizes(call, texts, count, size)
}

/// The clocks of the specification: real time, monotonic, and the time that the process and the thread took.
const CLOCKS: u32 = 4;

pub(super) fn clock_res_get(call: &mut Call<'_>, clock: u32, out: u32) -> Done {
    if clock >= CLOCKS {
        return Err(Errno::Inval.into());
    }
    put_u64(call, out, TICK)
}

pub(super) fn clock_time_get(call: &mut Call<'_>, clock: u32, _precision: u64, out: u32) -> Done {
    if clock >= CLOCKS {
        return Err(Errno::Inval.into());
    }
    jump(call, "clock_time_get", clock == 0)?;
    let (real, monotonic) = change(call).read_clock();
    put_u64(call, out, if clock == 0 { real } else { monotonic })
}

/// The clock may jump when it is read: that of real time to and fro, others ahead.
pub(in super::super) fn jump(call: &mut Call<'_>, name: &str, is_real: bool) -> Done {
    if call.data_mut().struck(name, &[HostFault::ClockJump])?.is_none() {
        return Ok(());
    }
    const SECOND: i64 = 1_000_000_000;
    let jumps = [SECOND, 3600 * SECOND, -SECOND, -3600 * SECOND];
    let index = call.data_mut().ask_index(if is_real { 4 } else { 2 })?;
    match is_real {
        true => change(call).set_ahead(jumps[index]),
        false => change(call).pass(jumps[index].unsigned_abs()),
    }
    Ok(())
}

/// Bytes of randomness that are drawn at once; of more the seed is.
const DRAWN_MAX: u32 = 64;

/// Bytes that are drawn, where randomness is to be.
pub(in super::super) fn drawn_random(call: &mut Call<'_>, len: u32) -> Done<Option<Arc<[u8]>>> {
    let host = call.data();
    if !host.environment.faults.contains(&HostFault::Random) || !host.step.may_choose || len == 0 {
        return Ok(None);
    }
    let drawn = if len > DRAWN_MAX { 8 } else { len };
    let Value::Bytes(bytes) = choose(call, Kind::Bytes { min: drawn, max: drawn })?.clone() else {
        unreachable!("bytes are answered by bytes")
    };
    call.data_mut().step.drew("random", &Value::Bytes(bytes.clone()));
    Ok(Some(bytes))
}

pub(super) fn random_get(call: &mut Call<'_>, out: u32, len: u32) -> Done {
    let memory = memory_of(call)?;
    slice(memory.data(&*call), out, len)?;
    pay(call, len as usize)?;
    let drawn = drawn_random(call, len)?;
    let (data, host) = memory.data_and_store_mut(&mut *call);
    let room = data.get_mut(out as usize..).and_then(|data| data.get_mut(..len as usize));
    let room = room.ok_or_else(|| wasmtime::Error::from(Trap::MemoryOutOfBounds))?;
    fill_random(host, drawn, room);
    mark(call, out, len);
    Ok(())
}

/// Fills `room` with what was drawn, or of what was drawn as a seed, or with what is the same in every run.
pub(in super::super) fn fill_random(host: &mut Host, drawn: Option<Arc<[u8]>>, room: &mut [u8]) {
    match drawn {
        Some(bytes) if bytes.len() == room.len() => room.copy_from_slice(&bytes),
        Some(seed) => {
            let seed = u64::from_le_bytes(*seed.first_chunk().expect("eight bytes"));
            Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(room);
        }
        None => host.system.as_mut().expect("a guest that imports it has one").change().fill_random(room),
    }
}

pub(super) fn sched_yield(_: &mut Call<'_>) -> Done {
    Ok(())
}

pub(super) fn proc_exit(_: Caller<'_, Host>, code: u32) -> wasmtime::Result<()> {
    Err(Stop::Exit(code).into())
}

pub(super) fn proc_raise(_: &mut Call<'_>, signal: u32) -> Done {
    const NAMES: [&str; 31] = [
        "none", "hup", "int", "quit", "ill", "trap", "abrt", "bus", "fpe", "kill", "usr1", "segv", "usr2",
        "pipe", "alrm", "term", "chld", "cont", "stop", "tstp", "ttin", "ttou", "urg", "xcpu", "xfsz",
        "vtalrm", "prof", "winch", "poll", "pwr", "sys",
    ];
    match NAMES.get(signal as usize) {
        None => Err(Errno::Inval.into()),
        // Of these the default is to do nothing.
        Some(&("none" | "pipe" | "chld" | "cont" | "urg" | "winch")) => Ok(()),
        Some(name) => {
            let message = format!("the program raised the signal {}", name.to_uppercase());
            stop(FailureKind::Exit, None, message).map_err(Fail::Stop)
        }
    }
}

/// What a call waits for.
enum Awaited {
    /// A time on the clock that [`super::super::system::State::monotonic`] shows.
    Clock(u64),
    /// A descriptor to be ready to be read or written.
    Descriptor { fd: u32, is_read: bool },
}

/// One event: whose it is, the error, the type, and for descriptors how many bytes there are, and whether no more will come.
struct Event {
    user: [u8; 8],
    error: u16,
    tag: u8,
    bytes: u64,
    is_end: bool,
}

pub(super) fn poll_oneoff(call: &mut Call<'_>, list: u32, events: u32, count: u32, out: u32) -> Done {
    if count == 0 || count > SUBSCRIPTIONS_MAX {
        return Err(Errno::Inval.into());
    }
    pay(call, count as usize * SUBSCRIPTION_BYTES)?;
    struck(call, "poll_oneoff", &WAIT, 2)?;
    let mut awaited = Vec::new();
    for index in 0..count {
        let at = list
            .checked_add(index * SUBSCRIPTION)
            .ok_or_else(|| wasmtime::Error::from(Trap::MemoryOutOfBounds))?;
        let bytes = get(call, at)?;
        awaited.push(subscription(call, &bytes)?);
    }
    let mut ready = Vec::new();
    for (user, tag, what) in &awaited {
        match what {
            Err(errno) => {
                ready.push(Event { user: *user, error: *errno as u16, tag: *tag, bytes: 0, is_end: false });
            }
            Ok(Awaited::Descriptor { fd, is_read }) => {
                ready.push(descriptor_event(call, *user, *tag, (*fd, *is_read))?);
            }
            Ok(Awaited::Clock(_)) => {}
        }
    }
    let clocks = || {
        awaited.iter().filter_map(|(user, tag, what)| match what {
            Ok(Awaited::Clock(until)) => Some((*user, *tag, *until)),
            _ => None,
        })
    };
    // Where something else is ready nothing waits.
    if ready.is_empty()
        && let Some(first) = clocks().map(|(.., until)| until).min()
    {
        let now = system(call).monotonic();
        change(call).pass(first.saturating_sub(now));
    }
    let now = system(call).monotonic();
    let passed = clocks().filter(|(.., until)| *until <= now);
    ready.extend(passed.map(|(user, tag, _)| Event { user, error: 0, tag, bytes: 0, is_end: false }));
    for (index, event) in (0..).zip(&ready) {
        let mut bytes = [0; EVENT];
        bytes[..8].copy_from_slice(&event.user);
        bytes[8..10].copy_from_slice(&event.error.to_le_bytes());
        bytes[10] = event.tag;
        bytes[16..24].copy_from_slice(&event.bytes.to_le_bytes());
        bytes[24] = event.is_end.into();
        put(call, events.wrapping_add(index * EVENT as u32), &bytes)?;
    }
    put_u32(call, out, ready.len() as u32)
}

type Subscription = ([u8; 8], u8, Result<Awaited, Errno>);

fn subscription(call: &Call<'_>, bytes: &[u8; SUBSCRIPTION as usize]) -> Done<Subscription> {
    let u32_at = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("four bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("eight bytes"));
    let user = *bytes.first_chunk().expect("eight bytes");
    let tag = bytes[8];
    let what = match tag {
        0 => {
            let (clock, timeout, flags) = (u32_at(16), u64_at(24), [bytes[40], bytes[41]]);
            let system = system(call);
            match (clock, flags == [1, 0]) {
                (CLOCKS.., _) => Err(Errno::Inval),
                _ if flags[0] > 1 || flags[1] > 0 => Err(Errno::Inval),
                (_, false) => Ok(Awaited::Clock(system.later(timeout))),
                (0, true) => Ok(Awaited::Clock(system.later(timeout.saturating_sub(system.now())))),
                (_, true) => Ok(Awaited::Clock(system.later(timeout.saturating_sub(system.monotonic())))),
            }
        }
        1 | 2 => Ok(Awaited::Descriptor { fd: u32_at(16), is_read: tag == 1 }),
        _ => return Err(Errno::Inval.into()),
    };
    Ok((user, tag, what))
}

fn descriptor_event(call: &mut Call<'_>, user: [u8; 8], tag: u8, (fd, is_read): (u32, bool)) -> Done<Event> {
    let event = |error: u16, bytes, is_end| Event { user, error, tag, bytes, is_end };
    let needed = rights::POLL_FD_READWRITE | if is_read { rights::FD_READ } else { rights::FD_WRITE };
    let open = match system(call).with_rights(fd, needed) {
        Ok(descriptor) => descriptor.open.clone(),
        Err(errno) => return Ok(event(errno as u16, 0, false)),
    };
    Ok(match open {
        Open::Stdin => {
            let left = stdin_left(call)?;
            event(0, left, left == 0)
        }
        Open::File { ino, at } if is_read => {
            let size = system(call).files.content(ino)?.size();
            event(0, size.saturating_sub(at), false)
        }
        _ => event(0, 1 << 16, false),
    })
}
