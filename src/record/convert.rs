//! Between batches and message sets: what old producers send is stored as a batch, and what is
//! stored is sent to old consumers as a message set.
//!
//! Source: `LogValidator` and `RecordsUtil.downConvert` of Apache Kafka 3.9, the last that had
//! them; KIP-31, KIP-32. Different from that:
//! - A set without a whole message is refused; Kafka answers that it was appended, at offset -1.
//!   A wrapper that ends in the middle of a message is refused too; Kafka leaves that message out.
//! - What is malformed has INVALID_RECORD or INVALID_TIMESTAMP where Kafka says
//!   UNKNOWN_SERVER_ERROR.

use super::batch::Batch;
use super::builder::{Builder, Fields, MAX_BATCH_BYTES};
use super::codec::Codec;
use super::message_set::{BadSet, Message, Messages, NO_TIMESTAMP, Unwrapped, Wrapper};
use super::records::Record;
use super::unpacked::Unpacked;
use super::validate::{Invalid, Rules, invalid, invalid_record};
use crate::protocol::error_code::ErrorCode;

/// The last Produce version that may bring message sets. Kafka 3 refused them in version 3, the
/// first one of batches; nothing is gained by that, and there are producers that send them.
const LAST_SET_VERSION: i16 = 3;

/// Whether this is a message set that a Produce request may bring.
pub fn is_message_set(records: &[u8], api_version: i16) -> bool {
    const MAGIC_AT: usize = 16;
    api_version <= LAST_SET_VERSION && matches!(records.get(MAGIC_AT), Some(0 | 1))
}

/// One batch with the records of a message set, in the set's codec. What a batch is checked for is
/// not checked here.
pub fn to_batch(set: &[u8], rules: &Rules) -> Result<Batch, Invalid> {
    let mut messages = Messages::new(set);
    let first = next(&mut messages, rules)?.ok_or(invalid_record("there is no whole message"))?;
    let codec = first.codec().ok_or(invalid_record("unknown codec"))?;
    let mut records = Records::new(codec, rules);
    if codec == Codec::None {
        records.append(&first, &first)?;
        while let Some(message) = next(&mut messages, rules)? {
            if message.magic != first.magic {
                return Err(invalid_record("the messages of a set differ in their magic"));
            }
            if message.codec() != Some(Codec::None) {
                return Err(invalid_record("a compressed message set has one message"));
            }
            records.append(&message, &message)?;
        }
    } else {
        if next(&mut messages, rules)?.is_some() {
            return Err(invalid_record("a compressed message set has one message"));
        }
        let mut unwrapped = Unwrapped::with_limit(&first, rules.max_decompressed_bytes)?;
        while let Some(message) = unwrapped.read()? {
            records.append(&message, &first)?;
        }
    }
    Ok(records.builder.finish()?)
}

/// The limit holds for what was sent, too.
fn next<'a>(messages: &mut Messages<'a>, rules: &Rules) -> Result<Option<Message<'a>>, Invalid> {
    let before = messages.bytes_left();
    let Some(message) = messages.next().transpose()? else { return Ok(None) };
    match before - messages.bytes_left() > rules.max_message_bytes {
        true => {
            let message = "a message is longer than max.message.bytes";
            Err(invalid(ErrorCode::MessageTooLarge, message))
        }
        false => Ok(Some(message)),
    }
}

/// Messages that become the records of a batch.
struct Records {
    builder: Builder,
    next_offset: i64,
    is_append_time: bool,
}

impl Records {
    fn new(codec: Codec, rules: &Rules) -> Self {
        let max_bytes = match codec {
            Codec::None => rules.max_message_bytes,
            _ => MAX_BATCH_BYTES,
        };
        let fields = Fields { compression: codec.into(), max_bytes, ..Fields::default() };
        let is_append_time = rules.is_append_time;
        Self { builder: Builder::new(fields), next_offset: 0, is_append_time }
    }

