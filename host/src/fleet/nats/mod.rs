//! A hub on a NATS server, with JetStream: values are a key-value bucket, parts of states a stream, the module is in an object store.
//! This is the only room that names the client and its runtime.

mod campaign;
mod queue;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use async_nats::connection::State;
use async_nats::jetstream::consumer::{self, AckPolicy, DeliverPolicy};
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::kv;
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{self, DirectGetError, DirectGetErrorKind, DiscardPolicy, Stream};
use async_nats::jetstream::{self, AckKind, Context};
use async_nats::{ConnectErrorKind, Event, HeaderMap, StatusCode};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::runtime::Runtime;

use super::hub::{Changes, Held, Hub, Traffic, Value, part_key};
use super::queue::{Inbox, Queue, Taken};
use super::server::{Access, Server};
use crate::budget::Budget;

pub use campaign::Campaign;
pub use queue::WorkQueue;

/// What every name on the server begins with.
const PREFIX: &str = "spelunk";
/// A server that says nothing for so long is not there.
const PATIENCE: Duration = Duration::from_secs(10);
/// While it is not there, it is given so long to say that it is there again.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);
/// Once the user asked to stop, or the time is up, it may take so long to hand over what is known.
const LAST_PATIENCE: Duration = Duration::from_secs(3);
/// Servers of a cluster may take so long to agree on who has a campaign.
const AGREEMENT: Duration = Duration::from_secs(9);
/// A campaign that is to be made is asked for again and again for so long.
const MAKING: Duration = Duration::from_secs(40);
/// The budget is looked at so often.
const POLL: Duration = Duration::from_millis(50);
/// What is written now and again, so often.
const AGAIN: Duration = Duration::from_secs(5);
/// Values that are asked for at once.
const BATCH: usize = 32;
/// Parts that are under way at once.
const PARTS_AT_ONCE: usize = 64;
/// Work that was taken and is not acknowledged this long is given to another.
const LEASE: Duration = Duration::from_secs(5);
/// Readers that are tried.
const READERS: usize = 3;
/// A reader of changes that asks for nothing this long is forgotten.
const READER_IDLE: Duration = Duration::from_secs(120);

/// The server did not do what it was asked for; it may do so later.
#[derive(Debug)]
pub struct NotReached {
    text: String,
    /// It may only be late: it said nothing of why.
    is_late: bool,
}

impl Display for NotReached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for NotReached {}

/// A connection to a server.
pub struct Nats {
    runtime: Arc<Runtime>,
    context: Context,
    addresses: String,
    /// What the server said last that is wrong.
    said: Arc<Mutex<Option<String>>>,
    budget: Budget,
    /// It did not answer last.
    is_away: AtomicBool,
    /// When the budget was seen to be over.
    over: Mutex<Option<Instant>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Nats {
    /// Connects to a server. The budget ends whatever waits for it.
    ///
    /// # Errors
    /// It cannot be reached, or lets nobody in with what was given.
    pub fn connect(server: &Server, budget: &Budget) -> Result<Arc<Nats>> {
        let Access { addresses, options, domain, prefix } = server.access()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("nats")
            .enable_all()
            .build()
            .context("this machine has no thread for a connection")?;
        let said = Arc::new(Mutex::new(None));
        let hears = said.clone();
        let options = options.connection_timeout(Duration::from_secs(5)).event_callback(move |event| {
            match event {
                Event::ServerError(error) => *lock(&hears) = Some(error.to_string()),
                Event::Connected => *lock(&hears) = None,
                _ => {}
            }
            std::future::ready(())
        });
        let servers: Vec<String> = addresses.split(',').map(str::to_string).collect();
        let connected = waited(&runtime, budget, (PATIENCE, &|| false), options.connect(servers));
        let client = match connected {
            Some(Ok(client)) => client,
            Some(Err(error)) => bail!("{}", refused(&addresses, error.kind(), &error)),
            None => bail!("the server {addresses} does not answer: see whether it runs there"),
        };
        // It starts a task of its own.
        let entered = runtime.enter();
        let mut context = match (domain, prefix) {
            (Some(domain), _) => jetstream::with_domain(client, domain),
            (None, Some(prefix)) => jetstream::with_prefix(client, &prefix),
            (None, None) => jetstream::new(client),
        };
        drop(entered);
        context.set_timeout(PATIENCE);
        Ok(Arc::new(Nats {
            runtime: Arc::new(runtime),
            context,
            addresses,
            said,
            budget: budget.clone(),
            is_away: AtomicBool::new(false),
            over: Mutex::default(),
        }))
    }

    /// The addresses of the server.
    pub fn addresses(&self) -> &str {
        &self.addresses
    }

    /// The names of the campaigns on the server, in their order.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub fn campaigns(&self) -> Result<Vec<String>> {
        let names =
            self.wait("list the campaigns", self.context.stream_names().try_collect::<Vec<String>>())?;
        let start = format!("KV_{PREFIX}_");
        let mut names: Vec<String> =
            names.iter().filter_map(|name| Some(name.strip_prefix(&start)?.to_string())).collect();
        names.sort();
        Ok(names)
    }

