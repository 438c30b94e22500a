//! A hub on a NATS server, with JetStream: values are a key-value bucket, parts of states a stream, the module is in an object store.
//! This is the only room that names the client and its runtime.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use async_nats::connection::State;
use async_nats::jetstream::consumer::{self, AckPolicy, DeliverPolicy};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::kv;
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{self, DirectGetErrorKind, DiscardPolicy, Stream};
use async_nats::jetstream::{self, AckKind, Context};
use async_nats::{ConnectErrorKind, Event, HeaderMap};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::runtime::Runtime;

use super::hub::{Changes, Held, Hub, Traffic, Value, part_key};
use super::queue::{Inbox, Queue, Taken};
use super::server::{Access, Server};
use crate::budget::Budget;

/// What every name on the server begins with.
const PREFIX: &str = "spelunk";
/// A server that says nothing for so long is not there.
const PATIENCE: Duration = Duration::from_secs(10);
/// While it is not there, it is given so long to say that it is there again.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);
/// Once the user asked to stop, or the time is up, it may take so long to hand over what is known.
const LAST_PATIENCE: Duration = Duration::from_secs(3);
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
pub struct NotReached(String);

impl Display for NotReached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
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

/// A campaign on a server.
pub struct Campaign {
    nats: Arc<Nats>,
    name: String,
    values: Stream,
    parts: Stream,
    objects: ObjectStore,
    traffic: Mutex<Traffic>,
    reader: Mutex<Option<Reader>>,
    /// What is written again and again, by key.
    written: Arc<Mutex<BTreeMap<String, Bytes>>>,
    /// When a message was seen whose time, by the clock of the server, is the latest, and that time.
    clock: Mutex<Option<(Instant, i64)>>,
}

/// What reads changes in order.
struct Reader {
    consumer: consumer::PullConsumer,
    filters: Vec<String>,
    /// The revision of the last value that was read, and how many were.
    last: u64,
    count: u64,
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
    /// As above; or there is no room.
    pub fn make(self: &Arc<Nats>, name: &str, server: &Server) -> Result<Campaign> {
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

    /// Removes a campaign with all that belongs to it.
    ///
    /// # Errors
    /// As above.
    pub fn remove(&self, name: &str) -> Result<()> {
        let what = "remove the campaign";
        self.wait(what, self.context.delete_stream(values_of(name)))?;
        self.wait(what, self.context.delete_stream(parts_of(name)))?;
        // There is one where it was a check.
        drop(self.wait(what, self.context.delete_stream(format!("{PREFIX}_{name}_work"))));
        self.wait(what, self.context.delete_object_store(bucket_of(name)))
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
        let said = if said.is_empty() { said } else { format!("; it said: {said}") };
        NotReached(format!("the server {} did not {what} ({why}{said}): {hint}", self.addresses)).into()
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

impl Campaign {
    fn subject(&self, key: &str) -> String {
        format!("$KV.{PREFIX}_{}.{key}", self.name)
    }

    fn part_subject(&self, hash: u128) -> String {
        format!("{PREFIX}.{}.parts.{}", self.name, part_key(hash))
    }

    fn sent(&self, key: &str, bytes: &[u8]) {
        lock(&self.traffic).sent(key, bytes);
    }

    fn received(&self, key: &str, bytes: &[u8]) {
        lock(&self.traffic).received(key, bytes);
    }

    /// Writes a value, in place of the one with this revision where that is given; `None` where another stands there.
    fn write(&self, key: &str, bytes: &[u8], revision: Option<u64>) -> Result<Option<u64>> {
        self.sent(key, bytes);
        let mut headers = HeaderMap::new();
        if let Some(revision) = revision {
            headers.insert("Nats-Expected-Last-Subject-Sequence", revision.to_string());
        }
        let (subject, payload) = (self.subject(key), Bytes::copy_from_slice(bytes));
        self.nats.wait("keep what was found", async {
            let sent = self.nats.context.publish_with_headers(subject, headers, payload).await;
            let acknowledged = match sent {
                Ok(acknowledged) => acknowledged.await,
                Err(error) => Err(error),
            };
            match acknowledged {
                Ok(acknowledged) => Ok(Some(acknowledged.sequence)),
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
                Err(error) => Err(full(&error)),
            }
        })
    }

    fn filters(&self, prefixes: &[&str]) -> Vec<String> {
        prefixes.iter().map(|prefix| self.subject(&format!("{prefix}.*"))).collect()
    }

    /// A reader of the changes after a revision.
    fn reader(&self, prefixes: &[&str], after: u64) -> Result<Reader> {
        let filters = self.filters(prefixes);
        let config = consumer::pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: after + 1 },
            ack_policy: AckPolicy::None,
            filter_subjects: filters.clone(),
            inactive_threshold: READER_IDLE,
            memory_storage: true,
            ..Default::default()
        };
        let consumer = self.nats.wait("say what is new", self.values.create_consumer(config))?;
        Ok(Reader { consumer, filters, last: after, count: 0 })
    }

    /// How many seconds ago that was by the clock of the server, as far as that is known: the clocks of machines differ.
    fn age(&self, unix_seconds: i64) -> u64 {
        let mut clock = lock(&self.clock);
        let now =
            clock.map(|(seen, time)| time + i64::try_from(seen.elapsed().as_secs()).unwrap_or(i64::MAX));
        match now {
            Some(now) if now >= unix_seconds => u64::try_from(now - unix_seconds).unwrap_or(0),
            _ => {
                *clock = Some((Instant::now(), unix_seconds));
                if now.is_some() { 0 } else { age(unix_seconds) }
            }
        }
    }

    /// What a message holds, but for one that says that a value was removed.
    fn value(&self, message: &jetstream::Message, revision: u64, published: i64) -> Option<Value> {
        let is_removed =
            message.headers.as_ref().is_some_and(|headers| headers.get("KV-Operation").is_some());
        let age = self.age(published);
        (!is_removed).then(|| Value { bytes: message.payload.to_vec(), revision, age })
    }

    /// Reads the next values in order.
    async fn read(&self, reader: &mut Reader, bytes_max: u64) -> Result<Changes, String> {
        let (mut changes, mut bytes) = (Changes::default(), 0);
        let start = self.subject("").len();
        while bytes < bytes_max {
            let asked = reader.consumer.fetch().max_messages(BATCH).messages().await;
            let mut batch = asked.map_err(|error| error.to_string())?;
            let mut count = 0;
            while let Some(message) = batch.next().await {
                let message = message.map_err(|error| error.to_string())?;
                let info = message.info().map_err(|error| error.to_string())?;
                reader.count += 1;
                if info.consumer_sequence != reader.count {
                    return Err("some of what is new was lost".to_string());
                }
                (reader.last, changes.left) = (info.stream_sequence, info.pending);
                let key = message.subject.get(start..).unwrap_or_default().to_string();
                self.received(&key, &message.payload);
                bytes += message.payload.len() as u64;
                count += 1;
                let value = self.value(&message, info.stream_sequence, info.published.unix_timestamp());
                changes.values.extend(value.map(|value| (key, value)));
            }
            if count < BATCH {
                break;
            }
        }
        Ok(changes)
    }
}

/// How many seconds ago that was.
fn age(unix_seconds: i64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    now.saturating_sub(u64::try_from(unix_seconds).unwrap_or(0))
}

/// An error with what lies below it, which says whether there is room.
fn full(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| match cause.to_string() {
        more if text.contains(&more) => text,
        more => format!("{text}: {more}"),
    })
}

