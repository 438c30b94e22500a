//! Signatures, and the exports that they are of: what does not fit is refused before anything runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use wasmtime::{FuncType, ValType};

use super::super::link::{drawn_kind, shown};
use super::place::Placement;
use crate::file::{Null, Param, Returns, Signature, Signatures, What, When};

/// What is known of how the exports of a module are called.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    /// By the export.
    pub(crate) calls: BTreeMap<String, Arc<Plan>>,
    pub(crate) pools: Vec<PoolPlan>,
    /// Where arguments are put, if any is passed by its address.
    pub(crate) placement: Option<Placement>,
}

/// A pool.
#[derive(Debug)]
pub(crate) struct PoolPlan {
    pub(crate) name: String,
    pub(crate) max: Option<u32>,
    pub(crate) null: Null,
}

/// How an export is called.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) export: String,
    pub(crate) slots: Vec<Slot>,
    pub(crate) result: Outcome,
    pub(crate) error_when: Option<When>,
    pub(crate) fails_when: Option<When>,
    /// It is called once for each handle of the pool that it takes one of.
    pub(crate) is_for_each: bool,
    /// A result of 0 says that it does not hold.
    pub(crate) is_invariant: bool,
}

/// A parameter, and where it is among those of the function.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) param: Param,
    pub(crate) at: usize,
    pub(crate) ty: ValType,
    /// The next parameter of the function is its length.
    pub(crate) is_followed: bool,
    /// The pool that it is from, or that it adds to.
    pub(crate) pool: Option<usize>,
}

/// What a result is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// There is none, or several.
    Nothing,
    Number,
    Text,
    /// A handle of this pool.
    Handle(usize),
}

/// The functions that a module exports.
pub(crate) type Functions = [(String, FuncType)];

pub(crate) fn type_of<'f>(functions: &'f Functions, name: &str) -> Option<&'f FuncType> {
    functions.iter().find(|(export, _)| export == name).map(|(_, ty)| ty)
}

/// The type of an export that a signature names.
pub(crate) fn named<'f>(functions: &'f Functions, name: &str) -> Result<&'f FuncType> {
    type_of(functions, name).with_context(|| {
        let near = crate::file::nearest(name, functions.iter().map(|(export, _)| &**export));
        format!("the signatures name a function `{name}`, which the module does not export; {near}")
    })
}

impl Plans {
    /// Fits signatures to the exports that they are of, of a module that has a memory or not, and looks at its size or not.
    ///
    /// # Errors
    /// An export that there is not, or that has another type.
    pub(crate) fn of(
        signatures: &Signatures,
        functions: &Functions,
        (has_memory, sizes_memory): (bool, bool),
    ) -> Result<Plans> {
        let pools = signatures.pools.iter();
        let mut plans = Plans {
            pools: pools
                .map(|(name, pool)| PoolPlan { name: name.clone(), max: pool.max, null: pool.null })
                .collect(),
            ..Plans::default()
        };
        let roles = [&signatures.rules, &signatures.setup, &signatures.teardown, &signatures.invariants];
        let unsigned = Signature::default();
        for name in signatures.exports.keys().chain(roles.into_iter().flatten()) {
            let ty = named(functions, name)?;
            let signature = signatures.exports.get(name).unwrap_or(&unsigned);
            let is_invariant = signatures.invariants.contains(name);
            let is_for_each = signatures.teardown.contains(name) || is_invariant;
            let plan = plans.plan(name, signature, ty, (is_for_each, is_invariant));
            let plan = plan
                .with_context(|| format!("the signature of `{name}` does not fit its type, {}", shown(ty)))?;
            if is_invariant {
                let is_integer = ty.results().all(|ty| ty.is_i32() || ty.is_i64());
                ensure!(
                    ty.results().len() <= 1 && is_integer && plan.result != Outcome::Text,
                    "the invariant `{name}` has the type {}; it returns nothing, or an integer that is 0 where it does not \
                     hold",
                    shown(ty)
                );
            }
            plans.calls.insert(name.clone(), Arc::new(plan));
        }
        for name in &signatures.except {
            named(functions, name)?;
        }
        if plans.calls.values().any(|plan| plan.slots.iter().any(Slot::is_placed)) {
            ensure!(has_memory, "the module has no memory, in which arguments could be put");
            plans.placement = Some(Placement::of(&signatures.allocator, functions, &plans, sizes_memory)?);
        }
        Ok(plans)
    }

