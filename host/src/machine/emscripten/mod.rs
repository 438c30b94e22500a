//! What Emscripten's modules import beside WASI, on the virtual system; `docs/emscripten.md` lists it.
//!
//! A function takes what its name says, wherever a module imports it from. Errors are the negative numbers that WASI gives them.
//! An address outside memory is a trap, as everywhere.
//!
//! | file | what |
//! |---|---|
//! | `names` | what exports and imports are called, and which exports are nothing to explore |
//! | `linking` | memory, table and addresses of a module that may be loaded anywhere |
//! | `memory`, `paths` | texts and paths of a guest |
//! | `files`, `attributes`, `descriptors` | system calls on paths, on what is known of files, and on descriptors |
//! | `mapping` | files in memory |
//! | `time` | calendars |
//! | `basics` | clocks, the heap, the end of a program |
//! | `main` | the start of a program |
//! | `calls`, `exceptions` | `invoke_*`, `longjmp` and exceptions of C++: calls that may be left |

mod attributes;
mod basics;
mod calls;
mod descriptors;
mod exceptions;
mod files;
pub(super) mod linking;
mod main;
mod mapping;
mod memory;
pub(super) mod names;
mod paths;
mod time;

use wasmtime::{Caller, Func, FuncType, Module, Store, Val, ValType};

pub(super) use basics::{clock, random};
pub(super) use main::{Main, Stack};

use super::host::{Host, pay};
use super::preview1::{Done, Fail};
use memory::Call;

/// A call costs as much as reading so many bytes, besides what it does.
const CALL_BYTES: usize = 1024;

/// What a function returns, or why the guest does not go on.
fn told(done: Done<i32>) -> wasmtime::Result<i32> {
    match done {
        Ok(value) => Ok(value),
        Err(Fail::Errno(errno)) => Ok(-(errno as i32)),
        Err(Fail::Stop(error)) => Err(error),
    }
}

macro_rules! answers {
    ($store:ident, $wanted:ident: $($name:literal => $room:ident::$function:ident($($arg:ident: $type:ty),*);)*) => {
        match $wanted {
            $($name => Some(Func::wrap(&mut *$store, |mut call: Caller<'_, Host>, $($arg: $type),*| {
                pay(&mut call, CALL_BYTES)?;
                told($room::$function(&mut call, $($arg),*))
            })),)*
            _ => None,
        }
    };
}

/// The function that a module of Emscripten imports under this name, where it is known with this type.
pub(super) fn provided(
    store: &mut Store<Host>,
    module: &Module,
    name: &str,
    wanted: &FuncType,
) -> Option<Func> {
    if let Some(invoke) = calls::invoke(store, module, name, wanted) {
        return Some(invoke);
    }
    let found = on_paths(store, name)
        .or_else(|| on_descriptors(store, name))
        .or_else(|| of_process(store, name))
        .or_else(|| basics::provided(store, name))
        .or_else(|| calls::provided(store, module, name));
    found.and_then(|func| fitted(store, func, wanted))
}

