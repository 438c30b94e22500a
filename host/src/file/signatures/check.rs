//! What signatures must be whoever made them.

use anyhow::{Context, Result, bail, ensure};

use super::{Allocator, Buffer, Content, Named, Param, Returns, Signature, Signatures, What};

/// Parameters of an export.
const PARAMS_MAX: usize = 64;
/// Bytes of a name.
const NAME_MAX: usize = 1024;
/// Pools.
const POOLS_MAX: usize = 1000;
/// Bytes that the arguments of a call may have together.
pub(crate) const BUFFERS_MAX: u64 = 1 << 20;
/// Letters of a text: each takes two choices, and a step has a limit of those.
const LETTERS_MAX: u32 = 16_384;

impl Signatures {
    /// Whether they are consistent with themselves. Whether they fit a module is found out with the types of its exports.
    pub(super) fn check(&self) -> Result<()> {
        let roles = [&self.rules, &self.except, &self.setup, &self.teardown, &self.invariants];
        let mut named: Vec<&String> = roles.into_iter().flatten().collect();
        named.iter().try_for_each(|name| check_name(name))?;
        named.sort();
        if let Some(twice) = named.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!("`{}` is listed twice", twice[0]);
        }
        let allocator: &[&String] = match &self.allocator {
            Allocator::Found | Allocator::Region => &[],
            Allocator::Heap { allocate, free } => &[allocate, free.as_ref().unwrap_or(allocate)],
            Allocator::Stack { allocate, save, restore } => &[allocate, save, restore],
        };
        allocator.iter().try_for_each(|name| check_name(name))?;
        ensure!(self.pools.len() <= POOLS_MAX, "there are more than {POOLS_MAX} pools");
        for (name, pool) in &self.pools {
            check_name(name)?;
            ensure!(pool.max != Some(0), "the pool `{name}` has room for nothing");
        }
        for (name, signature) in &self.exports {
            check_name(name)?;
            let calls_each = self.teardown.contains(name) || self.invariants.contains(name);
            self.check_signature(signature, calls_each).with_context(|| format!("in `[exports.{name}]`"))?;
        }
        Ok(())
    }

    fn check_signature(&self, signature: &Signature, calls_each: bool) -> Result<()> {
        let Signature { params, returns, error_when, fails_when } = signature;
        if let Returns::Handle(pool) = returns {
            self.check_pool(pool).context("`returns`")?;
        }
        ensure!(
            error_when.is_none() || error_when != fails_when,
            "one result cannot be what both `error-when` and `fails-when` say"
        );
        let Some(params) = params else { return Ok(()) };
        ensure!(params.len() <= PARAMS_MAX, "there are more than {PARAMS_MAX} parameters");
        let mut bytes = 0u64;
        for (index, param) in params.iter().enumerate() {
            let size = self.check_param(params, param);
            bytes += size.with_context(|| format!("parameter {} (`{}`)", index + 1, param.name))?;
        }
        ensure!(
            bytes <= BUFFERS_MAX,
            "its arguments may have {bytes} bytes together, and {BUFFERS_MAX} are the most"
        );
        let handles = params.iter().filter(|param| matches!(param.what, What::Handle(..))).count();
        ensure!(
            !calls_each || handles <= 1,
            "an invariant or teardown is called for each handle of one pool; it cannot take {handles}"
        );
        Ok(())
    }

    fn check_pool(&self, pool: &str) -> Result<()> {
        ensure!(self.pools.contains_key(pool), "there is no pool `{pool}`");
        Ok(())
    }

    /// The most bytes that are passed by their address for a parameter.
    fn check_param(&self, params: &[Param], param: &Param) -> Result<u64> {
        check_name(&param.name)?;
        match &param.what {
            What::Any | What::Boolean | What::Constant(_) => {}
            What::Integer(min, max) => ensure!(min <= max, "there is no integer in {min}..={max}"),
            What::Float(min, max) => ensure!(
                min <= max && min.is_finite() && max.is_finite(),
                "there is no float in {min:?}..={max:?}, which must be numbers"
            ),
            What::OneOf(values) | What::Flags(values) => {
                ensure!(!values.is_empty(), "it has no `values`");
                let is_flags = matches!(param.what, What::Flags(_));
                ensure!(!is_flags || values.len() <= 64, "there are more than 64 flags");
                let names = values.iter().filter_map(|Named { name, .. }| name.as_ref());
                names.into_iter().try_for_each(|name| check_name(name))?;
            }
            What::Buffer(buffer) => return check_buffer(buffer),
            What::LengthOf(of) => {
                let of =
                    params.get(*of as usize).context("it is the length of a parameter that there is not")?;
                let has_length = matches!(&of.what, What::Out(_) | What::Buffer(_));
                ensure!(has_length, "`{}` has no length that could be passed", of.name);
            }
            What::Out(bytes) => {
                ensure!(*bytes > 0, "it has room for nothing");
                return Ok(u64::from(*bytes));
            }
            What::OutHandle(pool, _) => {
                self.check_pool(pool)?;
                return Ok(8);
            }
            What::Handle(pool, _) => self.check_pool(pool)?,
        }
        Ok(0)
    }
}

/// The most bytes that a buffer may have.
fn check_buffer(buffer: &Buffer) -> Result<u64> {
    let zero = u64::from(buffer.ends_in_zero);
    let longest = match &buffer.content {
        Content::Bytes(min, max) => {
            ensure!(min <= max, "there is no length in {min}..={max}");
            ensure!(!buffer.ends_in_zero, "bytes that may be zero cannot end in one");
            u64::from(*max)
        }
        Content::Text(alphabet, min, max) => {
            ensure!(min <= max, "there is no length in {min}..={max}");
            ensure!(*max <= LETTERS_MAX, "it may have {max} letters, and {LETTERS_MAX} are the most");
            ensure!(!alphabet.is_empty() || *max == 0, "its `alphabet` has no letter");
            ensure!(alphabet.iter().all(|letter| !letter.is_empty()), "a letter of its `alphabet` is empty");
            check_zeros(buffer, alphabet.iter().map(|letter| letter.as_bytes()))?;
            u64::from(*max) * alphabet.iter().map(|letter| letter.len() as u64).max().unwrap_or(0)
        }
        Content::Texts(texts) => {
            ensure!(!texts.is_empty(), "it has no `values`");
            check_zeros(buffer, texts.iter().map(|text| text.as_bytes()))?;
            texts.iter().map(|text| text.len() as u64).max().unwrap_or(0)
        }
        Content::Values(values) => {
            ensure!(!values.is_empty(), "it has no `values`");
            check_zeros(buffer, values.iter().map(|value| &value[..]))?;
            values.iter().map(|value| value.len() as u64).max().unwrap_or(0)
        }
    };
    Ok(longest.saturating_add(zero))
}

fn check_zeros<'v>(buffer: &Buffer, mut values: impl Iterator<Item = &'v [u8]>) -> Result<()> {
    let has_zero = buffer.ends_in_zero && values.any(|value| value.contains(&0));
    ensure!(!has_zero, "a zero byte would end it before its end");
    Ok(())
}

pub(super) fn check_name(name: &str) -> Result<()> {
    ensure!(!name.is_empty(), "a name is empty");
    ensure!(name.len() <= NAME_MAX, "a name has {} bytes, and {NAME_MAX} are the most", name.len());
    Ok(())
}
