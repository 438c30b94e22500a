//! From a regular expression to what it is made of.

use std::iter::Peekable;
use std::str::Chars;

use crate::Size;
use crate::class::Class;
use crate::matching::Node;

/// How often more than it must be something is repeated that may be repeated without end.
const REPEATED_MAX: usize = 16;

/// Reads a whole expression, or says what is wrong with it.
pub(crate) fn parse(regex: &str) -> Result<Node, String> {
    let mut parser = Parser { rest: regex.chars().peekable() };
    let node = parser.alternation()?;
    match parser.rest.next() {
        None => Ok(node),
        Some(_) => Err("a `)` without a `(`".into()),
    }
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
}

impl Parser<'_> {
    /// Up to the end, or to a `)` that is left.
    fn alternation(&mut self) -> Result<Node, String> {
        let mut nodes = vec![self.sequence()?];
        while self.rest.next_if_eq(&'|').is_some() {
            nodes.push(self.sequence()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Alternation(nodes) })
    }

    fn sequence(&mut self) -> Result<Node, String> {
        let mut nodes = Vec::new();
        while let Some(first) = self.rest.next_if(|next| !matches!(next, '|' | ')')) {
            let atom = self.atom(first)?;
            nodes.push(self.quantified(atom)?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Sequence(nodes) })
    }

    fn atom(&mut self, first: char) -> Result<Node, String> {
        match first {
            '(' => self.group(),
            '[' => self.class().map(Node::Class),
            '.' => Ok(Node::Class(Class::of(['\n'..='\n']).opposite())),
            '\\' => self.escape().map(|escape| match escape {
                Escape::Literal(character) => Node::Literal(character),
                Escape::Class(class) => Node::Class(class),
            }),
            '^' | '$' => Err(format!("`{first}` is not supported: text matches as a whole")),
            '?' | '*' | '+' | '{' => Err(format!("`{first}` repeats nothing; literally it is `\\{first}`")),
            ']' | '}' => Err(format!("a `{first}` that closes nothing; literally it is `\\{first}`")),
            literal => Ok(Node::Literal(literal)),
        }
    }

    /// After its `(`.
    fn group(&mut self) -> Result<Node, String> {
        if self.rest.next_if_eq(&'?').is_some() && self.rest.next() != Some(':') {
            return Err("`(?` is not supported, but as `(?:`".into());
        }
        let node = self.alternation()?;
        match self.rest.next() {
            Some(_) => Ok(node),
            None => Err("a `(` without a `)`".into()),
        }
    }

    /// What `?`, `*`, `+` or `{}` makes of a node, if one of them comes.
    fn quantified(&mut self, node: Node) -> Result<Node, String> {
        let node = Box::new(node);
        let quantified = match self.rest.next_if(|next| matches!(next, '?' | '*' | '+' | '{')) {
            None => return Ok(*node),
            Some('?') => Node::Optional(node),
            Some('*') => Node::Repeated(node, (..=REPEATED_MAX).into()),
            Some('+') => Node::Repeated(node, (1..=1 + REPEATED_MAX).into()),
            Some(_) => Node::Repeated(node, self.counts()?),
        };
        match self.rest.peek() {
            Some(next @ ('?' | '*' | '+' | '{')) => {
                Err(format!("`{next}` after a repetition is not supported; a group may be repeated"))
            }
            _ => Ok(quantified),
        }
    }

    /// After its `{`.
    fn counts(&mut self) -> Result<Size, String> {
        let min = self.number()?;
        let max = match self.rest.next_if_eq(&',') {
            None => min,
            Some(_) if self.rest.peek() == Some(&'}') => min + REPEATED_MAX,
            Some(_) => self.number()?,
        };
        if self.rest.next() != Some('}') {
            return Err("a `{` without a `}`".into());
        }
        if min > max {
            return Err(format!("`{{{min},{max}}}` is never possible"));
        }
        Ok((min..=max).into())
    }

    fn number(&mut self) -> Result<usize, String> {
        const MAX: usize = 10_000;
        let mut digits = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        digits
            .parse()
            .ok()
            .filter(|number| *number <= MAX)
            .ok_or_else(|| format!("between `{{` and `}}` stand numbers up to {MAX}"))
    }

    /// After its `[`.
    fn class(&mut self) -> Result<Class, String> {
        let is_opposite = self.rest.next_if_eq(&'^').is_some();
        let mut class = Class::of([]);
        loop {
            match self.rest.next() {
                None => return Err("a `[` without a `]`".into()),
                Some(']') => break,
                Some(first) => class = class.and(self.class_item(first)?),
            }
        }
        let class = if is_opposite { class.opposite() } else { class };
        if class.is_empty() {
            return Err("a class has no characters".into());
        }
        Ok(class)
    }

    fn class_item(&mut self, first: char) -> Result<Class, String> {
        let start = match self.class_character(first)? {
            Escape::Class(class) => return Ok(class),
            Escape::Literal(start) => start,
        };
        if self.rest.peek() != Some(&'-') || self.ends_class_after_dash() {
            return Ok(Class::of([start..=start]));
        }
        self.rest.next();
        let last = self.rest.next().ok_or("a `[` without a `]`")?;
        match self.class_character(last)? {
            Escape::Literal(end) if start <= end => Ok(Class::of([start..=end])),
            Escape::Literal(end) => Err(format!("`{start}-{end}` has no characters")),
            Escape::Class(_) => Err("a range has a class as its end".into()),
        }
    }

    fn class_character(&mut self, first: char) -> Result<Escape, String> {
        match first {
            '\\' => self.escape(),
            '[' => Err("`[` in a class is not supported; literally it is `\\[`".into()),
            '&' | '~' | '-' if self.rest.peek() == Some(&first) => {
                Err(format!("`{first}{first}` in a class is not supported"))
            }
            literal => Ok(Escape::Literal(literal)),
        }
    }

    /// A `-` that is last in its class stands for itself.
    fn ends_class_after_dash(&self) -> bool {
        let mut rest = self.rest.clone();
        rest.next();
        rest.next() == Some(']')
    }

    /// After its `\`.
    fn escape(&mut self) -> Result<Escape, String> {
        let character = self.rest.next().ok_or("nothing comes after the last `\\`")?;
        Ok(match character {
            'd' => Escape::Class(digits()),
            'D' => Escape::Class(digits().opposite()),
            'w' => Escape::Class(word()),
            'W' => Escape::Class(word().opposite()),
            's' => Escape::Class(space()),
            'S' => Escape::Class(space().opposite()),
            'n' => Escape::Literal('\n'),
            'r' => Escape::Literal('\r'),
            't' => Escape::Literal('\t'),
            letter if letter.is_alphanumeric() => return Err(format!("`\\{letter}` is not supported")),
            literal => Escape::Literal(literal),
        })
    }
}

