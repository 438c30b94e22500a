//! What a step of a guest does that can be seen from outside: what it returns, how it ends, and what it does to the world. That of
//! another guest is compared with it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use wasmtime::Val;

use super::super::component::WitValue;
use super::super::keyed::Hasher;
use crate::text::line;

/// Bytes of a text that are kept; of those behind them a hash is.
const TEXT_MAX: usize = 64 << 10;
/// Calls of imports that are kept, and numbers that are passed to all of them; of those behind them a hash is.
const CALLS_MAX: usize = 1000;
const NUMBERS_MAX: usize = 10_000;

/// What one step did, where it is to be compared.
#[derive(Default)]
pub(in super::super) struct Effects {
    /// What the rule returned, where it did.
    pub(in super::super) returned: Option<Returned>,
    /// The code that it ended itself with.
    pub(in super::super) exit: Option<u32>,
    pub(super) stdout: Text,
    pub(super) stderr: Text,
    pub(super) calls: Calls,
    /// Imports whose calls are not compared.
    ignored: Arc<BTreeSet<String>>,
}

impl Effects {
    /// Of a guest the calls of whose imports are compared, but for these.
    pub(in super::super) fn but_for(ignored: &Arc<BTreeSet<String>>) -> Effects {
        Effects { ignored: ignored.clone(), ..Effects::default() }
    }

    /// Begins the next step.
    pub(in super::super) fn clear(&mut self) {
        (self.returned, self.exit) = (None, None);
        self.stdout.clear();
        self.stderr.clear();
        self.calls.clear();
    }

    /// Whether calls of this import are compared.
    pub(in super::super) fn notes(&self, import: &str) -> bool {
        !self.ignored.contains(import)
    }

    /// It writes to standard error, or else to standard output.
    pub(in super::super) fn write(&mut self, bytes: &[u8], is_error: bool) {
        if is_error { &mut self.stderr } else { &mut self.stdout }.push(bytes);
    }

    /// It calls an import that nobody provides.
    pub(in super::super) fn call(&mut self, name: &Arc<str>, args: &[Val]) {
        self.calls.push(name, args);
    }

    /// A component calls one.
    pub(in super::super) fn call_with_text(&mut self, name: &str, args: &str) {
        self.calls.push_text(name, args);
    }
}

/// What a call returns, as something that can be compared.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum Returned {
    Nothing,
    Number(Number),
    /// Several.
    Numbers(Vec<Number>),
    /// A text, or none where the address is 0 or lies outside memory.
    Text(Option<Text>),
    /// A handle, or one that stands for none.
    Handle(bool),
    /// What a function of a component returned.
    Value(WitValue),
    /// And handles, or some that stand for none, that were put where the arguments said.
    Written(Box<Returned>, Vec<bool>),
}

impl Returned {
    /// The results of a function.
    pub(in super::super) fn of(results: &[Val]) -> Returned {
        match results {
            [] => Returned::Nothing,
            [one] => Returned::Number(Number::of(one)),
            many => Returned::Numbers(many.iter().map(Number::of).collect()),
        }
    }
}

impl fmt::Display for Returned {
    /// As what follows the name of a function: `returns 5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Returned::Nothing => f.write_str("returns"),
            Returned::Number(number) => write!(f, "returns {number}"),
            Returned::Numbers(numbers) => write!(f, "returns {}", list(numbers)),
            Returned::Text(None) => f.write_str("returns no text"),
            Returned::Text(Some(text)) => write!(f, "returns {}", quoted(text.start())),
            Returned::Value(value) => write!(f, "returns {value}"),
            Returned::Handle(true) => f.write_str("returns a handle"),
            Returned::Handle(false) => f.write_str("returns no handle"),
            Returned::Written(returned, handles) => {
                write!(f, "{returned}")?;
                let mut handles = handles.iter();
                handles.try_for_each(|is_one| {
                    write!(f, " and writes {} handle", if *is_one { "a" } else { "no" })
                })
            }
        }
    }
}

fn list(numbers: &[Number]) -> String {
    let numbers: Vec<String> = numbers.iter().map(Number::to_string).collect();
    format!("({})", numbers.join(", "))
}

/// A number; of floats every NaN is the same one. Of references it counts whether they are null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) enum Number {
    I32(i32),
    I64(i64),
    F32(u32),
    F64(u64),
    V128(u128),
    Reference(bool),
}

impl Number {
    pub(in super::super) fn of(value: &Val) -> Number {
        match value {
            Val::I32(v) => Number::I32(*v),
            Val::I64(v) => Number::I64(*v),
            Val::F32(bits) if f32::from_bits(*bits).is_nan() => Number::F32(f32::NAN.to_bits()),
            Val::F64(bits) if f64::from_bits(*bits).is_nan() => Number::F64(f64::NAN.to_bits()),
            Val::F32(bits) => Number::F32(*bits),
            Val::F64(bits) => Number::F64(*bits),
            Val::V128(v) => Number::V128(v.as_u128()),
            Val::FuncRef(function) => Number::Reference(function.is_some()),
            Val::ExternRef(object) => Number::Reference(object.is_some()),
            Val::AnyRef(object) => Number::Reference(object.is_some()),
            Val::ExnRef(object) => Number::Reference(object.is_some()),
            Val::ContRef(object) => Number::Reference(object.is_some()),
        }
    }