    /// `outer` is the message itself or its wrapper.
    fn append(&mut self, message: &Message<'_>, outer: &Message<'_>) -> Result<(), Invalid> {
        let Message { timestamp, key, value, .. } = *message;
        if timestamp < NO_TIMESTAMP {
            return Err(invalid(ErrorCode::InvalidTimestamp, "a timestamp is negative"));
        }
        let has_no_time = timestamp == NO_TIMESTAMP || self.is_append_time;
        if has_no_time && outer.is_log_append_time() {
            let message = "a producer does not give the time of the append";
            return Err(invalid(ErrorCode::InvalidTimestamp, message));
        }
        let offset = self.next_offset;
        self.next_offset += 1;
        Ok(self.builder.append(&Record { offset, timestamp, key, value, ..Record::default() })?)
    }
}

impl From<BadSet> for Invalid {
    fn from(bad: BadSet) -> Self {
        match bad {
            BadSet::Corrupt(message) => invalid(ErrorCode::CorruptMessage, message),
            BadSet::Invalid(message) => invalid_record(message),
            BadSet::Malformed(malformed) => malformed.into(),
        }
    }
}

/// The records of a stored batch as a message set of this magic; empty if it has none from
/// `first_offset` on, or none that old consumers know. Not compressed ones before `first_offset` are left out: in a message set each
/// stands for itself, and some versions of librdkafka rely on that.
pub fn to_message_set(batch: &Batch, magic: i8, first_offset: i64) -> Result<Vec<u8>, ErrorCode> {
    let header = &batch.header;
    if header.is_control() {
        return Ok(Vec::new());
    }
    let codec = Codec::from_attributes(header.attributes).ok_or(ErrorCode::CorruptMessage)?;
    if codec == Codec::Zstd {
        return Err(ErrorCode::UnsupportedCompressionType);
    }
    let unpacked = Unpacked::new(batch).map_err(|_| ErrorCode::CorruptMessage)?;
    let mut to = Set::new(magic, codec, header.is_log_append_time());
    let mut is_wanted = false;
    for record in &unpacked {
        let record = record.map_err(|_| ErrorCode::CorruptMessage)?;
        is_wanted |= record.offset >= first_offset;
        if codec == Codec::None && record.offset < first_offset {
            continue;
        }
        to.append(&Message {
            offset: record.offset,
            magic,
            attributes: Message::attributes(magic, Codec::None, header.is_log_append_time()),
            timestamp: record.timestamp,
            key: record.key,
            value: record.value,
        })
        .map_err(|_| ErrorCode::UnknownServerError)?;
    }
    if !is_wanted {
        return Ok(Vec::new());
    }
    to.finish().map_err(|_| ErrorCode::UnknownServerError)
}

enum Set {
    Plain(Vec<u8>),
    Wrapped(Box<Wrapper>),
}

impl Set {
    fn new(magic: i8, codec: Codec, is_log_append_time: bool) -> Self {
        match codec {
            Codec::None => Self::Plain(Vec::new()),
            _ => Self::Wrapped(Box::new(Wrapper::new(magic, codec, is_log_append_time))),
        }
    }

    fn append(&mut self, message: &Message<'_>) -> std::io::Result<()> {
        match self {
            Self::Plain(set) => message.write(set),
            Self::Wrapped(wrapper) => wrapper.append(message)?,
        }
        Ok(())
    }

    fn finish(self) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Plain(set) => Ok(set),
            Self::Wrapped(wrapper) => wrapper.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::batch::MAGIC;
    use crate::record::message_set::crc32;
    use crate::record::testing::{Draft, FROM_KAFKA, from_kafka, gzip};
    use crate::record::testing_sets::{
        BATCHES_OF_SETS, OF_LOG_APPEND_TIME, SET_OF_LOG_APPEND_TIME, SETS_FROM_KAFKA,
        SETS_FROM_KAFKA_PYTHON, SETS_OF_BATCHES, bytes,
    };
    use crate::record::validate::{TopicPartition, check};

