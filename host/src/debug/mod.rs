//! Looking inside a finding: going through the steps of a replayed trace forwards and back, and looking at each state.
//!
//! The one thing that is not obvious: nothing is ever changed here. All states of a trace are known once it was replayed, so a
//! question such as "which step changed this last" looks at states that are at hand, and going back is what going forwards is.
//!
//! | file | what |
//! |---|---|
//! | `timeline` | the states of a trace |
//! | `expression`, `parse`, `value` | expressions over a state |
//! | `scope` | what names in them stand for |
//! | `debugger` | where one is, and what one waits for |
//! | `command`, `answer`, `written` | the commands of the prompt, and what they print |
//! | `core` | a state as a core dump |
//! | `dap` | the Debug Adapter Protocol |

mod answer;
mod command;
mod core;
pub mod dap;
mod debugger;
mod expression;
mod parse;
mod scope;
#[cfg(test)]
mod tests;
mod timeline;
mod value;
mod written;

pub use self::core::core_dump;
pub use answer::Answer;
pub use command::{Command, HELP, split};
pub use debugger::{Debugger, Reason, Seen, Stop, Watch};
pub use expression::{Expression, Lack, Named};
pub use timeline::Timeline;
pub use value::Value;
