//! Types of WIT that are made at random, as the text format has them.

use rand::{Rng, RngExt};

/// A type of values without handles.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// By its name.
    Plain(&'static str),
    List(Box<Type>),
    Tuple(Vec<Type>),
    Option(Box<Type>),
    Result(Option<Box<Type>>, Option<Box<Type>>),
    Record(Vec<Type>),
    Variant(Vec<Option<Type>>),
    Enum(usize),
    Flags(usize),
}

const PLAIN: [&str; 13] =
    ["bool", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f32", "f64", "char", "string"];

impl Type {
    /// A type that is so deep at most.
    pub(crate) fn random(rng: &mut impl Rng, depth: u32) -> Type {
        if depth == 0 || rng.random_bool(0.3) {
            return Type::Plain(PLAIN[rng.random_range(0..PLAIN.len())]);
        }
        let inner = |rng: &mut _| Box::new(Type::random(rng, depth - 1));
        match rng.random_range(0..9) {
            0 | 1 => Type::List(inner(rng)),
            2 => Type::Tuple((0..rng.random_range(1..5)).map(|_| *inner(rng)).collect()),
            3 => Type::Option(inner(rng)),
            4 => {
                let ok = rng.random_bool(0.7).then(|| inner(rng));
                let error = rng.random_bool(0.7).then(|| inner(rng));
                Type::Result(ok, error)
            }
            5 => Type::Record((0..rng.random_range(1..6)).map(|_| *inner(rng)).collect()),
            6 => {
                let cases = rng.random_range(1..5);
                Type::Variant((0..cases).map(|_| rng.random_bool(0.7).then(|| *inner(rng))).collect())
            }
            // More cases than a byte tells apart.
            7 => Type::Enum(if rng.random_bool(0.1) { 300 } else { rng.random_range(1..6) }),
            _ => Type::Flags(rng.random_range(1..33)),
        }
    }

    /// Appends the types that must have a name, which are imported; what it is called.
    pub(crate) fn define(&self, text: &mut String, count: &mut u32) -> String {
        let list = |items: Vec<String>| items.join(" ");
        let body = match self {
            Type::Plain(name) => return (*name).to_string(),
            Type::List(inner) => return format!("(list {})", inner.define(text, count)),
            Type::Tuple(types) => {
                let types = types.iter().map(|ty| ty.define(text, count)).collect();
                return format!("(tuple {})", list(types));
            }
            Type::Option(inner) => return format!("(option {})", inner.define(text, count)),
            Type::Result(ok, error) => {
                let ok = ok.as_ref().map_or(String::new(), |ok| ok.define(text, count));
                let error = error
                    .as_ref()
                    .map_or(String::new(), |error| format!("(error {})", error.define(text, count)));
                return format!("(result {ok} {error})");
            }
            Type::Record(types) => {
                let field = |(index, ty): (usize, &Type)| {
                    format!("(field \"field{index}\" {})", ty.define(text, count))
                };
                format!("(record {})", list(types.iter().enumerate().map(field).collect()))
            }
            Type::Variant(cases) => {
                let case = |(index, ty): (usize, &Option<Type>)| {
                    let ty = ty.as_ref().map_or(String::new(), |ty| ty.define(text, count));
                    format!("(case \"case{index}\" {ty})")
                };
                format!("(variant {})", list(cases.iter().enumerate().map(case).collect()))
            }
            Type::Enum(cases) => {
                format!("(enum {})", list((0..*cases).map(|index| format!("\"case{index}\"")).collect()))
            }
            Type::Flags(flags) => {
                format!("(flags {})", list((0..*flags).map(|index| format!("\"flag{index}\"")).collect()))
            }
        };
        let index = *count;
        *count += 1;
        *text +=
            &format!("(type $of{index} {body})\n(import \"t{index}\" (type $t{index} (eq $of{index})))\n");
        format!("$t{index}")
    }

    /// The core types that a value is passed as.
    pub(crate) fn flat(&self) -> Vec<&'static str> {
        match self {
            Type::Plain("s64" | "u64") => vec!["i64"],
            Type::Plain("f32") => vec!["f32"],
            Type::Plain("f64") => vec!["f64"],
            Type::Plain("string") | Type::List(_) => vec!["i32", "i32"],
            Type::Plain(_) | Type::Enum(_) | Type::Flags(_) => vec!["i32"],
            Type::Tuple(types) | Type::Record(types) => types.iter().flat_map(Type::flat).collect(),
            Type::Option(inner) => cases(&[Some(inner)]),
            Type::Result(ok, error) => cases(&[ok.as_deref(), error.as_deref()]),
            Type::Variant(types) => cases(&types.iter().map(Option::as_ref).collect::<Vec<_>>()),
        }
    }
}

/// What tells the cases apart, and what can hold the values of each.
fn cases(cases: &[Option<&Type>]) -> Vec<&'static str> {
    let mut joined = vec!["i32"];
    for case in cases.iter().flatten() {
        for (at, flat) in case.flat().into_iter().enumerate() {
            match joined.get_mut(at + 1) {
                None => joined.push(flat),
                Some(joined) if *joined == flat => {}
                Some(joined) if ["i32", "f32"].contains(joined) && ["i32", "f32"].contains(&flat) => {
                    *joined = "i32"
                }
                Some(joined) => *joined = "i64",
            }
        }
    }
    joined
}
