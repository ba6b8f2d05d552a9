//! Produce: appends one batch to each of a request's partitions.
//!
//! Batches take their places while the request is handled, so that those of one connection are
//! stored in the order in which they were sent; the answer waits until they are. `acks=1` and
//! `acks=all` mean the same: a batch is acknowledged when the store has it.
//!
//! Source: KIP-98, KIP-467 (record errors), KIP-516 (topic ids);
//! `KafkaApis.handleProduceRequest` and `ReplicaManager.appendToLocalLog` of Apache Kafka 4.4.

use super::successor::Successor;
use super::topics::is_internal;
use super::{Broker, Context, Reply};
use crate::config::Config;
use crate::log::append::{Appended, Appending, wall_clock_ms};
use crate::log::partition::Partition;
use crate::messages::produce::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceData,
    PartitionProduceResponse, Request, Response, TopicProduceData, TopicProduceResponse,
};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;
use crate::record::batch::Batch;
use crate::record::convert::{is_message_set, to_batch};
use crate::record::validate::{Invalid, Rules, TopicPartition, check, only_batch};
use crate::store::topics::{Topic, Topics};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, timeout_at};

/// The first version that names topics by id.
const FIRST_TOPIC_ID_VERSION: i16 = 13;

/// What decompresses to more takes long.
const LITTLE_BYTES: u64 = 1 << 20;

/// A hundred compressed bytes can have a thousand bad records, so an answer that names all of these
/// may be a thousand times as long as its request. What is beyond this is left out.
const MAX_SAID_BYTES: usize = 1 << 20;

/// Kafka's timeout is for its followers and leaves out its own disk, so clients may send zero and
/// still be answered. Here it is for the store, which gets at least this long.
const MIN_TIMEOUT: Duration = Duration::from_secs(1);

pub async fn handle(cx: &Context, request: Request) -> Reply<Response> {
    let timeout = Duration::from_millis(request.timeout_ms.max(0) as u64).max(MIN_TIMEOUT);
    let produce = Produce {
        cx,
        topics: cx.broker.storage.topics(),
        config: cx.broker.settings.now(),
        deadline: Instant::now() + timeout,
        acks: request.acks,
        is_transactional: request.transactional_id.is_some(),
    };
    let mut answer = Answer::default();
    for topic in request.topic_data {
        produce.append_to_topic(topic, &mut answer).await;
    }
    if request.acks == 0 {
        return Reply::Unanswered(Box::pin(answer.unanswered()));
    }
    let Produce { deadline, topics, .. } = produce;
    if answer.waiting.is_empty() {
        return Reply::Ready(answer.finish(&cx.broker, &topics));
    }
    let broker = cx.broker.clone();
    Reply::Deferred(Box::pin(async move {
        answer.wait(deadline).await;
        answer.finish(&broker, &topics)
    }))
}

/// A request while its batches are given their places.
struct Produce<'a> {
    cx: &'a Context,
    topics: Arc<Topics>,
    config: Arc<Config>,
    deadline: Instant,
    acks: i16,
    is_transactional: bool,
}

