//! The records of `__consumer_offsets`, as Kafka writes them.
//!
//! ```text
//! key:   type (i16), then the key's table at version 0
//! value: version (i16), then the value's table; null is a tombstone, it deletes what the key names
//! ```
//!
//! Kafka's tools and lag monitors read this topic, so types and versions are those that Kafka 4.4 writes.

use crate::messages::records::{Versioned, group_metadata, legacy_offset_commit, offset_commit};
use crate::protocol::encoded::Encoded;
use crate::protocol::wire::{Reader, Wire, WireError, Writer};
use bytes::Bytes;

/// One record: the new value of what its key names, or none when that is deleted.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    OffsetCommit { key: offset_commit::Key, value: Option<offset_commit::Value> },
    GroupMetadata { key: group_metadata::Key, value: Option<group_metadata::Value> },
}

/// A record that was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Kafka skips such a record: a later version may have written it, of a kind that this one
    /// does without.
    #[error("records of type {0} are not known")]
    UnknownType(i16),
    #[error("version {version} of {what} is not known")]
    UnknownVersion { what: &'static str, version: i16 },
    #[error("{what} cannot be read: {error}")]
    Garbled { what: &'static str, error: WireError },
}

/// Kafka writes the newest version without tagged fields, which every broker since 2.3 reads.
const GROUP_METADATA_VERSION: i16 = 3;

/// The only version that has a time of its own at which the offset expires.
const OFFSET_COMMIT_WITH_EXPIRY_VERSION: i16 = 1;

const OFFSET_COMMIT_VERSION: i16 = 4;

/// What `expire_timestamp` is when the offset has no such time.
pub const NO_EXPIRY: i64 = -1;

impl Record {
    /// The record's key and value, written into memory that may have been used for another one's.
    pub fn encode_into<'a>(
        &self,
        key_to: &'a mut Encoded,
        value_to: &'a mut Encoded,
    ) -> (&'a [u8], Option<&'a [u8]>) {
        match self {
            Self::OffsetCommit { key, value } => {
                let encoded = value.as_ref().map(|value| {
                    let expires = value.expire_timestamp != NO_EXPIRY;
                    let version = if expires {
                        OFFSET_COMMIT_WITH_EXPIRY_VERSION
                    } else {
                        OFFSET_COMMIT_VERSION
                    };
                    write(value_to, version, version, value)
                });
                (write(key_to, offset_commit::TYPE, 0, key), encoded)
            }
            Self::GroupMetadata { key, value } => {
                let version = GROUP_METADATA_VERSION;
                let encoded = value.as_ref().map(|value| write(value_to, version, version, value));
                (write(key_to, group_metadata::TYPE, 0, key), encoded)
            }
        }
    }

    /// The bytes of the record's key and value.
    pub fn encode(&self) -> (Bytes, Option<Bytes>) {
        let (mut key, mut value) = Default::default();
        let (key, value) = self.encode_into(&mut key, &mut value);
        (Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice))
    }

    /// Reads a record. One without a key is garbled: all records of this topic have keys.
    pub fn decode(key: Option<&Bytes>, value: Option<&Bytes>) -> Result<Self, Unreadable> {
        let (kind, key) = prefix("a key", key.unwrap_or(&Bytes::new()))?;
        match kind {
            legacy_offset_commit::TYPE => {
                let legacy: legacy_offset_commit::Key = read("the key of an offset", 0, key)?;
                let legacy_offset_commit::Key { group, topic, partition } = legacy;
                let key = offset_commit::Key { group, topic, partition };
                Ok(Self::OffsetCommit { key, value: read_value("an offset", value)? })
            }
            offset_commit::TYPE => Ok(Self::OffsetCommit {
                key: read("the key of an offset", 0, key)?,
                value: read_value("an offset", value)?,
            }),
            group_metadata::TYPE => {
                // A copy: members are kept as slices of their record, not of a part of the log.
                let value = value.map(|value| Bytes::copy_from_slice(value));
                Ok(Self::GroupMetadata {
                    key: read("the key of a group", 0, key)?,
                    value: read_value("a group", value.as_ref())?,
                })
            }
            unknown => Err(Unreadable::UnknownType(unknown)),
        }
    }
}

fn write<'a, T: Versioned>(
    to: &'a mut Encoded,
    prefix: i16,
    version: i16,
    message: &T,
) -> &'a [u8] {
    let mut writer = Writer::into(std::mem::take(to), version, T::FLEXIBLE.contains(&version));
    prefix.write(&mut writer);
    message.write(&mut writer);
    *to = writer.finish();
    to.whole()
}

/// The number before a key or value, and what follows it.
fn prefix(what: &'static str, bytes: &Bytes) -> Result<(i16, Bytes), Unreadable> {
    let mut reader = Reader::new(bytes.clone(), 0, false);
    let number = i16::read(&mut reader).map_err(|error| Unreadable::Garbled { what, error })?;
    Ok((number, bytes.slice(size_of::<i16>()..)))
}

fn read<T: Versioned>(what: &'static str, version: i16, bytes: Bytes) -> Result<T, Unreadable> {
    if !T::VERSIONS.contains(&version) {
        return Err(Unreadable::UnknownVersion { what, version });
    }
    let mut reader = Reader::new(bytes, version, T::FLEXIBLE.contains(&version));
    T::read(&mut reader).map_err(|error| Unreadable::Garbled { what, error })
}

