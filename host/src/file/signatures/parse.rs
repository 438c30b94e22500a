//! The file beside a module that says how to call its exports; `docs/signatures.md` describes it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use toml::{Table, Value};

use super::table::{Keys, after_colon, integer, kind_of, list, nearest, no_colon, table, text, texts};
use super::{
    Allocator, Buffer, Content, Named, Null, Param, Pool, Returns, Signature, Signatures, What, When,
};

/// What such a file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Described {
    /// How exports are called.
    pub signatures: Signatures,
    /// Imports, `MODULE.NAME`, and the imports that they stand for.
    pub imports: BTreeMap<String, String>,
    /// Exports, and what they are to be called.
    pub names: BTreeMap<String, String>,
}

/// Bytes, and letters, that are drawn at most where nothing else is said.
const BYTES_DEFAULT: u32 = 64;
const LETTERS_DEFAULT: u32 = 32;

impl Described {
    /// Reads a file.
    ///
    /// # Errors
    /// Text that is not TOML; a key or word that there is not; what contradicts itself.
    pub fn parse(text: &str) -> Result<Described> {
        let mut keys = Keys::of(text.parse()?);
        let mut signatures = Signatures::default();
        let are_rules_listed = match keys.take("rules") {
            None => false,
            Some(Value::String(all)) if all == "all" => {
                signatures.are_all_rules = true;
                false
            }
            Some(listed) => {
                signatures.rules = texts(listed).context("`rules` is \"all\" or a list of exports")?;
                true
            }
        };
        signatures.except = keys.texts("except")?.unwrap_or_default();
        signatures.setup = keys.texts("setup")?.unwrap_or_default();
        signatures.teardown = keys.texts("teardown")?.unwrap_or_default();
        signatures.invariants = keys.texts("invariants")?.unwrap_or_default();
        signatures.allocator = keys.take("allocator").map(allocator).transpose()?.unwrap_or_default();
        for (name, value) in keys.table("pools")? {
            signatures
                .pools
                .insert(name.clone(), pool(value).with_context(|| format!("in the pool `{name}`"))?);
        }
        for (name, value) in keys.table("exports")? {
            let signature = table(value).and_then(signature);
            signatures
                .exports
                .insert(name.clone(), signature.with_context(|| format!("in `[exports.{name}]`"))?);
        }
        let (imports, names) = (renamed(&mut keys, "imports")?, renamed(&mut keys, "names")?);
        keys.end()?;
        signatures.add_rules(are_rules_listed)?;
        signatures.add_pools()?;
        signatures.check()?;
        Ok(Described { signatures, imports, names })
    }
}

impl Signatures {
    /// What is described and has no other role is a rule.
    fn add_rules(&mut self, are_listed: bool) -> Result<()> {
        let roles = [&self.rules, &self.except, &self.setup, &self.teardown, &self.invariants];
        let named: BTreeSet<&String> = roles.into_iter().flatten().collect();
        let others: Vec<String> = self.exports.keys().filter(|name| !named.contains(name)).cloned().collect();
        if let Some(other) = others.first().filter(|_| are_listed) {
            bail!(
                "`[exports.{other}]` is described, and never called: list it in `rules`, or in another role"
            );
        }
        self.rules.extend(others);
        Ok(())
    }

    /// Pools that are named without being described. What nothing adds to is a mistake.
    fn add_pools(&mut self) -> Result<()> {
        let (mut filled, mut used) = (BTreeSet::new(), BTreeSet::new());
        for signature in self.exports.values() {
            if let Returns::Handle(pool) = &signature.returns {
                filled.insert(pool.clone());
            }
            for param in signature.params.iter().flatten() {
                match &param.what {
                    What::OutHandle(pool, _) => drop(filled.insert(pool.clone())),
                    What::Handle(pool, _) => drop(used.insert(pool.clone())),
                    _ => {}
                }
            }
        }
        let described = self.pools.keys().cloned();
        if let Some(pool) = used.into_iter().chain(described).find(|pool| !filled.contains(pool)) {
            let near = nearest(&pool, filled.iter().map(String::as_str));
            bail!(
                "no export adds to the pool `{pool}`; one does with `returns = \"handle:{pool}\"` or a parameter \
                 \"out-handle:{pool}\" ({near})"
            );
        }
        for pool in filled {
            self.pools.entry(pool).or_default();
        }
        Ok(())
    }
}

/// Names, and what stands for them.
fn renamed(keys: &mut Keys, key: &'static str) -> Result<BTreeMap<String, String>> {
    let names = keys.table(key)?.into_iter();
    names.map(|(from, to)| Ok((from, text(to).with_context(|| format!("in `[{key}]`"))?))).collect()
}

