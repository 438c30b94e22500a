//! From an `impl` block to a [`Harness`], or to errors that each point at what is wrong.

mod methods;
#[cfg(test)]
mod tests;

use syn::ext::IdentExt;
use syn::{Error, ImplItem, ImplItemFn, ItemImpl, Type};

use crate::error::{Errors, fail};
use crate::harness::{Harness, Independence, Method, Rule, Source};
use crate::marks::{Mark, Marks, Role, RoleKind, take_marks, take_sources};
use methods::{
    read_execute, read_invariant, read_rule, read_setup, read_teardown, refuse_signature, refuse_state,
    refuse_steps, refuse_terminal,
};

/// What `#[steps]` and `#[execute]` make together.
const STEP: &str = "step";

/// Why no macro may be called in the block, and what to do instead.
const EXPANDED_TOO_LATE: &str = "a `#[harness]` block is read before the macros in it are expanded, so a `#[rule]` that one makes would be missing: \
     write the marked methods out, and call the macro in another `impl` block of the type";

/// Reads the block, and takes the attributes that it understands off its methods.
///
/// The block is left without them even where this fails, so that the compiler does not complain about
/// attributes that it does not know.
pub(crate) fn harness(block: &mut ItemImpl) -> Result<Harness, Error> {
    let mut errors = Errors::default();
    if let Some((_, path, _)) = &block.trait_ {
        errors.push(path, "`#[harness]` stands on the `impl` block of a type, not of a trait");
    }
    if !block.generics.params.is_empty() {
        errors.push(&block.generics, "a harness cannot be generic: its exports are those of one type");
    }

    let mut reader = Reader::new((*block.self_ty).clone());
    for item in &mut block.items {
        match item {
            ImplItem::Fn(method) => {
                if let Err(error) = reader.read_method(method) {
                    errors.add(error);
                }
            }
            ImplItem::Macro(call) => errors.push(&call.mac.path, EXPANDED_TOO_LATE),
            _ => {}
        }
    }
    // Where a method was refused, what is missing might be that one.
    if errors.is_empty()
        && let Err(error) = reader.finish()
    {
        errors.add(error);
    }
    errors.or(reader.harness)
}

struct Reader {
    harness: Harness,
    steps: Vec<Method>,
    /// Rules whose argument has no source yet.
    executes: Vec<Rule>,
}

impl Reader {
    fn new(self_type: Type) -> Reader {
        Reader { harness: Harness::new(self_type), steps: Vec::new(), executes: Vec::new() }
    }

    fn read_method(&mut self, method: &mut ImplItemFn) -> Result<(), Error> {
        let marks = take_marks(&mut method.attrs)?;
        let sources = take_sources(method)?;
        refuse_marks(&marks, &sources)?;
        let Some(role) = marks.role else { return Ok(()) };
        refuse_signature(method, role.kind)?;

        let common = Method {
            ident: method.sig.ident.clone(),
            cfgs: method.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect(),
        };
        match role.kind {
            RoleKind::Rule => {
                let rule = read_rule(method, common, &role, sources, marks.preconditions)?;
                self.harness.rules.push(rule);
            }
            RoleKind::Invariant => self.harness.invariants.push(read_invariant(method, common)?),
            RoleKind::Setup => {
                let setup = read_setup(method, common, sources)?;
                let others = self.harness.setups.iter().map(|other| &other.method);
                is_alternative(others, &setup.method, &role, "a run starts in one state")?;
                self.harness.setups.push(setup);
            }
            RoleKind::State => {
                refuse_state(method)?;
                is_alternative(self.harness.states.iter(), &common, &role, "return all of it from one")?;
                self.harness.states.push(common);
            }
            RoleKind::Terminal => {
                refuse_terminal(method)?;
                is_alternative(self.harness.terminals.iter(), &common, &role, "say it all in one")?;
                self.harness.terminals.push(common);
            }
            RoleKind::Teardown => {
                let teardown = read_teardown(method, common)?;
                let others = self.harness.teardowns.iter().map(|other| &other.method);
                is_alternative(others, &teardown.method, &role, "a run ends once")?;
                self.harness.teardowns.push(teardown);
            }
            RoleKind::Steps => {
                refuse_steps(method)?;
                is_alternative(self.steps.iter(), &common, &role, "offer all steps in one strategy")?;
                self.steps.push(common);
            }
            RoleKind::Execute => {
                let execute = read_execute(method, common, &role, sources, marks.preconditions)?;
                let others = self.executes.iter().map(|other| &other.method);
                is_alternative(others, &execute.method, &role, "match on the step")?;
                self.executes.push(execute);
            }
        }
        Ok(())
    }

