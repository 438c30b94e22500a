//! What the functions of a component mean: rules, and what their names say of a harness.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use wasmtime::Store;

use super::super::exports::Exports;
use super::super::host::Host;
use super::super::imports::span_begin;
use super::super::signed::{LABEL, Pools};
use super::abi::refused;
use super::given::{self, Choices};
use super::handles::{HOST, Handles};
use super::instance::Linked;
use super::interface::{Function, Interface, Sort, Type};
use super::lifted::Role;
use super::{draw, provided, wit};
use crate::file::{Environment, Given, nearest};
use crate::target::Rule;
use crate::trace::Action;

/// A component, and how its functions are called.
#[derive(Debug)]
pub(crate) struct Component {
    pub(crate) interface: Arc<Interface>,
    /// By what [`Exports`] names them.
    pub(super) called: BTreeMap<String, Called>,
    /// Those of which an error that they return is a failure.
    pub(super) errors_that_fail: Vec<String>,
    /// Values that a function is given, by its index.
    pub(super) given: BTreeMap<usize, Choices>,
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Called {
    /// A function, by its index.
    Function(usize, Role),
    /// Drops a resource of this type.
    Drop(u32),
}

/// What the functions of this interface are called for is a program from its start to its end.
const RUN: &str = "wasi:cli/run";

impl Component {
    /// Resources of each type are in a pool.
    pub(in super::super) fn pools(&self) -> usize {
        self.interface.resources.len()
    }

    /// No handles of any instance.
    pub(in super::super) fn handles(&self) -> Handles {
        Handles::of(self.interface.instances)
    }

    /// The type of what is called.
    pub(in super::super) fn type_of(&self, called: &str) -> String {
        match self.called.get(called) {
            Some(Called::Function(index, _)) => {
                let function = &self.interface.functions[*index];
                wit::function(&self.interface, &function.params, function.result)
            }
            Some(Called::Drop(resource)) => {
                format!("func(self: {})", self.interface.resources[*resource as usize].name)
            }
            None => String::new(),
        }
    }

    /// The name of a parameter.
    pub(in super::super) fn param_of(&self, called: &str, index: usize) -> Option<String> {
        match self.called.get(called)? {
            Called::Function(function, _) => {
                Some(self.interface.functions[*function].params.get(index)?.0.clone())
            }
            Called::Drop(_) => Some("self".to_string()),
        }
    }
}

impl Exports {
    /// Sorts the functions of a component, which are given these values. Where there is an `entry`, it is the only rule.
    ///
    /// # Errors
    /// Nothing to call; functions whose names say what their types do not allow; values that are none.
    pub(in super::super) fn of_component(
        interface: &Arc<Interface>,
        environment: &Environment,
        given: &Given,
    ) -> Result<Exports> {
        let entry = environment.entry.as_deref();
        let mut exports = Exports::default();
        let (mut called, mut said) = (BTreeMap::new(), Said::default());
        let names = names(interface);
        let functions = interface.functions.iter().zip(&names).enumerate();
        for (index, (function, name)) in functions.filter(|(_, (function, _))| !is_of_toolchain(function)) {
            let role = sort(&mut exports, &mut said, (interface, function, name), entry)?;
            called.insert(name.clone(), Called::Function(index, role));
        }
        if !exports.is_command && entry.is_none() {
            for (name, resource) in drops(interface, &names) {
                exports.add_rule_of_component(&name);
                called.insert(name, Called::Drop(resource));
            }
        }
        exports.are_few()?;
        exports.name_apart(said.faults);
        if exports.rules.is_empty() {
            match entry {
                Some(entry) => bail!(
                    "the component exports no function `{entry}`, which --entry names; it has {}",
                    names.join(", ")
                ),
                None => bail!("the component exports no function"),
            }
        }
        exports.guard(said.guards, entry.is_some())?;
        let errors_that_fail = environment.errors_that_fail.clone();
        return_results(interface, &called, &errors_that_fail)?;
        let given = given::read(given, (interface, &called), &exports.rule_exports)?;
        let interface = interface.clone();
        exports.component = Some(Arc::new(Component { interface, called, errors_that_fail, given }));
        Ok(exports)
    }

