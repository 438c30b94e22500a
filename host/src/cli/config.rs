//! Settings from a file and from the environment: each stands for a flag, and a flag given by hand wins over
//! the environment, which wins over the file.

use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::builder::{FalseyValueParser, StyledStr};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, ArgMatches, Command};
use spelunk::{disk, text};

/// The file that is read where it exists.
const FILE: &str = "spelunk.toml";
/// The flags that say where something is written or sent, or what is executed: a file that was only found, in a checked-out
/// repository say, may not set them.
const PATHS: [&str; 16] = [
    "cache",
    "cobertura",
    "command",
    "graph",
    "inputs",
    "junit",
    "lcov",
    "map",
    "nats",
    "nats-ca",
    "nats-context",
    "nats-creds",
    "out",
    "output",
    "report",
    "sarif",
];

/// Bytes of the file, at most.
const BYTES_MAX: u64 = 1 << 20;
/// The flag whose folder is built, which runs what is in it.
const BUILT: &str = "against";

/// The arguments that name a file which is read.
const READ: [&str; 12] = [
    "target",
    "campaign",
    "trace",
    "other",
    "config",
    "dict",
    "signatures",
    "link",
    "against",
    "compose",
    "seeds",
    "stdin",
];

/// Refuses to write to a file that is read; but a trace is shrunk where it is.
///
/// # Errors
/// One is to be written to.
pub(crate) fn refuse_overwriting(matches: &ArgMatches) -> Result<()> {
    let Some((verb, matches)) = matches.subcommand() else { return Ok(()) };
    let files = |name: &str| {
        let values = matches.try_get_raw(name).ok().flatten().into_iter().flatten();
        let paths: Vec<PathBuf> = values.filter_map(|value| Path::new(value).canonicalize().ok()).collect();
        paths.into_iter().filter(|path| path.is_file())
    };
    for read in READ.into_iter().filter(|read| (verb, *read) != ("shrink", "trace")) {
        for path in files(read) {
            // That of findings is a folder, and says so itself.
            let mut flags = PATHS.into_iter().filter(|flag| *flag != "out");
            let flag = flags.find(|flag| files(flag).any(|written| written == path));
            if let Some(flag) = flag {
                bail!("--{flag} would overwrite `{}`, which is read: name another file", path.display());
            }
        }
    }
    Ok(())
}

/// Why arguments are refused. What is wrong with them is printed as clap prints it, unless a value has what no terminal is to be given.
pub(crate) fn refused(
    mut error: clap::Error,
    Completed { arguments, file }: &Completed,
    command: &Command,
) -> anyhow::Error {
    let tips = match error.kind() {
        ErrorKind::UnknownArgument => of_cargo(&error, arguments, command),
        _ => tips(&error, arguments, file.as_ref()),
    };
    let tips: Vec<StyledStr> = tips.into_iter().map(StyledStr::from).collect();
    if !tips.is_empty() {
        // What looks alike is not it.
        for guess in [ContextKind::SuggestedArg, ContextKind::Usage] {
            error.remove(guess);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    let variables = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with(PREFIX));
    let given = arguments.iter().cloned().chain(variables.map(|(_, value)| value));
    let given: Vec<String> = given.map(|value| value.to_string_lossy().into_owned()).collect();
    // Help says nothing of them.
    let is_fit = |value: &String| text::line(value) == *value && text::printable(value) == *value;
    if !error.use_stderr() || given.iter().all(is_fit) {
        error.exit();
    }
    anyhow!("{}", text::line(error.render().to_string().trim_start_matches("error: ").trim_end()))
}

/// Flags of cargo by which somebody may call ours.
const OF_CARGO: [(&str, &str); 5] = [
    ("--features", "--guest-features"),
    ("--feature", "--guest-features"),
    ("--target", "--guest-target"),
    ("--profile", "--guest-profile"),
    ("--release", "--guest-profile release"),
];

/// What a flag of cargo is called here, where the verb has it.
fn of_cargo(error: &clap::Error, arguments: &[OsString], command: &Command) -> Vec<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return Vec::new() };
    let verb = arguments.iter().skip(1).find_map(|argument| command.find_subcommand(argument));
    let has = |ours: &str| {
        let name = ours.trim_start_matches("--").split(' ').next();
        verb.is_some_and(|verb| long_flags(verb).any(|(flag, _)| Some(&*flag) == name))
    };
    let is_it = |(flag, ours): &&(&str, &str)| argument.split('=').next() == Some(flag) && has(ours);
    let tip = |(flag, ours): &(&str, &str)| format!("what `{flag}` is to cargo is `{ours}` here");
    OF_CARGO.iter().find(is_it).map(tip).into_iter().collect()
}