fn allocator(value: Value) -> Result<Allocator> {
    let table = match value {
        Value::String(word) if word == "region" => return Ok(Allocator::Region),
        Value::Table(table) => table,
        other => bail!("`allocator`: `{other}` is neither \"region\" nor a table"),
    };
    let mut keys = Keys::of(table);
    let (malloc, free) = (keys.text("malloc")?, keys.text("free")?);
    let (alloc, save, restore) = (keys.text("stack-alloc")?, keys.text("save")?, keys.text("restore")?);
    keys.end().context("in `allocator`")?;
    Ok(match (malloc, free, alloc, save, restore) {
        (Some(allocate), free, None, None, None) => Allocator::Heap { allocate, free },
        (None, None, Some(allocate), Some(save), Some(restore)) => {
            Allocator::Stack { allocate, save, restore }
        }
        _ => {
            bail!("`allocator` has `malloc` and perhaps `free`; or else `stack-alloc`, `save` and `restore`")
        }
    })
}

fn pool(value: Value) -> Result<Pool> {
    const NULLS: [(&str, Null); 4] = [
        ("zero-or-negative", Null::ZeroOrNegative),
        ("zero", Null::Zero),
        ("negative", Null::Negative),
        ("nothing", Null::Nothing),
    ];
    let mut keys = Keys::of(table(value)?);
    let pool = Pool { max: keys.count("max")?, null: keys.word("null", &NULLS)?.unwrap_or_default() };
    keys.end()?;
    Ok(pool)
}

fn signature(described: Table) -> Result<Signature> {
    const WHENS: [(&str, When); 3] =
        [("zero", When::Zero), ("nonzero", When::Nonzero), ("negative", When::Negative)];
    let mut keys = Keys::of(described);
    let params =
        keys.take("params").map(|value| list(value).and_then(params)).transpose().context("`params`")?;
    let returns = match keys.text("returns")? {
        None => Returns::Number,
        Some(text) => match kind_of(&text) {
            ("handle", of) => Returns::Handle(after_colon("handle", of, "POOL")?.to_string()),
            ("cstring", None) => Returns::Text,
            ("number", None) => Returns::Number,
            _ => bail!("`returns`: `{text}` is none of \"number\", \"cstring\" and \"handle:POOL\""),
        },
    };
    let (error_when, fails_when) = (keys.word("error-when", &WHENS)?, keys.word("fails-when", &WHENS)?);
    keys.end()?;
    Ok(Signature { params, returns, error_when, fails_when })
}

fn params(listed: Vec<Value>) -> Result<Vec<Param>> {
    let mut params = Vec::new();
    // The places of lengths, and of which parameters.
    let mut lengths = Vec::new();
    for (index, value) in listed.into_iter().enumerate() {
        let mut keys = match value {
            Value::Table(table) => Keys::of(table),
            Value::String(_) => Keys::of(Table::from_iter([("type".to_string(), value)])),
            Value::Integer(_) => Keys::of(Table::from_iter([
                ("type".to_string(), Value::from("const")),
                ("value".to_string(), value),
            ])),
            other => bail!("parameter {}: `{other}` is neither a type, a table nor an integer", index + 1),
        };
        let in_param = || format!("parameter {}", index + 1);
        let name = keys.text("name").with_context(in_param)?.unwrap_or_else(|| format!("arg{index}"));
        let what = what(&mut keys, |of| lengths.push((index, of.to_string()))).with_context(in_param)?;
        keys.end().with_context(in_param)?;
        ensure!(params.iter().all(|param: &Param| param.name != name), "two parameters are named `{name}`");
        params.push(Param { name, what });
    }
    for (index, of) in lengths {
        let named = params.iter().position(|param| param.name == of);
        let near = || nearest(&of, params.iter().map(|param| &*param.name));
        let place = named.with_context(|| {
            format!("parameter {}: it is the length of `{of}`, which there is not; {}", index + 1, near())
        })?;
        params[index].what = What::LengthOf(place as u32);
    }
    Ok(params)
}

const TYPES: [&str; 15] = [
    "any",
    "bool",
    "bytes",
    "const",
    "cstring",
    "enum",
    "flags",
    "float",
    "handle",
    "int",
    "length",
    "out",
    "out-handle",
    "takes",
    "text",
];