    fn add_rule_of_component(&mut self, name: &str) {
        // What is drawn for it, it says itself.
        self.rules.push(Rule { name: name.to_string(), params: Vec::new() });
        self.rule_exports.push(name.to_string());
    }

    /// Has preconditions guard the rules that their names say: those of their own interface, or else by their whole names, or else
    /// wherever they are. Where only `some` functions are rules, those of others do not count.
    fn guard(&mut self, guards: Vec<(String, String)>, some: bool) -> Result<()> {
        let mut rules: BTreeMap<(Option<&str>, String), Vec<u16>> = BTreeMap::new();
        for (index, rule) in (0..).zip(&self.rules) {
            let (within, own) = rule.name.split_once('#').unwrap_or(("", &rule.name));
            let whole = (Some(""), kebab(&rule.name));
            for name in BTreeSet::from([(Some(within), kebab(own)), whole, (None, kebab(own))]) {
                rules.entry(name).or_default().push(index);
            }
        }
        let mut preconditions = Vec::new();
        for (of, name) in guards {
            let within = name.split_once('#').map_or("", |(within, _)| within);
            let mut found = [Some(within), Some(""), None].into_iter();
            let found = found.find_map(|within| rules.get(&(within, of.clone())));
            let Some(found) = found else {
                if some {
                    continue;
                }
                bail!("`{name}` is the precondition of a rule `{of}`, which the component does not export")
            };
            let [rule] = found[..] else {
                let names = found.iter().map(|rule| format!("`{}`", self.rules[usize::from(*rule)].name));
                bail!(
                    "`{name}` may be the precondition of {}: have the interface of the one that is meant export it",
                    names.collect::<Vec<_>>().join(" and of ")
                )
            };
            preconditions.push((rule, name.clone()));
        }
        self.preconditions.extend(preconditions);
        Ok(())
    }

    /// Has faults and invariants that have one name in several interfaces be called by those too.
    fn name_apart(&mut self, faults: Vec<String>) {
        self.faults = apart(std::mem::take(&mut self.faults).into_iter().zip(faults).collect());
        self.invariants = {
            let names = apart(self.invariants.clone());
            let exports = self.invariants.drain(..).map(|(_, export)| export);
            names.into_iter().zip(exports).collect()
        };
    }

    /// The name of a parameter of the rule that a step calls.
    pub(in super::super) fn param_of(&self, action: Action, index: usize) -> Option<String> {
        let Action::Rule(rule) = action else { return None };
        let export = &self.rule_exports[usize::from(rule)];
        match &self.component {
            Some(component) => component.param_of(export, index),
            None => self.signed_param(export, index),
        }
    }
}

/// Names, those that occur more than once with the interface of the function that is called so.
fn apart(named: Vec<(String, String)>) -> Vec<String> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for (of, _) in &named {
        *counts.entry(of.clone()).or_default() += 1;
    }
    let within = |name: &str, of: &str| {
        name.split_once('#').map_or_else(|| of.to_string(), |(within, _)| format!("{within}#{of}"))
    };
    named.into_iter().map(|(of, name)| if counts[&of] > 1 { within(&name, &of) } else { of }).collect()
}

/// What is said by names, until all are known.
#[derive(Default)]
struct Said {
    /// Of each precondition the rule, and the name of the function.
    guards: Vec<(String, String)>,
    /// The names of the functions that are faults.
    faults: Vec<String>,
}

/// Refuses names, which --error-is-failure gives, that no function has which returns a `result`.
fn return_results(interface: &Interface, called: &BTreeMap<String, Called>, names: &[String]) -> Result<()> {
    for name in names {
        let Some(function) = called.get(name) else {
            let near = nearest(name, called.keys().map(String::as_str));
            bail!("the component exports no function `{name}`, which --error-is-failure names; {near}");
        };
        let result = match function {
            Called::Function(index, _) => interface.functions[*index].result,
            Called::Drop(_) => None,
        };
        let has_error =
            result.is_some_and(|ty| matches!(interface.types[ty].ty, Type::Variant(Sort::Result, _)));
        ensure!(has_error, "`{name}`, which --error-is-failure names, returns no `result`");
    }
    Ok(())
}

