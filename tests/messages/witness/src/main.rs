//! witness FILE: has the kafka-protocol crate read every message that Kelp wrote into FILE, and write it again. The same
//! bytes must come out, in every API, version and direction that both have.
//!
//! A line of FILE is: key or record's name, version, direction or `record`, kind, bytes in hex, API's or record's name.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiKey, ConsumerProtocolAssignment, ConsumerProtocolSubscription, EndTxnMarker, RequestKind,
    ResponseKind,
};
use kafka_protocol::protocol::{Decodable, Encodable, Message, VersionRange};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

/// API or record, version and direction.
type Place<'a> = (&'a str, i16, &'a str);

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// What the crate says that it has, and does not read. Its list of APIs goes by the responses, and the tables of these
/// requests end one version earlier; Kafka's own classes read them.
const FAULTS: [Place; 2] = [("OffsetCommit", 10, "request"), ("OffsetFetch", 10, "request")];

#[derive(Default)]
struct Compared<'a> {
    messages: usize,
    both: BTreeSet<Place<'a>>,
    /// What the crate does not have, by the reason.
    only_kelp: BTreeMap<&'static str, BTreeSet<String>>,
    /// Those of `both` that are not the same, with what is wrong.
    problems: BTreeMap<Place<'a>, Vec<String>>,
}

fn main() -> Result<ExitCode> {
    let path = std::env::args().nth(1).ok_or("usage: witness FILE")?;
    let text = std::fs::read_to_string(path)?;
    let mut compared = Compared::default();
    for line in text.lines() {
        compared.message(line)?;
    }
    compared.print();
    let faults: Vec<_> = compared.problems.into_keys().collect();
    let are_known = faults == FAULTS;
    if !are_known {
        println!("but exactly these are known to be wrong: {FAULTS:?}");
    }
    Ok(if are_known { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl<'a> Compared<'a> {
    fn message(&mut self, line: &'a str) -> Result<()> {
        let [key, version, direction, kind, hex, name] = line.split(' ').collect::<Vec<_>>()[..]
        else {
            return Err(format!("no message: {line:.80}").into());
        };
        let version = version.parse()?;
        if let Some(reason) = missing(key, version) {
            let place = format!("{name} v{version}");
            self.only_kelp.entry(reason).or_default().insert(place);
            return Ok(());
        }
        let place = (name, version, direction);
        self.both.insert(place);
        self.messages += 1;
        let bytes = from_hex(hex)?;
        let problem = match again(key, version, direction, bytes.clone()) {
            Ok(written) if written == bytes => return Ok(()),
            Ok(written) => format!("{kind} becomes {}", difference(&bytes, &written)),
            Err(error) => format!("{kind}: {error}"),
        };
        self.problems.entry(place).or_default().push(problem);
        Ok(())
    }

    fn print(&self) {
        for (reason, places) in &self.only_kelp {
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            println!("not in the crate, {reason}: {}", places.join(", "));
        }
        for ((name, version, direction), problems) in &self.problems {
            let (first, count) = (&problems[0], problems.len());
            println!("wrong in {name} v{version} {direction}, {count} messages, as {first}");
        }
        let (same, both) = (self.both.len() - self.problems.len(), self.both.len());
        println!(
            "kafka-protocol.rs: {same} the same of {both} that both have \
             (API x version x direction, record x version), in {} messages",
            self.messages
        );
    }
}

/// Why the crate does not have a place, if it doesn't.
fn missing(key: &str, version: i16) -> Option<&'static str> {
    match versions(key) {
        Some(range) if version < range.min => Some("as Kafka 4 dropped it"),
        Some(range) if version > range.max => Some("as it is newer"),
        Some(_) => None,
        None if key.parse::<i16>().is_ok() => Some("as the API is newer"),
        None => Some("as it has no tables of coordinators' records"),
    }
}

fn api(key: &str) -> Option<ApiKey> {
    ApiKey::try_from(key.parse::<i16>().ok()?).ok()
}

/// The versions that the crate says it has.
fn versions(key: &str) -> Option<VersionRange> {
    match key {
        "ConsumerProtocolSubscription" => Some(ConsumerProtocolSubscription::VERSIONS),
        "ConsumerProtocolAssignment" => Some(ConsumerProtocolAssignment::VERSIONS),
        "EndTxnMarker" => Some(EndTxnMarker::VERSIONS),
        _ => api(key).map(|api| api.valid_versions()),
    }
}

/// What the crate writes of what it read.
fn again(key: &str, version: i16, direction: &str, mut bytes: Bytes) -> Result<Bytes> {
    let from = &mut bytes;
    let mut to = BytesMut::new();
    match (key, direction) {
        ("ConsumerProtocolSubscription", _) => {
            ConsumerProtocolSubscription::decode(from, version)?.encode(&mut to, version)?;
        }
        ("ConsumerProtocolAssignment", _) => {
            ConsumerProtocolAssignment::decode(from, version)?.encode(&mut to, version)?;
        }
        ("EndTxnMarker", _) => EndTxnMarker::decode(from, version)?.encode(&mut to, version)?,
        (_, "request") => {
            let api = api(key).ok_or("unknown key")?;
            RequestKind::decode(api, from, version)?.encode(&mut to, version)?;
        }
        _ => {
            let api = api(key).ok_or("unknown key")?;
            ResponseKind::decode(api, from, version)?.encode(&mut to, version)?;
        }
    }
    match bytes.len() {
        0 => Ok(to.freeze()),
        left => Err(format!("{left} bytes are left over").into()),
    }
}

fn from_hex(text: &str) -> Result<Bytes> {
    let digits = text.as_bytes().chunks(2).map(std::str::from_utf8);
    digits.map(|pair| Ok(u8::from_str_radix(pair?, 16)?)).collect()
}

fn difference(ours: &[u8], theirs: &[u8]) -> String {
    let place = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    let near = |bytes: &[u8]| bytes[place..bytes.len().min(place + 8)].to_vec();
    format!("{:x?} instead of {:x?} at byte {place}", near(theirs), near(ours))
}
