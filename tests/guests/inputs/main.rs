//! A program that takes an option and a file.

use std::fs;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let path = args.iter().find_map(|arg| arg.strip_prefix("--in=")).expect("it is given a file");
    let bytes = fs::read(path).expect("the file is there");
    if bytes.starts_with(b"RIFF") && bytes.len() >= 8 {
        // Only with an option that nobody gave.
        let is_strict = args.iter().any(|arg| arg.starts_with('s'));
        assert!(!is_strict || bytes[4] < 4, "the length is {}", bytes[4]);
    }
}
