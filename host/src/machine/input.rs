//! What a program that runs once from start to end is given, where that is drawn: a file, standard input, arguments. It is drawn
//! before the program is called, so that the first choice of a run is the input whatever the program does first.

use std::sync::Arc;

use super::Program;
use super::host::{Host, Stop};
use super::system::{INPUT, Input, System};
use crate::choice::{Kind, Value};
use crate::outcome::{Failure, FailureKind};

/// Bytes of a drawn argument.
const ARGUMENT_MAX: u32 = 64;

type Answer<T> = wasmtime::Result<T>;

impl Host {
    /// Draws what is to be drawn.
    pub(super) fn draw_inputs(&mut self) -> Answer<()> {
        let Some(stdin_is_drawn) = self.system.as_ref().map(|system| system.get().stdin.is_none()) else {
            return Ok(());
        };
        let environment = self.environment.clone();
        if environment.draws_file() {
            let bytes = self.draw_bytes("file", self.input_bytes_max)?;
            let put = self.system.as_mut().map(System::change).map(|system| system.put_input(&bytes));
            if let Some(Err(errno)) = put {
                let message = format!("what is drawn cannot be put into `/{INPUT}`: {errno:?}");
                return Err(Stop::Fail(Failure::new(FailureKind::Abi, message)).into());
            }
        }
        if stdin_is_drawn {
            let bytes = self.draw_bytes("stdin", self.input_bytes_max)?;
            if let Some(system) = &mut self.system {
                system.change().stdin = Some(Input::new(bytes));
            }
        }
        for _ in 0..self.ask_index(environment.args_drawn_max as usize + 1)? {
            let bytes = self.draw_bytes("argument", ARGUMENT_MAX)?;
            self.step.args.push(String::from_utf8_lossy(&bytes).replace('\0', ""));
        }
        Ok(())
    }

    fn draw_bytes(&mut self, name: &str, max: u32) -> Answer<Arc<[u8]>> {
        let Value::Bytes(bytes) = self.ask(Kind::Bytes { min: 0, max })?.clone() else {
            unreachable!("bytes are answered by bytes")
        };
        self.step.drew(name, &Value::Bytes(bytes.clone()));
        Ok(bytes)
    }
}

impl Program {
    /// Whether the guest is a function that takes bytes, as the targets of other fuzzers do, or is a program that reads drawn bytes.
    pub fn takes_input(&self) -> bool {
        let is_drawn =
            |system: &System| system.get().stdin.is_none() || self.conditions().environment.draws_file();
        self.exports.takes_input
            || self.exports.is_command && self.world.system.as_ref().is_some_and(is_drawn)
    }

    /// Whether it is called by `_start`, and given no arguments.
    pub fn lacks_args(&self) -> bool {
        let environment = &self.conditions().environment;
        self.exports.is_command && environment.args.is_empty() && environment.args_drawn_max == 0
    }
}