    fn plan(
        &self,
        name: &str,
        signature: &Signature,
        ty: &FuncType,
        (is_for_each, is_invariant): (bool, bool),
    ) -> Result<Plan> {
        let types: Vec<ValType> = ty.params().collect();
        let drawn: Vec<Param>;
        let params = match &signature.params {
            Some(params) => params,
            None => {
                let param = |at| Param { name: format!("arg{at}"), what: What::Any };
                drawn = (0..types.len()).map(param).collect();
                &drawn
            }
        };
        let mut slots = Vec::new();
        let mut at = 0;
        for (index, param) in params.iter().enumerate() {
            let is_followed = Signatures::is_followed(params, index);
            let slot = self.slot(param, types.get(at..).unwrap_or_default(), is_followed);
            let slot = slot.with_context(|| format!("parameter {} (`{}`)", index + 1, param.name))?;
            slots.push(Slot { at, ..slot });
            at += 1 + usize::from(is_followed);
        }
        ensure!(
            at == types.len(),
            "it says what {at} values are, and the function takes {}; bytes and text are two, their address and their length, \
             unless another parameter is a \"length:NAME\" of them",
            types.len()
        );
        Ok(Plan {
            export: name.to_string(),
            slots,
            result: self.result(signature, ty)?,
            error_when: signature.error_when,
            fails_when: signature.fails_when,
            is_invariant,
            is_for_each: is_for_each && params.iter().any(|param| matches!(param.what, What::Handle(..))),
        })
    }

    fn slot(&self, param: &Param, types: &[ValType], is_followed: bool) -> Result<Slot> {
        let ty = types.first().cloned().context("the function has no such parameter")?;
        let must = |is_right: bool, what: &str| {
            ensure!(is_right, "it is {ty}; {what}");
            Ok(())
        };
        let is_integer = ty.is_i32() || ty.is_i64();
        let mut pool = None;
        match &param.what {
            What::Any => must(drawn_kind(&ty).is_some(), "what is drawn is a number")?,
            What::Boolean | What::Constant(_) | What::Integer(..) | What::OneOf(_) | What::Flags(_) => {
                must(is_integer, "an integer is i32 or i64")?;
                numbers(&param.what).try_for_each(|number| check_number(number, &ty))?;
            }
            What::Float(..) => must(ty.is_f32() || ty.is_f64(), "a float is f32 or f64")?,
            What::Buffer(_) | What::Out(_) => must(ty.is_i32(), "an address is i32")?,
            What::LengthOf(_) => must(is_integer, "a length is i32 or i64")?,
            What::OutHandle(name, _) => {
                must(ty.is_i32(), "an address is i32")?;
                pool = Some(self.pool(name)?);
            }
            What::Handle(name, _) => {
                must(is_integer, "a handle is i32 or i64")?;
                pool = Some(self.pool(name)?);
            }
        }
        if is_followed {
            let next =
                types.get(1).context("its length follows it, and the function has no such parameter")?;
            ensure!(next.is_i32(), "its length follows it, and is {next}; it must be i32");
        }
        Ok(Slot { param: param.clone(), at: 0, ty, is_followed, pool })
    }

    fn pool(&self, name: &str) -> Result<usize> {
        let place = self.pools.iter().position(|pool| pool.name == name);
        place.with_context(|| format!("there is no pool `{name}`"))
    }