/// What helps with a value that is refused: what it is to be, and where it stands if nobody gave it by hand.
fn tips(error: &clap::Error, arguments: &[OsString], file: Option<&FromFile>) -> Vec<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return Vec::new() };
    let is_value = matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue);
    let Some(flag) = argument.strip_prefix("--").filter(|_| is_value) else { return Vec::new() };
    let flag = flag.split([' ', '[', '=']).next().unwrap_or(flag);
    let mut tips = Vec::new();
    let no_number = std::error::Error::source(error).and_then(|why| why.downcast_ref::<ParseIntError>());
    if no_number.is_some_and(|why| *why.kind() == IntErrorKind::InvalidDigit) {
        tips.push("it must be a whole number that is not negative".to_string());
    }
    let value = error.get(ContextKind::InvalidValue).map(ToString::to_string).unwrap_or_default();
    let (alone, joined) = (format!("--{flag}"), format!("--{flag}={value}"));
    let says_so = |at: usize| {
        let next = || arguments.get(at + 1).is_some_and(|next| *next == *value);
        arguments[at] == *joined || arguments[at] == *alone && next()
    };
    let of_file = file.filter(|file| file.arguments.clone().any(says_so));
    let variable = variable(flag);
    if let Some(file) = of_file {
        tips.push(format!("it stands in `{}`", file.path.display()));
    } else if !(0..arguments.len()).any(says_so)
        && std::env::var_os(&variable).is_some_and(|said| *said == *value)
    {
        tips.push(format!("the variable `{variable}` says so"));
    }
    tips
}

/// The command with the environment variables of its flags: `SPELUNK_SEED=3` is `--seed 3`.
pub(crate) fn with_environment(command: Command) -> Command {
    let with = |command: Command| {
        command.mut_args(|arg| match arg.get_long().map(variable) {
            // `SPELUNK_FRESH=0` is not to be fresh.
            Some(variable) if matches!(arg.get_action(), ArgAction::SetTrue) => {
                arg.env(variable).hide_env(true).value_parser(FalseyValueParser::new())
            }
            Some(variable) => arg.env(variable).hide_env(true),
            None => arg,
        })
    };
    // `--seed -1` is a value that is refused, and no flag.
    with(command).mut_subcommands(|verb| with(verb).allow_negative_numbers(true))
}

/// What to say of the variables that look like those of flags and are none, which do nothing.
pub(crate) fn unknown_variables(command: &Command) -> Vec<String> {
    let commands = || std::iter::once(command).chain(command.get_subcommands());
    let known: Vec<String> = commands().flat_map(long_flags).map(|(flag, _)| variable(&flag)).collect();
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let mut unknown: Vec<String> =
        names.filter(|name| name.starts_with(PREFIX) && !known.contains(name)).collect();
    unknown.sort_unstable();
    let said = |name: String| {
        let near = known.iter().map(|known| (strsim::damerau_levenshtein(&name, known), known)).min();
        let near = near.filter(|(distance, _)| *distance <= NEAR_MAX);
        let instead = near.map_or_else(String::new, |(_, known)| format!(": did you mean `{known}`?"));
        format!("the variable `{}` stands for no flag{instead}", text::line(&name))
    };
    unknown.into_iter().take(UNKNOWN_MAX).map(said).collect()
}

/// Letters by which a name may differ from the one that was meant.
const NEAR_MAX: usize = 2;
/// Variables that something is said of, at most.
const UNKNOWN_MAX: usize = 8;

/// What the names of variables begin with.
const PREFIX: &str = "SPELUNK_";

fn variable(flag: &str) -> String {
    format!("{PREFIX}{}", flag.to_uppercase().replace('-', "_"))
}

/// The arguments of a command.
pub(crate) struct Completed {
    pub(crate) arguments: Vec<OsString>,
    file: Option<FromFile>,
}