    const T: i64 = 1_700_000_000_000;
    const NOW_MS: i64 = 1_800_000_000_000;
    const PARTITION: TopicPartition = TopicPartition { topic: "clicks", partition: 0 };

    type Read = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>);

    /// The messages of the pinned sets, with these times behind [`T`].
    fn messages(times: Option<[i64; 4]>) -> Vec<Read> {
        let fields: [[Option<&[u8]>; 2]; 4] = [
            [Some(b"k1"), Some(b"one one one one one one one one")],
            [Some(b"k2"), Some(b"two")],
            [Some(b"k3"), None],
            [None, Some(b"")],
        ];
        let time = |place: usize| times.map_or(NO_TIMESTAMP, |times| T + times[place]);
        let message = |(place, [key, value]): (usize, [Option<&[u8]>; 2])| {
            (place as i64, time(place), key.map(<[u8]>::to_vec), value.map(<[u8]>::to_vec))
        };
        fields.into_iter().enumerate().map(message).collect()
    }

    fn records(batch: &Batch) -> Vec<Read> {
        let unpacked = Unpacked::new(batch).unwrap();
        let owned = |field: Option<&[u8]>| field.map(<[u8]>::to_vec);
        let records = unpacked.iter().map(Result::unwrap);
        records.map(|r| (r.offset, r.timestamp, owned(r.key), owned(r.value))).collect()
    }

    fn stored(set: &[u8]) -> Result<Batch, Invalid> {
        let rules = Rules::default();
        let mut batch = to_batch(set, &rules)?;
        check(&mut batch, &rules, PARTITION, NOW_MS).map(|()| batch)
    }

    #[test]
    #[ignore = "writes the seeds of fuzz/"]
    fn seeds() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/message_set");
        std::fs::create_dir_all(folder).unwrap();
        for (place, (magic, codec, set)) in SETS_FROM_KAFKA.into_iter().enumerate() {
            let name = format!("{folder}/{codec:?}-of-magic-{magic}-{place}");
            std::fs::write(name, [&[0][..], &bytes(set)].concat()).unwrap();
        }
        // Wrapped by the fuzzer: its codec and magic are in the first byte.
        for (how, magic) in [(16 | 1, 0), (16 | 32 | 2, 1)] {
            let inner = set(&[message(magic, b"a"), message(magic, b"b")]);
            std::fs::write(format!("{folder}/inner-{how}"), [&[how][..], &inner].concat()).unwrap();
        }
    }

    #[test]
    fn sets_that_others_wrote_become_batches_of_the_same_records_and_codec() {
        for (magic, codec, set) in SETS_FROM_KAFKA.into_iter().chain(SETS_FROM_KAFKA_PYTHON) {
            let batch = stored(&bytes(set)).unwrap();
            let times = (magic > 0).then_some([0, 14, 7, 7]);
            assert_eq!(records(&batch), messages(times), "magic {magic}, {codec:?}");
            assert_eq!(Codec::from_attributes(batch.header.attributes), Some(codec));
        }
        for (magic, expected) in BATCHES_OF_SETS.into_iter().enumerate() {
            let is_plain = |(m, c, _): &(i8, Codec, &str)| *m == magic as i8 && *c == Codec::None;
            let (_, _, set) = SETS_FROM_KAFKA.into_iter().find(is_plain).unwrap();
            let mut batch = stored(&bytes(set)).unwrap();
            batch.stamp(0, 0);
            assert_eq!([&batch.head()[..], &batch.records()].concat(), bytes(expected));
        }
    }

    #[test]
    fn the_time_that_a_broker_gave_a_wrapper_is_that_of_all_messages_in_it() {
        let batch = stored(&bytes(SET_OF_LOG_APPEND_TIME)).unwrap();
        assert_eq!(records(&batch), messages(Some([1000; 4])));
        assert!(!batch.header.is_log_append_time());
    }

    fn message(magic: i8, value: &[u8]) -> Message<'_> {
        Message { offset: 0, magic, attributes: 0, timestamp: T, key: None, value: Some(value) }
    }

    fn set(messages: &[Message<'_>]) -> Vec<u8> {
        let mut set = Vec::new();
        messages.iter().for_each(|message| message.write(&mut set));
        set
    }

    /// A wrapper of magic 1 by gzip.
    fn wrapped(offset: i64, inner: &[u8]) -> Vec<u8> {
        let value = gzip(inner);
        set(&[Message { offset, attributes: 1, ..message(1, &value) }])
    }

    fn at(offset: i64) -> Message<'static> {
        Message { offset, ..message(1, b"v") }
    }

    #[test]
    fn whatever_offsets_producers_give_the_log_gives_its_own() {
        let offsets = |set: &[u8]| {
            stored(set).map(|b| records(&b).iter().map(|r| r.0).collect()).map_err(|e| e.code)
        };
        let all = Ok(vec![0, 1, 2]);
        assert_eq!(offsets(&set(&[at(0), at(0), at(0)])), all);
        assert_eq!(offsets(&set(&[at(9), at(3), at(-5)])), all);
        // Relative, absolute, all zero, and without any order.
        assert_eq!(offsets(&wrapped(2, &set(&[at(0), at(1), at(2)]))), all);
        assert_eq!(offsets(&wrapped(1000, &set(&[at(0), at(1), at(2)]))), all);
        assert_eq!(offsets(&wrapped(9, &set(&[at(7), at(8), at(9)]))), all);
        assert_eq!(offsets(&wrapped(0, &set(&[at(0), at(1), at(2)]))), all);
        assert_eq!(offsets(&wrapped(0, &set(&[at(0), at(0), at(0)]))), all);
        assert_eq!(offsets(&wrapped(0, &set(&[at(7), at(3), at(3)]))), all);
        let before_its_last = wrapped(1, &set(&[at(0), at(1), at(2)]));
        assert_eq!(offsets(&before_its_last), Err(ErrorCode::InvalidRecord));
        assert_eq!(offsets(&wrapped(-1, &set(&[at(0)]))), Err(ErrorCode::InvalidRecord));
    }

    /// The code of a set that is refused. The expected codes are those of Apache Kafka 3.9.2, but
    /// for the differences that the module names.
    fn refused(set: &[u8]) -> ErrorCode {
        stored(set).map_or_else(|invalid| invalid.code, |_| ErrorCode::None)
    }

    #[test]
    fn a_set_is_refused_with_kafkas_codes() {
        use ErrorCode::{CorruptMessage, InvalidRecord, InvalidTimestamp, None};
        let (zero, one) = (message(0, b"a"), message(1, b"a"));
        let good = set(&[one]);
        let with = |change: fn(&mut Vec<u8>)| {
            let mut bytes = good.clone();
            change(&mut bytes);
            bytes
        };
        // Whole messages are stored, what is behind them is not.
        assert_eq!(refused(&set(&[zero, zero])), None);
        assert_eq!(refused(&[&good, &good[..20]].concat()), None);
        assert_eq!(refused(&[]), InvalidRecord);
        assert_eq!(refused(&good[..good.len() - 1]), InvalidRecord);
        assert_eq!(refused(&with(|b| b[11] = 13)), CorruptMessage, "length 13");
        assert_eq!(refused(&with(|b| b[8] = 0xff)), CorruptMessage, "negative length");
        assert_eq!(refused(&with(|b| b[15] ^= 1)), CorruptMessage, "checksum");
        assert_eq!(refused(&with(|b| b[16] = 3)), CorruptMessage, "magic 3");
        let second = with(|b| b[15] ^= 1);
        assert_eq!(refused(&[good.clone(), second].concat()), CorruptMessage);
        assert_eq!(refused(&set(&[zero, one])), InvalidRecord);
        assert_eq!(refused(&set(&[one, zero])), InvalidRecord);
        let batch = Draft::of(&["a"]).encode();
        assert_eq!(refused(&[&good, &batch[..]].concat()), InvalidRecord);
        // A key or a value that is longer than the message.
        for at in [26, 30] {
            let mut message = good.clone();
            message[at..at + 4].copy_from_slice(&100_i32.to_be_bytes());
            let crc = crc32(&message[16..]);
            message[12..16].copy_from_slice(&crc.to_be_bytes());
            assert_eq!(refused(&message), InvalidRecord, "length at {at}");
        }

        let with = |timestamp, attributes| set(&[Message { timestamp, attributes, ..one }]);
        assert_eq!(refused(&with(-1, 0)), None);
        assert_eq!(refused(&with(-5, 0)), InvalidTimestamp);
        assert_eq!(refused(&with(NOW_MS + 3_600_001, 0)), InvalidTimestamp);
        assert_eq!(refused(&with(T, 1 << 3)), None);
        assert_eq!(refused(&with(-1, 1 << 3)), InvalidTimestamp);
        assert_eq!(refused(&with(T, 0x70)), None);
        for codec in 1..8 {
            assert_eq!(refused(&with(T, codec)), InvalidRecord, "garbage by codec {codec}");
        }
        assert_eq!(refused(&set(&[Message { attributes: 1 << 3, ..zero }])), None);
        let rules = Rules { is_append_time: true, ..Rules::default() };
        let code = |set: &[u8]| to_batch(set, &rules).map_or_else(|invalid| invalid.code, |_| None);
        assert_eq!(code(&with(T, 1 << 3)), InvalidTimestamp, "only the broker gives that time");
        assert_eq!(code(&with(T, 0)), None);
    }

    #[test]
    fn a_wrapper_is_refused_with_kafkas_codes() {
        use ErrorCode::{CorruptMessage, InvalidRecord, InvalidTimestamp, None};
        let one = set(&[message(1, b"a")]);
        let wrapper = wrapped(0, &one);
        let value = gzip(&one);
        let outer = Message { attributes: 1, ..message(1, &value) };
        assert_eq!(refused(&wrapper), None);
        assert_eq!(refused(&[&wrapper[..], &wrapper].concat()), InvalidRecord);
        assert_eq!(refused(&[&wrapper[..], &one].concat()), InvalidRecord);
        assert_eq!(refused(&[&one[..], &wrapper].concat()), InvalidRecord);
        assert_eq!(refused(&wrapped(0, &wrapper)), InvalidRecord, "nested");
        assert_eq!(refused(&wrapped(0, &set(&[message(0, b"a")]))), InvalidRecord, "magic");
        assert_eq!(refused(&set(&[Message { magic: 0, ..outer }])), InvalidRecord, "magic");
        assert_eq!(refused(&set(&[Message { value: Option::None, ..outer }])), InvalidRecord);
        assert_eq!(refused(&wrapped(0, &[])), InvalidRecord);
        assert_eq!(refused(&wrapped(0, &one[..one.len() - 1])), InvalidRecord);
        assert_eq!(refused(&wrapped(0, &[&one[..], &one[..20]].concat())), InvalidRecord);
        assert_eq!(refused(&wrapped(0, &Draft::of(&["a"]).encode())), InvalidRecord);
        let cut = Message { value: Some(&value[..value.len() - 9]), ..outer };
        assert_eq!(refused(&set(&[cut])), InvalidRecord);
        let mut corrupt = one.clone();
        corrupt[15] ^= 1;
        assert_eq!(refused(&wrapped(0, &[&one[..], &corrupt].concat())), CorruptMessage);
        corrupt[11] = 13;
        assert_eq!(refused(&wrapped(0, &corrupt)), CorruptMessage, "length 13");

        let late = NOW_MS + 3_600_001;
        let inner = Message { timestamp: late, ..message(1, b"a") };
        assert_eq!(refused(&wrapped(0, &set(&[inner]))), InvalidTimestamp);
        let inner = Message { timestamp: -5, ..inner };
        assert_eq!(refused(&wrapped(0, &set(&[inner]))), InvalidTimestamp);
        // The wrapper's time counts only if a broker gave it; what the messages say of that never.
        let timed = |timestamp, attributes| set(&[Message { timestamp, attributes, ..outer }]);
        assert_eq!(refused(&timed(late, 1)), None);
        assert_eq!(refused(&timed(late, 1 | 1 << 3)), InvalidTimestamp);
        assert_eq!(refused(&timed(T, 1 | 1 << 3)), None);
        assert_eq!(refused(&timed(-1, 1 | 1 << 3)), InvalidTimestamp);
        let inner = Message { attributes: 1 << 3, ..message(1, b"a") };
        assert_eq!(refused(&wrapped(0, &set(&[inner]))), None);
        assert_eq!(refused(&set(&[Message { key: Some(b"k"), ..outer }])), None);
    }

    #[test]
    fn the_longest_batch_is_also_the_longest_message_and_what_they_become() {
        let refused = |set: &[u8], max_message_bytes| {
            let rules = Rules { max_message_bytes, ..Rules::default() };
            to_batch(set, &rules).map_or_else(|invalid| invalid.code, |_| ErrorCode::None)
        };
        // A message has 34 bytes besides its value; a batch 61, and these records 9 each.
        let one = set(&[message(1, &[7; 100])]);
        assert_eq!(refused(&one, 133), ErrorCode::MessageTooLarge);
        assert_eq!(refused(&one, 134), ErrorCode::MessageTooLarge);
        assert_eq!(refused(&one, 171), ErrorCode::None);
        assert_eq!(refused(&one.repeat(10), 1133), ErrorCode::MessageTooLarge);
        assert_eq!(refused(&one.repeat(10), 1161), ErrorCode::None);
        // What is compressed may be any longer.
        let long = wrapped(0, &set(&[message(1, &[7; 3_000_000])]));
        assert_eq!(refused(&long, long.len() - 1), ErrorCode::MessageTooLarge);
        assert_eq!(refused(&long, long.len()), ErrorCode::None);
    }

    #[test]
    fn whatever_a_producer_sends_is_answered() {
        let mut random = 1_u64;
        let mut next = |below: usize| {
            // Xorshift: the same bytes in each run.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random as usize % below
        };
        let mut outcomes = [0; 2];
        for (_, _, hex) in SETS_FROM_KAFKA {
            let good = bytes(hex);
            for _ in 0..500 {
                let mut set = good.clone();
                for _ in 0..=next(3) {
                    let at = next(set.len());
                    set[at] = next(256) as u8;
                }
                // Half of them have a right checksum, so that what is behind it is read.
                if next(2) == 0 {
                    let crc = crc32(&set[16..]);
                    set[12..16].copy_from_slice(&crc.to_be_bytes());
                }
                set.truncate(set.len() - next(3));
                outcomes[usize::from(stored(&set).is_ok())] += 1;
            }
        }
        assert!(outcomes[0] > 3000 && outcomes[1] > 100, "{outcomes:?}");
    }

    /// All messages of a set and the wrapper's, if there is one.
    fn read(set: &[u8]) -> (Vec<Read>, Vec<Message<'_>>) {
        let owned = |m: &Message<'_>| {
            (m.offset, m.timestamp, m.key.map(<[u8]>::to_vec), m.value.map(<[u8]>::to_vec))
        };
        let outer: Vec<_> = Messages::new(set).map(Result::unwrap).collect();
        let mut all = Vec::new();
        for message in &outer {
            if message.codec() == Some(Codec::None) {
                all.push(owned(message));
                continue;
            }
            let mut unwrapped = Unwrapped::new(message).unwrap();
            while let Some(message) = unwrapped.read().unwrap() {
                all.push(owned(&message));
            }
        }
        (all, outer)
    }

    fn without_values(messages: Vec<Message<'_>>) -> Vec<Message<'_>> {
        messages.into_iter().map(|message| Message { value: None, ..message }).collect()
    }

    #[test]
    fn batches_become_the_sets_that_kafka_makes_of_them() {
        for (magic, codec, expected) in SETS_OF_BATCHES {
            let expected = bytes(expected);
            let set = to_message_set(&from_kafka(codec), magic, 0).unwrap();
            if codec == Codec::None {
                assert_eq!(set, expected, "magic {magic}");
            }
            let ((messages, outer), (expected, of_kafka)) = (read(&set), read(&expected));
            assert_eq!(messages, expected, "magic {magic}, {codec:?}");
            // No two libraries compress alike.
            assert_eq!(without_values(outer), without_values(of_kafka), "magic {magic}, {codec:?}");
        }
        for (codec, _) in FROM_KAFKA.iter().filter(|(codec, _)| *codec == Codec::Zstd) {
            for magic in [0, 1] {
                let set = to_message_set(&from_kafka(*codec), magic, 0);
                assert_eq!(set, Err(ErrorCode::UnsupportedCompressionType));
            }
        }
    }

    #[test]
    fn an_lz4_frame_has_the_header_that_clients_of_its_magic_take() {
        for magic in [0, 1] {
            let header = |set: &[u8]| {
                let (_, outer) = read(set);
                outer[0].value.unwrap()[..7].to_vec()
            };
            let is_it = |(m, c, _): &(i8, Codec, &str)| (*m, *c) == (magic, Codec::Lz4);
            let (_, _, of_kafka) = SETS_OF_BATCHES.into_iter().find(is_it).unwrap();
            let set = to_message_set(&from_kafka(Codec::Lz4), magic, 0).unwrap();
            assert_eq!(header(&set), header(&bytes(of_kafka)), "magic {magic}");
        }
    }

    #[test]
    fn the_time_of_an_append_is_told_to_clients_that_know_times() {
        for [batch, expected] in OF_LOG_APPEND_TIME.map(|pair| pair.map(bytes)) {
            let batch = Batch::split_off(&mut batch.into()).unwrap();
            assert_eq!(batch.header.magic, MAGIC);
            let set = to_message_set(&batch, 1, 0).unwrap();
            let attributes = |set: &[u8]| read(set).1.iter().map(|m| m.attributes).sum::<i8>();
            assert_eq!(
                (read(&set).0, attributes(&set)),
                (read(&expected).0, attributes(&expected))
            );
            let (of_magic_0, _) = read(&to_message_set(&batch, 0, 0).unwrap()).clone();
            assert!(of_magic_0.iter().all(|message| message.1 == NO_TIMESTAMP));
        }
    }

    #[test]
    fn inner_offsets_are_relative_in_magic_1_and_whole_in_magic_0() {
        let mut batch = from_kafka(Codec::Gzip);
        batch.stamp(1000, 0);
        let offsets = |magic| {
            let set = to_message_set(&batch, magic, 0).unwrap();
            let (messages, outer) = read(&set);
            (outer[0].offset, messages.iter().map(|m| m.0).collect::<Vec<_>>())
        };
        assert_eq!(offsets(0), (1002, vec![1000, 1001, 1002]));
        assert_eq!(offsets(1), (1002, vec![0, 1, 2]));
    }

    #[test]
    fn what_is_before_the_offset_is_left_out_where_each_message_stands_for_itself() {
        let plain = from_kafka(Codec::None);
        let count = |batch: &Batch, first_offset| {
            let set = to_message_set(batch, 1, first_offset).unwrap();
            read(&set).0.len()
        };
        assert_eq!([0, 1, 2, 3].map(|offset| count(&plain, offset)), [3, 2, 1, 0]);
        // A wrapper comes whole, if anything of it is wanted: what is left of a batch need not reach its end.
        assert_eq!([2, 3].map(|offset| count(&from_kafka(Codec::Gzip), offset)), [3, 0]);
    }

    #[test]
    fn control_batches_are_nothing_to_old_clients() {
        let control = Draft { attributes: 1 << 5 | 1 << 4, ..Draft::of(&["marker"]) }.batch();
        assert_eq!(to_message_set(&control, 1, 0), Ok(Vec::new()));
    }
}
