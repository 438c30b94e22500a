//! JSON, as much of it as a trace has: all of it, but numbers stay text.
//!
//! It is here so that a harness needs no further crate for its tests.

/// How deep values may nest: a trace has five levels.
const DEPTH_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Boolean(bool),
    /// As it is written.
    Number(String),
    Text(String),
    List(Vec<Json>),
    /// In the order of the text.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// # Errors
    /// What is wrong, and in which line.
    pub(super) fn parse(text: &str) -> Result<Json, String> {
        let mut reader = Reader { text, at: 0 };
        let json = reader.value(0).and_then(|json| {
            reader.skip();
            if reader.at == text.len() { Ok(json) } else { Err("there is more after its end") }
        });
        json.map_err(|why| format!("line {}: {why}", 1 + text[..reader.at].matches('\n').count()))
    }

    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().find(|(other, _)| other == name).map(|(_, json)| json),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn number<T: std::str::FromStr>(&self) -> Option<T> {
        if let Json::Number(text) = self { text.parse().ok() } else { None }
    }

    pub(super) fn list(&self) -> Option<&[Json]> {
        if let Json::List(list) = self { Some(list) } else { None }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

type Read<T> = Result<T, &'static str>;

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    /// Goes on behind this, if it comes next.
    fn takes(&mut self, token: &str) -> bool {
        self.skip();
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    fn value(&mut self, depth: usize) -> Read<Json> {
        if depth > DEPTH_MAX {
            return Err("values nest too deep");
        }
        for (word, json) in
            [("null", Json::Null), ("true", Json::Boolean(true)), ("false", Json::Boolean(false))]
        {
            if self.takes(word) {
                return Ok(json);
            }
        }
        if self.takes("[") {
            let mut list = Vec::new();
            self.members("]", |reader| {
                list.push(reader.value(depth + 1)?);
                Ok(())
            })?;
            return Ok(Json::List(list));
        }
        if self.takes("{") {
            let mut members = Vec::new();
            self.members("}", |reader| {
                let name = reader.string()?;
                if !reader.takes(":") {
                    return Err("a `:` is missing after a name");
                }
                members.push((name, reader.value(depth + 1)?));
                Ok(())
            })?;
            return Ok(Json::Object(members));
        }
        if self.rest().starts_with('"') { self.string().map(Json::Text) } else { self.number() }
    }

    fn members(&mut self, end: &str, mut member: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        if self.takes(end) {
            return Ok(());
        }
        loop {
            member(self)?;
            if self.takes(end) {
                return Ok(());
            }
            if !self.takes(",") {
                return Err("a `,` or the end of a list or an object is missing");
            }
        }
    }

    fn number(&mut self) -> Read<Json> {
        let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let rest = self.rest();
        let number = &rest[..rest.find(|c| !is_of_number(c)).unwrap_or(rest.len())];
        if number.parse::<f64>().is_err() {
            return Err("a value is missing");
        }
        let number = number.to_string();
        self.at += number.len();
        Ok(Json::Number(number))
    }

    fn string(&mut self) -> Read<String> {
        if !self.takes("\"") {
            return Err("a string is missing");
        }
        let mut string = String::new();
        loop {
            let mut characters = self.rest().chars();
            let character = characters.next().ok_or("a string has no end")?;
            self.at += character.len_utf8();
            match character {
                '"' => return Ok(string),
                '\\' => {
                    let escaped = characters.next().ok_or("a string has no end")?;
                    self.at += escaped.len_utf8();
                    string.push(match escaped {
                        '"' | '\\' | '/' => escaped,
                        'b' => '\u{8}',
                        'f' => '\u{c}',
                        'n' => '\n',
                        'r' => '\r',
                        't' => '\t',
                        'u' => self.unicode()?,
                        _ => return Err("a string has an unknown escape in it"),
                    });
                }
                _ if character < ' ' => return Err("a string has a control character in it"),
                _ => string.push(character),
            }
        }
    }

    /// What follows `\u`: one unit of UTF-16, or two that are one character.
    fn unicode(&mut self) -> Read<char> {
        let first = self.unit()?;
        let is_high = (0xd800..0xdc00).contains(&first);
        let second = if is_high && self.rest().starts_with("\\u") {
            self.at += 2;
            Some(self.unit()?)
        } else {
            None
        };
        let mut characters = char::decode_utf16([first].into_iter().chain(second));
        match (characters.next(), characters.next()) {
            (Some(Ok(character)), None) => Ok(character),
            _ => Err("a string has half a character in it"),
        }
    }

    fn unit(&mut self) -> Read<u16> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        self.at += 4;
        unit.ok_or("`\\u` is followed by four hexadecimal digits").inspect_err(|_| self.at -= 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let check = |text: &str, expected: Json| assert_eq!(Json::parse(text), Ok(expected), "{text}");
        let text = |text: &str| Json::Text(text.into());
        check(" null ", Json::Null);
        check("-1.5e3", Json::Number("-1.5e3".into()));
        check("18446744073709551615", Json::Number(u64::MAX.to_string()));
        check(r#""a\"\\\/\n\u00e9\ud83d\ude00é""#, text("a\"\\/\né😀é"));
        check("[]", Json::List(vec![]));
        check("[true, [false]]", {
            Json::List(vec![Json::Boolean(true), Json::List(vec![Json::Boolean(false)])])
        });
        check("{\"a\": {}, \"b\": \"\"}", {
            Json::Object(vec![("a".into(), Json::Object(vec![])), ("b".into(), text(""))])
        });
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_line() {
        for (text, expected) in [
            ("", "line 1: a value is missing"),
            ("{\n\"a\" 1}", "line 2: a `:` is missing after a name"),
            ("[1\n2]", "line 2: a `,` or the end of a list or an object is missing"),
            ("[1,]", "line 1: a value is missing"),
            ("1 2", "line 1: there is more after its end"),
            ("\"a", "line 1: a string has no end"),
            ("\"\\x\"", "line 1: a string has an unknown escape in it"),
            ("\"\\u12g4\"", "line 1: `\\u` is followed by four hexadecimal digits"),
            ("\"\\u12é\"", "line 1: `\\u` is followed by four hexadecimal digits"),
            ("\"\\ud800x\"", "line 1: a string has half a character in it"),
            ("\"\u{1}\"", "line 1: a string has a control character in it"),
            (&"[".repeat(100_000), "line 1: values nest too deep"),
        ] {
            assert_eq!(Json::parse(text), Err(expected.to_string()));
        }
    }
}
