//! Tells small functions from where they were called, so that what they compare and store is told apart by that.
//!
//! Whoever calls one says where, in private memory, and the function reads that when it is entered:
//!
//! ```wat
//! (call $small …)           =>  (i32.store $p offset=CALLER (i32.const 0) (i32.const SITE)) (call $small …)
//! (func $small (param …) …  =>  (local.set $caller (i32.load $p offset=CALLER (i32.const 0))) …
//! ```
//!
//! A small function that calls another one adds its own caller to the site, so a wrapper hides nothing. What is called through a table
//! is told too, since it may be small. Contexts of calls are those of Angora (Chen and Chen, 2018), of as many calls as are small.

use crate::calls::Calls;
use crate::code::*;
use walrus::ir::*;
use walrus::{LocalFunction, LocalId, Module, ValType};

/// Instructions of a function that is small, at most.
const SMALL_MAX: usize = 128;

/// Spreads sites, so that those of two calls do not add up to those of two others.
const SPREAD: u32 = 0x9e37_79b1;

/// Which functions are told where they are called from.
pub(crate) struct Contexts {
    private: Private,
    caller: u32,
    /// By index.
    is_small: Vec<bool>,
}

impl Contexts {
    /// `caller` is where in private memory the last call is.
    pub(crate) fn of(module: &Module, calls: &Calls, private: Private, caller: u32) -> Contexts {
        let mut is_small = vec![false; calls.recursive.len()];
        // What was added to the module comes after its own functions, and is told nothing.
        for (id, function) in module.funcs.iter_local().filter(|(id, _)| id.index() < calls.recursive.len()) {
            let mut size = 0;
            each_instr(function, |_, _| size += 1);
            // The contexts of a function that calls itself have no end.
            is_small[id.index()] = size <= SMALL_MAX && !calls.recursive[id.index()];
        }
        Contexts { private, caller, is_small }
    }

    /// The variable that holds where a function was called from, if it is small; see [`Contexts::enter`].
    pub(crate) fn caller(&self, index: usize, locals: &NewLocals<'_>) -> Option<LocalId> {
        self.is_small[index].then(|| locals.add(ValType::I32))
    }

    /// Has a function begin with reading where it was called from.
    pub(crate) fn enter(&self, function: &mut LocalFunction, caller: LocalId) {
        let mut code = Code::new();
        self.private.load_at(&mut code, Width::Word, self.caller);
        set(&mut code, caller);
        let entry = function.entry_block();
        function.block_mut(entry).instrs.splice(0..0, code);
    }

    /// Puts before a call what says where it is, in a function that was called from `caller`.
    pub(crate) fn call(&self, code: &mut Code, instr: &Instr, site: u32, caller: Option<LocalId>) {
        let is_told = match instr {
            Instr::Call(Call { func }) | Instr::ReturnCall(ReturnCall { func }) => {
                self.is_small.get(func.index()).copied().unwrap_or_default()
            }
            Instr::CallIndirect(_)
            | Instr::ReturnCallIndirect(_)
            | Instr::CallRef(_)
            | Instr::ReturnCallRef(_) => true,
            _ => false,
        };
        if !is_told {
            return;
        }
        i32_const(code, 0);
        i32_const(code, site.wrapping_mul(SPREAD) | 1);
        if let Some(caller) = caller {
            get(code, caller);
            i32_const(code, SPREAD);
            binop(code, BinaryOp::I32Mul);
            binop(code, BinaryOp::I32Add);
        }
        self.private.store(code, Width::Word, self.caller);
    }
}

/// Pushes where a function was called from; 0 where that is not told.
pub(crate) fn push_caller(code: &mut Code, caller: Option<LocalId>) {
    match caller {
        Some(caller) => get(code, caller),
        None => i32_const(code, 0),
    }
}