/// Adds a function to what it is by its name.
fn sort(
    exports: &mut Exports,
    said: &mut Said,
    (interface, function, name): (&Interface, &Function, &String),
    entry: Option<&str>,
) -> Result<Role> {
    let must = |is: bool, what: &str| -> Result<()> {
        ensure!(is, "`{name}` has another type than its name says; it must be {what}");
        Ok(())
    };
    let is_nullary = function.params.is_empty();
    let result = function.result.map(|ty| &interface.types[ty].ty);
    let is_bool = result == Some(&Type::Bool);
    let says = is_bool || matches!(result, None | Some(Type::Variant(Sort::Result, _)));
    if let Some(of) = function.name.strip_prefix("precondition-") {
        must(is_nullary && is_bool, "`func() -> bool`")?;
        said.guards.push((of.to_string(), name.clone()));
        return Ok(Role::Condition);
    }
    if let Some(of) = function.name.strip_prefix("invariant-") {
        must(is_nullary && says, "`func() -> bool`, `func() -> result<_, string>` or `func()`")?;
        exports.invariants.push((of.to_string(), name.clone()));
        return Ok(Role::Condition);
    }
    if let Some(of) = function.name.strip_prefix("fault-") {
        must(function.params.len() == 1 && function.result.is_none(), "`func(on: bool)`")?;
        exports.faults.push(of.to_string());
        exports.fault_exports.push(function.export.clone());
        said.faults.push(name.clone());
        return Ok(Role::Rule);
    }
    match &*function.name {
        "setup" | "teardown" => {
            must(is_nullary, "`func()`")?;
            let list = if function.name == "setup" { &mut exports.setup } else { &mut exports.teardown };
            list.push(name.clone());
        }
        // With other types they are functions as any other.
        "recover" if is_nullary && result.is_none() => said_once(&mut exports.recover, name)?,
        "terminal" if is_nullary && is_bool => {
            said_once(&mut exports.terminal, name)?;
            return Ok(Role::Condition);
        }
        "run" if function.interface.starts_with(RUN) && entry.is_none_or(|entry| entry == name) => {
            ensure!(
                exports.rules.is_empty() || entry.is_some(),
                "the component is a program, and exports functions too; choose one with --entry"
            );
            (exports.is_function, exports.is_command) = (true, true);
            exports.add_rule_of_component(name);
            return Ok(Role::Command);
        }
        _ if entry.is_none_or(|entry| entry == name) => {
            exports.is_function |= entry.is_some();
            exports.add_rule_of_component(name);
        }
        _ => {}
    }
    Ok(Role::Rule)
}

/// This function says something of the whole component, which no other may say too.
fn said_once(of: &mut Option<String>, name: &str) -> Result<()> {
    match of.replace(name.to_string()) {
        Some(other) => {
            bail!("`{other}` and `{name}` say the same of the component: have one of them say it for all")
        }
        None => Ok(()),
    }
}

/// What componentize-py has called when it makes a component, and leaves in it.
fn is_of_toolchain(function: &Function) -> bool {
    let params = ["app-name", "symbols", "stub-wasi"];
    let has_its = function.params.iter().map(|(name, _)| &**name).eq(params);
    (&*function.interface, &*function.name) == ("exports", "init") && has_its
}

fn kebab(name: &str) -> String {
    name.replace(|letter: char| !letter.is_alphanumeric(), "-")
}

/// The names of the functions: `interface#function`, `interface#resource.method`.
fn names(interface: &Interface) -> Vec<String> {
    let within: BTreeSet<&str> = interface.functions.iter().map(|function| &*function.interface).collect();
    let alone = once(within.iter().map(|other| own_name(other)));
    let is_alone = |short: &str| alone.contains(short);
    let name = |function: &Function, own: &str| {
        let short = own_name(&function.interface);
        match &*function.interface {
            "" => own.to_string(),
            _ if is_alone(short) => format!("{short}#{own}"),
            whole => format!("{whole}#{own}"),
        }
    };
    let short: Vec<String> =
        interface.functions.iter().map(|function| name(function, &plain(&function.name))).collect();
    let one = once(short.iter().map(String::as_str));
    let functions = interface.functions.iter().zip(&short);
    functions
        .map(
            |(function, short)| {
                if one.contains(&**short) { short.clone() } else { name(function, &function.name) }
            },
        )
        .collect()
}

