//! Reports what is compared with what, to functions that the host provides.
//!
//! A comparison becomes a call, which reports its operands and compares them; a function that compares what two pointers point
//! to reports them when it is entered:
//!
//! ```wat
//! (i32.eq (a) (b))              =>  (call $i32.eq (a) (b) (i32.const SITE) (local.get $caller))
//! (func $memcmp (param $p i32) (param $q i32) (param $n i32) …
//!                               =>  (call $places (i32.const FUNCTION) (i32.const KIND) (local.get $p) (local.get $q) (local.get $n) (local.get $caller)) …
//! ```
//!
//! Where AFL++ and libFuzzer have operands traced by the compiler, in the manner of REDQUEEN (Aschermann et al., 2019), and calls of
//! functions that take two pointers (AFL++'s CmpLog). A place reports so many times in a step and then no more.

use crate::calls::Calls;
use crate::code::*;
use crate::contexts::{Contexts, push_caller};
use crate::layout::Allocator;
use crate::names::FunctionName;
use crate::stored::Stored;
use crate::{Options, PREFIX, StateLayout};
use anyhow::Result;
use std::collections::BTreeMap;
use std::mem::discriminant;
use walrus::ir::*;
use walrus::{FunctionBuilder, FunctionId, LocalFunction, LocalId, Module, ValType};

/// Places that are told apart when reports are bounded.
const PLACES: u32 = 1 << 16;
/// Reports of one place in a step.
pub(crate) const REPORTS_MAX: u32 = 32;
/// Reports of one pointer that a function is given in a step, where the other was given often too.
const POINTERS_MAX: u32 = 8;

/// Spreads functions over places.
const SPREAD: u32 = 0x9e37_79b1;

/// What a value is that decides where control goes: whether it is 0.
const CONDITION: u32 = 4;
/// An index into a table of so many branches.
const INDEX: u32 = 32;

/// What is known of what two pointers point to. The numbers are those that the host is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pointed {
    /// As many bytes as the third parameter says.
    Bytes = 0,
    /// Texts that end with a zero.
    Texts = 1,
    /// Texts, of which the third parameter says how much counts.
    Prefixes = 2,
    /// The second is looked for in the first; each is followed by its length.
    Parts = 3,
    /// Nothing: a function that loads bytes in a loop.
    Unknown = 4,
}

/// Functions of libraries that compare, by name.
const KNOWN: [(&str, Pointed); 12] = [
    ("memcmp", Pointed::Bytes),
    ("bcmp", Pointed::Bytes),
    ("memmem", Pointed::Parts),
    ("strcmp", Pointed::Texts),
    ("strcasecmp", Pointed::Texts),
    ("strcoll", Pointed::Texts),
    ("strstr", Pointed::Texts),
    ("strcasestr", Pointed::Texts),
    ("strncmp", Pointed::Prefixes),
    ("strncasecmp", Pointed::Prefixes),
    ("__strcasecmp_l", Pointed::Texts),
    ("__strncasecmp_l", Pointed::Prefixes),
];

/// A function whose pointers are reported.
struct Comparing {
    kind: Pointed,
    params: Vec<LocalId>,
}

/// What reports, once it was added to a module.
pub(crate) struct Compares {
    /// By comparison, the function that takes its place.
    instead: Vec<(BinaryOp, FunctionId)>,
    places: FunctionId,
    /// The functions that report a condition, and an index of a `br_table`.
    deciding: [FunctionId; 2],
    comparing: BTreeMap<usize, Comparing>,
    stored: Stored,
    contexts: Contexts,
}

impl Compares {
    /// What reports, where that is asked for.
    pub(crate) fn of(
        module: &mut Module,
        options: &Options,
        (private, allocator): (Private, &mut Allocator),
        layout: &mut StateLayout,
        (names, calls): (&[FunctionName], &Calls),
    ) -> Result<Option<Compares>> {
        options
            .compares
            .then(|| Compares::add(module, private, allocator, layout, (names, calls)))
            .transpose()
    }

    /// Adds the functions that report.
    fn add(
        module: &mut Module,
        private: Private,
        allocator: &mut Allocator,
        layout: &mut StateLayout,
        (names, calls): (&[FunctionName], &Calls),
    ) -> Result<Compares> {
        layout.compares = allocator.take(u64::from(PLACES) + 4, 64)?;
        let contexts = Contexts::of(module, calls, private, layout.compares.start + PLACES);
        let comparing = module.funcs.iter_local().filter_map(|(id, function)| {
            let name = names.get(id.index())?;
            Some((id.index(), comparing(module, function, &name.name)?))
        });
        let comparing = comparing.collect();
        let (i32, i64) = (ValType::I32, ValType::I64);
        let ty = module.types.add(&[i32, i32, i32, i64, i64], &[]);
        let (operands, _) = module.add_import_func(PREFIX, "operands", ty);
        let ty = module.types.add(&[i32; 6], &[]);
        let (pointers, _) = module.add_import_func(PREFIX, "pointers", ty);
        let counts = Counts { private, first: layout.compares.start };
        let stored = Stored::add(module, counts);
        let deciding = [CONDITION, INDEX].map(|kind| deciding(module, counts, operands, kind));
        let places = places(module, counts, pointers);
        let instead =
            comparisons().map(|(op, ty)| (op, comparison(module, counts, operands, (op, ty)))).collect();
        Ok(Compares { instead, places, deciding, comparing, stored, contexts })
    }

