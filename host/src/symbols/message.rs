//! What is the same in messages that differ in their values.

/// Bytes of a message that tell failures apart.
const CLASS_MAX: usize = 256;

/// The first line of a message with its values left out: numbers are `#`, quoted texts `"…"`. Two failures without a known
/// place are one if these are equal.
///
/// ```
/// use spelunk::symbols::class;
///
/// assert_eq!(class("account \"bob\" has 12, not -7.5e3 (at 0x1f40)"), "account \"…\" has #, not # (at #)");
/// ```
pub fn class(message: &str) -> String {
    let mut class = String::new();
    let mut rest = message.trim_start().lines().next().unwrap_or("").trim_end();
    let mut before = ' ';
    while let Some(next) = rest.chars().next() {
        if class.len() >= CLASS_MAX {
            break;
        }
        // A quote within a word is an apostrophe, and a digit there is part of a name.
        let is_start = !before.is_alphanumeric() && before != '_';
        let value = match next {
            _ if !is_start => None,
            '"' | '\'' | '`' | '‘' | '“' | '«' => quoted(rest, next),
            '-' | '+' | '0'..='9' | 'a'..='f' | 'A'..='F' => number(rest).map(|bytes| (bytes, "#")),
            _ => None,
        };
        let (bytes, text) = value.unwrap_or((next.len_utf8(), &rest[..next.len_utf8()]));
        class.push_str(text);
        before = rest[..bytes].chars().next_back().unwrap_or(' ');
        rest = &rest[bytes..];
    }
    class
}

/// Bytes of a quoted text, and what stands for it. Code in backquotes is kept: `Option::unwrap()` is no value.
fn quoted(text: &str, open: char) -> Option<(usize, &str)> {
    let (close, class) = match open {
        '"' => ('"', "\"…\""),
        '\'' => ('\'', "'…'"),
        '`' => ('`', "`…`"),
        '‘' => ('’', "‘…’"),
        '“' => ('”', "“…”"),
        _ => ('»', "«…»"),
    };
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|&(_, c)| {
        let is_end = c == close && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    })?;
    let bytes = end.0 + close.len_utf8();
    let inner = &text[open.len_utf8()..end.0];
    let is_code = open == '`'
        && (["::", "==", "!=", "()"].iter().any(|part| inner.contains(part))
            || matches!(inner, "Some" | "None" | "Ok" | "Err"));
    Some((bytes, if is_code { &text[..bytes] } else { class }))
}

/// Bytes of a number: decimal with a fraction and an exponent, or hexadecimal.
fn number(text: &str) -> Option<usize> {
    let unsigned = text.trim_start_matches(['-', '+']);
    let sign = text.len() - unsigned.len();
    if sign > 1 {
        return None;
    }
    let word = unsigned
        .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_'))
        .unwrap_or(unsigned.len());
    let word = unsigned[..word].trim_end_matches(['.', '_']);
    let is_hexadecimal =
        |digits: &str| digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_number = word.starts_with(|c: char| c.is_ascii_digit())
        || is_hexadecimal(word) && word.bytes().any(|byte| byte.is_ascii_digit());
    if !is_number {
        return None;
    }
    // The sign of an exponent splits the word.
    let exponent = unsigned[word.len()..].strip_prefix(['-', '+']).filter(|_| word.ends_with(['e', 'E']));
    let digits = exponent.map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    Some(sign + word.len() + if digits > 0 { 1 + digits } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, expected: &str) {
        assert_eq!(class(message), expected);
    }

    #[test]
    fn numbers() {
        check("total is 90, expected 100", "total is #, expected #");
        check("-1 +2 3.25 1e9 1.5e-7 1_000 12u8 7.", "# # # # # # # #.");
        check("at 0x1f40, deadbeef01 and 5e0ab1c2-77", "at #, # and #-#");
        check("x1 i32 utf8 sha256 account_7", "x1 i32 utf8 sha256 account_7");
        check("(3, [4; 2])", "(#, [#; #])");
        check("facade added deadbeef", "facade added deadbeef");
        check("a-b --c -", "a-b --c -");
    }

    #[test]
    fn quotes() {
        check(r#"no account "bob" or 'eve'"#, r#"no account "…" or '…'"#);
        check(r#"no account "b\"ob""#, r#"no account "…""#);
        check("no account `bob`, “x”", "no account `…`, “…”");
        check("it's what you don't want", "it's what you don't want");
        check("an open \"quote", "an open \"quote");
        check("called `Option::unwrap()` on a `None` value", "called `Option::unwrap()` on a `None` value");
        check("assertion `left == right` failed\n  left: 5\n right: 7", "assertion `left == right` failed");
    }

    #[test]
    fn any_text() {
        check("", "");
        check("\n\n  late 7  \nmore", "late #");
        check("ä漢1 «é»", "ä漢1 «…»");
        assert_eq!(class(&"x ".repeat(1000)).len(), CLASS_MAX);
        assert_eq!(class(&"1 2 ".repeat(100_000)).len(), CLASS_MAX);
    }
}