fn read_value<T: Versioned>(
    what: &'static str,
    value: Option<&Bytes>,
) -> Result<Option<T>, Unreadable> {
    let Some(value) = value else { return Ok(None) };
    let (version, value) = prefix(what, value)?;
    read(what, version, value).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(expire_timestamp: i64) -> Record {
        Record::OffsetCommit {
            key: offset_commit::Key { group: "g".into(), topic: "t".into(), partition: 1 },
            value: Some(offset_commit::Value {
                offset: 258,
                leader_epoch: 3,
                metadata: "m".into(),
                commit_timestamp: 7,
                expire_timestamp,
                ..Default::default()
            }),
        }
    }

    #[test]
    fn an_offset_is_written_as_kafka_4_4_writes_it() {
        let (key, value) = offset(NO_EXPIRY).encode();
        // Type 1, "g", "t", partition 1.
        assert_eq!(key[..], [0, 1, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 1]);
        let offset_and_epoch = [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 3];
        // Version 4, which is flexible: compact "m", the timestamp, no tags.
        let rest = [2, b'm', 0, 0, 0, 0, 0, 0, 0, 7, 0];
        assert_eq!(value.unwrap()[..], [&[0, 4], &offset_and_epoch[..], &rest].concat());
    }

    #[test]
    fn an_offset_with_an_expiry_is_written_in_version_1() {
        let (_, value) = offset(9).encode();
        let rest = [0, 1, b'm', 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9];
        assert_eq!(value.unwrap()[..], [&[0, 1, 0, 0, 0, 0, 0, 0, 1, 2], &rest[..]].concat());
    }

    #[test]
    fn a_group_is_written_in_version_3() {
        let key = group_metadata::Key { group: "g".into() };
        let value = group_metadata::Value {
            protocol: None,
            leader: None,
            current_state_timestamp: 5,
            ..Default::default()
        };
        let (key, value) = Record::GroupMetadata { key, value: Some(value) }.encode();
        assert_eq!(key[..], [0, 2, 0, 1, b'g']);
        // Version, no type, generation 0, no protocol, no leader, the timestamp, no members.
        let no_one = [0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
        let rest = [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0];
        assert_eq!(value.unwrap()[..], [&[0, 3], &no_one[..], &rest].concat());
    }

    #[test]
    fn what_was_written_is_read() {
        let tombstone = |record| match record {
            Record::OffsetCommit { key, .. } => Record::OffsetCommit { key, value: None },
            Record::GroupMetadata { key, .. } => Record::GroupMetadata { key, value: None },
        };
        let group = Record::GroupMetadata {
            key: group_metadata::Key { group: "g".into() },
            value: Some(group_metadata::Value::sample()),
        };
        // The expiry stands in version 1 only, which has no leader epoch.
        let mut expiring = offset(9);
        if let Record::OffsetCommit { value: Some(value), .. } = &mut expiring {
            value.leader_epoch = -1;
        }
        for record in [offset(NO_EXPIRY), expiring, group] {
            for record in [tombstone(record.clone()), record] {
                let (key, value) = record.encode();
                assert_eq!(Record::decode(Some(&key), value.as_ref()), Ok(record));
            }
        }
    }

    #[test]
    #[ignore = "writes the seeds of fuzz/"]
    fn seeds() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/records");
        let group = Record::GroupMetadata {
            key: group_metadata::Key { group: "g".into() },
            value: Some(group_metadata::Value::default()),
        };
        for (name, record) in
            [("offset", offset(NO_EXPIRY)), ("expiring-offset", offset(9)), ("group", group)]
        {
            let (key, value) = record.encode();
            let input = [&[key.len() as u8], &key[..], &value.unwrap()].concat();
            std::fs::write(format!("{folder}/{name}"), input).unwrap();
        }
    }

    #[test]
    fn offsets_of_the_oldest_brokers_are_read() {
        // Type 0, and version 0 of the value: offset 5, metadata "m", committed at 7.
        let key = Bytes::from_static(&[0, 0, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 1]);
        let value = [0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 1, b'm', 0, 0, 0, 0, 0, 0, 0, 7];
        let value = Bytes::from(value.to_vec());
        let read = Record::decode(Some(&key), Some(&value));
        let Ok(Record::OffsetCommit { key, value: Some(value) }) = read else { panic!("{read:?}") };
        assert_eq!((&*key.group, &*key.topic, key.partition), ("g", "t", 1));
        assert_eq!((value.offset, &*value.metadata, value.commit_timestamp), (5, "m", 7));
        assert_eq!((value.leader_epoch, value.expire_timestamp), (-1, NO_EXPIRY));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let decode = |key: &[u8], value: &[u8]| {
            let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
            Record::decode(Some(&key), Some(&value)).unwrap_err()
        };
        let group = [0, 2, 0, 1, b'g'];
        assert_eq!(decode(&[0, 99, 1], &[]), Unreadable::UnknownType(99));
        let version = Unreadable::UnknownVersion { what: "a group", version: 5 };
        assert_eq!(decode(&group, &[0, 5]), version);
        assert!(matches!(decode(&group, &[0, 3, 0]), Unreadable::Garbled { .. }));
        assert!(matches!(decode(&[0], &[]), Unreadable::Garbled { .. }));
        assert!(matches!(Record::decode(None, None), Err(Unreadable::Garbled { .. })));
    }
}