    /// The function that takes the place of a comparison.
    fn instead_of(&self, op: BinaryOp) -> Option<FunctionId> {
        let is = |known: &BinaryOp| discriminant(known) == discriminant(&op);
        self.instead.iter().find(|(known, _)| is(known)).map(|(_, func)| *func)
    }

    /// Puts before a branch what reports what it depends on.
    fn decide(&self, code: &mut Code, instr: &Instr, site: u32, caller: Option<LocalId>) {
        let [condition, index] = self.deciding;
        let (func, count) = match instr {
            Instr::BrIf(_) | Instr::IfElse(_) => (condition, 0),
            Instr::BrTable(table) => (index, table.blocks.len() as u32),
            _ => return,
        };
        i32_const(code, count);
        i32_const(code, site);
        push_caller(code, caller);
        push(code, Call { func });
    }

    /// Has a function report.
    pub(crate) fn report(
        &self,
        index: usize,
        function: &mut LocalFunction,
        seqs: &[InstrSeqId],
        locals: &NewLocals<'_>,
    ) {
        let caller = self.contexts.caller(index, locals);
        for &seq in seqs {
            let old = std::mem::take(&mut function.block_mut(seq).instrs);
            let mut code = Code::with_capacity(old.len());
            for (instr, location) in old {
                // What is ours has no place in the original.
                if !location.is_default() {
                    self.stored.report(&mut code, &instr, location.data(), caller);
                    self.decide(&mut code, &instr, location.data(), caller);
                    self.contexts.call(&mut code, &instr, location.data(), caller);
                }
                let op = match &instr {
                    _ if location.is_default() => None,
                    Instr::Binop(Binop { op }) => Some(*op),
                    Instr::Unop(Unop { op: UnaryOp::I32Eqz }) => {
                        i32_const(&mut code, 0);
                        Some(BinaryOp::I32Eq)
                    }
                    Instr::Unop(Unop { op: UnaryOp::I64Eqz }) => {
                        i64_const(&mut code, 0);
                        Some(BinaryOp::I64Eq)
                    }
                    _ => None,
                };
                match op.and_then(|op| self.instead_of(op)) {
                    Some(func) => {
                        i32_const(&mut code, location.data());
                        push_caller(&mut code, caller);
                        code.push((Call { func }.into(), location));
                    }
                    None => code.push((instr, location)),
                }
            }
            function.block_mut(seq).instrs = code;
        }
        if let Some(Comparing { kind, params }) = self.comparing.get(&index) {
            let mut code = Code::new();
            i32_const(&mut code, index as u32);
            i32_const(&mut code, *kind as u32);
            params.iter().for_each(|param| get(&mut code, *param));
            if params.len() < 3 {
                i32_const(&mut code, u32::MAX);
            }
            push_caller(&mut code, caller);
            push(&mut code, Call { func: self.places });
            let entry = function.entry_block();
            function.block_mut(entry).instrs.splice(0..0, code);
        }
        if let Some(caller) = caller {
            self.contexts.enter(function, caller);
        }
    }
}

/// Whether a function compares what two pointers point to.
fn comparing(module: &Module, function: &LocalFunction, name: &str) -> Option<Comparing> {
    let is_i32 = |local: &LocalId| module.locals.get(*local).ty() == ValType::I32;
    let params: Vec<LocalId> = function.args.iter().copied().take_while(is_i32).collect();
    // Zig's libraries put names of modules before it.
    let name = name.rsplit('.').next().unwrap_or(name);
    let known = KNOWN.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
    match (known, &params[..]) {
        (Some(Pointed::Parts), [text, _, part, len]) => {
            Some(Comparing { kind: Pointed::Parts, params: vec![*text, *part, *len] })
        }
        (Some(kind @ Pointed::Texts), [p, q, ..]) => Some(Comparing { kind, params: vec![*p, *q] }),
        (Some(kind), [p, q, n, ..]) => Some(Comparing { kind, params: vec![*p, *q, *n] }),
        (None, [p, q, rest @ ..]) if rest.len() <= 2 && loads_bytes_in_a_loop(function) => {
            Some(Comparing { kind: Pointed::Unknown, params: vec![*p, *q] })
        }
        _ => None,
    }
}