impl Produce<'_> {
    async fn append_to_topic(&self, data: TopicProduceData, answer: &mut Answer) {
        let topic = self.find(&data);
        let mut response = TopicProduceResponse {
            name: data.name,
            topic_id: data.topic_id,
            partition_responses: Vec::with_capacity(data.partition_data.len()),
        };
        for data in data.partition_data {
            // A request may have very many partitions, and none has to wait for anything.
            consume_budget().await;
            let index = data.index;
            let partition = match self.append(topic, data).await {
                Ok(Placed::Before(appended)) => answered(index, Ok(appended)),
                Ok(Placed::Now(appending)) => {
                    let place = response.partition_responses.len();
                    answer.waiting.push((answer.response.responses.len(), place, appending));
                    answered(index, Err(ErrorCode::RequestTimedOut))
                }
                Err(refused) => {
                    answer.error.get_or_insert(refused.invalid.code);
                    refused.response(index, &mut answer.said_bytes)
                }
            };
            response.partition_responses.push(partition);
        }
        answer.response.responses.push(response);
    }

    fn find(&self, data: &TopicProduceData) -> Result<&Arc<Topic>, ErrorCode> {
        if self.cx.api_version >= FIRST_TOPIC_ID_VERSION {
            self.topics.by_id(data.topic_id).ok_or(ErrorCode::UnknownTopicId)
        } else {
            self.topics.by_name(&data.name).ok_or(ErrorCode::UnknownTopicOrPartition)
        }
    }

    /// Checks the batch for one partition and gives it its place.
    async fn append(
        &self,
        topic: Result<&Arc<Topic>, ErrorCode>,
        data: PartitionProduceData,
    ) -> Result<Placed, Refused> {
        let topic = topic?;
        let id = topic.partition(data.index).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let broker = &self.cx.broker;
        let rules = broker.rules.of(topic, &self.config);
        let records = data.records.unwrap_or_default();
        let batch = match is_message_set(&records, self.cx.api_version) {
            true => self.decompress(false, rules, move |rules| to_batch(&records, rules)).await?,
            false => only_batch(records, self.cx.api_version)?,
        };
        if !matches!(self.acks, -1..=1) {
            return Err(ErrorCode::InvalidRequiredAcks.into());
        }
        if is_internal(&topic.name) {
            return Err(ErrorCode::InvalidTopicException.into());
        }
        if batch.header.is_transactional() {
            // Nobody has a transaction open: InitProducerId gives no transactional ids yet.
            return Err(match self.is_transactional {
                true => ErrorCode::InvalidTxnState.into(),
                false => ErrorCode::TransactionalIdAuthorizationFailed.into(),
            });
        }
        let partition = timeout_at(self.deadline, broker.log.partition(id)).await;
        let partition = partition.map_err(|_| ErrorCode::RequestTimedOut)?;
        let partition = partition.map_err(ErrorCode::from)?;
        let checked = self.checked(batch, rules, topic, data.index).await;
        let mut batch = checked.map_err(|invalid| Refused::by(&partition, invalid))?;
        let room = timeout_at(self.deadline, broker.log.room_for(batch.len())).await;
        let room = room.map_err(|_| ErrorCode::RequestTimedOut)?;
        // The store may keep it in memory long after the rest of the buffer is of use.
        batch.detach(self.cx.buffer_bytes);
        let mut appending = partition.append(batch, room);
        match appending.now() {
            None => Ok(Placed::Now(appending)),
            Some(Ok(appended)) => Ok(Placed::Before(appended)),
            Some(Err(code)) => Err(Refused::by(&partition, code.into())),
        }
    }

    /// Checks a batch, and makes it what is stored.
    async fn checked(
        &self,
        batch: Batch,
        rules: Rules,
        topic: &Arc<Topic>,
        partition: i32,
    ) -> Result<Batch, Invalid> {
        let changes_codec = rules.changes_codec_of(&batch);
        let topic = topic.clone();
        let work = move |rules: &Rules| {
            let partition = TopicPartition { topic: &topic.name, partition };
            let mut batch = batch.clone();
            check(&mut batch, rules, partition, wall_clock_ms()).map(|()| batch)
        };
        self.decompress(changes_codec, rules, work).await
    }

    /// Does work that decompresses something: at once, unless it takes so long that this thread's
    /// other connections must not wait for it.
    async fn decompress(
        &self,
        takes_long: bool,
        rules: Rules,
        work: impl Fn(&Rules) -> Result<Batch, Invalid> + Send + 'static,
    ) -> Result<Batch, Invalid> {
        if !takes_long {
            match work(&Rules { max_decompressed_bytes: LITTLE_BYTES, ..rules }) {
                // It may be only too large to be done here.
                Err(invalid) if invalid.code == ErrorCode::MessageTooLarge => {}
                done => return done,
            }
        }
        let turn = timeout_at(self.deadline, self.cx.broker.turns.next()).await;
        let turn = turn.map_err(|_| ErrorCode::RequestTimedOut)?;
        turn.take(move || work(&rules)).await?
    }
}

/// Where a batch is that was not refused.
enum Placed {
    /// It was appended just now, and is not yet stored.
    Now(Appending),
    /// It is stored: the store had it at once, or it is a retry.
    Before(Appended),
}

/// The answer to a request, with holes for what is not yet stored: these have an error until then.
#[derive(Default)]
struct Answer {
    response: Response,
    /// The first error that was there at once.
    error: Option<ErrorCode>,
    /// Bytes of all that is said of refused batches besides their codes.
    said_bytes: usize,
    /// Batches that are not yet stored, by their topic's and partition's place in the response.
    waiting: Vec<(usize, usize, Appending)>,
}

impl Answer {
    /// With acks=0 a client learns of an error only by the end of its connection.
    async fn unanswered(self) -> Result<(), ErrorCode> {
        self.error.map_or(Ok(()), Err)?;
        for (.., appending) in self.waiting {
            appending.await?;
        }
        Ok(())
    }