fn on_paths(store: &mut Store<Host>, name: &str) -> Option<Func> {
    answers! { store, name:
        "__syscall_openat" => files::openat(at: i32, path: u32, flags: u32, more: u32);
        "__syscall_mkdirat" => files::mkdirat(at: i32, path: u32, mode: u32);
        "__syscall_unlinkat" => files::unlinkat(at: i32, path: u32, flags: u32);
        "__syscall_rmdir" => files::rmdir(path: u32);
        "__syscall_renameat" => files::renameat(from: i32, old: u32, to: i32, new: u32);
        "__syscall_symlinkat" => files::symlinkat(target: u32, at: i32, path: u32);
        "__syscall_linkat" => files::linkat(from: i32, old: u32, to: i32, new: u32, flags: u32);
        "__syscall_readlinkat" => files::readlinkat(at: i32, path: u32, out: u32, room: u32);
        "__syscall_truncate64" => files::truncate64(path: u32, size: i64);
        "__syscall_getcwd" => files::getcwd(out: u32, room: u32);
        "__syscall_chdir" => files::chdir(path: u32);
        "__syscall_fchdir" => files::fchdir(fd: u32);
        "__syscall_stat64" => attributes::stat64(path: u32, out: u32);
        "__syscall_lstat64" => attributes::lstat64(path: u32, out: u32);
        "__syscall_newfstatat" => attributes::newfstatat(at: i32, path: u32, out: u32, flags: u32);
        "__syscall_statfs64" => attributes::statfs64(path: u32, size: u32, out: u32);
        "__syscall_faccessat" => attributes::faccessat(at: i32, path: u32, mode: u32, flags: u32);
        "__syscall_chmod" => attributes::chmod(path: u32, mode: u32);
        "__syscall_fchmodat" => attributes::fchmodat(at: i32, path: u32, mode: u32, more: u32);
        "__syscall_fchmodat2" => attributes::fchmodat(at: i32, path: u32, mode: u32, flags: u32);
        "__syscall_fchownat" => attributes::fchownat(at: i32, path: u32, user: u32, group: u32, flags: u32);
        "__syscall_utimensat" => attributes::utimensat(at: i32, path: u32, times: u32, flags: u32);
    }
}

fn on_descriptors(store: &mut Store<Host>, name: &str) -> Option<Func> {
    answers! { store, name:
        "__syscall_fstat64" => attributes::fstat64(fd: u32, out: u32);
        "__syscall_fstatfs64" => attributes::fstatfs64(fd: u32, size: u32, out: u32);
        "__syscall_fchmod" => attributes::fchmod(fd: u32, mode: u32);
        "__syscall_fchown32" => attributes::fchown32(fd: u32, user: u32, group: u32);
        "__syscall_ftruncate64" => descriptors::ftruncate64(fd: u32, size: i64);
        "__syscall_fallocate" => descriptors::fallocate(fd: u32, mode: u32, at: i64, len: i64);
        "__syscall_fadvise64" => descriptors::fadvise64(fd: u32, at: i64, len: i64, advice: u32);
        "__syscall_fdatasync" => descriptors::fdatasync(fd: u32);
        "__syscall_fcntl64" => descriptors::fcntl64(fd: u32, command: u32, more: u32);
        "__syscall_ioctl" => descriptors::ioctl(fd: u32, request: u32, more: u32);
        "__syscall_getdents64" => descriptors::getdents64(fd: u32, out: u32, room: u32);
        "__syscall_dup" => descriptors::dup(fd: u32);
        "__syscall_dup3" => descriptors::dup3(fd: u32, to: u32, flags: u32);
        "__syscall_poll" => descriptors::poll(list: u32, count: u32, timeout: i32);
        "_mmap_js" => mapping::mmap(
            len: u32, protection: u32, flags: u32, fd: u32, at: i64, allocated: u32, out: u32
        );
        "_munmap_js" => mapping::munmap(from: u32, len: u32, protection: u32, flags: u32, fd: u32, at: i64);
        "_msync_js" => mapping::msync(from: u32, len: u32, protection: u32, flags: u32, fd: u32, at: i64);
    }
}

fn of_process(store: &mut Store<Host>, name: &str) -> Option<Func> {
    if let Some(number) = basics::constant(name) {
        return Some(Func::wrap(store, move || number));
    }
    if name == "_mktime_js" || name == "_timegm_js" {
        return Some(time::seconds(store, name == "_mktime_js"));
    }
    answers! { store, name:
        "__syscall_umask" => files::umask(mask: u32);
        "_localtime_js" => time::localtime(time: i64, out: u32);
        "_gmtime_js" => time::gmtime(time: i64, out: u32);
        "_tzset_js" => time::tzset(zone: u32, daylight: u32, standard: u32, summer: u32);
        "_emscripten_get_progname" => basics::program_name(out: u32, room: u32);
        "_emscripten_sanitizer_get_option" => basics::no_option(name: u32);
        "_setitimer_js" => basics::no_timer(which: u32, milliseconds: f64);
    }
}