/// A loop, at least two loads of a byte, and no calls.
fn loads_bytes_in_a_loop(function: &LocalFunction) -> bool {
    let (mut loads, mut loops, mut calls) = (0, 0, 0);
    each_instr(function, |instr, _| match instr {
        Instr::Load(Load { kind: LoadKind::I32_8 { .. }, .. }) => loads += 1,
        Instr::Loop(_) => loops += 1,
        Instr::Call(_) | Instr::CallIndirect(_) | Instr::CallRef(_) => calls += 1,
        _ => {}
    });
    loads >= 2 && loops > 0 && calls == 0
}

/// Adds a function that reports a value on which a branch depends, with a number, and returns it. A truth value says nothing.
fn deciding(module: &mut Module, counts: Counts, operands: FunctionId, kind: u32) -> FunctionId {
    let i32 = ValType::I32;
    let [value, number, site, caller, at, n] = [(); 6].map(|()| module.locals.add(i32));
    let builder = FunctionBuilder::new(&mut module.types, &[i32; 4], &[i32]);
    let mut report = Code::new();
    get(&mut report, site);
    get(&mut report, caller);
    i32_const(&mut report, kind);
    for operand in [value, number] {
        get(&mut report, operand);
        unop(&mut report, UnaryOp::I64ExtendUI32);
    }
    push(&mut report, Call { func: operands });
    finish(module, builder, vec![value, number, site, caller], |function| {
        let report = counts.bound(function, (site, caller, at, n), REPORTS_MAX, report);
        let mut code = Code::new();
        get(&mut code, value);
        i32_const(&mut code, 1);
        binop(&mut code, BinaryOp::I32GtU);
        if_then(function, &mut code, report);
        get(&mut code, value);
        code
    })
}

/// All comparisons, with the type of their operands. What differs in no bit is equal.
fn comparisons() -> impl Iterator<Item = (BinaryOp, ValType)> {
    use BinaryOp::*;
    // A division compares the divisor with 0.
    let divisions = [I32DivS, I32DivU, I32RemS, I32RemU]
        .map(|op| (op, ValType::I32))
        .into_iter()
        .chain([I64DivS, I64DivU, I64RemS, I64RemU].map(|op| (op, ValType::I64)));
    let i32 = [I32Eq, I32Ne, I32LtS, I32LtU, I32GtS, I32GtU, I32LeS, I32LeU, I32GeS, I32GeU, I32Xor];
    let i64 = [I64Eq, I64Ne, I64LtS, I64LtU, I64GtS, I64GtU, I64LeS, I64LeU, I64GeS, I64GeU, I64Xor];
    let f32 = [F32Eq, F32Ne, F32Lt, F32Gt, F32Le, F32Ge];
    let f64 = [F64Eq, F64Ne, F64Lt, F64Gt, F64Le, F64Ge];
    let of = |ty: ValType| move |op: BinaryOp| (op, ty);
    i32.into_iter()
        .map(of(ValType::I32))
        .chain(i64.into_iter().map(of(ValType::I64)))
        .chain(f32.into_iter().map(of(ValType::F32)))
        .chain(f64.into_iter().map(of(ValType::F64)))
        .chain(divisions)
}

/// How often each place reported in this step.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) private: Private,
    pub(crate) first: u32,
}

impl Counts {
    /// Does `then` unless the place reported as often as it may.
    ///
    /// ```wat
    /// (local.set $at (i32.and (i32.xor (local.get $site) (local.get $caller)) MASK))
    /// (if (i32.lt_u (local.tee $n (i32.load8_u $p offset=COUNTS (local.get $at))) MAX) (then
    ///   (i32.store8 $p offset=COUNTS (local.get $at) (i32.add (local.get $n) (i32.const 1)))
    ///   THEN))
    /// ```
    pub(crate) fn bound(
        self,
        function: &mut LocalFunction,
        (site, caller, at, n): (LocalId, LocalId, LocalId, LocalId),
        max: u32,
        then: Code,
    ) -> Code {
        let mut code = Code::new();
        get(&mut code, site);
        get(&mut code, caller);
        binop(&mut code, BinaryOp::I32Xor);
        i32_const(&mut code, PLACES - 1);
        binop(&mut code, BinaryOp::I32And);
        tee(&mut code, at);
        self.private.load(&mut code, Width::Byte, self.first);
        tee(&mut code, n);
        i32_const(&mut code, max);
        binop(&mut code, BinaryOp::I32LtU);
        let mut counted = Code::new();
        get(&mut counted, at);
        get(&mut counted, n);
        i32_const(&mut counted, 1);
        binop(&mut counted, BinaryOp::I32Add);
        self.private.store(&mut counted, Width::Byte, self.first);
        counted.extend(then);
        if_then(function, &mut code, counted);
        code
    }
}