    /// Fills the holes. What is not stored in time keeps REQUEST_TIMED_OUT: it may be stored
    /// later, but once.
    async fn wait(&mut self, deadline: Instant) {
        for (topic, partition, appending) in self.waiting.drain(..) {
            // Those behind one that is late may be stored: they are asked all the same.
            let Ok(done) = timeout_at(deadline, appending).await else { continue };
            let hole = &mut self.response.responses[topic].partition_responses[partition];
            *hole = answered(hole.index, done);
        }
    }

    fn finish(mut self, broker: &Broker, topics: &Topics) -> Response {
        let lost = |p: &PartitionProduceResponse| p.error_code == ErrorCode::NotLeaderOrFollower;
        let mut partitions = self.response.responses.iter().flat_map(|t| &t.partition_responses);
        if partitions.any(lost)
            && let Some(successor) = Successor::of(broker)
        {
            self.name_leader(&successor, topics);
        }
        self.response
    }

    #[cold]
    fn name_leader(&mut self, successor: &Successor, topics: &Topics) {
        for topic in &mut self.response.responses {
            let known = topics.by_id(topic.topic_id).or_else(|| topics.by_name(&topic.name));
            for partition in &mut topic.partition_responses {
                let id = known.and_then(|topic| topic.partition(partition.index));
                let leader_epoch = id.and_then(|id| successor.leader_epoch(id));
                if let (ErrorCode::NotLeaderOrFollower, Some(leader_epoch)) =
                    (partition.error_code, leader_epoch)
                {
                    let leader_id = successor.node_id;
                    partition.current_leader = LeaderIdAndEpoch { leader_id, leader_epoch };
                }
            }
        }
        self.response.node_endpoints.push(NodeEndpoint {
            node_id: successor.node_id,
            host: successor.address.host.as_str().into(),
            port: successor.address.port.into(),
            rack: None,
        });
    }
}

fn answered(index: i32, done: Result<Appended, ErrorCode>) -> PartitionProduceResponse {
    match done {
        Ok(appended) => PartitionProduceResponse {
            index,
            base_offset: appended.base_offset,
            log_append_time_ms: appended.log_append_time_ms,
            log_start_offset: appended.log_start_offset,
            ..Default::default()
        },
        Err(error_code) => {
            PartitionProduceResponse { index, error_code, base_offset: -1, ..Default::default() }
        }
    }
}

/// Why a partition's batch is refused.
struct Refused {
    invalid: Invalid,
    log_start_offset: i64,
}

impl<T: Into<Invalid>> From<T> for Refused {
    fn from(invalid: T) -> Self {
        Self { invalid: invalid.into(), log_start_offset: -1 }
    }
}

impl Refused {
    /// Kafka tells where the log starts if it got as far as looking at the records.
    fn by(partition: &Partition, invalid: Invalid) -> Self {
        let early = [ErrorCode::MessageTooLarge, ErrorCode::CorruptMessage];
        let log_start_offset = match partition.bounds(-1) {
            Ok(bounds) if !early.contains(&invalid.code) => bounds.log_start_offset,
            _ => -1,
        };
        Self { invalid, log_start_offset }
    }