/// What is passed; `length_of` is told where it is the length of another parameter.
fn what(keys: &mut Keys, length_of: impl FnOnce(&str)) -> Result<What> {
    let text = keys.text("type")?.context("it has no `type`")?;
    let (kind, of) = kind_of(&text);
    if !["handle", "takes", "length", "out", "out-handle"].contains(&kind) {
        no_colon(kind, of)?;
    }
    let pool = || after_colon(kind, of, "POOL").map(str::to_string);
    Ok(match kind {
        "any" => What::Any,
        "bool" => What::Boolean,
        "const" => What::Constant(keys.integer("value")?.context("it has no `value`")?),
        "int" => {
            let (min, max) = (keys.integer("min")?, keys.integer("max")?);
            match (min, max) {
                (None, None) => What::Any,
                (Some(min), Some(max)) => What::Integer(min, max),
                _ => bail!("an `int` has both `min` and `max`, or neither"),
            }
        }
        "float" => match (float(keys, "min")?, float(keys, "max")?) {
            (None, None) => What::Any,
            (Some(min), Some(max)) => What::Float(min, max),
            _ => bail!("a `float` has both `min` and `max`, or neither"),
        },
        "enum" => What::OneOf(named(keys)?),
        "flags" => What::Flags(named(keys)?),
        "bytes" => What::Buffer(buffer(keys, bytes, false)?),
        "text" => What::Buffer(buffer(keys, letters, false)?),
        "cstring" => What::Buffer(buffer(keys, letters, true)?),
        "handle" => What::Handle(pool()?, false),
        "takes" => What::Handle(pool()?, true),
        "out-handle" => match keys.count("bytes")? {
            None | Some(4) => What::OutHandle(pool()?, false),
            Some(8) => What::OutHandle(pool()?, true),
            Some(other) => bail!("`bytes`: a handle has 4 or 8, and not {other}"),
        },
        "out" => {
            let bytes = after_colon(kind, of, "BYTES")?;
            What::Out(bytes.parse().ok().with_context(|| format!("`{bytes}` is no number of bytes"))?)
        }
        "length" => {
            length_of(after_colon(kind, of, "PARAMETER")?);
            // Its place is known once all names are.
            What::LengthOf(0)
        }
        _ => bail!("`{kind}` is no type; {}", nearest(kind, TYPES)),
    })
}

fn float(keys: &mut Keys, key: &'static str) -> Result<Option<f64>> {
    match keys.take(key) {
        None => Ok(None),
        Some(Value::Float(value)) => Ok(Some(value)),
        Some(Value::Integer(value)) => Ok(Some(value as f64)),
        Some(other) => bail!("`{key}`: `{other}` is not a number"),
    }
}

/// Numbers, or a table of their names.
fn named(keys: &mut Keys) -> Result<Vec<Named>> {
    let values = keys.take("values").context("it has no `values`")?;
    let named: Result<Vec<Named>> = match values {
        Value::Table(table) => {
            let of = |(name, value)| Ok(Named { name: Some(name), value: integer(&value)? });
            table.into_iter().map(of).collect()
        }
        other => list(other)?.iter().map(|value| Ok(Named { name: None, value: integer(value)? })).collect(),
    };
    let mut named = named.context("`values`")?;
    // A table has no order of its own.
    if named.iter().all(|named| named.name.is_some()) {
        named.sort_by_key(|named| (named.value, named.name.clone()));
    }
    Ok(named)
}

fn buffer(
    keys: &mut Keys,
    content: impl FnOnce(&mut Keys) -> Result<Content>,
    ends_in_zero: bool,
) -> Result<Buffer> {
    let content = content(keys)?;
    Ok(Buffer { content, ends_in_zero, is_kept: keys.boolean("keeps")? })
}

/// The least and the most.
fn length(keys: &mut Keys, default: u32) -> Result<(u32, u32)> {
    let min = keys.count("min")?.unwrap_or(0);
    Ok((min, keys.count("max")?.unwrap_or(default.max(min))))
}

fn bytes(keys: &mut Keys) -> Result<Content> {
    let Some(values) = keys.take("values") else {
        let (min, max) = length(keys, BYTES_DEFAULT)?;
        return Ok(Content::Bytes(min, max));
    };
    let value = |value| match value {
        Value::String(text) => Ok(text.into_bytes()),
        Value::Array(bytes) => {
            let byte = |byte: &Value| {
                let number = integer(byte)?;
                u8::try_from(number).ok().with_context(|| format!("{number} is no byte"))
            };
            bytes.iter().map(byte).collect()
        }
        other => bail!("`{other}` is neither text nor a list of bytes"),
    };
    let values: Result<Vec<Vec<u8>>> = list(values)?.into_iter().map(value).collect();
    Ok(Content::Values(values.context("`values`")?))
}

fn letters(keys: &mut Keys) -> Result<Content> {
    if let Some(values) = keys.texts("values")? {
        return Ok(Content::Texts(values));
    }
    let alphabet = match keys.take("alphabet") {
        None => default_alphabet(),
        Some(Value::String(text)) => text.chars().map(String::from).collect(),
        Some(other) => texts(other).context("`alphabet` is text, or a list of texts")?,
    };
    let (min, max) = length(keys, LETTERS_DEFAULT)?;
    Ok(Content::Text(alphabet, min, max))
}

/// The printable characters of ASCII, two that are not, and some of several bytes; plain ones first.
fn default_alphabet() -> Vec<String> {
    let plain = ('0'..='9').chain('a'..='z').chain('A'..='Z');
    let other = (' '..='~').filter(|letter| !letter.is_ascii_alphanumeric());
    plain.chain(other).chain(['\n', '\t', 'é', '漢', '😀']).map(String::from).collect()
}
