//! Work that the processes of a campaign hand to each other.

use super::campaign::full;
use super::*;

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
            name: work_of(&self.name),
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
