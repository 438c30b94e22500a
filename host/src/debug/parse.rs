//! Reads expressions.

use anyhow::{Result, bail, ensure};

use super::expression::{Expression, LOADS, Load, Named, Node};
use super::value::Value;
use crate::symbols::Part;

/// Bytes of an expression.
const BYTES_MAX: usize = 4096;
/// Brackets and signs that may be within others.
const NESTED_MAX: usize = 64;

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// What it cannot be read for.
    pub fn parse(text: &str) -> Result<Expression> {
        ensure!(text.len() <= BYTES_MAX, "an expression has at most {BYTES_MAX} bytes");
        let mut parser = Parser { text, at: 0, nested: 0 };
        let node = parser.binary(0)?;
        parser.space();
        if parser.at < text.len() {
            bail!("what is `{}` in `{text}`?", &text[parser.at..]);
        }
        Ok(Expression { text: text.trim().to_string(), node })
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    nested: usize,
}

/// From those that bind least. None begins with one that stands before it in its row.
const OPERATORS: [&[&str]; 7] =
    [&["||"], &["&&"], &["==", "!=", "<=", ">=", "<", ">"], &["|"], &["&"], &["+", "-"], &["*"]];

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn takes(&mut self, token: &str) -> bool {
        self.space();
        let is_there = self.rest().starts_with(token);
        self.at += if is_there { token.len() } else { 0 };
        is_there
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        ensure!(self.takes(token), "`{token}` is missing in `{}`, at `{}`", self.text, self.rest());
        Ok(())
    }

    fn operator(&mut self, level: usize) -> Option<&'static str> {
        self.space();
        let rest = self.rest();
        let found = OPERATORS[level].iter().find(|operator| rest.starts_with(**operator))?;
        // `&` and `|` begin operators that bind less.
        let is_half = found.len() == 1 && "&|".contains(found) && rest[1..].starts_with(found);
        if is_half {
            return None;
        }
        self.at += found.len();
        Some(found)
    }

    fn binary(&mut self, level: usize) -> Result<Node> {
        if level == OPERATORS.len() {
            return self.unary();
        }
        let mut node = self.binary(level + 1)?;
        while let Some(operator) = self.operator(level) {
            node = Node::Binary(operator, Box::new(node), Box::new(self.binary(level + 1)?));
        }
        Ok(node)
    }

    fn within<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.nested += 1;
        ensure!(self.nested <= NESTED_MAX, "more than {NESTED_MAX} brackets or signs are within others");
        let result = f(self);
        self.nested -= 1;
        result
    }

    fn unary(&mut self) -> Result<Node> {
        self.within(|parser| {
            if parser.takes("!") {
                return Ok(Node::Not(Box::new(parser.unary()?)));
            }
            if parser.takes("-") {
                return Ok(Node::Minus(Box::new(parser.unary()?)));
            }
            if parser.takes("&") {
                let named = parser.name()?;
                return Ok(Node::Address(parser.path(named)?));
            }
            parser.primary()
        })
    }

    fn primary(&mut self) -> Result<Node> {
        if self.takes("(") {
            let node = self.binary(0)?;
            self.expect(")")?;
            return Ok(node);
        }
        if self.takes("\"") {
            return Ok(Node::Value(Value::Text(self.quoted('"')?)));
        }
        if self.takes("$") {
            return Ok(Node::Global(self.word()?));
        }
        if self.takes("@") {
            let name = self.word()?;
            return Ok(Node::Described(self.path(name)?));
        }
        self.space();
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return self.number();
        }
        let name = self.name()?;
        match self.memory_of(&name)? {
            Some((memory, load)) => self.access(memory, load),
            None => Ok(Node::Named(self.path(name)?)),
        }
    }

    /// Whether this is the beginning of an access to memory: of which one, and of what.
    fn memory_of(&mut self, name: &str) -> Result<Option<(usize, Option<Load>)>> {
        let load = LOADS.iter().find(|(known, _)| *known == name).map(|(_, load)| *load);
        let begins = self.rest().starts_with(['[', ':']);
        if !begins || load.is_none() && name != "mem" {
            return Ok(None);
        }
        let memory = if self.takes(":") { self.word()?.parse()? } else { 0 };
        self.expect("[")?;
        Ok(Some((memory, load)))
    }

    fn access(&mut self, memory: usize, load: Option<Load>) -> Result<Node> {
        let at = Box::new(self.binary(0)?);
        let node = match load {
            Some(load) => Node::Load(load, memory, at),
            None => {
                self.expect("..")?;
                self.expect("+")?;
                Node::Memory(memory, at, Box::new(self.binary(0)?))
            }
        };
        self.expect("]")?;
        Ok(node)
    }

    fn number(&mut self) -> Result<Node> {
        let rest = self.rest();
        let is_based = ["0x", "0X", "0b", "0B"].iter().any(|base| rest.starts_with(base));
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let after =
            rest[end..].strip_prefix('.').filter(|after| after.starts_with(|c: char| c.is_ascii_digit()));
        if let Some(after) = after.filter(|_| !is_based) {
            end += 1 + after.find(|c| !is_part(c)).unwrap_or(after.len());
        }
        let digits = rest[..end].replace('_', "").to_lowercase();
        let node = match (digits.strip_prefix("0x"), digits.strip_prefix("0b")) {
            (Some(digits), _) => i128::from_str_radix(digits, 16).ok().map(Value::Int),
            (_, Some(digits)) => i128::from_str_radix(digits, 2).ok().map(Value::Int),
            _ => digits.parse().ok().map(Value::Int).or_else(|| digits.parse().ok().map(Value::Float)),
        };
        let Some(value) = node else { bail!("`{}` is no number", &rest[..end]) };
        self.at += end;
        Ok(Node::Value(value))
    }

    /// Letters, digits and `_`.
    fn word(&mut self) -> Result<String> {
        if self.rest().starts_with('\'') {
            self.at += 1;
            return self.quoted('\'');
        }
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        ensure!(end > 0, "a name is missing in `{}`, at `{rest}`", self.text);
        let word = rest[..end].to_string();
        self.at += end;
        Ok(word)
    }

    /// A name, with the namespaces that it is in.
    fn name(&mut self) -> Result<String> {
        self.space();
        let mut name = self.word()?;
        while self.rest().starts_with("::") {
            self.at += 2;
            name = format!("{name}::{}", self.word()?);
        }
        Ok(name)
    }

    fn path(&mut self, name: String) -> Result<Named> {
        let mut parts = Vec::new();
        loop {
            let rest = self.rest();
            if rest.starts_with('.') && !rest.starts_with("..") {
                self.at += 1;
                parts.push(Part::Field(self.word()?));
            } else if rest.starts_with('[') {
                parts.push(Part::Index(self.index()?));
            } else {
                return Ok(Named { name, parts });
            }
        }
    }

    /// What stands up to the bracket that closes this one.
    fn index(&mut self) -> Result<String> {
        let (mut depth, mut is_quoted) = (0, false);
        for (at, c) in self.rest().char_indices() {
            match c {
                '"' => is_quoted = !is_quoted,
                '[' | '(' | '{' if !is_quoted => depth += 1,
                ']' | ')' | '}' if !is_quoted => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let index = self.rest()[1..at].trim().to_string();
                self.at += at + c.len_utf8();
                return Ok(index);
            }
        }
        bail!("`]` is missing in `{}`", self.text)
    }

    /// Up to the quote that ends it; `\` takes what follows as it is.
    fn quoted(&mut self, quote: char) -> Result<String> {
        let (mut text, mut is_escaped) = (String::new(), false);
        for (at, c) in self.rest().char_indices() {
            if !is_escaped && c == quote {
                self.at += at + 1;
                return Ok(text);
            }
            is_escaped = !is_escaped && c == '\\';
            text.extend((!is_escaped).then_some(c));
        }
        bail!("a {quote} is missing in `{}`", self.text)
    }
}
