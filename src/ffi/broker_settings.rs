//! What was set of brokers while they ran, among the host's coordinator records.

use super::groups::Then;
use super::records::{Piece, RecordLogs};
use super::status::Failure;
use crate::store::groups::Record;
use crate::store::topics::{BrokerConfigs, ConfigChanges, change_broker_configs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};

/// A record for each setting. Its key is `BROKER/NAME`, where no broker stands for all of them.
const LOG: &str = "brokers";

pub(super) struct BrokerSettings {
    logs: RecordLogs,
    known: Arc<Mutex<Arc<BrokerConfigs>>>,
    /// Held until the host has completed what is stored.
    altering: Arc<tokio::sync::Mutex<()>>,
    /// Sent after one changed.
    changes: Arc<watch::Sender<()>>,
}

impl BrokerSettings {
    pub(super) fn new(logs: RecordLogs, changes: Arc<watch::Sender<()>>) -> Self {
        Self { logs, known: Arc::default(), altering: Arc::default(), changes }
    }

    pub(super) fn configs(&self) -> Arc<BrokerConfigs> {
        lock(&self.known).clone()
    }

    /// Asks the host for what there is.
    pub(super) fn open(self: Arc<Self>, then: Then) {
        self.load(0, BrokerConfigs::new(), then);
    }

    fn load(self: Arc<Self>, position: u64, mut found: BrokerConfigs, then: Then) {
        let logs = self.logs.clone();
        logs.load_piece(LOG, position, move |piece| {
            let take = |(records, next): Piece<Record>| {
                records.into_iter().try_for_each(|record| take(&mut found, record))?;
                Ok(next)
            };
            match piece.and_then(take) {
                Err(failure) => then(Err(failure)),
                Ok(Some(next)) => self.load(next, found, then),
                Ok(None) => {
                    *lock(&self.known) = Arc::new(found);
                    then(Ok(()));
                }
            }
        });
    }

    pub(super) async fn alter(
        &self,
        broker: String,
        changes: ConfigChanges,
    ) -> Result<(), Failure> {
        let alone = self.logs.host.turn(&self.altering).await?;
        let record = |(name, value): (&String, &Option<String>)| Record {
            key: format!("{broker}/{name}").into(),
            value: value.clone().map(Into::into),
        };
        let records = changes.iter().map(record).collect();
        let (done, answer) = oneshot::channel();
        let (known, changed) = (self.known.clone(), self.changes.clone());
        self.logs.append(LOG, records, move |stored| {
            if stored.is_ok() {
                let mut known = lock(&known);
                let mut all = (**known).clone();
                change_broker_configs(&mut all, broker, changes);
                *known = Arc::new(all);
                changed.send_replace(());
            }
            drop(alone);
            // Who waited may be gone.
            let _ = done.send(stored);
        });
        self.logs.host.wait(answer).await
    }
}

fn lock(known: &Mutex<Arc<BrokerConfigs>>) -> MutexGuard<'_, Arc<BrokerConfigs>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(found: &mut BrokerConfigs, Record { key, value }: Record) -> Result<(), Failure> {
    let text = |bytes: &[u8]| str::from_utf8(bytes).map(str::to_string);
    let key = text(&key).map_err(|_| MALFORMED)?;
    let value = value.map(|value| text(&value)).transpose().map_err(|_| MALFORMED)?;
    let (broker, name) = key.split_once('/').ok_or(MALFORMED)?;
    let changes = [(name.to_string(), value)].into();
    change_broker_configs(found, broker.to_string(), changes);
    Ok(())
}

const MALFORMED: Failure = Failure::Malformed("a record of the log of brokers");