    fn bits(self) -> (u8, u128) {
        match self {
            Number::I32(v) => (0, v as u32 as u128),
            Number::I64(v) => (1, v as u64 as u128),
            Number::F32(v) => (2, v.into()),
            Number::F64(v) => (3, v.into()),
            Number::V128(v) => (4, v),
            Number::Reference(v) => (5, v.into()),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::I32(v) => v.fmt(f),
            Number::I64(v) => v.fmt(f),
            Number::F32(bits) => write!(f, "{:?}", f32::from_bits(*bits)),
            Number::F64(bits) => write!(f, "{:?}", f64::from_bits(*bits)),
            Number::V128(v) => write!(f, "{v:#034x}"),
            Number::Reference(true) => f.write_str("a reference"),
            Number::Reference(false) => f.write_str("null"),
        }
    }
}

/// A text of any length.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Text {
    start: Vec<u8>,
    len: u64,
    /// Of what comes behind the start.
    rest: Option<Box<Hasher>>,
}

impl Text {
    pub(in super::super) fn of(bytes: &[u8]) -> Text {
        let mut text = Text::default();
        text.push(bytes);
        text
    }

    fn push(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        let (kept, rest) = bytes.split_at(bytes.len().min(TEXT_MAX - self.start.len()));
        self.start.extend_from_slice(kept);
        if !rest.is_empty() {
            self.rest.get_or_insert_with(|| Box::new(Hasher::new())).update(rest);
        }
    }

    fn clear(&mut self) {
        self.start.clear();
        (self.len, self.rest) = (0, None);
    }

    /// As much of it as is kept.
    pub(super) fn start(&self) -> &[u8] {
        &self.start
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        let hash = |text: &Text| text.rest.clone().map(|mut rest| rest.finish());
        (self.len, &self.start) == (other.len, &other.start) && hash(self) == hash(other)
    }
}

/// The first line in which two texts differ, from 1, and what it is in each, where it is there; no line where they differ
/// behind what of them is kept.
pub(super) fn first_difference<'t>(one: &'t Text, other: &'t Text) -> Option<(usize, [Option<&'t [u8]>; 2])> {
    let lines = |text: &'t Text| text.start.split_inclusive(|byte| *byte == b'\n');
    let (mut one, mut other) = (lines(one), lines(other));
    for number in 1.. {
        match [one.next(), other.next()] {
            [None, None] => break,
            [a, b] if a != b => return Some((number, [a, b])),
            _ => {}
        }
    }
    None
}

/// Characters of a text that are shown.
const SHOWN_MAX: usize = 100;

/// Two texts as they are shown, from where they differ on.
pub(super) fn apart(texts: [&[u8]; 2]) -> [String; 2] {
    let [one, other] = texts;
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    // Some of what comes before says where that is.
    let cut = if same > SHOWN_MAX / 2 { same - SHOWN_MAX / 4 } else { 0 };
    texts.map(|text| format!("{}{}", if cut > 0 { "… " } else { "" }, quoted(&text[cut..])))
}

/// A text as it is shown.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN_MAX)]);
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    format!("{shown:?}{}", if shown.len() < bytes.len() { " …" } else { "" })
}

/// What an import was given.
#[derive(Clone, Debug, PartialEq)]
enum Args {
    Numbers(Vec<Number>),
    /// Values of a component.
    Values(Text),
}

impl fmt::Display for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Args::Numbers(numbers) => f.write_str(&list(numbers)),
            Args::Values(text) => write!(f, "({})", line(&String::from_utf8_lossy(text.start()))),
        }
    }
}

/// Calls of imports, in order.
#[derive(Default)]
pub(super) struct Calls {
    first: Vec<(Arc<str>, Args)>,
    len: u64,
    /// Passed to all of them.
    numbers: usize,
    /// Of those behind the first.
    rest: Option<Box<Hasher>>,
}

impl Calls {
    fn clear(&mut self) {
        self.first.clear();
        (self.len, self.numbers, self.rest) = (0, 0, None);
    }

    fn push(&mut self, name: &Arc<str>, args: &[Val]) {
        self.len += 1;
        self.numbers += args.len();
        if self.first.len() < CALLS_MAX && self.numbers <= NUMBERS_MAX {
            self.first.push((name.clone(), Args::Numbers(args.iter().map(Number::of).collect())));
            return;
        }
        let rest = self.rest.get_or_insert_with(|| Box::new(Hasher::new()));
        rest.update(&(name.len() as u64).to_le_bytes());
        rest.update(name.as_bytes());
        for (tag, bits) in args.iter().map(|arg| Number::of(arg).bits()) {
            rest.update(&[tag]);
            rest.update(&bits.to_le_bytes());
        }
    }

