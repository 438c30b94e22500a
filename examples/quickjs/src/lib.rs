//! QuickJS does to arrays, maps and strings what Rust does, line after line in one context.

#![forbid(unsafe_code)]

use rquickjs::{Context, Runtime};
use spelunk_guest::prelude::*;

struct Harness {
    context: Context,
    /// What the globals `a` and `m` hold.
    array: Vec<i32>,
    map: Vec<(String, i32)>,
}

/// A number of few digits, so that their order as text is another than as numbers.
fn number() -> impl Strategy<Value = i32> {
    -20..=20
}

fn key() -> impl Strategy<Value = String> {
    composite(|| draw(sampled_from(["a", "b", "1", "__proto__", "length"])).to_string())
}

#[harness]
impl Harness {
    #[setup]
    fn new() -> Harness {
        let context = Context::full(&Runtime::new().expect("there is memory")).expect("there is memory");
        let harness = Harness { context, array: Vec::new(), map: Vec::new() };
        harness.run("globalThis.a = []; globalThis.m = new Map(); globalThis.o = {}; ''");
        harness
    }

    #[rule]
    #[precondition(self.array.len() < 50)]
    fn push(&mut self, #[draw(vec(number(), 1..=12))] values: Vec<i32>) {
        self.run(&format!("a.push(...{values:?})"));
        self.array.extend(values);
    }

    #[rule]
    fn pop(&mut self) {
        let expected = self.array.pop();
        self.check("String(a.pop())", &expected.map_or("undefined".to_string(), |value| value.to_string()));
    }

    #[rule]
    #[precondition(self.array.len() < 50)]
    fn splice(
        &mut self,
        #[draw(0..=self.array.len())] start: usize,
        #[draw(0..=self.array.len() - start)] count: usize,
        #[draw(vec(number(), 0..=3))] values: Vec<i32>,
    ) {
        let removed: Vec<i32> = self.array.splice(start..start + count, values.iter().copied()).collect();
        let list: String = values.iter().map(|value| format!(", {value}")).collect();
        self.check(&format!("JSON.stringify(a.splice({start}, {count}{list}))"), &json(&removed));
    }

    #[rule]
    fn sort(&mut self, #[draw(boolean())] by_text: bool) {
        if by_text {
            self.run("a.sort()");
            self.array.sort_by_key(ToString::to_string);
        } else {
            self.run("a.sort((x, y) => x - y)");
            self.array.sort();
        }
    }

    #[rule]
    fn reverse(&mut self) {
        self.run("a.reverse()");
        self.array.reverse();
    }

    /// What is left, with a closure that the engine has to keep.
    #[rule]
    fn filter(&mut self, #[draw(number())] least: i32) {
        self.run(&format!("a = (least => a.filter(x => x >= least))({least})"));
        self.array.retain(|value| *value >= least);
    }

    #[rule]
    fn set(&mut self, #[draw(key())] key: String, #[draw(number())] value: i32) {
        self.run(&format!("m.set({key:?}, {value}); Object.defineProperty(o, {key:?}, {{ value: {value}, enumerable: true, configurable: true, writable: true }})"));
        match self.map.iter_mut().find(|(name, _)| *name == key) {
            Some((_, old)) => *old = value,
            None => self.map.push((key, value)),
        }
    }

    #[rule]
    fn delete(&mut self, #[draw(key())] key: String) {
        let len = self.map.len();
        self.map.retain(|(name, _)| *name != key);
        let expected = (self.map.len() < len).to_string();
        self.check(&format!("delete o[{key:?}]; String(m.delete({key:?}))"), &expected);
    }

    /// The sum overflows 32 bits where the engine's small integers end.
    #[rule]
    fn reduce(&mut self, #[draw(1..=1_000_000_000)] factor: i64) {
        let expected: i64 = self.array.iter().map(|value| i64::from(*value) * factor).sum();
        self.check(&format!("String(a.reduce((sum, x) => sum + x * {factor}, 0))"), &expected.to_string());
        self.check(
            &format!("String(a.reduce((sum, x) => sum + BigInt(x) * {factor}n, 0n))"),
            &expected.to_string(),
        );
    }

    #[rule]
    fn text(
        &mut self,
        #[draw(text("ab\u{e9}\u{1f600}\"\\\n", 0..=6))] text: String,
        #[draw(0..=3)] count: usize,
    ) {
        let literal: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        self.check(&format!("'{literal}'.repeat({count})"), &text.repeat(count));
        self.check(&format!("JSON.parse(JSON.stringify('{literal}'))"), &text);
        let found = text.find('a').map_or(-1, |at| text[..at].encode_utf16().count() as i32);
        self.check(&format!("String('{literal}'.indexOf('a'))"), &found.to_string());
    }

    #[rule]
    fn throw(&mut self, #[draw(number())] value: i32) {
        self.check(
            &format!("try {{ a.forEach(() => {{ throw {value} }}); 'none' }} catch (e) {{ String(e) }}"),
            &if self.array.is_empty() { "none".to_string() } else { value.to_string() },
        );
    }

    #[invariant]
    fn array_holds_what_it_must(&self) {
        self.check("JSON.stringify(a)", &json(&self.array));
    }

    #[invariant]
    fn map_keeps_the_order(&self) {
        let entries: Vec<String> = self.map.iter().map(|(key, value)| format!("[{key:?},{value}]")).collect();
        self.check("JSON.stringify([...m])", &format!("[{}]", entries.join(",")));
        let mut sorted = self.map.clone();
        // An index comes first among the keys of an object.
        sorted.sort_by_key(|(key, _)| key != "1");
        let entries: Vec<String> = sorted.iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
        self.check("JSON.stringify(o)", &format!("{{{}}}", entries.join(",")));
    }

    /// Runs a line.
    fn run(&self, script: &str) {
        self.context
            .with(|context| context.eval::<rquickjs::Value<'_>, _>(script).map(drop))
            .expect("the line runs");
    }

    fn check(&self, script: &str, expected: &str) {
        let found = self.context.with(|context| context.eval::<String, _>(script));
        let found = found.unwrap_or_else(|error| panic!("`{script}`: {error}"));
        assert!(found == expected, "`{script}` is {found:?}, expected {expected:?}");
    }
}

fn json(values: &[i32]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    format!("[{}]", values.join(","))
}