/// A file with settings, and which of the arguments it says.
struct FromFile {
    path: PathBuf,
    arguments: Range<usize>,
}

/// The arguments with those of the file put before the ones given by hand.
///
/// The file has a table for each verb, whose keys are the verb's long flags:
///
/// ```toml
/// [explore]
/// runs = 1_000_000
/// guest-features = ["bug"]
/// no-snapshots = true
/// ```
///
/// # Errors
/// A file that cannot be read or is not TOML; a table or key that is no verb or flag; a path that is written to, in a file that
/// nobody named.
pub(crate) fn complete(arguments: Vec<OsString>, command: &Command) -> Result<Completed> {
    let verb = arguments.iter().position(|arg| command.get_subcommands().any(|verb| verb.get_name() == arg));
    let as_given = |arguments| Ok(Completed { arguments, file: None });
    let Some(at) = verb else { return as_given(arguments) };
    let Some(verb) = command.find_subcommand(&arguments[at]) else { return as_given(arguments) };
    let named = config_path(&arguments);
    let is_named = named.is_some();
    let Some(path) = named.or_else(|| Path::new(FILE).is_file().then(|| PathBuf::from(FILE))) else {
        return as_given(arguments);
    };
    // A file that was only found, in a checked-out repository say, may say nothing of what is outside of its folder.
    let within = if is_named { None } else { Some(Path::new(".").canonicalize()?) };
    let added = of_file(&path, within.as_deref(), verb, command)
        .with_context(|| format!("in `{}`", path.display()))?;
    let from = FromFile { path, arguments: at + 1..at + 1 + added.len() };
    let mut arguments = arguments;
    arguments.splice(at + 1..at + 1, added);
    Ok(Completed { arguments, file: Some(from) })
}

/// The file that `--config` names, or else the environment.
fn config_path(args: &[OsString]) -> Option<PathBuf> {
    let mut named = std::env::var_os(variable("config")).filter(|path| !path.is_empty()).map(PathBuf::from);
    for (index, arg) in args.iter().enumerate() {
        let text = arg.to_string_lossy();
        if text == "--config" {
            named = args.get(index + 1).map(PathBuf::from);
        } else if let Some(path) = text.strip_prefix("--config=") {
            named = Some(PathBuf::from(path));
        }
    }
    named
}

/// Whether the values of a flag name files or folders that are read, and given to a guest or shown.
fn is_read(flag: &str) -> bool {
    ["dir", "source"].contains(&flag) || READ.contains(&flag)
}

/// Whether a value names something that there is outside of a folder: a path, or one with what it is called in the guest. `has_links`, what
/// links below it lead to is read too.
fn leads_out(value: &toml::Value, folder: &Path, has_links: bool) -> bool {
    let paths = value.as_str().map(|value| [value, value.split_once("::").map_or(value, |(host, _)| host)]);
    let mut paths = paths.into_iter().flatten().filter_map(|path| Path::new(path).canonicalize().ok());
    paths.any(|path| !path.starts_with(folder) || has_links && has_link_out(&path, folder))
}

/// Whether a link somewhere below leads out of a folder, or what is there cannot be read.
fn has_link_out(path: &Path, folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(path) else { return path.is_dir() };
    entries.into_iter().any(|entry| {
        let Ok((path, kind)) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))) else {
            return true;
        };
        // A link that leads nowhere is not read.
        let leads_out = || path.canonicalize().is_ok_and(|path| !path.starts_with(folder));
        kind.is_symlink() && leads_out() || kind.is_dir() && has_link_out(&path, folder)
    })
}

