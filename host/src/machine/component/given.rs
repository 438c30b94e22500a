//! Values that parameters are given, of those that a user wrote down in WAVE.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};

use super::interface::{Function, Interface};
use super::rules::Called;
use super::value::Value;
use super::wave;
use crate::file::{Given, nearest};

/// Those of each parameter of a function; none of one that is drawn by its type.
pub(super) type Choices = Arc<Vec<Vec<Value>>>;

/// Values that may be made of all texts together.
const VALUES_MAX: u64 = 1 << 20;

/// What is given, by the function; `rules` are those that are called.
///
/// # Errors
/// A function or a parameter that there is not; text that is no value of its type; a resource.
pub(super) fn read(
    given: &Given,
    (interface, called): (&Interface, &BTreeMap<String, Called>),
    rules: &[String],
) -> Result<BTreeMap<usize, Choices>> {
    let (mut all, mut values) = (BTreeMap::new(), 0);
    for (name, params) in &given.0 {
        let function = match called.get(name) {
            Some(Called::Function(index, _)) if rules.contains(name) => *index,
            Some(Called::Drop(_)) => {
                bail!("values are given to `{name}`, which takes nothing but a resource")
            }
            Some(_) => bail!("values are given to `{name}`, which is no rule"),
            None => bail!(
                "values are given to `{name}`, which the component does not export; {}",
                nearest(name, rules.iter().map(String::as_str))
            ),
        };
        let choices = of_function(interface, &interface.functions[function], params, &mut values);
        let choices = choices.with_context(|| format!("in the values that `{name}` is given"))?;
        all.insert(function, Arc::new(choices));
    }
    Ok(all)
}

fn of_function(
    interface: &Interface,
    function: &Function,
    params: &BTreeMap<String, Vec<String>>,
    values: &mut u64,
) -> Result<Vec<Vec<Value>>> {
    let mut choices = vec![Vec::new(); function.params.len()];
    for (param, texts) in params {
        let known = function.params.iter().position(|(name, _)| name == param);
        let near = || nearest(param, function.params.iter().map(|(name, _)| &**name));
        let index = known.with_context(|| format!("there is no parameter `{param}`; {}", near()))?;
        let (_, ty) = function.params[index];
        ensure!(
            !interface.types[ty].has_handles,
            "`{param}` is a resource, or has one in it, which no text stands for: Spelunk passes those that functions return"
        );
        for text in texts {
            // What one text can be made of is known before it is read.
            let elements = text.bytes().filter(|byte| *byte == b',').count() as u64 + 1;
            *values += elements * u64::from(interface.types[ty].parts);
            ensure!(*values <= VALUES_MAX, "`{param}`: all texts may be of more than {VALUES_MAX} values");
            choices[index].push(wave::read(interface, ty, text).with_context(|| format!("`{param}`"))?);
        }
    }
    Ok(choices)
}