/// The function with this type, where it has it but for what Emscripten does at the edge of a module: an `i64` comes as two
/// `i32`, the lower half first, and results are left out.
pub(super) fn fitted(store: &mut Store<Host>, func: Func, wanted: &FuncType) -> Option<Func> {
    let own = func.ty(&*store);
    if FuncType::eq(&own, wanted) {
        return Some(func);
    }
    let results: Vec<ValType> = own.results().collect();
    let same = |ours: &[ValType], theirs: &mut dyn Iterator<Item = ValType>| {
        let theirs: Vec<ValType> = theirs.collect();
        ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(one, other)| ValType::eq(one, other))
    };
    if wanted.results().len() > 0 && !same(&results, &mut wanted.results()) {
        return None;
    }
    let halves = |ty: &ValType| if ty.is_i64() { vec![ValType::I32; 2] } else { vec![ty.clone()] };
    let params: Vec<ValType> = own.params().collect();
    let split: Vec<ValType> = params.iter().flat_map(halves).collect();
    let is_split = same(&split, &mut wanted.params());
    if !is_split && !same(&params, &mut wanted.params()) {
        return None;
    }
    let adapted = move |mut call: Caller<'_, Host>, given: &[Val], out: &mut [Val]| {
        let mut given = given.iter().cloned();
        let mut next = || given.next().unwrap_or(Val::I32(0));
        let mut args = Vec::new();
        for ty in &params {
            args.push(match ty {
                ValType::I64 if is_split => {
                    let [low, high] = [next(), next()].map(|half| half.unwrap_i32() as u32);
                    Val::I64((u64::from(high) << 32 | u64::from(low)) as i64)
                }
                _ => next(),
            });
        }
        let mut own: Vec<Val> = results.iter().map(|_| Val::I32(0)).collect();
        func.call(&mut call, &args, &mut own)?;
        out.iter_mut().zip(own).for_each(|(out, value)| *out = value);
        Ok(())
    };
    Some(Func::new(store, wanted.clone(), adapted))
}

/// A function of WASI that has more to do in a module of Emscripten: its directories are listed from a place that can be set.
pub(super) fn in_place_of(store: &mut Store<Host>, module: &Module, name: &str, wasi: Func) -> Option<Func> {
    let lists = || module.imports().any(|import| names::known_as(&import).1 == "__syscall_getdents64");
    if name != "fd_seek" || !lists() {
        return None;
    }
    let seek = wasi.typed::<(u32, i64, u32, u32), u32>(&*store).ok()?;
    let seeking = move |mut call: Caller<'_, Host>, fd: u32, offset: i64, whence: u32, out: u32| {
        let listed = descriptors::seek_listing(&mut call, fd, offset, whence);
        let Some(listed) = listed else { return seek.call(&mut call, (fd, offset, whence, out)) };
        match listed.and_then(|place| memory::put(&mut call, out, &place.to_le_bytes())) {
            Ok(()) => Ok(0),
            Err(Fail::Errno(errno)) => Ok(errno as u32),
            Err(Fail::Stop(error)) => Err(error),
        }
    };
    Some(Func::wrap(store, seeking))
}

/// The virtual system, to be looked at.
fn system<'c>(call: &'c Call<'_>) -> &'c super::system::State {
    call.data().system.as_ref().map(super::system::System::get).expect("a guest that imports it has one")
}

/// The virtual system, to be changed.
fn change<'c>(call: &'c mut Call<'_>) -> &'c mut super::system::State {
    call.data_mut()
        .system
        .as_mut()
        .map(super::system::System::change)
        .expect("a guest that imports it has one")
}
