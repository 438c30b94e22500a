//! What changed between two values that are texts, as `Debug` of Rust writes them: `Bank { total: 3, names: ["a", "b"] }`.
//!
//! Of two values with the same parts only the parts that differ are told, each by its path. What does not look like that is told as
//! a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::symbols::Part;
use crate::text;

/// Parts within parts that are looked into.
const NESTED_MAX: usize = 16;
/// Bytes of a value of which the parts are told apart.
const TEXT_MAX: usize = 64 << 10;
/// Bytes of what is told; what comes after is counted only.
const TOLD_MAX: usize = 64 << 10;
/// Characters of a value that are shown in a line.
const SHOWN: usize = 40;

/// A part that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// `names[1]`; empty where it is all.
    pub path: String,
    /// What it was, unless it was not there.
    pub before: Option<String>,
    /// What it is, unless it is no longer there.
    pub after: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = text::line(&self.path);
        match (self.before.as_deref().map(shown), self.after.as_deref().map(shown)) {
            (Some(before), Some(after)) if path.is_empty() => write!(f, "{before} → {after}"),
            (Some(before), Some(after)) => write!(f, "{path}: {before} → {after}"),
            (Some(before), None) => write!(f, "{path} loses {before}"),
            (None, Some(after)) => write!(f, "{path} gets {after}"),
            (None, None) => f.write_str(&path),
        }
    }
}

/// A value, or its beginning.
fn shown(value: &str) -> String {
    let value = text::line(value);
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_string(),
    }
}

/// Parts that changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// In the order of the values.
    pub list: Vec<Change>,
    /// How many more there are.
    pub left_out: usize,
    bytes: usize,
}

impl Changes {
    /// What changed of named values.
    pub fn between(before: &[(String, String)], after: &[(String, String)]) -> Changes {
        let known: BTreeMap<&str, &str> =
            before.iter().rev().map(|(name, value)| (&**name, &**value)).collect();
        let mut changes = Changes::default();
        for (name, value) in after {
            if let Some(before) = known.get(&**name) {
                changes.compare(|| name.clone(), (*before, &**value), NESTED_MAX);
            }
        }
        changes
    }

    fn compare(&mut self, path: impl FnOnce() -> String, (before, after): (&str, &str), nested: usize) {
        if before == after {
            return;
        }
        if self.bytes >= TOLD_MAX {
            self.left_out += 1;
            return;
        }
        let path = path();
        if nested > 0
            && let (Some(one), Some(other)) = (Parts::of(before), Parts::of(after))
            && (one.head, one.open) == (other.head, other.open)
            && self.compare_parts(&path, (&one, &other), nested - 1)
        {
            return;
        }
        self.add(&path, Some(before), Some(after));
    }

    fn add(&mut self, path: &str, before: Option<&str>, after: Option<&str>) {
        if self.bytes >= TOLD_MAX {
            self.left_out += 1;
            return;
        }
        self.bytes += path.len() + before.map_or(0, str::len) + after.map_or(0, str::len);
        let owned = |value: Option<&str>| value.map(str::to_string);
        self.list.push(Change { path: path.to_string(), before: owned(before), after: owned(after) });
    }

    /// Adds the parts that differ, unless they have to be told as a whole.
    fn compare_parts(
        &mut self,
        path: &str,
        (before, after): (&Parts<'_>, &Parts<'_>),
        nested: usize,
    ) -> bool {
        if before.open != '{' {
            return self.compare_in_order(path, (before, after), nested);
        }
        match (keyed(&before.parts), keyed(&after.parts)) {
            (Some(one), Some(other)) => self.compare_keyed((path, before.head), (&one, &other), nested),
            _ => self.compare_sets(path, (&before.parts, &after.parts)),
        }
        true
    }