/// Names that occur once.
fn once<'n>(names: impl Iterator<Item = &'n str>) -> BTreeSet<&'n str> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    counts.into_iter().filter(|(_, count)| *count == 1).map(|(name, _)| name).collect()
}

/// `store` of `example:kv/store@1.0.0`.
fn own_name(interface: &str) -> &str {
    let own = interface.rsplit('/').next().unwrap_or(interface);
    own.split('@').next().unwrap_or(own)
}

/// `bucket.get` of `[method]bucket.get`, and `bucket.new` of `[constructor]bucket`.
fn plain(name: &str) -> String {
    match name.strip_prefix("[constructor]") {
        Some(resource) => format!("{resource}.new"),
        None => {
            name.split_once(']').filter(|_| name.starts_with('[')).map_or(name, |(_, own)| own).to_string()
        }
    }
}

/// A rule for each type of resources that functions return, which drops one.
fn drops(interface: &Interface, names: &[String]) -> Vec<(String, u32)> {
    // It is where its functions are, of several resources of one name where one returns it.
    let (mut returned, mut places) = (Vec::new(), BTreeMap::<&str, Vec<&str>>::new());
    let mut returns = BTreeSet::new();
    for (function, name) in interface.functions.iter().zip(names) {
        let (within, own) = name.rsplit_once('#').unwrap_or(("", name));
        if let Some((resource, _)) = own.split_once('.') {
            places.entry(resource).or_default().push(within);
        }
        let mut of = Vec::new();
        function.result.iter().for_each(|ty| interface.types.owned(*ty, &interface.handles, &mut of));
        for resource in of {
            if !returned.contains(&resource) {
                returned.push(resource);
            }
            returns.insert((within, resource));
        }
    }
    let mut taken: BTreeSet<String> = names.iter().cloned().collect();
    let name = |resource: u32| {
        let own = &*interface.resources[resource as usize].name;
        let places = places.get(own).map_or(&[][..], Vec::as_slice);
        let place = places.iter().find(|within| returns.contains(&(**within, resource)));
        let mut name = match place.or(places.first()).filter(|within| !within.is_empty()) {
            Some(within) => format!("{within}#{own}.drop"),
            None => format!("{own}.drop"),
        };
        while !taken.insert(name.clone()) {
            name += "'";
        }
        (name, resource)
    };
    returned.into_iter().map(name).collect()
}

/// Drops a resource that an export returned.
pub(crate) struct Dropped {
    interface: Arc<Interface>,
    linked: Arc<Linked>,
    resource: u32,
}

impl Dropped {
    pub(super) fn new(interface: &Arc<Interface>, linked: &Arc<Linked>, resource: u32) -> Dropped {
        Dropped { interface: interface.clone(), linked: linked.clone(), resource }
    }

    /// Whether there is one.
    pub(in super::super) fn is_enabled(&self, pools: &Pools) -> bool {
        !pools.handles(self.resource as usize).is_empty()
    }

    /// Drops one of them.
    pub(in super::super) fn call(&self, store: &mut Store<Host>) -> wasmtime::Result<Option<i32>> {
        super::super::host::pay(store, super::lifted::CALL_BYTES)?;
        let host = store.data_mut();
        span_begin(&mut host.step, (0, LABEL))?;
        let handle = draw::handle(host, self.resource as usize, true, &mut draw::Used::default())?;
        host.step.chooser.span_end(false);
        if host.step.is_verbose {
            let shown = format!("{}#{handle}", self.interface.resources[self.resource as usize].name);
            host.step.told.args.push(("self".to_string(), shown));
        }
        let entry = host.guest.handles.take_own(HOST, handle, self.resource).map_err(refused)?;
        host.guest.pools.take(self.resource as usize, |other| other == i64::from(handle));
        match self.linked.drop_of(self.resource) {
            Some(drop) => drop.call(&mut *store, entry.rep)?,
            None => provided::dropped(&self.interface, store.data_mut(), (self.resource, entry.rep))?,
        }
        Ok(None)
    }
}
