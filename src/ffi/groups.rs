//! Groups and their offsets, over the host's `commit_offsets`, `load_offsets` and coordinator records.
//!
//! ```text
//!   the log `groups`      how many coordinators there are: stored before the first group is
//!   the log `groups-NN`   the groups of coordinator NN, and, by the same name, their offsets
//! ```

use super::data::KelpStr;
use super::host::Host;
use super::operation::{Callback, KelpOp, Outcome};
use super::records::{Piece, RecordLogs, next_position};
use super::status::Failure;
use super::storage::{KelpCommitOffsets, KelpLoadOffsets, KelpOffset};
use crate::protocol::wire::{Str, Uuid};
use crate::store::groups::{Committed, Groups, Offset, Record};
use crate::store::{Result, StoreError};
use std::ptr;
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;

pub(super) struct HostGroups {
    host: Arc<Host>,
    records: RecordLogs,
    commit: Callback<KelpCommitOffsets>,
    load: Callback<KelpLoadOffsets>,
    coordinators: OnceLock<i32>,
}

/// Has one record: how many coordinators there are, as text.
const LOG: &str = "groups";
const COORDINATORS: &[u8] = b"coordinators";

/// Told when what is asked for at the start is known, or cannot be.
pub(super) type Then = Box<dyn FnOnce(Result<(), Failure>) + Send>;

impl HostGroups {
    pub(super) fn new(
        records: RecordLogs,
        commit: Callback<KelpCommitOffsets>,
        load: Callback<KelpLoadOffsets>,
    ) -> Self {
        let (host, coordinators) = (records.host.clone(), OnceLock::new());
        Self { host, records, commit, load, coordinators }
    }

    /// Asks the host how many coordinators there are. `configured` counts if there were none yet:
    /// with another number, groups would be looked for where they are not.
    pub(super) fn open(self: &Arc<Self>, configured: i32, then: Then) {
        self.find(0, None, configured, then);
    }

    fn find(self: &Arc<Self>, position: u64, found: Option<i32>, configured: i32, then: Then) {
        let groups = self.clone();
        self.records.load_piece(LOG, position, move |piece| {
            let found_in = |(records, next): Piece<Record>| {
                let mut records = records.iter().filter(|record| record.key == COORDINATORS);
                let found = records.try_fold(found, |_, record| number(record).map(Some))?;
                Ok((found, next))
            };
            match piece.and_then(found_in) {
                Err(failure) => then(Err(failure)),
                Ok((found, Some(next))) => groups.find(next, found, configured, then),
                Ok((Some(found), None)) => groups.known(found, then),
                Ok((None, None)) => groups.choose(configured, then),
            }
        });
    }

    fn choose(self: &Arc<Self>, configured: i32, then: Then) {
        let value = Some(configured.to_string().into());
        let record = Record { key: COORDINATORS.into(), value };
        let groups = self.clone();
        self.records.append(LOG, vec![record], move |stored| match stored {
            Ok(()) => groups.known(configured, then),
            Err(failure) => then(Err(failure)),
        });
    }

    fn known(&self, coordinators: i32, then: Then) {
        // Asked for once, so it is not set yet.
        let _ = self.coordinators.set(coordinators);
        then(Ok(()));
    }

    async fn load_piece(&self, log: &str, position: u64) -> Result<Piece<Offset>, Failure> {
        let asked = {
            let log = log.to_owned();
            let body = KelpLoadOffsets {
                op: KelpOp::NEW,
                log: KelpStr::of(&log),
                position,
                offsets: ptr::null(),
                offset_count: 0,
                next_position: 0,
            };
            self.host.ask(self.load, body, log, move |outcome| {
                outcome.ok()?;
                let offsets = outcome.array(outcome.body.offsets, outcome.body.offset_count)?;
                let offsets = offsets.iter().map(|offset| read(outcome, offset));
                let next = next_position(position, outcome.body.next_position)?;
                Ok((offsets.collect::<Result<_, _>>()?, next))
            })
        };
        asked.await
    }
}

#[async_trait::async_trait]
impl Groups for HostGroups {
    fn coordinators(&self) -> i32 {
        self.coordinators.get().copied().unwrap_or(0)
    }