    /// `said_bytes` counts what is said to all partitions of the request.
    fn response(self, index: i32, said_bytes: &mut usize) -> PartitionProduceResponse {
        let Invalid { code, message, records } = self.invalid;
        let mut fits = |words: &str| {
            *said_bytes += words.len();
            *said_bytes <= MAX_SAID_BYTES
        };
        let message = Some(message).filter(|message| !message.is_empty() && fits(message));
        let records = records.into_iter().take_while(|(_, message)| fits(message));
        let record_error = |(batch_index, message)| BatchIndexAndErrorMessage {
            batch_index,
            batch_index_error_message: Some(Str::from(message)),
        };
        PartitionProduceResponse {
            log_start_offset: self.log_start_offset,
            record_errors: records.map(record_error).collect(),
            error_message: message.map(Str::from),
            ..answered(index, Err(code))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Connection;
    use crate::config::listeners::Address;
    use crate::protocol::wire::Uuid;
    use crate::record::builder::{Builder, Fields};
    use crate::record::codec::Codec;
    use crate::record::message_set::{Message, Wrapper};
    use crate::record::records::Record;
    use crate::store::Storage;
    use crate::store::memory::Memory;
    use bytes::Bytes;

    /// A broker of one I/O thread, with the topic `clicks`.
    async fn broker() -> Arc<Broker> {
        let memory = Memory::default();
        let (id, name) = (Uuid([1; 16]), "clicks".into());
        memory.create_topic(Topic { id, name, partitions: 1, ..Topic::default() }).await.unwrap();
        let config = Config::from_text("num.io.threads=1").unwrap();
        Arc::new(Broker::new(Arc::new(config), Arc::new(memory), Arc::default()))
    }

    async fn produce(broker: &Arc<Broker>, api_version: i16, records: Bytes) -> ErrorCode {
        ask(broker, api_version, vec![records]).await[0].error_code
    }

    /// Produces to partition 0 as many times as there are batches.
    async fn ask(
        broker: &Arc<Broker>,
        api_version: i16,
        batches: Vec<Bytes>,
    ) -> Vec<PartitionProduceResponse> {
        let address = ([127, 0, 0, 1], 9092).into();
        let advertised = Address::parse("127.0.0.1:9092").unwrap();
        let cx = Context {
            broker: broker.clone(),
            connection: Arc::new(Connection::new(address, address, advertised, <_>::default())),
            api_version,
            client_id: None,
            buffer_bytes: batches.iter().map(Bytes::len).sum(),
        };
        let data = |records| PartitionProduceData { index: 0, records: Some(records) };
        let partition_data = batches.into_iter().map(data).collect();
        let name = Str::from_static("clicks");
        let topic = TopicProduceData { name, partition_data, ..<_>::default() };
        let request = Request { acks: -1, topic_data: vec![topic], ..Request::default() };
        let mut answer = match handle(&cx, request).await {
            Reply::Ready(answer) => answer,
            Reply::Deferred(answer) => answer.await,
            Reply::Unanswered(_) => unreachable!("acks=-1"),
        };
        answer.responses.remove(0).partition_responses
    }

    /// A batch of one record, and a message set of one message, both by gzip.
    fn of_one_value(bytes: usize) -> [(i16, Bytes); 2] {
        let value = vec![0; bytes];
        let compression = Codec::Gzip.into();
        let mut batch = Builder::new(Fields { compression, ..Fields::default() });
        batch.append(&Record { value: Some(&value), ..Record::default() }).unwrap();
        let mut set = Wrapper::new(1, Codec::Gzip, false);
        let message = Message {
            offset: 0,
            magic: 1,
            attributes: 0,
            timestamp: 0,
            key: None,
            value: Some(&value),
        };
        set.append(&message).unwrap();
        [(12, batch.finish_bytes().unwrap()), (2, set.finish().unwrap().into())]
    }

    #[tokio::test(start_paused = true)]
    async fn what_decompresses_to_much_waits_for_its_turn_and_little_does_not() {
        let broker = broker().await;
        let turn = broker.turns.next().await;
        for (version, records) in of_one_value(1000) {
            assert_eq!(produce(&broker, version, records).await, ErrorCode::None);
        }
        let much = of_one_value(LITTLE_BYTES as usize + (100 << 10));
        for (version, records) in much.clone() {
            assert_eq!(produce(&broker, version, records).await, ErrorCode::RequestTimedOut);
        }
        drop(turn);
        for (version, records) in much {
            assert_eq!(produce(&broker, version, records).await, ErrorCode::None);
        }
    }

    #[tokio::test]
    async fn what_is_said_of_bad_records_has_a_limit_for_the_request() {
        let broker = broker().await;
        let compression = Codec::Zstd.into();
        let mut batch = Builder::new(Fields { compression, ..Fields::default() });
        for offset in 0..1000 {
            let timestamp = i64::MAX;
            batch.append(&Record { offset, timestamp, ..Record::default() }).unwrap();
        }
        let batch = batch.finish_bytes().unwrap();
        let answer = ask(&broker, 12, vec![batch.clone(); 100]).await;
        assert!(answer.iter().all(|one| one.error_code == ErrorCode::InvalidTimestamp));
        assert_eq!(answer[0].record_errors.len(), 1000);
        assert!(answer[0].error_message.is_some());
        let records = answer.iter().flat_map(|one| &one.record_errors);
        let records = records.map(|record| &record.batch_index_error_message);
        let messages = records.chain(answer.iter().map(|one| &one.error_message));
        let said: usize = messages.flatten().map(|message| message.len()).sum();
        assert!((MAX_SAID_BYTES - 1000..=MAX_SAID_BYTES).contains(&said), "{said}");
    }
}
