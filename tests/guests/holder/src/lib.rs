//! A token, which is handed on or used. To hand it on leads to a state that differs in who is who alone, but it is a step.

#![forbid(unsafe_code)]

use spelunk_guest::prelude::*;

#[derive(Default, State)]
struct Token {
    holder: Option<Scalar<2>>,
    is_used: bool,
}

#[harness]
impl Token {
    #[rule]
    fn act(&mut self, id: Scalar<2>) {
        if self.holder == Some(id) {
            self.is_used = true;
        }
        self.holder = Some(id);
    }

    #[invariant]
    fn it_is_used(&self) {
        eventually!("it is used", self.is_used);
    }
}
