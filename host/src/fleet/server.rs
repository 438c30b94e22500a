//! The NATS server that a fleet meets at: where it is, and how to be let in.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use async_nats::ConnectOptions;
use serde::{Deserialize, Serialize};

use crate::disk;

/// Where the server is, and what lets one in. What says neither is taken from the context.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// `nats://host:4222`, or `tls://…`, or several with commas between; a user and a password may stand before an `@`.
    pub url: Option<String>,
    /// A file of credentials, as `nsc` writes it.
    pub creds: Option<PathBuf>,
    /// A context of the `nats` command: its name, or its file.
    pub context: Option<String>,
    /// A file of certificates of authorities that the server's is signed by, beside those of the system.
    pub authority: Option<PathBuf>,
    /// Copies that a cluster keeps of a new campaign: 1, 3 or 5.
    pub replicas: usize,
    /// Bytes of parts of states that a new campaign may have there; the oldest go first.
    pub parts_max: Option<u64>,
}

/// A context, as the `nats` command writes it. What stands there beside is of no use here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Context_ {
    url: String,
    user: String,
    password: String,
    token: String,
    creds: String,
    nkey: String,
    cert: String,
    key: String,
    ca: String,
    inbox_prefix: String,
    jetstream_domain: String,
    jetstream_api_prefix: String,
}

/// What a connection is made with.
pub(super) struct Access {
    /// The addresses, without what lets one in.
    pub(super) addresses: String,
    pub(super) options: ConnectOptions,
    pub(super) domain: Option<String>,
    pub(super) prefix: Option<String>,
}

/// Bytes of a file that says how to be let in.
const FILE_MAX: u64 = 1 << 20;

impl Server {
    /// Whether one was named.
    pub fn is_named(&self) -> bool {
        let is_some = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        is_some(&self.url) || is_some(&self.context)
    }

    /// What a connection is made with.
    ///
    /// # Errors
    /// A file that cannot be read or says something else; no address.
    pub(super) fn access(&self) -> Result<Access> {
        let context = self.context.as_deref().map(read_context).transpose()?.unwrap_or_default();
        let url = self.url.clone().unwrap_or(context.url);
        ensure!(!url.is_empty(), "no server is named: --nats takes an address such as nats://localhost:4222");
        let mut options = ConnectOptions::new().name("spelunk");
        let creds = self.creds.clone().or_else(|| named(&context.creds));
        if let Some(path) = creds {
            let text = read(&path, "the credentials")?;
            let parsed = ConnectOptions::with_credentials(&text);
            parsed.with_context(|| format!("`{}` holds no credentials", path.display()))?;
            options = options.credentials(&text)?;
        }
        if let Some(path) = named(&context.nkey) {
            options = options.nkey(read(&path, "the key")?.trim().to_string());
        }
        if !context.user.is_empty() {
            options = options.user_and_password(context.user, context.password);
        }
        if !context.token.is_empty() {
            options = options.token(context.token);
        }
        if let (Some(cert), Some(key)) = (named(&context.cert), named(&context.key)) {
            options = options.add_client_certificate(cert, key);
        }
        if let Some(path) = self.authority.clone().or_else(|| named(&context.ca)) {
            read(&path, "the certificates")?;
            options = options.add_root_certificates(path).require_tls(true);
        }
        if !context.inbox_prefix.is_empty() {
            options = options.custom_inbox_prefix(context.inbox_prefix);
        }
        let (addresses, user) = without_user(&url);
        if let Some((user, password)) = user {
            options = match password {
                Some(password) => options.user_and_password(user, password),
                None => options.token(user),
            };
        }
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let (domain, prefix) = (some(context.jetstream_domain), some(context.jetstream_api_prefix));
        Ok(Access { addresses, options, domain, prefix })
    }
}

fn named(path: &str) -> Option<PathBuf> {
    let below_home = path.strip_prefix("~/").zip(std::env::home_dir());
    match below_home {
        Some((rest, home)) => Some(home.join(rest)),
        None => Some(PathBuf::from(path)).filter(|_| !path.is_empty()),
    }
}

