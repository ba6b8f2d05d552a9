//! Every message in every version and direction, and every record, against what other
//! implementations write: the files that `tests/messages/run.sh` has them make. What Kelp writes
//! goes into a file for those that can only read.

use super::records::{Versioned, for_each_record};
use super::*;
use crate::protocol::api_key::{ApiKey, for_each_api};
use crate::protocol::wire::{Reader, Wire, Writer};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::{RangeFrom, RangeInclusive};
use std::path::{Path, PathBuf};

/// API or record, version and direction.
type Place = (String, i16, String);

/// A message as another implementation wrote it.
struct Sample {
    kind: String,
    bytes: Bytes,
    /// What Kelp writes of it: it drops tags it does not know.
    written: Bytes,
}

/// What every API, version and direction must have been compared in; flexible versions also with
/// unknown tags.
const KINDS: [&str; 7] = ["defaults", "full", "null", "empty", "minimum", "maximum", "many"];

/// Who wrote which file, and whether its defaults are Kafka's: kmsg's are those of a client.
const OTHERS: [(&str, bool); 2] = [("kafka.txt", true), ("kmsg.txt", false)];

/// What Kelp writes of the same messages, in the same form, with the name of the API or record.
const OURS: &str = "kelp.txt";

/// What others can write and Kelp does not speak: key and versions.
const NOT_SPOKEN: &[(i16, RangeInclusive<i16>)] = &[
    // LeaderAndIsr, StopReplica, UpdateMetadata and ControlledShutdown were between a ZooKeeper
    // controller and its brokers. Kafka 4 has neither.
    (4, 0..=7),
    (5, 0..=4),
    (6, 0..=8),
    (7, 0..=3),
    // KIP-939's is not stable in Kafka 4.4: its brokers do not offer it.
    (ApiKey::InitProducerId as i16, 6..=6),
    // Share groups before they were stable.
    (ApiKey::ShareGroupHeartbeat as i16, 0..=0),
    (ApiKey::ShareGroupDescribe as i16, 0..=0),
    (ApiKey::ShareFetch as i16, 0..=0),
    (ApiKey::ShareAcknowledge as i16, 0..=0),
];

/// The comparison with what one implementation wrote.
#[derive(Default)]
struct Compared {
    has_kafkas_defaults: bool,
    /// Those not compared yet.
    samples: BTreeMap<Place, Vec<Sample>>,
    /// How many places the lists have, and how many of them were compared.
    wanted: usize,
    done: usize,
    messages: usize,
    problems: Vec<String>,
    /// What Kelp wrote.
    ours: String,
}

fn read(path: &Path) -> BTreeMap<Place, Vec<Sample>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut samples = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let place = (words[0].to_string(), words[1].parse().unwrap(), words[2].to_string());
        let bytes = from_hex(words[4]);
        let written = words.get(5).map_or_else(|| bytes.clone(), |hex| from_hex(hex));
        let sample = Sample { kind: words[3].to_string(), bytes, written };
        samples.entry(place).or_insert_with(Vec::new).push(sample);
    }
    samples
}

