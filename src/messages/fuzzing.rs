//! What `fuzz/` asks of every table: that any bytes are decoded or refused, and that what is
//! decoded is written as it was understood.

use crate::protocol::api_key::{ApiKey, for_each_api};
use crate::protocol::wire::{Reader, Result, Wire, Writer};
use bytes::Bytes;

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
    for_each_api!(each)(api, version, bytes)
}

fn twice<T: Wire>(api: ApiKey, version: i16, bytes: Bytes) -> bool {
    let Ok(message) = read::<T>(api, version, bytes) else { return false };
    let written = write(api, version, &message);
    // Bytes are compared and not values: a float may be one that does not equal itself.
    match read::<T>(api, version, written.clone()) {
        Ok(again) => assert_eq!(write(api, version, &again), written, "{api:?} v{version}"),
        Err(error) => panic!("{api:?} v{version} cannot read its own bytes: {error}"),
    }
    true
}

fn read<T: Wire>(api: ApiKey, version: i16, bytes: Bytes) -> Result<T> {
    T::read(&mut Reader::new(bytes, version, api.is_flexible(version)))
}

fn write<T: Wire>(api: ApiKey, version: i16, message: &T) -> Bytes {
    let mut writer = Writer::new(version, api.is_flexible(version));
    message.write(&mut writer);
    writer.finish().concat().into()
}

/// The message that the first bytes of an input of the fuzzer choose: the place of the API in the
/// list, then that of the version among the API's.
pub fn choose(input: &[u8]) -> Option<(ApiKey, i16, &[u8])> {
    let [api, version, body @ ..] = input else { return None };
    let api = ApiKey::ALL[usize::from(*api) % ApiKey::ALL.len()];
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

    /// A topic is created, written to, read and deleted.
    fn story() -> Vec<u8> {
        use super::super::{create_topics, delete_topics, fetch, list_offsets, produce};
        use crate::record::codec::Codec;
        use crate::record::testing::from_kafka;

        let mut batch = from_kafka(Codec::None);
        batch.stamp(0, -1);
        let records = [&batch.head()[..], &batch.records()].concat().into();
        let topic = create_topics::CreatableTopic {
            name: "t".into(),
            num_partitions: 1,
            replication_factor: 1,
            ..Default::default()
        };
        let create = create_topics::Request { topics: vec![topic], ..Default::default() };
        let partition = produce::PartitionProduceData { index: 0, records: Some(records) };
        let data = produce::TopicProduceData {
            name: "t".into(),
            partition_data: vec![partition],
            ..Default::default()
        };
        let produce = produce::Request { acks: -1, topic_data: vec![data], ..Default::default() };
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
            frame(api, version, &write(api, version, request))
        }
        [
            sent(ApiKey::CreateTopics, 5, &create),
            sent(ApiKey::Produce, 9, &produce),
            sent(ApiKey::Produce, 3, &produce),
            sent(ApiKey::ListOffsets, 6, &list),
            sent(ApiKey::Fetch, 12, &fetch(0)),
            sent(ApiKey::Fetch, 4, &fetch(6)),
            sent(ApiKey::DeleteTopics, 4, &delete),
        ]
        .concat()
    }

    #[test]
    #[ignore = "writes the seeds of fuzz/"]
    fn seeds() {
        fn seed<T: Wire + Default>(target: &str, api: ApiKey) {
            let folder = format!("{}/fuzz/seeds", env!("CARGO_MANIFEST_DIR"));
            let put = |target: &str, bytes: &[u8]| {
                fs::create_dir_all(format!("{folder}/{target}")).unwrap();
                fs::write(format!("{folder}/{target}/{api:?}"), bytes).unwrap();
            };
            let (first, last) = (*api.versions().start(), *api.versions().end());
            let place = ApiKey::ALL.iter().position(|other| *other == api).unwrap();
            let mut body = write(api, last, &T::sample());
            // Byte fields are long in samples: a seed is small.
            if body.len() > 1000 {
                body = write(api, last, &T::default());
            }
            let input = [&[place as u8, (last - first) as u8], &body[..]].concat();
            assert_eq!(choose(&input), Some((api, last, &body[..])));
            put(target, &input);
            if target == "requests" && ApiKey::SERVED.contains(&api) {
                put("connection", &frame(api, last, &body));
            }
        }
        macro_rules! all {
            (served {$($served:tt)*} described {$($described:tt)*}) => {
                all! { $($served)* $($described)* }
            };
            ($($key:literal => $name:ident $versions:expr, $flexible:expr, $module:ident;)*) => {$(
                seed::<crate::messages::$module::Request>("requests", ApiKey::$name);
                seed::<crate::messages::$module::Response>("responses", ApiKey::$name);
            )*};
        }
        for_each_api!(all);
        let story_file = format!("{}/fuzz/seeds/connection/story", env!("CARGO_MANIFEST_DIR"));
        fs::write(story_file, story()).unwrap();
    }
}