    fn result(&self, signature: &Signature, ty: &FuncType) -> Result<Outcome> {
        let results: Vec<ValType> = ty.results().collect();
        let is_integer = matches!(results[..], [ValType::I32 | ValType::I64]);
        let wants_one = signature.error_when.is_some() || signature.fails_when.is_some();
        ensure!(
            is_integer || !wants_one,
            "what it returns is no integer, which `error-when` and `fails-when` are about"
        );
        Ok(match &signature.returns {
            Returns::Number if is_integer => Outcome::Number,
            Returns::Number => Outcome::Nothing,
            Returns::Text if matches!(results[..], [ValType::I32]) => Outcome::Text,
            Returns::Handle(name) if is_integer => Outcome::Handle(self.pool(name)?),
            Returns::Text => bail!("it returns text by an address, which is i32"),
            Returns::Handle(_) => bail!("it returns a handle, which is i32 or i64"),
        })
    }

    /// Whether a rule may be called with these pools: they hold what it needs, and have room for what it adds.
    pub(crate) fn is_enabled(&self, plan: &Plan, pools: &super::Pools) -> bool {
        let adds = plan.added();
        let has_room = self.pools.iter().zip(pools.iter()).enumerate().all(|(index, (pool, handles))| {
            let added = adds.clone().filter(|added| *added == index).count();
            pool.max.is_none_or(|max| added == 0 || handles.len() + added <= max as usize)
        });
        has_room
            && plan.slots.iter().filter_map(|slot| Some((slot.needed()?, slot.pool?))).all(|(takes, pool)| {
                let same =
                    plan.slots.iter().filter(|slot| slot.needed().is_some() && slot.pool == Some(pool));
                let needed = if takes { same.count() } else { 1 };
                pools.handles(pool).len() >= needed
            })
    }
}

impl Plan {
    /// The pools that it adds a handle to, once for each.
    fn added(&self) -> impl Iterator<Item = usize> + Clone {
        let returned = if let Outcome::Handle(pool) = self.result { Some(pool) } else { None };
        let out = self.slots.iter().filter(|slot| matches!(slot.param.what, What::OutHandle(..)));
        out.filter_map(|slot| slot.pool).chain(returned)
    }

    /// Whether handles of a pool are given to one parameter each: one of them is taken away.
    pub(crate) fn takes_of(&self, pool: usize) -> bool {
        self.slots.iter().any(|slot| slot.pool == Some(pool) && slot.needed() == Some(true))
    }
}

impl Slot {
    /// It needs a handle; whether it takes it away.
    fn needed(&self) -> Option<bool> {
        if let What::Handle(_, takes) = self.param.what { Some(takes) } else { None }
    }

    /// It is passed by its address.
    pub(crate) fn is_placed(&self) -> bool {
        matches!(self.param.what, What::Buffer(_) | What::Out(_) | What::OutHandle(..))
    }

    /// The most bytes that are passed by their address.
    pub(crate) fn bytes_max(&self) -> u64 {
        use crate::file::Content::{Bytes, Text, Texts, Values};
        let longest = |lens: &mut dyn Iterator<Item = usize>| lens.max().unwrap_or(0) as u64;
        match &self.param.what {
            What::Out(bytes) => u64::from(*bytes),
            What::OutHandle(..) => 8,
            What::Buffer(buffer) => {
                1 + match &buffer.content {
                    Bytes(_, max) => u64::from(*max),
                    Text(alphabet, _, max) => {
                        u64::from(*max) * longest(&mut alphabet.iter().map(String::len))
                    }
                    Texts(texts) => longest(&mut texts.iter().map(String::len)),
                    Values(values) => longest(&mut values.iter().map(Vec::len)),
                }
            }
            _ => 0,
        }
    }
}

/// The integers that may be passed, of which all between are.
fn numbers(what: &What) -> Box<dyn Iterator<Item = i64> + '_> {
    match what {
        What::Constant(value) => Box::new(std::iter::once(*value)),
        What::Integer(min, max) => Box::new([*min, *max].into_iter()),
        What::OneOf(values) | What::Flags(values) => Box::new(values.iter().map(|named| named.value)),
        _ => Box::new(std::iter::empty()),
    }
}

fn check_number(number: i64, ty: &ValType) -> Result<()> {
    let fits = ty.is_i64() || (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&number);
    ensure!(fits, "{number} does not fit into i32");
    Ok(())
}