impl Hub for Campaign {
    fn name(&self) -> String {
        format!("{}/{}", self.nats.addresses, self.name)
    }

    fn get(&self, key: &str) -> Result<Option<Value>> {
        self.sent(key, &[]);
        let found = self.nats.wait("say what is known", async {
            match self.values.direct_get_last_for_subject(self.subject(key)).await {
                Ok(message) => Ok(Some(message)),
                Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        })?;
        let Some(message) = found else { return Ok(None) };
        self.received(key, &message.payload);
        let is_removed = message.headers.get("KV-Operation").is_some();
        Ok((!is_removed).then(|| Value {
            bytes: message.payload.to_vec(),
            revision: message.sequence,
            age: self.age(message.time.unix_timestamp()),
        }))
    }

    fn replace(&self, key: &str, bytes: &[u8], revision: u64) -> Result<Option<u64>> {
        self.write(key, bytes, Some(revision))
    }

    fn put(&self, key: &str, bytes: &[u8]) -> Result<u64> {
        self.write(key, bytes, None)?.context("a value that takes the place of any is written")
    }

    fn remove(&self, key: &str) -> Result<()> {
        self.sent(key, &[]);
        // It is not written again.
        lock(&self.written).remove(&self.subject(key));
        let purge = self.values.purge().filter(self.subject(key));
        self.nats.wait("remove what is over", async { purge.await.map(drop) })
    }

    fn changes(&self, prefixes: &[&str], after: u64, bytes_max: u64) -> Result<Changes> {
        // A reader that there is may be lost, and then another reads the same.
        let known = lock(&self.reader).take();
        let is_of = |reader: &Reader| reader.last == after && reader.filters == self.filters(prefixes);
        if let Some(mut reader) = known.filter(is_of)
            && let Ok(changes) = self.nats.wait("say what is new", self.read(&mut reader, bytes_max))
        {
            *lock(&self.reader) = Some(reader);
            return Ok(changes);
        }
        // In a cluster one may lie on a server that is gone.
        let mut tries = 0;
        loop {
            let read = self.reader(prefixes, after).and_then(|mut reader| {
                let changes = self.nats.wait("say what is new", self.read(&mut reader, bytes_max))?;
                *lock(&self.reader) = Some(reader);
                Ok(changes)
            });
            tries += 1;
            if read.is_ok() || tries == READERS || self.nats.budget.is_over() {
                return read;
            }
        }
    }

    fn count(&self, prefix: &str) -> Result<u64> {
        let all = self.subject(&format!("{prefix}.*"));
        self.nats.wait("say what it holds", async {
            let listed = self.values.info_with_subjects(all).await.map_err(|error| error.to_string())?;
            let listed = listed.try_collect::<Vec<(String, usize)>>().await;
            listed.map(|listed| listed.len() as u64).map_err(|error| error.to_string())
        })
    }

    fn put_parts(&self, parts: &[(u128, Vec<u8>)]) -> Result<()> {
        for (hash, bytes) in parts {
            self.sent(&part_key(*hash), bytes);
        }
        let put = futures_util::stream::iter(parts).map(Ok::<_, String>).try_for_each_concurrent(
            PARTS_AT_ONCE,
            |(hash, bytes)| async {
                let payload = Bytes::copy_from_slice(bytes);
                let sent = self.nats.context.publish(self.part_subject(*hash), payload).await;
                let acknowledged = sent.map_err(|error| full(&error))?;
                acknowledged.await.map(drop).map_err(|error| full(&error))
            },
        );
        self.nats.wait("keep a state", put)
    }

    fn parts(&self, hashes: &[u128]) -> Result<Vec<Option<Vec<u8>>>> {
        let got = futures_util::stream::iter(hashes).map(|hash| async {
            match self.parts.direct_get_last_for_subject(self.part_subject(*hash)).await {
                Ok(message) => Ok(Some(message.payload.to_vec())),
                Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        });
        let got = got.buffered(PARTS_AT_ONCE).try_collect::<Vec<_>>();
        let parts = self.nats.wait("hand over a state", got)?;
        for (hash, part) in hashes.iter().zip(&parts) {
            self.sent(&part_key(*hash), &[]);
            self.received(&part_key(*hash), part.as_deref().unwrap_or_default());
        }
        Ok(parts)
    }

    fn retain_parts(&self, is_kept: &dyn Fn(u128) -> bool) -> Result<u64> {
        let start = self.part_subject(0).len() - 32;
        let all = format!("{PREFIX}.{}.parts.*", self.name);
        let subjects = self.nats.wait("list the states", async {
            let listed = self.parts.info_with_subjects(all).await.map_err(|error| error.to_string())?;
            listed.try_collect::<Vec<(String, usize)>>().await.map_err(|error| error.to_string())
        })?;
        let hash = |subject: &String| u128::from_str_radix(subject.get(start..)?, 16).ok();
        let gone = subjects.iter().filter(|(subject, _)| hash(subject).is_some_and(|hash| !is_kept(hash)));
        let gone: Vec<&String> = gone.map(|(subject, _)| subject).collect();
        for some in gone.chunks(PARTS_AT_ONCE) {
            let purged = futures_util::stream::iter(some).map(Ok::<_, String>).try_for_each_concurrent(
                PARTS_AT_ONCE,
                |subject| async move {
                    let purged = self.parts.purge().filter(subject.as_str()).await;
                    purged.map(drop).map_err(|error| error.to_string())
                },
            );
            self.nats.wait("drop states", purged)?;
        }
        Ok(gone.len() as u64)
    }

    fn put_object(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.sent(name, bytes);
        let mut bytes = bytes;
        self.nats.wait("keep the module", async { self.objects.put(name, &mut bytes).await.map(drop) })
    }

    fn object(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let got = self.nats.wait("hand over the module", async {
            let mut object = match self.objects.get(name).await {
                Ok(object) => object,
                Err(error) if error.kind() == object_store::GetErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.to_string()),
            };
            let mut bytes = Vec::new();
            let read = tokio::io::AsyncReadExt::read_to_end(&mut object, &mut bytes).await;
            read.map(|_| Some(bytes)).map_err(|error| error.to_string())
        })?;
        self.received(name, got.as_deref().unwrap_or_default());
        Ok(got)
    }

    fn held(&self) -> Result<Held> {
        let what = "say what it holds";
        let values = self.nats.wait(what, self.values.get_info())?;
        let parts = self.nats.wait(what, self.parts.get_info())?;
        let objects = self.nats.wait(what, async {
            let stream = self.nats.context.get_stream(format!("OBJ_{}", bucket_of(&self.name))).await;
            stream.map(|stream| stream.cached_info().state.bytes)
        })?;
        Ok(Held {
            values: values.state.bytes,
            parts: parts.state.bytes,
            parts_max: u64::try_from(parts.config.max_bytes).ok(),
            oldest_part: (parts.state.messages > 0)
                .then(|| age(parts.state.first_timestamp.unix_timestamp())),
            objects,
        })
    }

    fn traffic(&self) -> Traffic {
        *lock(&self.traffic)
    }

    fn keep_writing(&self, key: &str, bytes: Vec<u8>) {
        let subject = self.subject(key);
        let bytes = Bytes::from(bytes);
        self.sent(key, &bytes);
        let is_first = lock(&self.written).insert(subject.clone(), bytes).is_none();
        if !is_first {
            return;
        }
        let (written, context) = (Arc::downgrade(&self.written), self.nats.context.clone());
        self.nats.runtime.spawn(async move {
            while let Some(written) = written.upgrade() {
                let bytes = lock(&written).get(&subject).cloned();
                drop(written);
                let Some(bytes) = bytes else { break };
                // It says that this lives: where it is lost, the next one says so.
                if let Ok(acknowledged) = context.publish(subject.clone(), bytes).await {
                    drop(acknowledged.await);
                }
                tokio::time::sleep(AGAIN).await;
            }
        });
    }
}

/// The work of a campaign on a server.
pub struct WorkQueue {
    campaign: Arc<Campaign>,
    stream: Stream,
    consumer: consumer::PullConsumer,
    inbox: Inbox,
}

impl Campaign {
    /// The queue of its work, which is made where there is none.
    ///
    /// # Errors
    /// As those of [`Hub`].
    pub fn queue(self: &Arc<Campaign>) -> Result<WorkQueue> {
        let (what, nats) = ("make a queue", &self.nats);
        let config = stream::Config {
            name: format!("{PREFIX}_{}_work", self.name),
            subjects: vec![self.work_subject()],
            retention: stream::RetentionPolicy::WorkQueue,
            num_replicas: self.values.cached_info().config.num_replicas,
            ..stream::Config::default()
        };
        let stream = nats.wait(what, nats.context.get_or_create_stream(config))?;
        let config = consumer::pull::Config {
            durable_name: Some("workers".to_string()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: LEASE,
            ..Default::default()
        };
        let consumer = nats.wait(what, stream.get_or_create_consumer("workers", config))?;
        let inbox = Inbox::default();
        let hears = inbox.clone();
        let client = nats.context.client();
        let mut subscriber = nats.wait(what, client.subscribe(self.done_subject()))?;
        let campaign = Arc::downgrade(self);
        nats.runtime.spawn(async move {
            while let Some(message) = subscriber.next().await {
                let Some(campaign) = campaign.upgrade() else { break };
                campaign.received("", &message.payload);
                hears.put(message.payload.to_vec());
            }
        });
        Ok(WorkQueue { campaign: self.clone(), stream, consumer, inbox })
    }

    fn work_subject(&self) -> String {
        format!("{PREFIX}.{}.work", self.name)
    }

    fn done_subject(&self) -> String {
        format!("{PREFIX}.{}.done", self.name)
    }
}

impl Queue for WorkQueue {
    fn post(&self, work: &[Vec<u8>]) -> Result<()> {
        let Campaign { nats, .. } = &*self.campaign;
        nats.wait("hand out work", async {
            let purged = self.stream.purge().await;
            purged.map_err(|error| error.to_string())?;
            let mut sent = Vec::new();
            for bytes in work {
                self.campaign.sent("", bytes);
                let payload = Bytes::copy_from_slice(bytes);
                let published = nats.context.publish(self.campaign.work_subject(), payload).await;
                sent.push(published.map_err(|error| full(&error))?);
            }
            for acknowledged in sent {
                acknowledged.await.map_err(|error| full(&error))?;
            }
            Ok::<_, String>(())
        })
    }

    fn take(&self) -> Result<Option<Taken>> {
        let nats = &self.campaign.nats;
        let taken = nats.wait("give work", async {
            let mut batch =
                self.consumer.fetch().max_messages(1).messages().await.map_err(|error| error.to_string())?;
            batch.next().await.transpose().map_err(|error| error.to_string())
        })?;
        let Some(message) = taken else { return Ok(None) };
        self.campaign.received("", &message.payload);
        let bytes = message.payload.to_vec();
        let nats = nats.clone();
        let done = move |is_done| {
            let kind = if is_done { AckKind::Ack } else { AckKind::Nak(None) };
            nats.wait("note that work is done", message.ack_with(kind))
        };
        Ok(Some(Taken { bytes, done: Box::new(done) }))
    }

    fn send(&self, bytes: Vec<u8>) -> Result<()> {
        self.campaign.sent("", &bytes);
        let nats = &self.campaign.nats;
        let client = nats.context.client();
        nats.wait("pass on what came of work", client.publish(self.campaign.done_subject(), bytes.into()))
    }

    fn received(&self) -> Vec<Vec<u8>> {
        self.inbox.take()
    }
}
