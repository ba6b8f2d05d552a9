//! The records of coordinators, in logs of the host's.

use super::data::{KelpBytes, KelpStr};
use super::host::Host;
use super::operation::{Callback, KelpOp};
use super::status::Failure;
use super::storage::{KelpAppendRecords, KelpLoadRecords, KelpRecord};
use crate::store::groups::Record;
use std::ptr;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The host's functions for records.
#[derive(Clone)]
pub(super) struct RecordLogs {
    pub(super) host: Arc<Host>,
    pub(super) append: Callback<KelpAppendRecords>,
    pub(super) load: Callback<KelpLoadRecords>,
}

/// A piece of what is stored, and where the next one begins.
pub(super) type Piece<T> = (Vec<T>, Option<u64>);

impl RecordLogs {
    /// Appends records to a log; `then` is told when it is done, however late that is.
    pub(super) fn append(
        &self,
        log: &str,
        records: Vec<Record>,
        then: impl FnOnce(Result<(), Failure>) + Send + 'static,
    ) {
        let records = Records::new(log, records);
        let body = KelpAppendRecords {
            op: KelpOp::NEW,
            log: KelpStr::of(&records.log),
            records: records.raw.as_ptr(),
            record_count: records.raw.len(),
        };
        self.host.submit(self.append, body, records, |outcome| outcome.ok(), then);
    }

    /// Shows all records of a log. Waits for each piece as long as the host may take.
    pub(super) async fn load(
        &self,
        log: &str,
        mut show: impl FnMut(Record) + Send,
    ) -> Result<(), Failure> {
        let mut position = Some(0);
        while let Some(from) = position {
            let (done, piece) = oneshot::channel();
            // Who waited may be gone.
            self.load_piece(log, from, |piece| drop(done.send(piece)));
            let (records, next) = self.host.wait(piece).await?;
            records.into_iter().for_each(&mut show);
            position = next;
        }
        Ok(())
    }

    pub(super) fn load_piece(
        &self,
        log: &str,
        position: u64,
        then: impl FnOnce(Result<Piece<Record>, Failure>) + Send + 'static,
    ) {
        let log = log.to_owned();
        let body = KelpLoadRecords {
            op: KelpOp::NEW,
            log: KelpStr::of(&log),
            position,
            records: ptr::null(),
            record_count: 0,
            next_position: 0,
        };
        self.host.submit(
            self.load,
            body,
            log,
            move |outcome| {
                outcome.ok()?;
                let records = outcome.array(outcome.body.records, outcome.body.record_count)?;
                let record = |record: &KelpRecord| {
                    let value = match record.is_tombstone {
                        0 => Some(outcome.bytes(record.value)?),
                        _ => None,
                    };
                    Ok(Record { key: outcome.bytes(record.key)?, value })
                };
                let records = records.iter().map(record).collect::<Result<_, _>>()?;
                Ok((records, next_position(position, outcome.body.next_position)?))
            },
            then,
        );
    }
}

/// Where the next piece begins, if there is one.
pub(super) fn next_position(position: u64, next: u64) -> Result<Option<u64>, Failure> {
    match next {
        0 => Ok(None),
        next if next <= position => Err(Failure::Malformed("a position does not grow")),
        next => Ok(Some(next)),
    }
}

/// Records for the host, with the memory they point to.
struct Records {
    log: String,
    raw: Vec<KelpRecord>,
    _owned: Vec<Record>,
}

// SAFETY: the pointers lead into `_owned`, which is immutable and may be sent.
unsafe impl Send for Records {}

impl Records {
    fn new(log: &str, owned: Vec<Record>) -> Self {
        let record = |Record { key, value }: &Record| KelpRecord {
            key: KelpBytes::of(key),
            value: value.as_deref().map_or(KelpBytes::EMPTY, KelpBytes::of),
            is_tombstone: u32::from(value.is_none()),
            reserved: 0,
        };
        Self { log: log.to_owned(), raw: owned.iter().map(record).collect(), _owned: owned }
    }
}
