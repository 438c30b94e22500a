//! The commands of the prompt.

use anyhow::{Context, Result, bail, ensure};

use super::expression::Expression;

/// A command.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Lists commands.
    Help,
    /// So many steps on.
    Next(usize),
    /// So many steps back.
    Back(usize),
    /// To a position.
    Goto(usize),
    /// Before the first step.
    Start,
    /// After the last step, which is the one that fails, where one does.
    End,
    /// On, to where there is a reason to stop.
    Continue,
    /// Back, to where there is a reason to stop.
    Reverse,
    /// The step that led here.
    Info,
    /// All steps.
    List,
    /// What an expression comes to.
    Print(Expression),
    /// Where an expression was changed last.
    Last(Expression),
    /// Where an expression holds first.
    Bisect(Expression),
    /// Watches an expression.
    Watch(Expression),
    /// Watches one no longer.
    Unwatch(usize),
    /// What is watched and waited for.
    Watches,
    /// Waits for the steps with a name.
    Break(String),
    /// Waits for them no longer.
    Unbreak(String),
    /// What the guest says its state is.
    State,
    /// The bytes that the step wrote.
    Written,
    /// Bytes of memory: which memory, the address, how many.
    Memory(usize, Expression, usize),
    /// The globals of WebAssembly.
    Globals,
    /// The variables of the source whose names contain this.
    Statics(String),
    /// Where the guest failed, or was at a note of the step, from 1.
    Backtrace(Option<usize>),
    /// The hash of the state.
    Hash,
    /// Writes a core dump.
    Core(String),
    /// Ends.
    Quit,
}

/// What `help` prints.
pub const HELP: &str = "\
next [N], back [N]     so many steps on, or back (n, b)
goto N                 to the state after step N (g)
start, end             before the first step; after the last, which is the one that fails (run)
continue, reverse      on, or back, until a watched expression changes or a step is waited for (c, rc)
info                   the step that led here: values drawn, notes, changes (i)
list                   all steps (l)
print EXPR             what an expression comes to (p)
last EXPR              goes to the step up to here that changed it last
bisect EXPR            goes to the first step after which it holds
watch EXPR, unwatch N  has `continue` stop where it changes
break NAME, unbreak NAME
                       has `continue` stop after each step with this name
watches                what is watched and waited for
state                  what the guest says its state is
written                the bytes of memory that the step changed (w)
memory ADDR [LEN]      bytes of memory (x)
globals                the mutable globals of WebAssembly
statics [TEXT]         the variables of the source whose names contain TEXT
backtrace [N]          where the guest failed, or where it was at note N of the step (bt)
hash                   the hash of the state
core FILE              writes the state as a core dump of WebAssembly
quit                   (q)

Expressions: 12, 0x1f, \"text\", mem[ADDR..+LEN], u8[ADDR] to u64, i8 to i64, f32, f64, NAME for a variable of the
source or a global, &NAME for its address, $NAME or $3 for a global alone, @NAME for a part of the state that the guest
describes; parts of these by .field and [index]; + - * & | == != < <= > >= ! && || and brackets.";

/// Bytes of memory that are shown where it is not said how many.
const SHOWN: usize = 64;

impl Command {
    /// Reads a command; none of an empty line or a comment.
    ///
    /// # Errors
    /// There is no such command, or it takes something else.
    pub fn parse(line: &str) -> Result<Option<Command>> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let count = || if rest.is_empty() { Ok(1) } else { number(rest) };
        let expression = || {
            ensure!(!rest.is_empty(), "`{verb}` takes an expression");
            Expression::parse(rest)
        };
        let name = || {
            ensure!(!rest.is_empty(), "`{verb}` takes a name");
            Ok(rest.to_string())
        };
        let command = match verb {
            "next" | "n" | "step" | "s" => Command::Next(count()?),
            "back" | "b" | "prev" => Command::Back(count()?),
            "goto" | "g" => Command::Goto(number(rest)?),
            "print" | "p" => Command::Print(expression()?),
            "last" => Command::Last(expression()?),
            "bisect" => Command::Bisect(expression()?),
            "watch" => Command::Watch(expression()?),
            "unwatch" => Command::Unwatch(number(rest)?),
            "break" => Command::Break(name()?),
            "unbreak" => Command::Unbreak(name()?),
            "statics" => Command::Statics(rest.to_string()),
            "memory" | "x" => memory(rest)?,
            "core" => Command::Core(name()?),
            "backtrace" | "bt" if !rest.is_empty() => {
                let note = rest.parse().with_context(|| format!("`{rest}` is no number of a note"))?;
                Command::Backtrace(Some(note))
            }
            _ => {
                let command =
                    alone(verb).with_context(|| format!("there is no command `{verb}`; try `help`"))?;
                ensure!(rest.is_empty(), "`{verb}` takes nothing");
                command
            }
        };
        Ok(Some(command))
    }
}

fn alone(verb: &str) -> Option<Command> {
    Some(match verb {
        "help" | "h" | "?" => Command::Help,
        "start" => Command::Start,
        "end" | "run" | "r" => Command::End,
        "continue" | "c" => Command::Continue,
        "reverse" | "rc" => Command::Reverse,
        "info" | "i" => Command::Info,
        "list" | "l" => Command::List,
        "watches" => Command::Watches,
        "state" => Command::State,
        "written" | "w" => Command::Written,
        "globals" => Command::Globals,
        "backtrace" | "bt" => Command::Backtrace(None),
        "hash" => Command::Hash,
        "quit" | "q" | "exit" => Command::Quit,
        _ => return None,
    })
}

fn number(text: &str) -> Result<usize> {
    text.parse().with_context(|| format!("`{text}` is no number of steps"))
}

fn memory(rest: &str) -> Result<Command> {
    ensure!(!rest.is_empty(), "`memory` takes an address, and how many bytes");
    let (memory, rest) = match rest.strip_prefix(':').map(|rest| rest.split_once(char::is_whitespace)) {
        None => (0, rest),
        Some(Some((memory, rest))) => (number(memory)?, rest.trim()),
        Some(None) => bail!("`memory` takes an address, and how many bytes"),
    };
    let (address, len) = match rest.rsplit_once(char::is_whitespace) {
        Some((address, len)) if len.parse::<usize>().is_ok() => (address, number(len)?),
        _ => (rest, SHOWN),
    };
    Ok(Command::Memory(memory, Expression::parse(address)?, len))
}

/// The commands of a line, which `;` separates where it is not quoted.
pub fn split(line: &str) -> Vec<&str> {
    let (mut commands, mut from, mut quote) = (Vec::new(), 0, None);
    for (at, c) in line.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (_, Some(open)) if open == c => quote = None,
            (';', None) => {
                commands.push(&line[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    commands.push(&line[from..]);
    commands
}
