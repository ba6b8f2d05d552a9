//! What `fuzz/` asks of every table: that any bytes are decoded or refused, and that what is
//! decoded is written as it was understood.

use super::records::{Versioned, for_each_record};
use crate::protocol::api_key::{ApiKey, for_each_api};
use crate::protocol::wire::{Reader, Result, Wire, Writer};
use bytes::Bytes;
use std::any::type_name;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Request,
    Response,
}

/// Reads `bytes` as a message, and what that is written as once more. False if they are none.
pub fn round_trip(kind: Kind, api: ApiKey, version: i16, bytes: Bytes) -> bool {
    macro_rules! each {
        (served {$($served:tt)*} described {$($described:tt)*}) => {
            each! { $($served)* $($described)* }
        };
        ($($key:literal => $name:ident $versions:expr, $flexible:expr, $module:ident;)*) => {
            match (api, kind) {$(
                (ApiKey::$name, Kind::Request) => twice::<super::$module::Request>,
                (ApiKey::$name, Kind::Response) => twice::<super::$module::Response>,
            )*}
        };
    }
    for_each_api!(each)(Form { version, is_flexible: api.is_flexible(version) }, bytes)
}

/// The same for the messages in records, and for those in JoinGroup and SyncGroup. The first bytes
/// of an input of the fuzzer choose one: its place in the list, then that of its version.
pub fn record_round_trip(input: &[u8]) -> bool {
    let [message, version, body @ ..] = input else { return false };
    let (_, versioned) = RECORDS[usize::from(*message) % RECORDS.len()];
    versioned(*version, Bytes::copy_from_slice(body))
}

/// Of a message whose version is the one at this place.
type RoundTrip = fn(u8, Bytes) -> bool;

/// Name and round trip of each message that is carried in records or in other messages.
const RECORDS: &[(&str, RoundTrip)] = {
    macro_rules! all {
        ($($name:ident => $versions:expr, $flexible:expr, $module:ident::$message:ident;)*) => {
            &[$((stringify!($name), versioned::<super::records::$module::$message>)),*]
        };
    }
    for_each_record!(all)
};

fn versioned<T: Versioned>(version: u8, bytes: Bytes) -> bool {
    let (first, last) = (*T::VERSIONS.start(), *T::VERSIONS.end());
    let version = first + i16::from(version) % (last - first + 1);
    twice::<T>(Form { version, is_flexible: T::FLEXIBLE.contains(&version) }, bytes)
}

/// How a message is written.
#[derive(Clone, Copy, Debug)]
struct Form {
    version: i16,
    is_flexible: bool,
}

fn twice<T: Wire>(form: Form, bytes: Bytes) -> bool {
    let Ok(message) = read::<T>(form, bytes) else { return false };
    let (name, written) = (type_name::<T>(), write(form, &message));
    // Bytes are compared and not values: a float may be one that does not equal itself.
    match read::<T>(form, written.clone()) {
        Ok(again) => assert_eq!(write(form, &again), written, "{name} {form:?}"),
        Err(error) => panic!("{name} {form:?} cannot read its own bytes: {error}"),
    }
    true
}

fn read<T: Wire>(form: Form, bytes: Bytes) -> Result<T> {
    T::read(&mut Reader::new(bytes, form.version, form.is_flexible))
}

fn write<T: Wire>(form: Form, message: &T) -> Bytes {
    let mut writer = Writer::new(form.version, form.is_flexible);
    message.write(&mut writer);
    writer.finish().concat().into()
}