    /// The campaign with this name; `None` where there is none.
    ///
    /// # Errors
    /// As above.
    pub fn open(self: &Arc<Nats>, name: &str) -> Result<Option<Campaign>> {
        let found = self.wait("open the campaign", async {
            match self.context.get_stream(values_of(name)).await {
                Ok(values) => Ok(Some(values)),
                Err(error) if is_missing(&error) => Ok(None),
                Err(error) => Err(error),
            }
        })?;
        let Some(values) = found else { return Ok(None) };
        let parts = self.wait("open the campaign", self.context.get_stream(parts_of(name)))?;
        let objects = self.wait("open the campaign", self.context.get_object_store(bucket_of(name)))?;
        Ok(Some(self.campaign(name, values, parts, objects)))
    }

    /// The campaign with this name, which is made where there is none.
    ///
    /// # Errors
    /// As those of [`Nats::open`]; or there is no room.
    pub fn open_or_make(self: &Arc<Nats>, name: &str, server: &Server) -> Result<Campaign> {
        let since = Instant::now();
        loop {
            let made = match self.open(name) {
                Ok(None) => self.make(name, server),
                Ok(Some(campaign)) => Ok(campaign),
                Err(error) => Err(error),
            };
            // Servers of a cluster agree first on who keeps it.
            let is_over = since.elapsed() >= MAKING || self.budget.is_over();
            let is_late =
                |error: &anyhow::Error| error.downcast_ref().is_some_and(|error: &NotReached| error.is_late);
            if is_over || !made.as_ref().is_err_and(is_late) {
                return made;
            }
            self.is_away.store(false, Ordering::Relaxed);
        }
    }

    /// Makes the campaign with this name.
    ///
    /// # Errors
    /// As above; or there is no room.
    fn make(self: &Arc<Nats>, name: &str, server: &Server) -> Result<Campaign> {
        let what = "make the campaign";
        let num_replicas = server.replicas.max(1);
        let values = kv::Config {
            bucket: bucket_of(name),
            history: 1,
            num_replicas,
            description: "A campaign of Spelunk".to_string(),
            ..kv::Config::default()
        };
        let objects = object_store::Config { bucket: bucket_of(name), num_replicas, ..Default::default() };
        let parts = stream::Config {
            name: parts_of(name),
            subjects: vec![format!("{PREFIX}.{name}.parts.*")],
            max_messages_per_subject: 1,
            max_bytes: server.parts_max.map_or(-1, |max| i64::try_from(max).unwrap_or(i64::MAX)),
            discard: DiscardPolicy::Old,
            allow_direct: true,
            num_replicas,
            ..stream::Config::default()
        };
        // The values are last: where they are, all is.
        let objects = self.wait(what, self.context.create_object_store(objects))?;
        let parts = self.wait(what, self.context.get_or_create_stream(parts))?;
        self.wait(what, self.context.create_or_update_key_value(values))?;
        let values = self.wait(what, self.context.get_stream(values_of(name)))?;
        Ok(self.campaign(name, values, parts, objects))
    }

    /// Removes all that belongs to a campaign, or what is left of one; whether there was anything.
    ///
    /// # Errors
    /// As above.
    pub fn remove(&self, name: &str) -> Result<bool> {
        let what = "remove the campaign";
        let there = self.wait(what, self.context.stream_names().try_collect::<Vec<String>>())?;
        // The values first: without them there is no campaign for others.
        let streams = [values_of(name), parts_of(name), work_of(name), objects_of(name)];
        let mut is_any = false;
        for stream in streams.into_iter().filter(|stream| there.contains(stream)) {
            self.wait(what, self.context.delete_stream(stream))?;
            is_any = true;
        }
        Ok(is_any)
    }

    fn campaign(
        self: &Arc<Nats>,
        name: &str,
        values: Stream,
        parts: Stream,
        objects: ObjectStore,
    ) -> Campaign {
        Campaign {
            nats: self.clone(),
            name: name.to_string(),
            values,
            parts,
            objects,
            traffic: Mutex::default(),
            reader: Mutex::default(),
            written: Arc::default(),
            clock: Mutex::default(),
            is_left: AtomicBool::new(false),
        }
    }