fn from_hex(text: &str) -> Bytes {
    let digit = |letter: u8| (letter as char).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn encode<T: Wire>(message: &T, version: i16, flexible: bool) -> Bytes {
    let mut writer = Writer::new(version, flexible);
    message.write(&mut writer);
    writer.finish().concat().into()
}

impl Compared {
    fn api<T: Wire + Default>(&mut self, api: ApiKey, direction: &str) {
        let key = api.code().to_string();
        self.message::<T>(&key, &format!("{api:?}"), api.versions(), api.flexible(), direction);
    }

    fn record<T: Versioned>(&mut self, name: &str) {
        self.message::<T>(name, name, T::VERSIONS, T::FLEXIBLE, "record");
    }

    fn message<T: Wire + Default>(
        &mut self,
        key: &str,
        name: &str,
        versions: RangeInclusive<i16>,
        flexible: RangeFrom<i16>,
        direction: &str,
    ) {
        self.wanted += versions.clone().count();
        for version in versions {
            let place = (key.to_string(), version, direction.to_string());
            let Some(samples) = self.samples.remove(&place) else { continue };
            let is_flexible = flexible.contains(&version);
            self.done += 1;
            let kinds: BTreeSet<&str> = samples.iter().map(|sample| sample.kind.as_str()).collect();
            let tags = is_flexible.then_some("tags");
            for kind in KINDS.into_iter().chain(tags).filter(|kind| !kinds.contains(kind)) {
                self.problems.push(format!("{name} v{version} {direction}: {kind} is missing"));
            }
            for sample in samples {
                self.messages += 1;
                let kind = &sample.kind;
                let is_default = self.has_kafkas_defaults && kind == "defaults";
                match compare::<T>(&sample, version, is_flexible, is_default) {
                    Ok(written) => {
                        let hex = to_hex(&written);
                        let line = format!("{key} {version} {direction} {kind} {hex} {name}\n");
                        self.ours.push_str(&line);
                    }
                    Err(problem) => {
                        self.problems
                            .push(format!("{name} v{version} {direction} {kind}: {problem}"));
                    }
                }
            }
        }
    }
}

/// Kelp reads the bytes and writes the same, which it gives; and what it holds for the default is
/// what is there.
fn compare<T: Wire + Default>(
    sample: &Sample,
    version: i16,
    flexible: bool,
    is_default: bool,
) -> Result<Bytes, String> {
    let mut reader = Reader::new(sample.bytes.clone(), version, flexible);
    let message = T::read(&mut reader).map_err(|error| error.to_string())?;
    if !reader.rest().is_empty() {
        return Err(format!("{} bytes are left over", reader.rest().len()));
    }
    let written = encode(&message, version, flexible);
    same("what was read is written", &written, &sample.written)?;
    if is_default {
        same("the default is written", &encode(&T::default(), version, flexible), &sample.written)?;
    }
    Ok(written)
}

fn same(what: &str, ours: &[u8], theirs: &[u8]) -> Result<(), String> {
    if ours == theirs {
        return Ok(());
    }
    let place = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    let near = |bytes: &[u8]| bytes[place..bytes.len().min(place + 8)].to_vec();
    let (near_ours, near_theirs) = (near(ours), near(theirs));
    Err(format!("{what} otherwise from byte {place}: {near_ours:x?} instead of {near_theirs:x?}"))
}

fn compare_all(compared: &mut Compared) {
    macro_rules! all {
        (served {$($served:tt)*} described {$($described:tt)*}) => {
            all! { $($served)* $($described)* }
        };
        ($($key:literal => $name:ident $versions:expr, $flexible:expr, $module:ident;)*) => {$(
            compared.api::<$module::Request>(ApiKey::$name, "request");
            compared.api::<$module::Response>(ApiKey::$name, "response");
        )*};
    }
    for_each_api!(all);

    macro_rules! all_records {
        ($($name:ident => $versions:expr, $flexible:expr, $module:ident::$message:ident;)*) => {$(
            compared.record::<records::$module::$message>(stringify!($name));
        )*};
    }
    for_each_record!(all_records);
}

#[test]
#[ignore = "tests/messages/run.sh makes the files in KELP_MESSAGES, and runs this"]
fn every_message_is_what_others_write() {
    let mut wanted = 0;
    let mut done = 0;
    let mut problems = Vec::new();
    let mut not_spoken = BTreeSet::new();
    let mut ours = String::new();
    let folder = PathBuf::from(std::env::var_os("KELP_MESSAGES").unwrap());
    for (name, has_kafkas_defaults) in OTHERS {
        let samples = read(&folder.join(name));
        let mut compared = Compared { has_kafkas_defaults, samples, ..Compared::default() };
        compare_all(&mut compared);
        let (count, messages) = (compared.done, compared.messages);
        println!("{name}: {count} compared, in {messages} messages");
        done += count;
        wanted = compared.wanted;
        problems.append(&mut compared.problems);
        ours.push_str(&compared.ours);
        for (key, version, direction) in compared.samples.into_keys() {
            match NOT_SPOKEN
                .iter()
                .find(|(api, versions)| api.to_string() == key && versions.contains(&version))
            {
                Some((api, versions)) => drop(not_spoken.insert(format!("{api} v{versions:?}"))),
                None => problems.push(format!("{key} v{version} {direction} has no table")),
            }
        }
    }
    println!("not spoken: {not_spoken:?}");
    println!(
        "{done} compared of {wanted} in the lists (API x version x direction, record x version)"
    );
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    assert_eq!(done, wanted);
    std::fs::write(folder.join(OURS), ours).unwrap();
}