    async fn commit_offsets(&self, coordinator: i32, offsets: Vec<Offset>) -> Result<()> {
        let (done, committed) = oneshot::channel();
        {
            let offsets = Offsets::new(log(coordinator), offsets);
            let body = KelpCommitOffsets {
                op: KelpOp::NEW,
                log: KelpStr::of(&offsets.log),
                offsets: offsets.raw.as_ptr(),
                offset_count: offsets.raw.len(),
            };
            let then = |committed| drop(done.send(committed));
            self.host.submit(self.commit, body, offsets, |outcome| outcome.ok(), then);
        }
        stored(committed).await
    }

    async fn append_records(&self, coordinator: i32, records: Vec<Record>) -> Result<()> {
        let (done, appended) = oneshot::channel();
        self.records.append(&log(coordinator), records, |appended| drop(done.send(appended)));
        stored(appended).await
    }

    async fn load_offsets(
        &self,
        coordinator: i32,
        show: &mut (dyn FnMut(Offset) + Send),
    ) -> Result<()> {
        let (log, mut position) = (log(coordinator), Some(0));
        while let Some(from) = position {
            let (offsets, next) = self.load_piece(&log, from).await.map_err(unavailable)?;
            offsets.into_iter().for_each(&mut *show);
            position = next;
        }
        Ok(())
    }

    async fn load_records(
        &self,
        coordinator: i32,
        show: &mut (dyn FnMut(Record) + Send),
    ) -> Result<()> {
        self.records.load(&log(coordinator), show).await.map_err(unavailable)
    }
}

/// The name of a coordinator's log.
fn log(coordinator: i32) -> String {
    format!("{LOG}-{coordinator:02}")
}

/// Waits for the host as long as it takes: were a change given up, it could still be carried out
/// behind a later one.
async fn stored(answer: oneshot::Receiver<Result<(), Failure>>) -> Result<()> {
    answer.await.unwrap_or(Err(Failure::Stopped)).map_err(unavailable)
}

/// Whatever a host answers, it may do better when it is asked again.
fn unavailable(failure: Failure) -> StoreError {
    StoreError::Unavailable(failure.to_string())
}

/// How many coordinators a record says there are.
fn number(record: &Record) -> Result<i32, Failure> {
    let text = record.value.as_deref().and_then(|value| std::str::from_utf8(value).ok());
    let number = text.and_then(|text| text.parse().ok()).filter(|number| *number > 0);
    number.ok_or(Failure::Malformed("no number of coordinators"))
}

/// An offset that the host gave.
fn read(outcome: &Outcome<'_, KelpLoadOffsets>, raw: &KelpOffset) -> Result<Offset, Failure> {
    let text = |text| outcome.text(text).map(Str::from);
    let committed = match raw.is_tombstone {
        0 => Some(Committed {
            offset: raw.offset,
            leader_epoch: raw.leader_epoch,
            metadata: text(raw.metadata)?,
            commit_timestamp: raw.commit_timestamp,
            expire_timestamp: raw.expire_timestamp,
            topic_id: Uuid(raw.topic_id),
        }),
        _ => None,
    };
    let (group, topic, partition) = (text(raw.group)?, text(raw.topic)?, raw.partition);
    Ok(Offset { group, topic, partition, committed })
}

/// Offsets for the host, with the memory they point to.
struct Offsets {
    log: String,
    raw: Vec<KelpOffset>,
    _owned: Vec<Offset>,
}

// SAFETY: the pointers lead into `_owned`, which is immutable and may be sent.
unsafe impl Send for Offsets {}

impl Offsets {
    fn new(log: String, owned: Vec<Offset>) -> Self {
        Self { log, raw: owned.iter().map(KelpOffset::of).collect(), _owned: owned }
    }
}

impl KelpOffset {
    /// Points into `offset`.
    fn of(offset: &Offset) -> Self {
        let Offset { group, topic, partition, committed } = offset;
        let key = Self {
            group: KelpStr::of(group),
            topic: KelpStr::of(topic),
            topic_id: Uuid::ZERO.0,
            partition: *partition,
            leader_epoch: -1,
            offset: -1,
            metadata: KelpStr::EMPTY,
            commit_timestamp: -1,
            expire_timestamp: -1,
            is_tombstone: 1,
            reserved: 0,
        };
        let Some(committed) = committed else { return key };
        Self {
            topic_id: committed.topic_id.0,
            leader_epoch: committed.leader_epoch,
            offset: committed.offset,
            metadata: KelpStr::of(&committed.metadata),
            commit_timestamp: committed.commit_timestamp,
            expire_timestamp: committed.expire_timestamp,
            is_tombstone: 0,
            ..key
        }
    }
}
