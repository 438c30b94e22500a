//! What a program wrote to standard error as it ended, read as what its language says of a failure.

/// What a program said of why it ended.
#[derive(Debug, PartialEq)]
pub(super) struct Said {
    pub(super) message: String,
    /// `file:line` or `file:line:column`, where it says so.
    pub(super) place: Option<String>,
    /// The functions that were called, of Go, whose stack no engine sees: the innermost first, and where each was.
    pub(super) stack: Vec<(String, String)>,
}

impl Said {
    fn new(message: &str, place: Option<&str>) -> Option<Said> {
        let (message, place) = (message.trim_end().to_string(), place.map(str::to_string));
        Some(Said { message, place, stack: Vec::new() })
    }
}

/// Reads the end of standard error as the message of a panic or of a failed assertion.
pub(super) fn said(stderr: &[u8]) -> Option<Said> {
    if stderr.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(stderr);
    of_rust(&text).or_else(|| of_assert(&text)).or_else(|| of_go(&text)).or_else(|| of_others(&text))
}

/// The last line, where there is one.
pub(super) fn last_line(stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.to_string())
}

/// `thread 'main' panicked at src/main.rs:3:5:`, and below it the message.
fn of_rust(text: &str) -> Option<Said> {
    let (before, said) = text.rsplit_once(" panicked at ")?;
    before.rsplit('\n').next()?.strip_prefix("thread ")?;
    let (place, message) = said.split_once(":\n")?;
    let message = message.split("\nnote: run with `RUST_BACKTRACE").next()?;
    let message = message.split("\nstack backtrace:").next()?;
    Said::new(message, Some(place))
}

/// `Assertion failed: expression (file: function: line)`, as wasi-libc and Emscripten write it.
fn of_assert(text: &str) -> Option<Said> {
    let (_, said) = text.rsplit_once("Assertion failed: ")?;
    let line = said.lines().next()?;
    let (expression, rest) = line.strip_suffix(')')?.rsplit_once(" (")?;
    let (rest, line) = rest.rsplit_once(": ")?;
    let (file, _function) = rest.rsplit_once(": ")?;
    line.parse::<u32>().ok()?;
    Said::new(&format!("assertion failed: {expression}"), Some(&format!("{file}:{line}")))
}

/// `panic: message`, a blank line, `goroutine 1 [running]:`, and then two lines for each call.
fn of_go(text: &str) -> Option<Said> {
    let (before, stack) = text.rsplit_once("\ngoroutine ")?;
    let starts = ["panic: ", "fatal error: "].map(|start| before.rfind(start).map(|at| at + start.len()));
    let from = starts.into_iter().flatten().max()?;
    let message = before[from..].split("\n[signal").next()?;
    let lines: Vec<&str> = stack.lines().skip(1).collect();
    let is_runtime =
        |call: &str| ["panic(", "runtime.", "internal/runtime"].iter().any(|own| call.starts_with(own));
    let own = lines.chunks(2).filter(|lines| lines.len() == 2 && !is_runtime(lines[0]));
    let stack = own.filter_map(|lines| {
        let (function, _arguments) = lines[0].rsplit_once('(')?;
        let at = lines[1].strip_prefix('\t')?;
        Some((function.to_string(), at.split(" +0x").next().unwrap_or(at).to_string()))
    });
    let stack: Vec<(String, String)> = stack.collect();
    let place = stack.first().map(|(_, at)| at.clone());
    Some(Said { message: message.trim_end().to_string(), place, stack })
}

/// What other languages begin the line with.
fn of_others(text: &str) -> Option<Said> {
    for start in ["libc++abi: ", "panic: "] {
        if let Some((_, said)) = text.rsplit_once(start) {
            return Said::new(said.lines().next()?, None);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stderr: &str, message: &str, place: Option<&str>) {
        let said = said(stderr.as_bytes()).map(|said| (said.message, said.place));
        assert_eq!(said, Some((message.to_string(), place.map(str::to_string))));
    }

    #[test]
    fn each_language_says_it_in_its_own_way() {
        check(
            "starting\nthread 'main' (1) panicked at src/main.rs:3:5:\nleft: 1\nright: 2\nnote: run with \
             `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
            "left: 1\nright: 2",
            Some("src/main.rs:3:5"),
        );
        check(
            "Assertion failed: a (b) == c (src/q.c: pop: 41)\n",
            "assertion failed: a (b) == c",
            Some("src/q.c:41"),
        );
        check(
            "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\n\
             panic({0x1, 0x2})\n\t/go/src/runtime/panic.go:1 +0x2\nmain.(*Queue).Pop(...)\n\t/app/queue.go:42 +0x5\n",
            "runtime error: index out of range [5] with length 3",
            Some("/app/queue.go:42"),
        );
        check("thread 1 panic: index out of bounds\n???\n", "index out of bounds", None);
        check(
            "libc++abi: terminating due to uncaught exception of type int\n",
            "terminating due to uncaught exception of type int",
            None,
        );
    }

    #[test]
    fn what_is_none_of_these_is_not_a_panic() {
        assert_eq!(said(b""), None);
        assert_eq!(said(b"error: no such file\n"), None);
        assert_eq!(said(b"thread panicked at \xff\xff"), None);
        assert_eq!(said(b"Assertion failed: x (y)"), None);
        assert_eq!(last_line(b"one\ntwo\n\n"), Some("two".to_string()));
    }
}