/// Adds a function that reports where two pointers point to, unless both were reported often in the same function: one of them
/// walks through an input, or through all words that are known.
fn places(module: &mut Module, counts: Counts, pointers: FunctionId) -> FunctionId {
    let i32 = ValType::I32;
    let params: Vec<LocalId> = (0..6).map(|_| module.locals.add(i32)).collect();
    let [place, at, n] = [(); 3].map(|()| module.locals.add(i32));
    let builder = FunctionBuilder::new(&mut module.types, &[i32; 6], &[]);
    finish(module, builder, params.clone(), |function| {
        let mut code = Code::new();
        for pointer in [params[2], params[3]] {
            let mut then = Code::new();
            params.iter().for_each(|param| get(&mut then, *param));
            push(&mut then, Call { func: pointers });
            push(&mut then, Return {});
            get(&mut code, params[0]);
            i32_const(&mut code, SPREAD);
            binop(&mut code, BinaryOp::I32Mul);
            get(&mut code, pointer);
            binop(&mut code, BinaryOp::I32Xor);
            set(&mut code, place);
            code.extend(counts.bound(function, (place, params[5], at, n), POINTERS_MAX, then));
        }
        code
    })
}

/// Adds a function that reports two operands and compares them.
fn comparison(
    module: &mut Module,
    counts: Counts,
    operands: FunctionId,
    (op, ty): (BinaryOp, ValType),
) -> FunctionId {
    let [a, b] = [(); 2].map(|()| module.locals.add(ty));
    let [site, caller, at, n] = [(); 4].map(|()| module.locals.add(ValType::I32));
    use BinaryOp::*;
    let is_wide = matches!(op, I64Xor | I64DivS | I64DivU | I64RemS | I64RemU);
    let result = if is_wide { ValType::I64 } else { ValType::I32 };
    let divides = matches!(op, I32DivS | I32DivU | I32RemS | I32RemU) || is_wide && !matches!(op, I64Xor);
    let builder = FunctionBuilder::new(&mut module.types, &[ty, ty, ValType::I32, ValType::I32], &[result]);
    let (width, is_float) = match ty {
        ValType::I32 => (4, 0),
        ValType::F32 => (4, 16),
        ValType::F64 => (8, 16),
        _ => (8, 0),
    };
    let mut then = Code::new();
    get(&mut then, site);
    get(&mut then, caller);
    i32_const(&mut then, width | is_float);
    for operand in [a, b] {
        if divides && operand == a {
            i64_const(&mut then, 0);
            continue;
        }
        get(&mut then, operand);
        match ty {
            ValType::F32 => {
                unop(&mut then, UnaryOp::I32ReinterpretF32);
                unop(&mut then, UnaryOp::I64ExtendUI32);
            }
            ValType::F64 => unop(&mut then, UnaryOp::I64ReinterpretF64),
            ValType::I32 => unop(&mut then, UnaryOp::I64ExtendUI32),
            _ => {}
        }
    }
    push(&mut then, Call { func: operands });
    finish(module, builder, vec![a, b, site, caller], |function| {
        let bound = counts.bound(function, (site, caller, at, n), REPORTS_MAX, then);
        let mut code = match is_float {
            0 => unless_idle(function, (a, b), ty, bound),
            _ => bound,
        };
        get(&mut code, a);
        get(&mut code, b);
        binop(&mut code, op);
        code
    })
}

/// Does `then` unless both integers are 0 or 1: truth values are compared with nothing that stands in an input.
fn unless_idle(function: &mut LocalFunction, (a, b): (LocalId, LocalId), ty: ValType, then: Code) -> Code {
    let mut code = Code::new();
    get(&mut code, a);
    get(&mut code, b);
    if ty == ValType::I32 {
        binop(&mut code, BinaryOp::I32Or);
        i32_const(&mut code, 1);
        binop(&mut code, BinaryOp::I32GtU);
    } else {
        binop(&mut code, BinaryOp::I64Or);
        i64_const(&mut code, 1);
        binop(&mut code, BinaryOp::I64GtU);
    }
    if_then(function, &mut code, then);
    code
}

/// Adds a function with this code.
pub(crate) fn finish(
    module: &mut Module,
    builder: FunctionBuilder,
    params: Vec<LocalId>,
    code: impl FnOnce(&mut LocalFunction) -> Code,
) -> FunctionId {
    let id = builder.finish(params, &mut module.funcs);
    let function = module.funcs.get_mut(id).kind.unwrap_local_mut();
    let code = code(function);
    let entry = function.entry_block();
    function.block_mut(entry).instrs = code;
    id
}