    /// Makes a rule of the steps, and looks whether there is one at all.
    fn finish(&mut self) -> Result<(), Error> {
        match (self.steps.first(), self.executes.first()) {
            (None, None) => {}
            (Some(steps), None) => {
                return fail(&steps.ident, "`#[steps]` needs a method marked `#[execute]`");
            }
            (None, Some(rule)) => {
                return fail(&rule.method.ident, "`#[execute]` needs a method marked `#[steps]`");
            }
            (Some(steps), Some(_)) => {
                if let Some(other) = self.harness.rules.iter().find(|other| other.name == STEP) {
                    return fail(
                        &other.method.ident,
                        "`#[steps]` and `#[execute]` make a rule `step`: call this one something else",
                    );
                }
                let steps = &steps.ident;
                let terminals = &self.harness.terminals;
                let always = terminals.first().filter(|first| first.cfgs.is_empty() || terminals.len() > 1);
                let terminal = always.map(|terminal| terminal.ident.clone());
                for mut rule in self.executes.drain(..) {
                    let this = &rule.receiver.self_token;
                    if let Some(terminal) = &terminal {
                        rule.preconditions.push(syn::parse_quote!(!#this.#terminal()));
                    }
                    rule.arguments[0].source = Source::Strategy(syn::parse_quote!(#this.#steps()));
                    self.harness.rules.push(rule);
                }
            }
        }
        if self.harness.rules.is_empty() {
            return fail(
                &self.harness.self_type,
                "a harness needs at least one `#[rule]`: a method that is a step",
            );
        }
        self.harness.independences = independences(&self.harness.rules)?;
        Ok(())
    }
}

/// What the rules say of each other.
fn independences(rules: &[Rule]) -> Result<Vec<Independence>, Error> {
    let mut independences = Vec::new();
    for rule in rules {
        for other_ident in &rule.independent_of {
            if other_ident.unraw() == rule.method.ident.unraw() {
                return fail(
                    other_ident,
                    "a rule is independent of others: twice the same may be any two steps",
                );
            }
            let is_other = |other: &&Rule| other.method.ident.unraw() == other_ident.unraw();
            let before = independences.len();
            // More than one where they are alternatives.
            independences.extend(rules.iter().filter(is_other).map(|other| Independence {
                rules: [rule.name.clone(), other.name.clone()],
                cfgs: rule.method.cfgs.iter().chain(&other.method.cfgs).cloned().collect(),
            }));
            if independences.len() == before {
                return fail(other_ident, "this is no `#[rule]` of the harness");
            }
        }
    }
    Ok(independences)
}

/// Refuses marks where they mean nothing.
fn refuse_marks(marks: &Marks, sources: &[Option<Mark>]) -> Result<(), Error> {
    let kind = marks.role.as_ref().map(|role| role.kind);
    if !matches!(kind, Some(RoleKind::Rule | RoleKind::Execute))
        && let Some(precondition) = marks.preconditions.first()
    {
        return fail(precondition, "`#[precondition]` stands on a `#[rule]` or on `#[execute]`");
    }
    if let (Some(fairness), false) =
        (&marks.fairness, matches!(kind, Some(RoleKind::Rule | RoleKind::Execute)))
    {
        return fail(fairness, "`#[fair]` and `#[unfair]` stand on a `#[rule]` or on `#[execute]`");
    }
    for Mark { source, attribute } in sources.iter().flatten() {
        match (source, kind) {
            (_, Some(RoleKind::Rule)) | (Source::Strategy(_), Some(RoleKind::Setup)) => {}
            (Source::Strategy(_), _) => {
                return fail(attribute, "`#[draw]` stands on an argument of a `#[rule]` or of `#[setup]`");
            }
            _ => {
                return fail(attribute, "`#[from]` and `#[take]` stand on an argument of a `#[rule]`");
            }
        }
    }
    Ok(())
}

/// There is one method of this kind, or several of one name of which `#[cfg]`s take one.
fn is_alternative<'a>(
    mut others: impl Iterator<Item = &'a Method>,
    method: &Method,
    role: &Role,
    reason: &str,
) -> Result<(), Error> {
    let Some(other) = others.next() else { return Ok(()) };
    if other.ident == method.ident && !other.cfgs.is_empty() && !method.cfgs.is_empty() {
        return Ok(());
    }
    let attribute = role.kind.attribute();
    let hint = match method.cfgs.is_empty() && other.cfgs.is_empty() {
        true => "",
        false => "; alternatives have the same name, and each its `#[cfg]`",
    };
    Err(Error::new(role.span, format!("this is the second `#[{attribute}]`: {reason}{hint}")))
}