    fn push_text(&mut self, name: &str, args: &str) {
        self.len += 1;
        self.numbers += args.len();
        if self.first.len() < CALLS_MAX && self.numbers <= NUMBERS_MAX {
            self.first.push((name.into(), Args::Values(Text::of(args.as_bytes()))));
            return;
        }
        let rest = self.rest.get_or_insert_with(|| Box::new(Hasher::new()));
        for text in [name, args] {
            rest.update(&(text.len() as u64).to_le_bytes());
            rest.update(text.as_bytes());
        }
    }

    /// The first call in which they differ, from 1, and what it is in each, where it is there.
    pub(super) fn difference(&self, other: &Calls) -> Option<(usize, [Option<String>; 2])> {
        let calls = self.first.len().max(other.first.len());
        if let Some(at) = (0..calls).find(|at| self.first.get(*at) != other.first.get(*at)) {
            let call =
                |calls: &Calls| calls.first.get(at).map(|(name, args)| format!("`{}`{args}", line(name)));
            return Some((at + 1, [call(self), call(other)]));
        }
        let hash = |calls: &Calls| calls.rest.clone().map(|mut rest| rest.finish());
        let is_same = self.len == other.len && hash(self) == hash(other);
        let shown = |calls: &Calls| Some(format!("{} imports in all", calls.len));
        (!is_same).then(|| (self.first.len() + 1, [self, other].map(shown)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(one: &str, other: &str) -> Option<(usize, [Option<String>; 2])> {
        let [one, other] = [one, other].map(|text| Text::of(text.as_bytes()));
        assert_eq!(one == other, first_difference(&one, &other).is_none());
        let (number, lines) = first_difference(&one, &other)?;
        Some((number, lines.map(|line| line.map(quoted))))
    }

    #[test]
    fn the_first_line_that_differs_is_found() {
        let line = |text: &str| Some(format!("{text:?}"));
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(difference("a\nb\n", "a\nc\n"), Some((2, [line("b\n"), line("c\n")])));
        assert_eq!(difference("a\nb\n", "a\n"), Some((2, [line("b\n"), None])));
        assert_eq!(difference("a", "a\n"), Some((1, [line("a"), line("a\n")])));
        assert_eq!(difference("", "a"), Some((1, [None, line("a")])));
    }

    #[test]
    fn what_is_not_kept_counts() {
        let long = |last: u8| {
            let mut text = Text::default();
            (0..3).for_each(|_| text.push(&vec![b'x'; TEXT_MAX / 2 + 1]));
            text.push(&[last]);
            text
        };
        assert!(long(1) == long(1) && long(1) != long(2));
        assert_eq!(first_difference(&long(1), &long(2)), None);
        let calls = |last: i32| {
            let mut calls = Calls::default();
            (0..CALLS_MAX).for_each(|_| calls.push(&Arc::from("f"), &[Val::I32(1)]));
            calls.push(&Arc::from("f"), &[Val::I32(last)]);
            calls
        };
        assert_eq!(calls(1).difference(&calls(1)), None);
        assert_eq!(calls(1).difference(&calls(2)).unwrap().0, 1001);
        let wide = |last: i32| {
            let mut calls = Calls::default();
            let args = vec![Val::I32(7); 999];
            (0..20).for_each(|_| calls.push(&Arc::from("f"), &args));
            calls.push(&Arc::from("f"), &[Val::I32(last)]);
            calls
        };
        assert_eq!(wide(1).difference(&wide(1)), None);
        assert_eq!(wide(1).difference(&wide(2)).unwrap().0, 11);
        let (mut fewer, more) = (calls(1), calls(1));
        assert_eq!(Calls::default().difference(&more), Some((1, [None, Some("`f`(1)".to_string())])));
        fewer.first.pop();
        assert_eq!(fewer.difference(&more).unwrap().0, 1000);
    }

    #[test]
    fn every_nan_is_the_same() {
        let of = |bits| Number::of(&Val::F64(bits));
        assert_eq!(of(f64::NAN.to_bits()), of(f64::NAN.to_bits() ^ 1 << 63 ^ 7));
        assert_ne!(of(0), of(1 << 63));
        assert_eq!(of(0f64.to_bits()).to_string(), "0.0");
        let numbers = Returned::of(&[Val::I32(-1), Val::F32(f32::NAN.to_bits()), Val::FuncRef(None)]);
        assert_eq!(numbers.to_string(), "returns (-1, NaN, null)");
        assert_eq!(Returned::of(&[]).to_string(), "returns");
    }

    #[test]
    fn a_long_text_is_cut_where_it_is_shown() {
        assert_eq!(quoted(b"a\n\xff"), "\"a\\n\u{fffd}\"");
        let long = quoted(&[b'y'; 300]);
        assert!(long.ends_with("y\" …") && long.chars().count() == 104, "{long}");
        assert_eq!(apart([b"abc", b"abd"]), ["\"abc\"", "\"abd\""]);
        let [one, other] = ["1", "2"].map(|end| "x".repeat(60) + end);
        let same = "x".repeat(25);
        assert_eq!(apart([one.as_bytes(), other.as_bytes()]), [1, 2].map(|end| format!("… \"{same}{end}\"")));
    }
}
