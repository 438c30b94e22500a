//! Nothing that a module does exhausts or hangs the host: it ends in time, with a documented exit code, and within its
//! account of memory.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

mod modules;

/// What `--time` says; `HOSTILE_SECONDS` says otherwise, and that each module is interrupted, not one in five.
const TIME: Duration = Duration::from_millis(500);

fn time() -> Duration {
    let seconds = std::env::var("HOSTILE_SECONDS").ok();
    seconds.map_or(TIME, |seconds| Duration::from_secs(seconds.parse().unwrap()))
}
/// What a job may take beyond that: a process starts and reports. By default it may be twice as much, on a machine that does
/// other things too.
fn late() -> Duration {
    Duration::from_millis(if std::env::var_os("HOSTILE_SECONDS").is_some() { 500 } else { 1000 })
}
/// MiB that `--memory` allows, and `--memory-max` each guest.
const MEMORY: u64 = 64;
/// MiB that compiling may hold.
const COMPILING: &str = "192";
/// MiB that a process of one worker may hold: `--memory`, a guest's memory and what is known of it, and what the host
/// needs itself.
const HELD_MAX: u64 = 3 * MEMORY + 160;
/// A process that is not done by then has to be ended.
const NEVER: Duration = Duration::from_secs(20);

/// How a process ended.
struct End {
    code: Option<i32>,
    took: Duration,
    /// MiB that it held at most.
    held: u64,
    stderr: String,
}

/// Waits for the process, and looks at what it holds; interrupts it after `interrupt`.
fn wait(mut child: Child, interrupt: Option<Duration>, stderr: &Path) -> End {
    let began = Instant::now();
    let (mut held, mut is_interrupted) = (0, false);
    let status = loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        // Before it has its name it may still have the memory of this process.
        let is_own = status.starts_with("Name:\tspelunk\n");
        let line = status.lines().filter(|_| is_own).find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: Option<u64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        held = held.max(kib.unwrap_or(0) >> 10);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if interrupt.is_some_and(|after| began.elapsed() > after) && !is_interrupted {
            is_interrupted = true;
            Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        }
        if began.elapsed() > NEVER {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(4));
    };
    let stderr = std::fs::read_to_string(stderr).unwrap_or_default();
    End { code: status.code(), took: began.elapsed(), held, stderr }
}

fn spelunk(folder: &Path, arguments: &[&str], interrupt: Option<Duration>) -> End {
    let stderr = folder.join("stderr");
    let child = Command::new(env!("CARGO_BIN_EXE_spelunk"))
        .args(arguments)
        .current_dir(folder)
        .env("SPELUNK_IN_MEMORY", "true")
        .env("XDG_CACHE_HOME", folder)
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&stderr).unwrap())
        .spawn()
        .unwrap();
    wait(child, interrupt, &stderr)
}

/// Runs `verb` on each module, two at a time; all that went wrong.
fn check(verb: &str, modules: &[(String, Vec<u8>)], interrupt: Option<Duration>) {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let time = humantime(time());
    let work = || {
        while let Some((name, wasm)) = modules.get(next.fetch_add(1, Ordering::Relaxed)) {
            if std::env::var("HOSTILE_ONLY").is_ok_and(|only| !name.contains(&only)) {
                continue;
            }
            let folder = folder(&format!("{verb}-{}-{name}", interrupt.is_some()));
            std::fs::write(folder.join("guest.wasm"), wasm).unwrap();
            let memory = MEMORY.to_string();
            let mut arguments = vec![verb, "guest.wasm", "--no-cache", "--workers", "1"];
            arguments.extend(["--memory", &memory, "--memory-max", &memory, "--compile-memory", COMPILING]);
            if verb == "explore" {
                arguments.extend(["--seed", "1", "--max-findings", "0", "--max-checkpoints", "10000"]);
            }
            if interrupt.is_none() {
                arguments.extend(["--time", &time]);
            }
            let end = spelunk(&folder, &arguments, interrupt);
            let is_known = matches!(end.code, Some(0..=4 | 130)) && !end.stderr.contains("--help");
            let in_time = end.took < interrupt.unwrap_or_else(self::time) + late();
            if std::env::var_os("HOSTILE_VERBOSE").is_some() {
                eprintln!("{verb} {name}: {:?}, {:?}, {} MiB", end.code, end.took, end.held);
            }
            if !is_known || !in_time || end.held > HELD_MAX {
                let (code, took, held) = (end.code, end.took, end.held);
                let said = end.stderr.lines().next_back().unwrap_or_default().to_string();
                wrong.lock().unwrap().push(format!("{name}: {code:?} after {took:?}, {held} MiB: {said}"));
            }
            std::fs::remove_dir_all(&folder).unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{verb}: {} of {}:\n{}", wrong.len(), modules.len(), wrong.join("\n"));
}

fn humantime(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn exploring_hostile_modules_ends_in_time_and_within_the_account() {
    let modules = modules::all();
    assert_eq!(modules.len(), 225);
    check("explore", &modules, None);
}

#[test]
fn checking_hostile_modules_ends_in_time_and_within_the_account() {
    check("check", &modules::all(), None);
}

#[test]
fn one_interrupt_is_enough() {
    check("explore", &modules::some(), Some(Duration::from_millis(500)));
    check("check", &modules::some(), Some(Duration::from_millis(300)));
}

/// `timeout` sends its signal to the process, and to its group.
#[test]
fn two_signals_at_once_are_one() {
    let folder = folder("signals");
    std::fs::write(folder.join("guest.wat"), "(module (func (export \"rule:a\")))").unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_spelunk"))
        .args(["explore", "guest.wat", "--json", "--in-memory", "--time", "60s", "--workers", "1"])
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let id = child.id();
    let command = format!("kill -TERM {id}; sleep 0.02; kill -TERM {id}");
    assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(said.lines().next_back().is_some_and(|line| line.contains("\"type\":\"end\"")), "{said}");
}

#[test]
fn memory_that_is_never_touched_is_not_resident() {
    for verb in ["explore", "check"] {
        let folder = folder(&format!("untouched-{verb}"));
        let wasm = "(module (memory 16384) (func (export \"rule:a\") (i32.store (i32.const 1073741820) (i32.const 1))))";
        std::fs::write(folder.join("guest.wat"), wasm).unwrap();
        let arguments =
            [verb, "guest.wat", "--no-cache", "--workers", "1", "--memory", "64", "--runs", "1000"];
        let end = spelunk(&folder, &arguments, None);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        // A page and its mark: nothing in proportion to the memory but those.
        assert!(end.held < 160, "{verb}: {} MiB", end.held);
    }
}

/// Where this process may have little address space, the host fails, and never the guest.
#[test]
fn a_lack_of_address_space_is_an_error_and_no_finding() {
    let folder = folder("address-space");
    let wasm = modules::growing(99);
    std::fs::write(folder.join("guest.wasm"), wasm).unwrap();
    let command = format!(
        "ulimit -v 40000000; exec {} explore guest.wasm --no-cache --workers 1 --time 2s --memory 64",
        env!("CARGO_BIN_EXE_spelunk")
    );
    let stderr = folder.join("stderr");
    let child = Command::new("sh")
        .args(["-c", &command])
        .current_dir(&folder)
        .env("SPELUNK_IN_MEMORY", "true")
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&stderr).unwrap())
        .spawn()
        .unwrap();
    let end = wait(child, None, &stderr);
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert!(end.stderr.contains("there is no more address space for the memory of guests"), "{}", end.stderr);
}