    fn compare_keyed(
        &mut self,
        (path, head): (&str, &str),
        (before, after): (&Keyed<'_>, &Keyed<'_>),
        nested: usize,
    ) {
        // A map has keys of any kind; a structure has a name, and names.
        let below = |key: &str| match (head, path) {
            ("", _) => format!("{path}[{key}]"),
            (_, "") => key.to_string(),
            _ => format!("{path}.{key}"),
        };
        let now: BTreeMap<&str, &str> = after.iter().rev().copied().collect();
        let then: BTreeMap<&str, &str> = before.iter().rev().copied().collect();
        for (key, value) in before {
            match now.get(key) {
                Some(other) => self.compare(|| below(key), (*value, *other), nested),
                None => self.add(path, Some(&format!("{key}: {value}")), None),
            }
        }
        for (key, value) in after.iter().filter(|(key, _)| !then.contains_key(key)) {
            self.add(path, None, Some(&format!("{key}: {value}")));
        }
    }

    fn compare_in_order(
        &mut self,
        path: &str,
        (before, after): (&Parts<'_>, &Parts<'_>),
        nested: usize,
    ) -> bool {
        let (one, other) = (&before.parts, &after.parts);
        if one.len() == other.len() {
            for (at, (left, right)) in one.iter().zip(other).enumerate() {
                let below = || match (before.open, path) {
                    ('[', _) => format!("{path}[{at}]"),
                    _ if one.len() == 1 => path.to_string(),
                    (_, "") => at.to_string(),
                    _ => format!("{path}.{at}"),
                };
                self.compare(below, (*left, *right), nested);
            }
            return true;
        }
        if before.open != '[' {
            return false;
        }
        // What was put at the end, or taken from an end.
        if let Some(added) = other.strip_prefix(&one[..]) {
            added.iter().for_each(|part| self.add(path, None, Some(part)));
            return true;
        }
        let taken = one.strip_prefix(&other[..]).or_else(|| one.strip_suffix(&other[..]));
        taken.into_iter().flatten().for_each(|part| self.add(path, Some(part), None));
        taken.is_some()
    }

    /// Parts that have no order: what is in one of the two only.
    fn compare_sets(&mut self, path: &str, (before, after): (&[&str], &[&str])) {
        let (then, now): (BTreeSet<&&str>, BTreeSet<&&str>) =
            (before.iter().collect(), after.iter().collect());
        then.difference(&now).for_each(|part| self.add(path, Some(part), None));
        now.difference(&then).for_each(|part| self.add(path, None, Some(part)));
    }
}

/// The part of a value that a path leads to, as [`Change::path`] has them; none where it has no such part.
pub fn part<'t>(value: &'t str, path: &[Part]) -> Option<&'t str> {
    let mut value = value;
    for part in path {
        value = inner(value, part, NESTED_MAX)?;
    }
    Some(value)
}

/// The parts of a value, by what leads to them; none of a value that has none.
pub fn parts(value: &str) -> Option<Vec<(Part, &str)>> {
    let Parts { open, parts, .. } = Parts::of(value)?;
    let numbered = (0..).map(|at: usize| at.to_string()).zip(parts.iter().copied());
    Some(match (open, keyed(&parts)) {
        ('{', Some(keyed)) => {
            // A structure has names, a map has keys of any kind.
            let is_name = |key: &str| key.chars().all(|c| c.is_alphanumeric() || c == '_');
            let part = |key: &str| match is_name(key) {
                true => Part::Field(key.to_string()),
                false => Part::Index(key.to_string()),
            };
            keyed.into_iter().map(|(key, value)| (part(key), value)).collect()
        }
        ('{', None) => return None,
        ('[', _) => numbered.map(|(at, value)| (Part::Index(at), value)).collect(),
        _ => numbered.map(|(at, value)| (Part::Field(at), value)).collect(),
    })
}

