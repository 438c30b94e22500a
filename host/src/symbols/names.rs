//! What functions are called.

use std::fmt::{self, Write};

use super::cpp;

/// Bytes of a name that are kept. A short one may stand for a long one, which repeats its parts.
const NAME_MAX: usize = 1024;
/// Bytes of a mangled name that is looked into. Names of this length are common in C++ with many templates.
const MANGLED_MAX: usize = 4096;

/// The name as it was written: of Rust, or of C++ without types. Other names are left as they are.
pub(super) fn demangled(name: &str) -> String {
    if name.len() > MANGLED_MAX {
        return cut(name).to_string();
    }
    let mut text = Bounded(String::new());
    let read = match rustc_demangle::try_demangle(name) {
        Ok(symbol) => write!(text, "{symbol:#}").is_ok().then_some(text.0),
        Err(_) => cpp::demangled(name),
    };
    cut(read.as_deref().unwrap_or(name)).to_string()
}

fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_MAX)]
}

/// As much of a name as is of use.
pub(super) fn kept(name: &str) -> Box<str> {
    name[..name.floor_char_boundary(MANGLED_MAX + 1)].into()
}

/// A text of so many bytes at most.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > NAME_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: &str) {
        assert_eq!(demangled(name), expected);
    }

    #[test]
    fn names_are_as_they_were_written() {
        check("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt");
        check("_RNvNtCsdHhIpgkcIfN_4core9panicking9panic_fmt", "core::panicking::panic_fmt");
        check("_ZN4bank6LedgerIiE2atEi", "bank::Ledger::at");
        check("bank::Ledger<int>::at(int)", "bank::Ledger<int>::at(int)");
        check("main.(*Ledger).Post", "main.(*Ledger).Post");
        check("~lib/array/Array<i32>#__get", "~lib/array/Array<i32>#__get");
        check("f", "f");
        check("_Z", "_Z");
    }

    #[test]
    fn names_are_bounded() {
        check(&"x".repeat(10_000), &"x".repeat(NAME_MAX));
        assert_eq!(cut(&"ä".repeat(3000)).len(), NAME_MAX);
        let long = format!("_Z{}{}v", 2000, "x".repeat(2000));
        check(&long, &"x".repeat(NAME_MAX));
        // Each argument is a pair of the one before, to which a reference is enough.
        let digit = |number: usize| {
            char::from(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[number])
        };
        let (mut doubling, mut at) = ("IC1aTllE".to_string(), 4);
        while at <= 62 {
            let next = doubling.len();
            let back = digit(at - 1);
            doubling.push_str(&format!("TB{back}_B{back}_E"));
            at = next;
        }
        let doubling = format!("_R{doubling}E");
        let whole = format!("{:#}", rustc_demangle::demangle(&doubling));
        assert!(whole.len() > NAME_MAX, "{}", whole.len());
        check(&doubling, &doubling);
    }
}