/// What a file says of a verb. `within` is the folder of one that was only found.
fn of_file(path: &Path, within: Option<&Path>, verb: &Command, command: &Command) -> Result<Vec<OsString>> {
    let text = disk::read_at_most(path, BYTES_MAX).context("it cannot be read")?;
    let tables: toml::Table = String::from_utf8(text).context("it is not text")?.parse()?;
    for (key, value) in &tables {
        let is_verb = command.get_subcommands().any(|verb| verb.get_name() == key);
        ensure!(is_verb || !value.is_table(), "`[{key}]` is no verb of spelunk");
        ensure!(
            is_verb,
            "`{key}` stands outside of a table: put it below a verb, as `[{}]`",
            verb.get_name()
        );
    }
    let mut flags = Vec::new();
    let Some(table) = tables.get(verb.get_name()) else { return Ok(flags) };
    let Some(table) = table.as_table() else { bail!("`{}` must be a table", verb.get_name()) };
    for (key, value) in table {
        let flag = long_flags(verb).find(|(flag, _)| flag == key);
        let Some((_, takes_value)) = flag.filter(|(flag, _)| flag != "config") else {
            bail!("`{key}` is no flag of `spelunk {}`; its --help lists them", verb.get_name());
        };
        ensure!(
            within.is_none() || !PATHS.contains(&key.as_str()),
            "`{key}` says where something is written or sent, which only a file that you name may do: pass --config {FILE}, or --{key}"
        );
        let values = value.as_array().map_or(std::slice::from_ref(value), |values| &values[..]);
        let is_built = key == BUILT
            && values.iter().any(|value| !value.as_str().is_some_and(|path| Path::new(path).is_file()));
        ensure!(
            within.is_none() || !is_built,
            "`{key}` names no file, and a folder would be built and so run, which only a file that you name may say: pass --config {FILE}, or --{key}"
        );
        // A guest is given all of these; of sources each is looked at when it is read.
        let has_links = ["dir", "seeds"].contains(&key.as_str());
        let is_outside = |folder| values.iter().any(|value| leads_out(value, folder, has_links));
        ensure!(
            !is_read(key) || !within.is_some_and(is_outside),
            "`{key}` names what lies outside of the folder, which only a file that you name may do: pass --config {FILE}, or --{key}"
        );
        // The environment wins over the file.
        if std::env::var_os(variable(key)).is_some() {
            continue;
        }
        match value {
            toml::Value::Boolean(on) if !takes_value => flags.extend(on.then(|| format!("--{key}").into())),
            toml::Value::Array(values) => {
                for value in values {
                    flags.push(format!("--{key}={}", plain(value)?).into());
                }
            }
            value => flags.push(format!("--{key}={}", plain(value)?).into()),
        }
    }
    Ok(flags)
}

fn plain(value: &toml::Value) -> Result<String> {
    Ok(match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) => value.to_string(),
        other => bail!("`{other}` is neither text nor a number"),
    })
}

/// The verb's long flags, and whether each takes a value.
fn long_flags(verb: &Command) -> impl Iterator<Item = (String, bool)> {
    let of_arg = |arg: &clap::Arg| {
        Some((arg.get_long()?.to_string(), !matches!(arg.get_action(), ArgAction::SetTrue)))
    };
    verb.get_arguments().filter_map(of_arg).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn check(text: &str, expected: &str) {
        let folder = std::env::temp_dir().join(format!("spelunk-config-{}-{:p}", std::process::id(), text));
        std::fs::write(&folder, text).unwrap();
        let args = ["spelunk", "--config", &folder.display().to_string(), "explore", "x.wat", "--seed", "4"];
        let found = complete(args.iter().map(OsString::from).collect(), &crate::cli::Cli::command());
        std::fs::remove_file(&folder).unwrap();
        let found = match found {
            Ok(found) => {
                found.arguments[3..].iter().map(|arg| arg.to_string_lossy()).collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.root_cause().to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn keys_are_flags_and_flags_by_hand_come_later() {
        check("[explore]\nruns = 5\nseed = 3\n", "explore --runs=5 --seed=3 x.wat --seed 4");
        check(
            "[explore]\nguest-features = ['a', 'b']\n",
            "explore --guest-features=a --guest-features=b x.wat --seed 4",
        );
        check(
            "[explore]\nno-snapshots = true\nstub-imports = false\n",
            "explore --no-snapshots --stub-imports=false x.wat --seed 4",
        );
        check("[replay]\ntimes = 2\n", "explore x.wat --seed 4");
    }

    #[test]
    fn unknown_keys_are_refused() {
        check("[explore]\nsed = 3\n", "`sed` is no flag of `spelunk explore`; its --help lists them");
        check("[explor]\n", "`[explor]` is no verb of spelunk");
        check("[explore]\nseed = {}\n", "`{}` is neither text nor a number");
    }
}