fn inner<'t>(value: &'t str, part: &Part, nested: usize) -> Option<&'t str> {
    let Parts { open, parts, .. } = Parts::of(value).filter(|_| nested > 0)?;
    let (Part::Field(name) | Part::Index(name)) = part;
    let name = name.trim();
    let numbered = || parts.get(name.parse::<usize>().ok()?).copied();
    match (open, part) {
        ('{', _) => keyed(&parts)?.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value),
        ('[', Part::Index(_)) => numbered(),
        // What has one part is told by that.
        ('(', _) if parts.len() == 1 => inner(parts[0], part, nested - 1)
            .or_else(|| numbered().filter(|_| matches!(part, Part::Field(_)))),
        ('(', Part::Field(_)) => numbered(),
        _ => None,
    }
}

/// A value that has parts.
struct Parts<'t> {
    head: &'t str,
    open: char,
    parts: Vec<&'t str>,
}

impl<'t> Parts<'t> {
    fn of(value: &'t str) -> Option<Parts<'t>> {
        if value.len() > TEXT_MAX {
            return None;
        }
        let at = value.find(['(', '[', '{'])?;
        let open = value[at..].chars().next()?;
        let close = match open {
            '(' => ')',
            '[' => ']',
            _ => '}',
        };
        let head = value[..at].trim_end();
        let is_name = |c: char| c.is_alphanumeric() || "_:<>#".contains(c);
        let inner = value[at + 1..].strip_suffix(close)?;
        let parts = split(inner)?;
        head.chars().all(is_name).then_some(Parts { head, open, parts })
    }
}

/// What parts are called, and what they are.
type Keyed<'t> = [(&'t str, &'t str)];

/// Each part with what it is called, where all have that.
fn keyed<'t>(parts: &[&'t str]) -> Option<Vec<(&'t str, &'t str)>> {
    let keyed = parts.iter().map(|part| {
        let at = places(part).find(|(_, c, depth)| *depth == 0 && *c == ':').map(|(at, ..)| at)?;
        Some((&part[..at], part[at + 1..].strip_prefix(' ')?))
    });
    keyed.collect()
}

/// The parts between commas; nothing where the brackets do not match.
fn split(inner: &str) -> Option<Vec<&str>> {
    let (mut parts, mut from, mut last) = (Vec::new(), 0, 0);
    for (at, c, depth) in places(inner) {
        last = depth;
        if c == ',' && depth == 0 {
            parts.push(inner[from..at].trim());
            from = at + 1;
        }
        if depth < 0 {
            return None;
        }
    }
    let rest = inner[from..].trim();
    parts.extend((!rest.is_empty()).then_some(rest));
    (last == 0).then_some(parts)
}

