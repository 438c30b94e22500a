//! A test file, read: what is loaded, and what is asserted of it.

use std::collections::HashMap;
use std::ops::Range;

use wast::lexer::{Lexer, TokenKind};
use wast::parser::{ParseBuffer, parse};
use wast::token::Id;
use wast::{QuoteWat, Wast, WastArg, WastDirective, WastExecute, WastInvoke, WastRet, Wat};

use super::values::wave;

/// The bytes of a component, or why it is no text of one.
pub(crate) type Bytes = Result<Vec<u8>, String>;

/// A test file.
#[derive(Default)]
pub(crate) struct Script {
    /// By line.
    pub(crate) directives: Vec<(usize, Directive)>,
    /// Instances, by number.
    pub(crate) instances: Vec<Instance>,
}

#[derive(Clone, Default)]
pub(crate) struct Instance {
    pub(crate) wasm: Option<Bytes>,
    /// What is called of it, in order.
    pub(crate) calls: Vec<Call>,
}

#[derive(Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) args: Vec<String>,
}

pub(crate) enum Directive {
    /// It must be valid.
    Definition(Bytes),
    /// It must be valid, and can be instantiated.
    Instance(usize),
    /// The call of an instance returns this.
    Returns { instance: usize, call: usize, result: Option<Option<String>> },
    /// The call of an instance traps, for this reason.
    Traps { instance: usize, call: usize, reason: String },
    /// It is not valid.
    Invalid(Bytes),
    /// It traps when it is instantiated.
    TrapsAtStart(usize, String),
    /// It is something that is not of components.
    Other(String),
}

struct Reading {
    script: Script,
    definitions: HashMap<String, Bytes>,
    instances: HashMap<String, usize>,
    latest_definition: Option<Bytes>,
}

impl Script {
    pub(crate) fn read(text: &str) -> Script {
        let mut reading = Reading {
            script: Script::default(),
            definitions: HashMap::new(),
            instances: HashMap::new(),
            latest_definition: None,
        };
        for range in top_level(text) {
            let line = text[..range.start].lines().count() + 1;
            let read = reading.read(&text[range]).unwrap_or_else(|why| {
                let why = why.split(", expected").next().unwrap_or_default();
                Directive::Other(format!("its text cannot be read: {why}"))
            });
            reading.script.directives.push((line, read));
        }
        reading.script
    }
}

/// Where the directives of a file are, so that what is new in one keeps no other from being read.
fn top_level(text: &str) -> Vec<Range<usize>> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for token in Lexer::new(text).allow_confusing_unicode(true).iter(0) {
        let token = token.unwrap_or_else(|error| panic!("{error}"));
        match token.kind {
            TokenKind::LParen => {
                start = if depth == 0 { token.offset } else { start };
                depth += 1;
            }
            TokenKind::RParen => {
                depth -= 1;
                found.extend((depth == 0).then(|| start..token.offset + 1));
            }
            _ => {}
        }
    }
    found
}

impl Reading {
    fn read(&mut self, text: &str) -> Result<Directive, String> {
        let mut lexer = Lexer::new(text);
        lexer.allow_confusing_unicode(true);
        let buffer = ParseBuffer::new_with_lexer(lexer).map_err(|error| error.message())?;
        let mut script = parse::<Wast>(&buffer).map_err(|error| error.message())?;
        Ok(self.directive(script.directives.pop().ok_or("it is empty")?))
    }

    fn directive(&mut self, directive: WastDirective<'_>) -> Directive {
        match directive {
            WastDirective::Module(mut module) => {
                let (name, bytes) = (named(module.name()), encoded(&mut module));
                self.define(name.clone(), bytes.clone());
                Directive::Instance(self.instantiate(name, Some(bytes)))
            }
            WastDirective::ModuleDefinition(mut module) => {
                let bytes = encoded(&mut module);
                self.define(named(module.name()), bytes.clone());
                Directive::Definition(bytes)
            }
            WastDirective::ModuleInstance { instance, module, .. } => {
                let bytes = match named(module) {
                    Some(name) => self.definitions.get(&name).cloned(),
                    None => self.latest_definition.clone(),
                };
                Directive::Instance(self.instantiate(named(instance), bytes))
            }
            WastDirective::AssertInvalid { mut module, .. }
            | WastDirective::AssertMalformed { mut module, .. } => Directive::Invalid(encoded(&mut module)),
            WastDirective::AssertUnlinkable { mut module, .. } => {
                Directive::Invalid(module.encode().map_err(|error| error.message()))
            }
            WastDirective::Invoke(invoke) => match self.call(&invoke) {
                Some((instance, call)) => Directive::Returns { instance, call, result: None },
                None => Directive::Other("a call of no component".into()),
            },
            WastDirective::AssertReturn { exec: WastExecute::Invoke(invoke), results, .. } => {
                let result = results.last().map(|result| match result {
                    WastRet::Component(value) => wave(value),
                    other => format!("{other:?}"),
                });
                match self.call(&invoke) {
                    Some((instance, call)) => Directive::Returns { instance, call, result: Some(result) },
                    None => Directive::Other("a call of no component".into()),
                }
            }
            WastDirective::AssertTrap { exec: WastExecute::Invoke(invoke), message, .. } => {
                match self.call(&invoke) {
                    Some((instance, call)) => {
                        Directive::Traps { instance, call, reason: message.to_string() }
                    }
                    None => Directive::Other("a call of no component".into()),
                }
            }
            WastDirective::AssertTrap { exec: WastExecute::Wat(mut wat), message, .. } => {
                let bytes = wat.encode().map_err(|error| error.message());
                let is_component = matches!(wat, Wat::Component(_));
                match is_component {
                    true => Directive::TrapsAtStart(self.instantiate(None, Some(bytes)), message.into()),
                    false => Directive::Other("a core module".into()),
                }
            }
            _ => Directive::Other("another directive".into()),
        }
    }

    fn define(&mut self, name: Option<String>, bytes: Bytes) {
        self.latest_definition = Some(bytes.clone());
        if let Some(name) = name {
            self.definitions.insert(name, bytes);
        }
    }

    fn instantiate(&mut self, name: Option<String>, wasm: Option<Bytes>) -> usize {
        let instance = self.script.instances.len();
        self.script.instances.push(Instance { wasm, calls: Vec::new() });
        if let Some(name) = name {
            self.instances.insert(name, instance);
        }
        instance
    }

    /// The instance that is called, and the number of the call.
    fn call(&mut self, invoke: &WastInvoke<'_>) -> Option<(usize, usize)> {
        let instance = match named(invoke.module) {
            Some(name) => *self.instances.get(&name)?,
            None => self.script.instances.len().checked_sub(1)?,
        };
        let args = invoke.args.iter().map(|arg| match arg {
            WastArg::Component(value) => wave(value),
            other => format!("{other:?}"),
        });
        let calls = &mut self.script.instances[instance].calls;
        calls.push(Call { name: invoke.name.to_string(), args: args.collect() });
        Some((instance, calls.len() - 1))
    }
}

fn named(id: Option<Id<'_>>) -> Option<String> {
    id.map(|id| id.name().to_string())
}

fn encoded(module: &mut QuoteWat<'_>) -> Bytes {
    module.encode().map_err(|error| error.message())
}