fn read(path: &Path, what: &str) -> Result<String> {
    let failed = || format!("{what} in `{}` cannot be read", path.display());
    let len = std::fs::metadata(path).with_context(failed)?.len();
    ensure!(len <= FILE_MAX, "`{}` is too long for {what}", path.display());
    String::from_utf8(disk::read(path).with_context(failed)?).with_context(failed)
}

fn read_context(name: &str) -> Result<Context_> {
    let path = match name.contains('/') || name.ends_with(".json") {
        true => PathBuf::from(name),
        false => {
            let home = std::env::home_dir().unwrap_or_default();
            let config = std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty());
            let config = config.map_or_else(|| home.join(".config"), PathBuf::from);
            config.join("nats/context").join(format!("{name}.json"))
        }
    };
    let text = read(&path, "the context")?;
    serde_json::from_str(&text).with_context(|| format!("`{}` is not a context of `nats`", path.display()))
}

/// A user or a token, and a password.
type User = (String, Option<String>);

/// The addresses without the user before an `@`, which no message shows, and the first of those.
fn without_user(url: &str) -> (String, Option<User>) {
    let mut user = None;
    let addresses = url.split(',').map(|address| {
        let address = address.trim();
        let (scheme, rest) = address.split_once("://").unwrap_or(("nats", address));
        let host = match rest.rsplit_once('@') {
            None => rest,
            Some((before, host)) => {
                let parts = match before.split_once(':') {
                    Some((name, password)) => (decoded(name), Some(decoded(password))),
                    None => (decoded(before), None),
                };
                user.get_or_insert(parts);
                host
            }
        };
        format!("{scheme}://{}", host.trim_end_matches('/'))
    });
    let addresses = addresses.collect::<Vec<_>>().join(",");
    (addresses, user)
}

/// Text in which `%` and two digits stand for a byte.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let byte = more.get(..2).filter(|_| *first == b'%');
        let byte = byte.and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &more[2..] } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The most letters of the name of a campaign.
const NAME_MAX: usize = 100;

/// Refuses what cannot name a campaign on a server.
///
/// # Errors
/// What it may be.
pub fn ensure_name(name: &str) -> Result<()> {
    let is_plain =
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_');
    if name.is_empty() || name.len() > NAME_MAX || !is_plain {
        bail!("`{name}` cannot name a campaign: up to {NAME_MAX} letters, digits, `-` and `_` can");
    }
    Ok(())
}

/// The name that a campaign of a target has where no other is given.
pub fn name_of(place: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    let name: String = place.chars().map(plain).collect();
    let name = name.trim_matches('_');
    match name.len() > NAME_MAX {
        true => format!("{}_{}", &name[..NAME_MAX - 17], &blake3::hash(place.as_bytes()).to_hex()[..16]),
        false if name.is_empty() => "campaign".to_string(),
        false => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        let user =
            |name: &str, password: Option<&str>| Some((name.to_string(), password.map(str::to_string)));
        let check = |url: &str, expected: &str, named| {
            assert_eq!(without_user(url), (expected.to_string(), named));
        };
        check("nats://a:4222", "nats://a:4222", None);
        check("localhost", "nats://localhost", None);
        check("nats://me:p%40ss@a:4222/", "nats://a:4222", user("me", Some("p@ss")));
        check("tls://token@a, tls://b:1", "tls://a,tls://b:1", user("token", None));
        check("nats://me:a@b@host", "nats://host", user("me", Some("a@b")));
    }

    #[test]
    fn a_target_names_its_campaign() {
        assert_eq!(name_of("examples+lock"), "examples_lock");
        assert_eq!(name_of("+home+a%2Bb.wasm"), "home_a_2Bb_wasm");
        assert_eq!(name_of("+++"), "campaign");
        let long = name_of(&"x".repeat(300));
        assert_eq!(long.len(), NAME_MAX);
        [name_of("a.b c"), long].iter().for_each(|name| ensure_name(name).unwrap());
        for bad in ["", "a.b", "a b", "ä", &"x".repeat(101), "*", ">"] {
            assert!(ensure_name(bad).is_err(), "{bad}");
        }
    }
}