/// What stands after a `\`.
enum Escape {
    Literal(char),
    Class(Class),
}

fn digits() -> Class {
    Class::of(['0'..='9'])
}

fn word() -> Class {
    Class::of(['a'..='z', 'A'..='Z', '0'..='9', '_'..='_'])
}

fn space() -> Class {
    Class::of([' '..=' ', '\t'..='\r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class<const N: usize>(ranges: [std::ops::RangeInclusive<char>; N]) -> Node {
        Node::Class(Class::of(ranges))
    }

    fn repeated(node: Node, size: impl Into<Size>) -> Node {
        Node::Repeated(Box::new(node), size.into())
    }

    #[track_caller]
    fn check(regex: &str, expected: Node) {
        assert_eq!(parse(regex), Ok(expected));
    }

    #[track_caller]
    fn refused(regex: &str, expected: &str) {
        let message = parse(regex).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }

    #[test]
    fn literals_and_escapes() {
        check("a", Node::Literal('a'));
        check("é\\.\\n", Node::Sequence(vec![Node::Literal('é'), Node::Literal('.'), Node::Literal('\n')]));
        check("", Node::Sequence(vec![]));
        check("\\d", class(['0'..='9']));
        check("\\D", Node::Class(digits().opposite()));
    }

    #[test]
    fn classes() {
        check("[a-c_]", class(['a'..='c', '_'..='_']));
        check("[\\d\\]a-]", class(['0'..='9', ']'..=']', 'a'..='a', '-'..='-']));
        check("[-a]", class(['-'..='-', 'a'..='a']));
        check("[^a-c]", Node::Class(Class::of(['a'..='c']).opposite()));
        check(".", Node::Class(Class::of(['\0'..='\t', '\u{b}'..=char::MAX])));
    }

    #[test]
    fn groups_and_alternatives() {
        let (a, b, c) = (Node::Literal('a'), Node::Literal('b'), Node::Literal('c'));
        let either = Node::Alternation(vec![a.clone(), b.clone()]);
        check("a|b", either.clone());
        check("(a|b)c", Node::Sequence(vec![either.clone(), c.clone()]));
        check("(?:a|b)?", Node::Optional(Box::new(either)));
    }

    #[test]
    fn repetitions() {
        let a = || Node::Literal('a');
        check("a*", repeated(a(), 0..=16));
        check("a+", repeated(a(), 1..=17));
        check("a{3}", repeated(a(), 3));
        check("a{3,}", repeated(a(), 3..=19));
        check("a{3,5}", repeated(a(), 3..=5));
        check("(a+){2}", repeated(repeated(a(), 1..=17), 2));
    }

    #[test]
    fn what_is_wrong_is_said() {
        refused("(a", "a `(` without a `)`");
        refused("a)", "a `)` without a `(`");
        refused("[a", "a `[` without a `]`");
        refused("[]", "no characters");
        refused("[b-a]", "`b-a` has no characters");
        refused("[a-\\d]", "a class as its end");
        refused("a{2", "a `{` without a `}`");
        refused("a{2,1}", "`{2,1}` is never possible");
        refused("a{x}", "stand numbers");
        refused("a{99999}", "stand numbers up to 10000");
        refused("*a", "`*` repeats nothing");
        refused("a]", "closes nothing");
        refused("a\\", "nothing comes after");
    }

    #[test]
    fn what_is_not_supported_is_said() {
        refused("a$", "`$` is not supported");
        refused("\\ba", "`\\b` is not supported");
        refused("(a)\\1", "`\\1` is not supported");
        refused("(?i)a", "`(?` is not supported");
        refused("a+?", "`?` after a repetition");
        refused("[[:alpha:]]", "`[` in a class");
        refused("[a&&b]", "`&&` in a class");
    }
}