/// The characters outside of quotes, each with how many brackets are open after it.
fn places(text: &str) -> impl Iterator<Item = (usize, char, i32)> + '_ {
    let (mut depth, mut quoted, mut is_escaped) = (0, false, false);
    text.char_indices().filter_map(move |(at, c)| {
        if quoted {
            quoted = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            return None;
        }
        match c {
            '"' => quoted = true,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        Some((at, c, depth))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &str, after: &str, expected: &str) {
        let named = |value: &str| [("x".to_string(), value.to_string())];
        let found: Vec<String> =
            Changes::between(&named(before), &named(after)).list.iter().map(Change::to_string).collect();
        assert_eq!(found.join("; "), expected);
    }

    #[test]
    fn the_smallest_part_that_differs_is_told() {
        check("1", "1", "");
        check("1", "2", "x: 1 → 2");
        check("Some(1)", "Some(2)", "x: 1 → 2");
        check("None", "Some(2)", "x: None → Some(2)");
        check("Bank { total: 1, at: (2, 3) }", "Bank { total: 1, at: (2, 4) }", "x.at.1: 3 → 4");
        check("[A, B { c: 1 }]", "[A, B { c: 2 }]", "x[1].c: 1 → 2");
        check("{1: [2], 3: [4]}", "{1: [2], 3: [5]}", "x[3][0]: 4 → 5");
        check("{Client#0: 1}", "{Client#0: 2}", "x[Client#0]: 1 → 2");
        check("A { b: 1 }", "B { b: 1 }", "x: A { b: 1 } → B { b: 1 }");
    }

    #[test]
    fn what_comes_and_goes_is_told_by_itself() {
        check("[1, 2]", "[1, 2, 3]", "x gets 3");
        check("[1, 2]", "[2]", "x loses 1");
        check("[1, 2]", "[]", "x loses 1; x loses 2");
        check("[1, 2]", "[3, 4, 5]", "x: [1, 2] → [3, 4, 5]");
        check("{1, 2}", "{2, 3}", "x loses 1; x gets 3");
        check("{1: 2}", "{1: 2, 3: 4}", "x gets 3: 4");
        check("{}", "{3: 4}", "x gets 3: 4");
        check("(1, 2)", "(1,)", "x: (1, 2) → (1,)");
    }

    #[test]
    fn a_path_leads_to_the_part_that_it_is_told_of() {
        let field = |name: &str| Part::Field(name.to_string());
        let index = |key: &str| Part::Index(key.to_string());
        let value = "Bank { total: 3, at: (2, [4, 5]), of: {Client#0: Some(A { b: 6 })}, set: {1, 2} }";
        let check = |path: &[Part], expected: Option<&str>| assert_eq!(part(value, path), expected);
        check(&[], Some(value));
        check(&[field("total")], Some("3"));
        check(&[field("at"), field("1"), index("0")], Some("4"));
        check(&[field("of"), index("Client#0"), field("b")], Some("6"));
        check(&[field("of"), index("Client#0"), field("0")], Some("A { b: 6 }"));
        check(&[field("at"), field("2")], None);
        check(&[field("at"), index("0")], None);
        check(&[field("set"), index("1")], None);
        check(&[field("nothing")], None);
        assert_eq!(part(&"(".repeat(100_000), &[field("0")]), None);
    }

    #[test]
    fn what_is_quoted_has_no_parts() {
        check(r#"["a, b", "c"]"#, r#"["a, b", "d"]"#, r#"x[1]: "c" → "d""#);
        check(r#"["\"]", 1]"#, r#"["\"]", 2]"#, "x[1]: 1 → 2");
        check("[(]", "[)]", "x: [(] → [)]");
        check("a, b", "a, c", "x: a, b → a, c");
    }

    #[test]
    fn long_values_are_shown_by_their_beginning_and_kept_whole() {
        let long = "7".repeat(50);
        check("1", &long, &format!("x: 1 → {}…", "7".repeat(40)));
        let deep = |end: &str| format!("{}{end}{}", "[".repeat(100_000), "]".repeat(100_000));
        let found = Changes::between(&[("x".into(), deep("1"))], &[("x".into(), deep("2"))]).list;
        assert_eq!(found[0].after, Some(deep("2")));
        let deep = |end: &str| format!("{}{end}{}", "[".repeat(1000), "]".repeat(1000));
        let found = Changes::between(&[("x".into(), deep("1"))], &[("x".into(), deep("2"))]).list;
        assert_eq!(found[0].path, format!("x{}", "[0]".repeat(16)));
    }

    #[test]
    fn what_is_told_is_bounded_and_the_rest_is_counted() {
        let values = |value: &str| vec![("x".to_string(), format!("[{}]", vec![value; 20_000].join(", ")))];
        let found = Changes::between(&values("1"), &values("2"));
        assert_eq!((found.list.len(), found.left_out), (7_406, 12_594));
        let set = |from: usize| {
            let parts: Vec<String> = (from..from + 9000).map(|n| n.to_string()).collect();
            vec![("x".to_string(), format!("{{{}}}", parts.join(", ")))]
        };
        let found = Changes::between(&set(0), &set(4500));
        assert_eq!(found.list.len() + found.left_out, 9000);
    }
}
