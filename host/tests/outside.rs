//! Nothing of the host is reachable from a guest, and no result depends on it: not on the process, its environment, its folder
//! or the time.

use std::path::Path;
use std::process::Command;

/// A guest that tries: a call that finds anything of the host is a trap.
const GUEST: &str = r#"(module
  (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_filestat_get" (func $stat (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_readlink" (func $readlink (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $time (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "spelunk" "event" (func $event (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "PATHS")
  (func $refused (param $errno i32) (if (i32.eqz (local.get $errno)) (then unreachable)))
  ;; Each path, from each descriptor that may be a folder, with and without links being followed.
  (func $try (param $path i32) (param $len i32) (local $fd i32) (local $follow i32)
    (loop $fds
      (local.set $follow (i32.const 0))
      (loop $follows
        (call $refused (call $open (local.get $fd) (local.get $follow) (local.get $path) (local.get $len)
          (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 8192)))
        (call $refused (call $stat (local.get $fd) (local.get $follow) (local.get $path) (local.get $len) (i32.const 8192)))
        (br_if $follows (i32.lt_u (local.tee $follow (i32.add (local.get $follow) (i32.const 1))) (i32.const 2))))
      (br_if $fds (i32.lt_u (local.tee $fd (i32.add (local.get $fd) (i32.const 1))) (i32.const 9)))))
  (func (export "rule:reach") (local $at i32) (local $end i32)
    (loop $paths
      (local.set $end (local.get $at))
      (loop $ends (br_if $ends (i32.load8_u (local.tee $end (i32.add (local.get $end) (i32.const 1))))))
      (call $try (local.get $at) (i32.sub (local.get $end) (local.get $at)))
      (local.set $at (i32.add (local.get $end) (i32.const 1)))
      (br_if $paths (i32.load8_u (local.get $at)))))
  ;; The link that the folder came with says where it leads, and leads nowhere.
  (func (export "rule:link")
    (if (call $readlink (i32.const 3) (i32.const 4096) (i32.const 8) (i32.const 8192) (i32.const 100) (i32.const 8400)) (then unreachable))
    (call $event (i32.const 8192) (i32.load (i32.const 8400))))
  (func (export "rule:look")
    (drop (call $environ (i32.const 8192) (i32.const 8196))) (drop (call $args (i32.const 8200) (i32.const 8204)))
    (if (i32.or (i32.load (i32.const 8192)) (i32.ne (i32.load (i32.const 8200)) (i32.const 1))) (then unreachable))
    (drop (call $time (i32.const 0) (i64.const 0) (i32.const 8208))) (drop (call $time (i32.const 2) (i64.const 0) (i32.const 8216)))
    (drop (call $random (i32.const 8224) (i32.const 8)))
    (i64.store (i32.const 9000) (i64.load (i32.const 8208))) (i64.store (i32.const 9008) (i64.load (i32.const 8216)))
    (i64.store (i32.const 9016) (i64.load (i32.const 8224))) (call $event (i32.const 9000) (i32.const 24)))
  (data (i32.const 4096) "absolute"))"#;

/// All ends of a path to a file of the host, and of paths that lead out.
fn paths(secret: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for file in ["/etc/passwd", "/etc", "/proc/self/environ", "/dev/urandom", secret] {
        let below = file.trim_start_matches('/');
        paths.extend([file.to_string(), format!("/{file}"), format!("/.{file}"), below.to_string()]);
        paths.extend((1..9).step_by(3).map(|up| format!("{}{below}", "../".repeat(up))));
        paths.extend([
            format!("folder/../..{file}"),
            format!("./..{file}"),
            format!("folder/../../..{file}/"),
        ]);
    }
    // Links that the folder holds, to absolute paths and out of it.
    let links = ["absolute", "out", "root"]
        .map(|link| [format!("{link}/"), format!("{link}/passwd"), format!("{link}/etc/passwd")]);
    paths.extend(links.into_iter().flatten());
    paths.extend(["..", "../", "/", "//", "folder/../..", "root/..", "../.."].map(str::to_string));
    paths
}

/// The exit code of an exploration, and what it reports, in another folder, environment and process each time.
fn explored(at: &Path, name: &str, vars: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let folder = at.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let arguments =
        ["explore", "../guest.wat", "--dir", "../folder::/folder", "--runs", "300", "--seed", "1"];
    let output = Command::new(env!("CARGO_BIN_EXE_spelunk"))
        .args(arguments)
        .args(["--in-memory", "--no-cache", "--workers", "1", "--report", "report.json"])
        .current_dir(&folder)
        .envs(vars.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), said, std::fs::read_to_string(folder.join("report.json")).unwrap())
}

#[test]
fn nothing_of_the_host_is_reachable() {
    let at = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside");
    let _ = std::fs::remove_dir_all(&at);
    std::fs::create_dir_all(at.join("folder/inside")).unwrap();
    let secret = at.join("secret");
    std::fs::write(&secret, "a secret").unwrap();
    std::fs::write(at.join("folder/inside/file"), "a file").unwrap();
    for (target, link) in [("/etc/passwd", "absolute"), ("../secret", "out"), ("/", "root")] {
        std::os::unix::fs::symlink(target, at.join("folder").join(link)).unwrap();
    }
    let guest = |paths: &[String]| {
        assert!(paths.iter().map(|path| path.len() + 1).sum::<usize>() < 4096);
        let paths = paths.join("\\00") + "\\00\\00";
        std::fs::write(at.join("guest.wat"), GUEST.replace("PATHS", &paths)).unwrap();
    };
    guest(&paths(secret.to_str().unwrap()));
    let one = explored(&at, "one", &[("SECRET", "1"), ("TZ", "UTC")]);
    let two = explored(
        &at,
        "two",
        &[("PWD", "/"), ("HOME", "/root"), ("TZ", "Asia/Tokyo"), ("LD_LIBRARY_PATH", "x")],
    );
    assert_eq!(one, two);
    assert_eq!(one.0, Some(0), "{}", one.1);
    // The link says where it leads, and the clock and the randomness are those of every run.
    assert!(one.2.contains("/etc/passwd"), "{}", one.2);
    // A file that was given would be found.
    guest(&["inside/file".to_string()]);
    assert_eq!(explored(&at, "three", &[]).0, Some(1));
}

/// A guest that takes what a system gives: time, randomness, a file of a folder; and keeps a file of its own.
const TAKER: &str = r#"(module
  (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $time (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "file") (data (i32.const 16) "new") (data (i32.const 32) "\40\00\00\00\40\00\00\00")
  (func $opened (param $path i32) (param $len i32) (param $flags i32) (result i32)
    (if (call $open (i32.const 3) (i32.const 0) (local.get $path) (local.get $len) (local.get $flags)
      (i64.const 0x42) (i64.const 0) (i32.const 0) (i32.const 48)) (then unreachable))
    (i32.load (i32.const 48)))
  (func (export "rule:take")
    (drop (call $read (call $opened (i32.const 0) (i32.const 4) (i32.const 0)) (i32.const 32) (i32.const 1) (i32.const 52)))
    (drop (call $time (i32.const 0) (i64.const 0) (i32.const 80)))
    (drop (call $random (i32.const 88) (i32.const 8)))
    (drop (call $write (call $opened (i32.const 16) (i32.const 3) (i32.const 1)) (i32.const 32) (i32.const 1) (i32.const 52))))
  (func (export "rule:fail") (if (i64.ne (i64.load (i32.const 88)) (i64.const 0)) (then unreachable))))"#;

/// What a command in this folder prints, which fails.
fn failing(folder: &Path, arguments: &[&str], vars: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spelunk"));
    command.args(arguments).args(["--no-cache", "--dir", "data::/"]).current_dir(folder);
    let output = command.envs(vars.iter().copied()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_trace_leads_to_the_same_state_in_any_process_and_folder() {
    let at = Path::new(env!("CARGO_TARGET_TMPDIR")).join("anywhere");
    let _ = std::fs::remove_dir_all(&at);
    let folders = ["one", "two/of another name"].map(|name| at.join(name));
    for folder in &folders {
        std::fs::create_dir_all(folder.join("data")).unwrap();
        std::fs::write(folder.join("data/file"), "what is read").unwrap();
        std::fs::write(folder.join("guest.wat"), TAKER).unwrap();
    }
    failing(&folders[0], &["explore", "guest.wat", "--runs", "100", "--seed", "1"], &[]);
    let findings = folders[0].join(".spelunk/guest.wat/findings");
    let trace = std::fs::read_dir(findings).unwrap().next().unwrap().unwrap().path();
    for folder in &folders {
        std::fs::copy(&trace, folder.join("trace.json")).unwrap();
    }
    let replay = ["replay", "guest.wat", "trace.json", "--json"];
    let one = failing(&folders[0], &replay, &[]);
    let state =
        one.split("\"state\":\"").nth(1).and_then(|rest| rest.get(..32)).expect("replay says the state");
    assert!(state.bytes().all(|byte| byte.is_ascii_hexdigit()), "{state}");
    assert_eq!(failing(&folders[0], &replay, &[("TZ", "Asia/Tokyo"), ("HOME", "/")]), one);
    assert_eq!(failing(&folders[1], &replay, &[("LANG", "C")]), one);
}
