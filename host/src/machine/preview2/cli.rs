//! `wasi:cli`: arguments, variables, the standard streams, and the end of a program.

use super::super::component::Value;
use super::super::host::{Stop, pay};
use super::super::preview1::{args, vars};
use super::super::system::{Resource, Sink, Source};
use super::values::{Args, none};
use super::{Call, Done, Fail, Function, add};

pub(super) const FUNCTIONS: &[Function] = &[
    ("wasi:cli/environment", "get-environment", "func() -> list<tuple<string, string>>", environment),
    ("wasi:cli/environment", "get-arguments", "func() -> list<string>", arguments),
    ("wasi:cli/environment", "initial-cwd", "func() -> option<string>", nothing),
    ("wasi:cli/exit", "exit", "func(status: result)", exit),
    ("wasi:cli/exit", "exit-with-code", "func(status-code: u8)", exit_with_code),
    ("wasi:cli/stdin", "get-stdin", "func() -> input-stream", stdin),
    ("wasi:cli/stdout", "get-stdout", "func() -> output-stream", stdout),
    ("wasi:cli/stderr", "get-stderr", "func() -> output-stream", stderr),
    ("wasi:cli/terminal-stdin", "get-terminal-stdin", "func() -> option<terminal-input>", nothing),
    ("wasi:cli/terminal-stdout", "get-terminal-stdout", "func() -> option<terminal-output>", nothing),
    ("wasi:cli/terminal-stderr", "get-terminal-stderr", "func() -> option<terminal-output>", nothing),
];

/// A text costs as much as so many bytes, besides those that it has.
const TEXT_BYTES: usize = 64;

fn paid(call: &mut Call<'_>, texts: Vec<String>) -> Done<Vec<String>> {
    pay(call, texts.iter().map(|text| text.len() + TEXT_BYTES).sum())?;
    Ok(texts)
}

fn environment(call: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    let vars = vars(call.data());
    let vars = paid(call, vars)?;
    let pair = |var: &String| {
        let (name, value) = var.split_once('=').unwrap_or((var, ""));
        Value::Record(vec![Value::text(name), Value::text(value)])
    };
    Ok(Some(Value::List(vars.iter().map(pair).collect())))
}

fn arguments(call: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    let args = args(call.data());
    Ok(Some(Value::List(paid(call, args)?.into_iter().map(Value::text).collect())))
}

/// There is no terminal, and no directory that paths begin at.
fn nothing(_: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    Ok(Some(none()))
}

fn exit(_: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (code, _) = args.case()?;
    Err(Fail::Stop(Stop::Exit(code).into()))
}

fn exit_with_code(_: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let code = args.number()? as u32;
    Err(Fail::Stop(Stop::Exit(code).into()))
}

fn stdin(call: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    add(call, Resource::Input(Source::Stdin)).map(Some)
}

fn stdout(call: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    add(call, Resource::Output(Sink::Stdout)).map(Some)
}

fn stderr(call: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    add(call, Resource::Output(Sink::Stderr)).map(Some)
}
