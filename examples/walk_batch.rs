//! Batches to records and back, for a program that stores single records.
//!
//! ```sh
//! cargo run --example walk_batch             # makes a batch of messages, and messages of it again
//! cargo run --example walk_batch -- FILE     # prints the records in a segment of Kafka's log
//! ```

use bytes::Bytes;
use kelp::record::batch::Batches;
use kelp::record::builder::{Builder, Fields};
use kelp::record::codec::Codec;
use kelp::record::records::{Headers, Record};
use kelp::record::unpacked::Unpacked;
use std::error::Error;

/// A message as the program stores it.
#[derive(Debug, PartialEq)]
struct Message {
    offset: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let segment = match std::env::args_os().nth(1) {
        Some(file) => std::fs::read(file)?.into(),
        None => to_batch(&samples())?,
    };
    for message in to_messages(vec![segment])? {
        println!("{}", line(&message));
    }
    Ok(())
}

fn samples() -> Vec<Message> {
    let message = |offset, key: Option<&str>, value: Option<&str>, headers| Message {
        offset,
        timestamp: 1_700_000_000_000 + offset,
        key: key.map(Into::into),
        value: value.map(Into::into),
        headers,
    };
    let trace = vec![("trace".to_string(), Some(b"7f".to_vec())), ("flag".to_string(), None)];
    vec![
        message(40, Some("user-1"), Some("hello"), trace),
        message(41, None, Some(""), Vec::new()),
        message(45, Some("user-1"), None, Vec::new()),
    ]
}

/// One batch of all messages, compressed. A longer list would be cut where a record is refused with
/// `BuildError::Full`.
fn to_batch(messages: &[Message]) -> Result<Bytes, Box<dyn Error>> {
    let base_offset = messages.first().map_or(0, |first| first.offset);
    let compression = Codec::Lz4.into();
    let mut builder = Builder::new(Fields { base_offset, compression, ..Fields::default() });
    for message in messages {
        let headers = message.headers.iter();
        let headers: Vec<_> = headers.map(|(k, v)| (k.as_bytes(), v.as_deref())).collect();
        builder.append(&Record {
            offset: message.offset,
            timestamp: message.timestamp,
            key: message.key.as_deref(),
            value: message.value.as_deref(),
            headers: Headers::new(&headers),
        })?;
    }
    Ok(builder.finish_bytes()?)
}

/// The messages in batches that lie one after the other.
fn to_messages(slices: Vec<Bytes>) -> Result<Vec<Message>, Box<dyn Error>> {
    let (mut messages, mut batches) = (Vec::new(), Batches::new(slices));
    for batch in batches.by_ref() {
        if batch.checksum() != batch.header.crc {
            return Err(format!("offset {}: wrong checksum", batch.header.base_offset).into());
        }
        // Such as the end of a transaction: not for applications.
        if batch.header.is_control() {
            continue;
        }
        for record in &Unpacked::new(&batch)? {
            let record = record?;
            let name = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
            let headers = record.headers.map(|(key, value)| (name(key), value.map(Into::into)));
            messages.push(Message {
                offset: record.offset,
                timestamp: record.timestamp,
                key: record.key.map(Into::into),
                value: record.value.map(Into::into),
                headers: headers.collect(),
            });
        }
    }
    if batches.is_cut() { Err("the last batch is cut".into()) } else { Ok(messages) }
}

fn line(message: &Message) -> String {
    let text = |bytes: &Option<Vec<u8>>| match bytes {
        Some(bytes) => format!("\"{}\"", String::from_utf8_lossy(bytes)),
        None => "null".to_string(),
    };
    let Message { offset, timestamp, .. } = message;
    let (key, value) = (text(&message.key), text(&message.value));
    let headers = message.headers.iter().map(|(key, value)| format!(" {key}={}", text(value)));
    format!("{offset} at {timestamp}: {key} = {value}{}", headers.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_from_their_batch() {
        let batch = to_batch(&samples()).unwrap();
        assert_eq!(to_messages(vec![batch.clone()]).unwrap(), samples());
        let (first, second) = (batch.slice(..70), batch.slice(70..));
        assert_eq!(to_messages(vec![first.clone(), second]).unwrap(), samples());
        assert!(to_messages(vec![first]).is_err(), "cut");
        let mut changed = batch.to_vec();
        changed[70] ^= 1;
        assert!(to_messages(vec![changed.into()]).is_err(), "changed");
    }
}
