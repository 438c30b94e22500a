//! The attacks. Each is a rule, beside another that does little: it makes a directory and removes it.

/// A module, and how its first rule ends: for ever is ended as a hang.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) wasm: Vec<u8>,
    pub(crate) expected: &'static str,
}

/// Imports, and functions that make calls shorter. The descriptor 3 is `/`; a name of five letters is at 64,
/// `zz` at 80, `a/` at 96, `./` at 100, `x/` at 104, `../` at 108, `//` at 112.
const HEAD: &str = r#"
  (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_allocate" (func $fd_allocate (param i32 i64 i64) (result i32)))
  (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_filestat_set_size" (func $set_size (param i32 i64) (result i32)))
  (import "wasi_snapshot_preview1" "fd_pread" (func $fd_pread (param i32 i32 i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_pwrite" (func $fd_pwrite (param i32 i32 i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_readdir" (func $fd_readdir (param i32 i32 i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_renumber" (func $fd_renumber (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_seek" (func $fd_seek (param i32 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_create_directory" (func $mkdir (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_filestat_get" (func $stat (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_link" (func $link (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_readlink" (func $readlink (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_remove_directory" (func $rmdir (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_rename" (func $rename (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_symlink" (func $symlink (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_unlink_file" (func $unlink (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sched_yield" (func $sched_yield (result i32)))
  (memory (export "memory") 128 128)
  (func $name (param $n i32)
    (i32.store8 (i32.const 64) (i32.add (i32.const 97) (i32.and (local.get $n) (i32.const 15))))
    (i32.store8 (i32.const 65) (i32.add (i32.const 97) (i32.and (i32.shr_u (local.get $n) (i32.const 4)) (i32.const 15))))
    (i32.store8 (i32.const 66) (i32.add (i32.const 97) (i32.and (i32.shr_u (local.get $n) (i32.const 8)) (i32.const 15))))
    (i32.store8 (i32.const 67) (i32.add (i32.const 97) (i32.and (i32.shr_u (local.get $n) (i32.const 12)) (i32.const 15))))
    (i32.store8 (i32.const 68) (i32.add (i32.const 97) (i32.and (i32.shr_u (local.get $n) (i32.const 16)) (i32.const 15)))))
  (func $open (param $at i32) (param $path i32) (param $len i32) (param $how i32) (result i32)
    (drop (call $path_open (local.get $at) (i32.const 1) (local.get $path) (local.get $len) (local.get $how)
      (i64.const 268435391) (i64.const 268435455) (i32.const 0) (i32.const 512)))
    (i32.load (i32.const 512)))
  (func $file (param $path i32) (param $len i32) (result i32)
    (drop (call $path_open (i32.const 3) (i32.const 1) (local.get $path) (local.get $len) (i32.const 1)
      (i64.const 268435455) (i64.const 0) (i32.const 0) (i32.const 512)))
    (i32.load (i32.const 512)))
  (func $again (param $at i32) (param $what i32) (param $count i32) (param $step i32)
    (loop $l
      (i32.store8 (local.get $at) (i32.load8_u (local.get $what)))
      (i32.store8 (i32.add (local.get $at) (i32.const 1)) (i32.load8_u (i32.add (local.get $what) (i32.const 1))))
      (local.set $at (i32.add (local.get $at) (local.get $step)))
      (br_if $l (local.tee $count (i32.sub (local.get $count) (i32.const 1))))))
  (func $parts (param $at i32) (param $count i32) (param $to i32) (param $len i32)
    (loop $l
      (i32.store (local.get $at) (local.get $to))
      (i32.store offset=4 (local.get $at) (local.get $len))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br_if $l (local.tee $count (i32.sub (local.get $count) (i32.const 1))))))
  (func (export "rule:other")
    (drop (call $mkdir (i32.const 3) (i32.const 80) (i32.const 2))) (drop (call $rmdir (i32.const 3) (i32.const 80) (i32.const 2))))
  (data (i32.const 80) "zz") (data (i32.const 96) "a/") (data (i32.const 100) "./") (data (i32.const 104) "x/") (data (i32.const 108) "../") (data (i32.const 112) "//")"#;

fn attack(name: &'static str, expected: &'static str, body: &str) -> Attack {
    let rule = format!(
        "(func (export \"rule:attack\") (local $i i32) (local $f i32) (local $g i32) (local $j i64) {body})"
    );
    // The attack is the first rule.
    let head = HEAD.split_once("(func (export").unwrap();
    let wasm = wat::parse_str(format!("(module {} {rule} (func (export{})", head.0, head.1));
    Attack { name, wasm: wasm.unwrap_or_else(|error| panic!("{name}: {error}")), expected }
}

/// Text in the text format: constants are `#1`, and results are dropped where a line ends.
fn wat(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut parts = line.split('#');
        let mut shown = parts.next().unwrap().to_string();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(part.len());
            shown += &format!("(i32.const {}){}", &part[..end], &part[end..]);
        }
        out += &match line.starts_with("$") {
            true => format!("(drop (call {shown}))\n"),
            false => format!("{shown}\n"),
        };
    }
    out
}

const NEXT: &str = "(local.set $i (i32.add (local.get $i) (i32.const 1)))";
/// Makes the name of the count.
const NAME: &str = "(call $name (local.get $i))";

/// This, and then that for ever.
fn endless(name: &'static str, first: &str, body: &str) -> Attack {
    attack(name, "hang", &format!("{} (loop $l {NEXT} {NAME} {} (br $l))", wat(first), wat(body)))
}

/// This, so many times.
fn times(count: u32, body: &str) -> String {
    format!("(loop $t {NEXT} {NAME}\n{body}\n(br_if $t (i32.lt_u (local.get $i) (i32.const {count}))))")
}

fn once(name: &'static str, expected: &'static str, body: &str) -> Attack {
    attack(name, expected, &wat(body))
}

/// Fills 4,096 bytes at 8,192 with two letters, each further on by some.
fn path_of(from: u32, step: u32) -> String {
    format!("(call $again #8192 #{from} #{} #{step})", 4096 / step)
}

fn paths() -> Vec<Attack> {
    let stat = "$stat #3 #1 #8192 #4096 #1024";
    let doubling = format!("$symlink #100 #1 #3 #64 #5\n{}", times(40, DOUBLE));
    vec![
        endless("dots", &path_of(100, 2), stat),
        endless("parts-that-are-missing", &path_of(104, 2), stat),
        endless("parts-that-are-there", &format!("$mkdir #3 #104 #1\n{}", UP_AND_DOWN), stat),
        endless("slashes", &format!("$mkdir #3 #96 #1\n{}\n(i32.store8 #8192 #97)", path_of(112, 1)), stat),
        endless("up-and-up", "(call $again #8192 #108 #1365 #3) (call $again #8193 #100 #1365 #3)", stat),
        endless("long-paths", "(memory.fill #8192 #97 #70000)", "$stat #3 #1 #8192 #65537 #1024"),
        endless("bytes-that-are-no-text", "(memory.fill #8192 #255 #4096)", stat),
        endless("zeros", "", "$stat #3 #1 #8192 #4096 #1024"),
        endless("a-link-to-itself", "$symlink #96 #1 #3 #96 #1", "$stat #3 #1 #96 #1 #1024"),
        endless("links-that-double", &doubling, "(call $name #39)\n$stat #3 #1 #64 #5 #1024"),
        endless(
            "links-of-dots",
            &format!("{}\n{}", path_of(100, 2), CHAIN),
            "(call $name #40)\n$stat #3 #1 #64 #5 #1024",
        ),
        endless(
            "links-of-parts",
            &format!("{}\n{}", path_of(96, 2), CHAIN),
            "(call $name #40)\n$stat #3 #1 #64 #5 #1024",
        ),
        endless(
            "links-out",
            "$symlink #108 #2 #3 #96 #1",
            "$stat #3 #1 #96 #2 #1024\n$path_open #3 #1 #96 #1 #1 (i64.const 0) (i64.const 0) #0 #1024",
        ),
        endless(
            "long-names",
            "(memory.fill #8192 #97 #4096)",
            "$mkdir #3 #8192 #256\n$mkdir #3 #8192 #255\n$rmdir #3 #8192 #255",
        ),
        endless(
            "deep-below",
            &format!("(local.set $f #3)\n{}", times(5000, DOWN)),
            "$rename #3 #104 #1 (local.get $f) #96 #1",
        ),
        endless(
            "deep-and-moved",
            &format!("(local.set $f #3)\n$mkdir #3 #96 #1\n{}", times(5000, DOWN)),
            "$rename #3 #96 #1 (local.get $f) #96 #1\n$rename (local.get $f) #96 #1 #3 #96 #1",
        ),
        endless("deep-for-ever", "(local.set $f #3)", DOWN),
        endless(
            "read-links",
            &format!("{}\n$symlink #8192 #4096 #3 #80 #1", path_of(96, 2)),
            "$readlink #3 #80 #1 #100000 #4096 #1024",
        ),
    ]
}

/// A link to the one before, twice.
const DOUBLE: &str = "(call $name (i32.sub (local.get $i) #1)) (memory.copy #8192 #64 #5) (i32.store8 #8197 #47) (memory.copy #8198 #64 #5)
    (call $name (local.get $i))
    $symlink #8192 #11 #3 #64 #5";
/// `x/../` again and again.
const UP_AND_DOWN: &str =
    "(call $again #8195 #100 #819 #5) (call $again #8194 #108 #819 #5) (call $again #8192 #104 #819 #5)";
/// Forty links, each to the one before by way of a long path.
const CHAIN: &str = "(loop $t
    (call $name (local.get $i)) (memory.copy #12280 #64 #5)
    (local.set $i (i32.add (local.get $i) #1)) (call $name (local.get $i))
    $symlink #8192 #4093 #3 #64 #5
    (br_if $t (i32.lt_u (local.get $i) #40)))";
/// A directory in that which is open, which is opened in its place.
const DOWN: &str = "$mkdir (local.get $f) #104 #1
    (local.set $g (call $open (local.get $f) #104 #1 #2))
    (if (i32.ne (local.get $f) #3) (then (drop (call $fd_close (local.get $f)))))
    (local.set $f (local.get $g))";

fn trees() -> Vec<Attack> {
    let open = "(local.set $f (call $file #96 #1))";
    vec![
        endless("a-million-files", "", "$fd_close (call $file #64 #5)"),
        endless("a-million-directories", "", "$mkdir #3 #64 #5"),
        endless("a-million-links", "", "$symlink #64 #5 #3 #64 #5"),
        endless("links-with-long-targets", &path_of(96, 2), "$symlink #8192 #4096 #3 #64 #5"),
        endless("hard-links", open, "$link #3 #0 #96 #1 #3 #64 #5"),
        endless(
            "hard-links-of-many",
            "",
            "$fd_close (call $file #64 #5)\n(memory.copy #8192 #64 #5)\n(local.set $f #0) (loop $m (local.set $f (i32.add (local.get $f) #1)) (call $name (i32.add #500000 (i32.add (local.get $f) (i32.mul (local.get $i) #1000))))\n$link #3 #0 #8192 #5 #3 #64 #5\n(br_if $m (i32.lt_u (local.get $f) #1000)))",
        ),
        endless(
            "files-that-come-and-go",
            &times(16000, "$mkdir #3 #64 #5"),
            "(call $name #1)\n$rmdir #3 #64 #5\n$mkdir #3 #64 #5",
        ),
        endless(
            "renamed-among-many",
            &times(16000, "$mkdir #3 #64 #5"),
            "(call $name #1)\n$rename #3 #64 #5 #3 #80 #1\n$rename #3 #80 #1 #3 #64 #5",
        ),
        endless("looked-up-among-many", &times(16000, "$mkdir #3 #64 #5"), "$stat #3 #0 #64 #5 #1024"),
        endless("removed-and-open", "", &format!("{open}\n$unlink #3 #96 #1")),
    ]
}

fn contents() -> Vec<Attack> {
    let block = "(call $parts #1024 #1 #65536 #1048576)";
    let open = "(local.set $f (call $file #96 #1))";
    let write = "$fd_write (local.get $f) #1024 #1 #2048";
    let a_write =
        |at: &str| format!("(call $parts #1024 #1 #65536 #1)\n$fd_pwrite (local.get $f) #1024 #1 {at} #2048");
    let hole = format!("{open}\n$set_size (local.get $f) (i64.const 1099511627776)");
    let sparse = a_write("(i64.mul (i64.extend_i32_u (local.get $i)) (i64.const 65536))");
    vec![
        endless("a-large-file", &format!("{open}\n{block}"), write),
        endless(
            "a-large-file-again",
            &format!("{open}\n{block}"),
            "$fd_pwrite (local.get $f) #1024 #1 (i64.const 12345) #2048",
        ),
        endless("a-sparse-file", open, &sparse),
        endless(
            "a-sparse-file-that-is-cut",
            &format!("{open}\n{}", times(30000, &sparse)),
            "$set_size (local.get $f) (i64.const 1)\n$set_size (local.get $f) (i64.const 1099511627776)",
        ),
        endless(
            "a-full-file-that-is-resized",
            &format!("{open}\n{block}\n{}", times(63, write)),
            "$set_size (local.get $f) (i64.const 66060288)\n$set_size (local.get $f) (i64.const 66060289)",
        ),
        endless(
            "a-full-file-that-is-cut",
            &format!("{open}\n{block}"),
            &format!(
                "{write}\n$set_size (local.get $f) (i64.const 0)\n$fd_seek (local.get $f) (i64.const 0) #0 #2048"
            ),
        ),
        endless(
            "huge-sizes",
            open,
            "$set_size (local.get $f) (i64.const -9223372036854775808)\n$set_size (local.get $f) (i64.const -1)\n$fd_allocate (local.get $f) (i64.const -1) (i64.const -1)\n$fd_allocate (local.get $f) (i64.const 0) (i64.const 1099511627776)\n$fd_seek (local.get $f) (i64.const 9223372036854775807) #2 #2048",
        ),
        endless(
            "huge-offsets",
            open,
            &format!(
                "{}\n{}\n{}",
                a_write("(i64.const -1)"),
                a_write("(i64.const 9223372036854775807)"),
                a_write("(i64.const 1099511627775)")
            ),
        ),
        endless(
            "holes-that-are-read",
            &format!("{hole}\n(call $parts #1024 #1 #65536 #8000000)"),
            "$fd_read (local.get $f) #1024 #1 #2048",
        ),
        endless(
            "bytes-that-are-read",
            &format!("{hole}\n(call $parts #1024 #1 #65536 #1)"),
            "$fd_read (local.get $f) #1024 #1 #2048",
        ),
    ]
}

fn lists() -> Vec<Attack> {
    let parts = |len: u32| format!("(call $parts #1024 #1024 #65536 #{len})");
    let sparse = "(local.set $f (call $file #96 #1))\n$set_size (local.get $f) (i64.const 1099511627776)";
    vec![
        endless("parts-of-one-byte-said", &parts(1), "$fd_write #1 #1024 #1024 #512"),
        endless("parts-of-one-byte-complained", &parts(1), "$fd_write #2 #1024 #1024 #512"),
        endless(
            "parts-of-one-byte-read",
            &format!("{}\n{sparse}", parts(1)),
            "$fd_read (local.get $f) #1024 #1024 #512",
        ),
        endless(
            "parts-of-one-byte-written",
            &format!("{}\n{sparse}", parts(1)),
            "$fd_pwrite (local.get $f) #1024 #1024 (i64.const 0) #512",
        ),
        endless("parts-of-nothing", &parts(0), "$fd_write #1 #1024 #1024 #512"),
        endless(
            "parts-that-overlap",
            &format!("{}\n{sparse}", parts(4_000_000)),
            "$fd_read (local.get $f) #1024 #1024 #512",
        ),
        endless("parts-that-overflow", &parts(8_000_000), "$fd_write #1 #1024 #1024 #512"),
        endless(
            "parts-of-the-list",
            &format!("(call $parts #1024 #1024 #1024 #8192)\n{sparse}"),
            "$fd_read (local.get $f) #1024 #1024 #512\n(call $parts #1024 #1024 #1024 #8192)",
        ),
        endless("too-many-parts", "", "$fd_write #1 #1024 #-1 #512\n$fd_write #1 #1024 #1025 #512"),
        endless(
            "four-gigabytes-said",
            "(call $parts #1024 #512 #0 #8388608)",
            "$fd_write #1 #1024 #511 #512",
        ),
        endless(
            "four-gigabytes-complained",
            "(call $parts #1024 #512 #0 #8388608)",
            "$fd_write #2 #1024 #511 #512",
        ),
    ]
}

fn listings() -> Vec<Attack> {
    vec![
        once("four-gigabytes-random", "trap out of bounds", "$random_get #0 #-1"),
        endless("random", "", "$random_get #0 #8388608"),
        endless(
            "listing-many",
            &times(16000, "$mkdir #3 #64 #5"),
            "$fd_readdir #3 #100000 #4096 (i64.const 0) #512",
        ),
        endless(
            "listing-many-by-bytes",
            &times(16000, "$mkdir #3 #64 #5"),
            "$fd_readdir #3 #100000 #1 (i64.extend_i32_u (local.get $i)) #512",
        ),
        endless(
            "listing-all-of-many",
            &times(16000, "$mkdir #3 #64 #5"),
            "$fd_readdir #3 #100000 #8000000 (i64.const 0) #512",
        ),
        endless(
            "listing-strange-places",
            "$mkdir #3 #64 #5",
            "$fd_readdir #3 #100000 #4096 (i64.const -1) #512\n$fd_readdir #3 #100000 #4096 (i64.const -9223372036854775808) #512\n$fd_readdir #3 #100000 #4096 (i64.mul (i64.extend_i32_u (local.get $i)) (i64.const 123456789123)) #512",
        ),
    ]
}

fn others() -> Vec<Attack> {
    let fill =
        "(local.set $f (call $file #96 #1))\n(loop $m (br_if $m (i32.lt_u (call $file #96 #1) #1022)))";
    vec![
        endless(
            "descriptors-that-come-and-go",
            fill,
            "$fd_close #1000\n$fd_close (call $file #96 #1)\n(drop (call $file #96 #1))",
        ),
        endless("too-many-descriptors", "", "(drop (call $file #96 #1))"),
        endless(
            "descriptors-that-move",
            fill,
            "$fd_renumber (i32.and (local.get $i) #1023) (i32.and (i32.mul (local.get $i) #77) #1023)\n(drop (call $file #96 #1))",
        ),
        endless(
            "everything-closed",
            "",
            "$fd_close (i32.and (local.get $i) #7)\n$fd_close (i32.and (local.get $i) #7)\n$mkdir #3 #64 #5",
        ),
        endless(
            "the-root-renumbered",
            "",
            "$fd_renumber #3 #0\n$fd_renumber #0 #3\n$fd_renumber #3 #-1\n$mkdir #3 #64 #5",
        ),
        once("two-to-the-32-subscriptions", "Pass", "$poll #0 #0 #-1 #512"),
        endless("subscriptions", "(memory.fill #1024 #0 #196608)", "$poll #1024 #300000 #4096 #512"),
        endless(
            "sleeping-for-ever",
            "(i64.store (i32.const 1048) (i64.const -1))",
            "$poll #1024 #4096 #1 #512",
        ),
        endless("arguments", "", "$args_sizes_get #512 #520\n$args_get #100000 #200000"),
    ]
}

pub(crate) fn all() -> Vec<Attack> {
    [paths(), trees(), contents(), lists(), listings(), others()].into_iter().flatten().collect()
}