/// The message that the first bytes of an input of the fuzzer choose: the API's number, then the
/// place of the version among the API's.
pub fn choose(input: &[u8]) -> Option<(ApiKey, i16, &[u8])> {
    let [api, version, body @ ..] = input else { return None };
    let api = ApiKey::from_code((*api).into())?;
    let (first, last) = (*api.versions().start(), *api.versions().end());
    let version = first + i16::from(*version) % (last - first + 1);
    Some((api, version, body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// What is sent before the body of a request of the last version that is served.
    fn frame(api: ApiKey, version: i16, body: &[u8]) -> Vec<u8> {
        let mut frame = [api.code(), version, 0, 1, 1].map(i16::to_be_bytes).concat();
        frame.push(b'c');
        frame.extend(api.is_flexible(version).then_some(0));
        frame.extend(body);
        [&(frame.len() as u32).to_be_bytes(), &frame[..]].concat()
    }

    fn body<T: Wire>(api: ApiKey, version: i16, message: &T) -> Bytes {
        write(Form { version, is_flexible: api.is_flexible(version) }, message)
    }

    /// The sample, or the default if that is long: byte fields are, and a seed is small.
    fn small<T: Wire + Default>(write: impl Fn(&T) -> Bytes) -> Bytes {
        let sample = write(&T::sample());
        if sample.len() > 1000 { write(&T::default()) } else { sample }
    }

    /// A topic is created, written to and read, also by old clients, and deleted.
    fn story() -> Vec<u8> {
        use super::super::{create_topics, delete_topics, fetch, list_offsets, produce};
        use crate::record::codec::Codec;
        use crate::record::testing::from_kafka;
        use crate::record::testing_sets::{SETS_FROM_KAFKA, bytes};

        let mut batch = from_kafka(Codec::None);
        batch.stamp(0, -1);
        let batch = [&batch.head()[..], &batch.records()].concat();
        let [_, gzip, ..] = SETS_FROM_KAFKA.map(|(_, _, set)| bytes(set));
        let topic = create_topics::CreatableTopic {
            name: "t".into(),
            num_partitions: 1,
            replication_factor: 1,
            ..Default::default()
        };
        let create = create_topics::Request { topics: vec![topic], ..Default::default() };
        let produce = |records: &[u8]| {
            let records = Some(Bytes::copy_from_slice(records));
            let partition = produce::PartitionProduceData { index: 0, records };
            let data = produce::TopicProduceData {
                name: "t".into(),
                partition_data: vec![partition],
                ..Default::default()
            };
            produce::Request { acks: -1, topic_data: vec![data], ..Default::default() }
        };
        let partition = list_offsets::ListOffsetsPartition { timestamp: 5, ..Default::default() };
        let topic =
            list_offsets::ListOffsetsTopic { name: "t".into(), partitions: vec![partition] };
        let list = list_offsets::Request { topics: vec![topic], ..Default::default() };
        let fetch = |fetch_offset| {
            let partition_max_bytes = 1 << 20;
            let partition =
                fetch::FetchPartition { fetch_offset, partition_max_bytes, ..Default::default() };
            let partitions = vec![partition];
            let topic = fetch::FetchTopic { topic: "t".into(), partitions, ..Default::default() };
            let (max_wait_ms, min_bytes, topics) = (500, 1, vec![topic]);
            fetch::Request { max_wait_ms, min_bytes, topics, ..Default::default() }
        };
        let delete = delete_topics::Request { topic_names: vec!["t".into()], ..Default::default() };
        fn sent<T: Wire>(api: ApiKey, version: i16, request: &T) -> Vec<u8> {
            frame(api, version, &body(api, version, request))
        }
        [
            sent(ApiKey::CreateTopics, 5, &create),
            sent(ApiKey::Produce, 9, &produce(&batch)),
            sent(ApiKey::Produce, 3, &produce(&batch)),
            sent(ApiKey::Produce, 1, &produce(&gzip)),
            sent(ApiKey::ListOffsets, 6, &list),
            sent(ApiKey::Fetch, 12, &fetch(0)),
            sent(ApiKey::Fetch, 4, &fetch(6)),
            sent(ApiKey::Fetch, 3, &fetch(0)),
            sent(ApiKey::Fetch, 1, &fetch(7)),
            sent(ApiKey::DeleteTopics, 4, &delete),
        ]
        .concat()
    }

    #[test]
    #[ignore = "writes the seeds of fuzz/"]
    fn seeds() {
        let put = |target: &str, name: &str, bytes: &[u8]| {
            let folder = format!("{}/fuzz/seeds/{target}", env!("CARGO_MANIFEST_DIR"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(format!("{folder}/{name}"), bytes).unwrap();
        };
        fn input<T: Wire + Default>(api: ApiKey) -> Vec<u8> {
            let (first, last) = (*api.versions().start(), *api.versions().end());
            let body = small::<T>(|message| body(api, last, message));
            let input = [&[api.code() as u8, (last - first) as u8], &body[..]].concat();
            assert_eq!(choose(&input), Some((api, last, &body[..])));
            input
        }
        macro_rules! all {
            (served {$($served:tt)*} described {$($described:tt)*}) => {
                all! { $($served)* $($described)* }
            };
            ($($key:literal => $name:ident $versions:expr, $flexible:expr, $module:ident;)*) => {$(
                let request = input::<crate::messages::$module::Request>(ApiKey::$name);
                put("requests", stringify!($name), &request);
                let response = input::<crate::messages::$module::Response>(ApiKey::$name);
                put("responses", stringify!($name), &response);
                if ApiKey::SERVED.contains(&ApiKey::$name) {
                    let (api, version, body) = choose(&request).unwrap();
                    put("connection", stringify!($name), &frame(api, version, body));
                }
            )*};
        }
        for_each_api!(all);
        put("connection", "story", &story());

        fn record<T: Versioned>(name: &str) -> Vec<u8> {
            let (first, last) = (*T::VERSIONS.start(), *T::VERSIONS.end());
            let form = Form { version: last, is_flexible: T::FLEXIBLE.contains(&last) };
            let place = RECORDS.iter().position(|(other, _)| *other == name).unwrap();
            let body = small::<T>(|message| write(form, message));
            [&[place as u8, (last - first) as u8], &body[..]].concat()
        }
        macro_rules! all_records {
            ($($name:ident => $versions:expr, $flexible:expr, $module:ident::$message:ident;)*) => {$(
                let input = record::<crate::messages::records::$module::$message>(stringify!($name));
                assert!(record_round_trip(&input));
                put("records", stringify!($name), &input);
            )*};
        }
        for_each_record!(all_records);
    }
}