    /// Waits for the server, which is to do this.
    fn wait<T, E: Display>(&self, what: &str, future: impl Future<Output = Result<T, E>>) -> Result<T> {
        let client = self.context.client();
        let is_down = || client.connection_state() != State::Connected;
        let patience = match self.is_away.load(Ordering::Relaxed) {
            true => SHORT_PATIENCE,
            false => PATIENCE,
        };
        // What is left of it counts from when the budget ended, for all that is asked after that.
        let patience = match self.budget.is_over() {
            true => {
                let over = *lock(&self.over).get_or_insert_with(Instant::now);
                patience.min(LAST_PATIENCE.saturating_sub(over.elapsed()))
            }
            false => patience,
        };
        let waited = waited(&self.runtime, &self.budget, (patience, &is_down), future);
        self.is_away.store(waited.is_none(), Ordering::Relaxed);
        match waited {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(self.failed(what, &error.to_string())),
            None => Err(self.failed(what, "it does not answer")),
        }
    }

    /// What went wrong as the server was to do this, and what to do about it.
    fn failed(&self, what: &str, why: &str) -> anyhow::Error {
        let said = lock(&self.said).clone().unwrap_or_default();
        let all = format!("{why} {said}").to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| all.contains(word));
        let hint = if says(&["permission", "authorization"]) {
            "the user needs leave to publish to $JS.API.>, $JS.ACK.>, $JS.FC.>, $KV.>, $O.> and spelunk.>, and to subscribe to _INBOX.> and spelunk.>"
        } else if says(&["insufficient", "maximum bytes", "no space"]) {
            "it has no room left: give it more, or use `spelunk gc --nats`"
        } else if says(&["no responders", "not enabled", "503", "resource does not exist"]) {
            "start it with JetStream (`nats-server -js`), or enable that for the account"
        } else if all.contains("replicas") {
            "a campaign cannot have more --nats-replicas than the cluster has servers"
        } else {
            "see whether it runs, and can be reached"
        };
        let is_late = said.is_empty() && says(&["does not answer", "timed out", "unavailable"]);
        let said = if said.is_empty() { said } else { format!("; it said: {said}") };
        let text = format!("the server {} did not {what} ({why}{said}): {hint}", self.addresses);
        NotReached { text, is_late }.into()
    }
}

/// What the future comes to; nothing where it takes longer than patience lasts, which is shorter where the connection is down, and
/// once the budget is over.
fn waited<F: Future>(
    runtime: &Runtime,
    budget: &Budget,
    (patience, is_down): (Duration, &dyn Fn() -> bool),
    future: F,
) -> Option<F::Output> {
    runtime.block_on(async {
        let mut future = std::pin::pin!(future);
        let started = Instant::now();
        let mut over = None;
        loop {
            if let Ok(done) = tokio::time::timeout(POLL, &mut future).await {
                return Some(done);
            }
            if budget.is_over() {
                over.get_or_insert_with(Instant::now);
            }
            let is_late = over.is_some_and(|over: Instant| over.elapsed() >= LAST_PATIENCE);
            let is_gone = started.elapsed() >= SHORT_PATIENCE && is_down();
            if started.elapsed() >= patience || is_late || is_gone {
                return None;
            }
        }
    })
}

/// Why there is no connection.
fn refused(addresses: &str, kind: ConnectErrorKind, error: &impl Display) -> String {
    let (why, hint) = match kind {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => (
            "does not let you in",
            "see the user and the password before the `@` of --nats, --nats-creds, or --nats-context"
                .to_string(),
        ),
        _ if error.to_string().contains("certificate") || kind == ConnectErrorKind::Tls => {
            ("cannot be spoken to in private", format!("{error}; --nats-ca names who signed its certificate"))
        }
        ConnectErrorKind::ServerParse => ("has no address", "it is written as nats://host:4222".to_string()),
        ConnectErrorKind::Dns => ("is not known by that name", error.to_string()),
        _ => ("cannot be reached", format!("{error}; see whether it runs there")),
    };
    format!("the server {addresses} {why}: {hint}")
}

fn is_missing(error: &stream_error::Of) -> bool {
    stream_error::is_missing(error)
}

/// What says that there is no such stream.
mod stream_error {
    use async_nats::jetstream::ErrorCode;
    use async_nats::jetstream::context::{GetStreamError, GetStreamErrorKind};

    pub(super) type Of = GetStreamError;

    pub(super) fn is_missing(error: &Of) -> bool {
        matches!(error.kind(), GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
    }
}

fn bucket_of(name: &str) -> String {
    format!("{PREFIX}_{name}")
}

fn values_of(name: &str) -> String {
    format!("KV_{PREFIX}_{name}")
}

fn parts_of(name: &str) -> String {
    format!("{PREFIX}_{name}_parts")
}

/// There is one where it is a check.
fn work_of(name: &str) -> String {
    format!("{PREFIX}_{name}_work")
}

fn objects_of(name: &str) -> String {
    format!("OBJ_{PREFIX}_{name}")
}
