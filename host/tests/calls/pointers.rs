//! A rule for each function, each of its pointers, and each bad address.

/// The functions of which a pointer is an argument, and good arguments: `p` and `q` are addresses with room, `P` that of a
/// path and `n` its length, `L` that of a list with one part, `l` how long it is, `S` that of a subscription; numbers are
/// themselves, of 64 bits where an `L` follows.
const FUNCTIONS: [(&str, &str); 35] = [
    ("args_get", "p q"),
    ("args_sizes_get", "p q"),
    ("environ_get", "p q"),
    ("environ_sizes_get", "p q"),
    ("clock_res_get", "0 p"),
    ("clock_time_get", "0 0L p"),
    ("fd_fdstat_get", "4 p"),
    ("fd_filestat_get", "4 p"),
    ("fd_pread", "4 L l 0L p"),
    ("fd_prestat_get", "3 p"),
    ("fd_prestat_dir_name", "3 p 9"),
    ("fd_pwrite", "4 L l 0L p"),
    ("fd_read", "4 L l p"),
    ("fd_readdir", "3 p 100 0L q"),
    ("fd_seek", "4 0L 0 p"),
    ("fd_tell", "4 p"),
    ("fd_write", "4 L l p"),
    ("path_create_directory", "3 P n"),
    ("path_filestat_get", "3 0 P n p"),
    ("path_filestat_set_times", "3 0 P n 0L 0L 0"),
    ("path_link", "3 0 P n 3 P n"),
    ("path_open", "3 0 P n 1 0L 0L 0 p"),
    ("path_readlink", "3 P n p 9 q"),
    ("path_remove_directory", "3 P n"),
    ("path_rename", "3 P n 3 P n"),
    ("path_symlink", "P n 3 P n"),
    ("path_unlink_file", "3 P n"),
    ("poll_oneoff", "S p 1 q"),
    ("random_get", "p 9"),
    ("sock_accept", "3 0 p"),
    ("sock_recv", "3 L l 0 p q"),
    ("sock_send", "3 L l 0 p"),
    ("fd_fdstat_set_flags", "4 0"),
    ("sched_yield", ""),
    ("proc_exit", "0"),
];

/// Null, the last byte, the end, past it, and addresses of which adding anything wraps around.
const ADDRESSES: [u32; 7] = [0, 65535, 65536, 65537, 1 << 31, u32::MAX - 3, u32::MAX];

/// A good argument.
fn good(argument: &str) -> u32 {
    match argument {
        "p" => 1024,
        "q" => 4096,
        "P" => 64,
        "n" | "l" => 1,
        "L" => 128,
        "S" => 256,
        number => number.trim_end_matches('L').parse().unwrap(),
    }
}

fn is_long(argument: &str) -> bool {
    argument.len() > 1 && argument.ends_with('L')
}

/// The module, and the names of its rules. Each opens the file `a` first, as descriptor 4.
pub(crate) fn module() -> (Vec<u8>, Vec<String>) {
    let (mut imports, mut rules, mut names) = (String::new(), String::new(), Vec::new());
    for (function, arguments) in FUNCTIONS {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        let types = arguments.iter().map(|argument| if is_long(argument) { "i64" } else { "i32" });
        let types = types.collect::<Vec<_>>().join(" ");
        let result = if function == "proc_exit" { "" } else { "(result i32)" };
        imports += &format!(
            "(import \"wasi_snapshot_preview1\" \"{function}\" (func ${function} (param {types}) {result}))"
        );
        // A list whose one part is at a bad address is bad too, and so is a length.
        let bad = arguments.iter().enumerate().filter(|(_, argument)| "pqPnLlS".contains(**argument));
        for (place, argument) in bad {
            for address in ADDRESSES {
                let shown = |(at, argument): (usize, &&str)| {
                    let value = if at == place { address } else { good(argument) };
                    let ty = if is_long(argument) { "i64" } else { "i32" };
                    format!(
                        "({ty}.const {})",
                        if ty == "i32" { i64::from(value as i32) } else { value.into() }
                    )
                };
                let shown: String = arguments.iter().enumerate().map(shown).collect();
                let name = format!("{function}-{place}{argument}-{address}");
                let call = format!("(call ${function} {shown})");
                let call = if result.is_empty() { call } else { format!("(drop {call})") };
                rules += &format!("(func (export \"rule:{name}\") (call $open) {call})");
                names.push(name);
            }
        }
    }
    for address in ADDRESSES {
        let part = format!("(i32.store (i32.const 128) (i32.const {}))", address as i32);
        for (function, rest) in
            [("fd_read", ""), ("fd_write", ""), ("fd_pread", "(i64.const 0)"), ("fd_pwrite", "(i64.const 0)")]
        {
            let name = format!("{function}-part-{address}");
            rules += &format!(
                "(func (export \"rule:{name}\") (call $open) {part}
                   (drop (call ${function} (i32.const 4) (i32.const 128) (i32.const 1) {rest} (i32.const 1024))))"
            );
            names.push(name);
        }
    }
    let wasm = wat::parse_str(format!(
        "(module {imports} (memory (export \"memory\") 1 1) (data (i32.const 64) \"a\")
           (data (i32.const 128) \"\\00\\10\\00\\00\\08\\00\\00\\00\") (data (i32.const 264) \"\\01\") (data (i32.const 272) \"\\04\")
           (func $open (drop (call $path_open (i32.const 3) (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 1)
             (i64.const 268435455) (i64.const 0) (i32.const 0) (i32.const 512)))) {rules})"
    ));
    (wasm.unwrap_or_else(|error| panic!("{error}")), names)
}
