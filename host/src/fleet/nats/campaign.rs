//! What a campaign has on a server.

use tokio::io::AsyncReadExt as _;

use super::*;

/// Bytes of an object that are read: somebody else may have written it.
const OBJECT_MAX: u64 = 1 << 30;

/// A campaign on a server.
pub struct Campaign {
    pub(super) nats: Arc<Nats>,
    pub(super) name: String,
    pub(super) values: Stream,
    pub(super) parts: Stream,
    pub(super) objects: ObjectStore,
    pub(super) traffic: Mutex<Traffic>,
    pub(super) reader: Mutex<Option<Reader>>,
    /// What is written again and again, by key.
    pub(super) written: Arc<Mutex<BTreeMap<String, Bytes>>>,
    /// When a message was seen whose time, by the clock of the server, is the latest, and that time.
    pub(super) clock: Mutex<Option<(Instant, i64)>>,
    /// No server had it for as long as they may take to agree on who does.
    pub(super) is_left: AtomicBool,
}

/// What reads changes in order.
pub(super) struct Reader {
    consumer: consumer::PullConsumer,
    filters: Vec<String>,
    /// The revision of the last value that was read, and how many were.
    last: u64,
    count: u64,
}

impl Campaign {
    fn subject(&self, key: &str) -> String {
        format!("$KV.{PREFIX}_{}.{key}", self.name)
    }

    fn part_subject(&self, hash: u128) -> String {
        format!("{PREFIX}.{}.parts.{}", self.name, part_key(hash))
    }

    pub(super) fn sent(&self, key: &str, bytes: &[u8]) {
        lock(&self.traffic).sent(key, bytes);
    }

    pub(super) fn received(&self, key: &str, bytes: &[u8]) {
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
        let write = async || {
            let (subject, headers, payload) = (subject.clone(), headers.clone(), payload.clone());
            self.nats.context.publish_with_headers(subject, headers, payload).await?.await
        };
        let is_nobody = |error: &PublishError| error.kind() == PublishErrorKind::StreamNotFound;
        self.nats.wait("keep what was found", async {
            match self.agreed(write, is_nobody).await {
                Ok(acknowledged) => Ok(Some(acknowledged.sequence)),
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
                Err(error) => Err(full(&error)),
            }
        })
    }

    /// What is answered once the servers of a cluster agree on who has the campaign; until then nobody is there who answers.
    async fn agreed<T, E>(
        &self,
        ask: impl AsyncFn() -> Result<T, E>,
        is_nobody: impl Fn(&E) -> bool,
    ) -> Result<T, E> {
        let since = Instant::now();
        loop {
            let answer = ask().await;
            let is_left = answer.as_ref().is_err_and(&is_nobody);
            if !is_left || self.is_left.load(Ordering::Relaxed) || since.elapsed() >= AGREEMENT {
                self.is_left.store(is_left, Ordering::Relaxed);
                return answer;
            }
            tokio::time::sleep(POLL).await;
        }
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
pub(super) fn full(error: &(dyn std::error::Error + 'static)) -> String {
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
        let ask = async || self.values.direct_get_last_for_subject(self.subject(key)).await;
        let is_nobody = |error: &DirectGetError| {
            matches!(error.kind(), DirectGetErrorKind::ErrorResponse(StatusCode::NO_RESPONDERS, _))
        };
        let found = self.nats.wait("say what is known", async {
            match self.agreed(ask, is_nobody).await {
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
        let got = self.nats.wait("hand over a long value", async {
            let mut object = match self.objects.get(name).await {
                Ok(object) => object,
                Err(error) if error.kind() == object_store::GetErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.to_string()),
            };
            let mut bytes = Vec::new();
            let read = tokio::io::AsyncReadExt::take(&mut object, OBJECT_MAX).read_to_end(&mut bytes).await;
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
