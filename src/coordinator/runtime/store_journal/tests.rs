//! The journal over a store whose answers a test gives.

use super::*;
use crate::coordinator::runtime::journal::MAX_PENDING_KIB;
use crate::messages::records::group_metadata;
use crate::protocol::error_code::ErrorCode::{
    CoordinatorNotAvailable, KafkaStorageError, UnknownServerError,
};
use crate::protocol::wire::Uuid;
use crate::store::Result;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

type Promise = oneshot::Sender<Result<()>>;

/// Tells a test what it is asked to store, and stores it when the test says so.
struct Script {
    asked: UnboundedSender<(Vec<Change>, Promise)>,
    stored: Mutex<Vec<Change>>,
}

impl Script {
    async fn ask(&self, changes: Vec<Change>) -> Result<()> {
        let (promise, outcome) = oneshot::channel();
        self.asked.send((changes, promise)).unwrap();
        outcome.await.unwrap()
    }
}

#[async_trait::async_trait]
impl Groups for Script {
    fn coordinators(&self) -> i32 {
        1
    }

    async fn commit_offsets(&self, coordinator: i32, offsets: Vec<Offset>) -> Result<()> {
        assert_eq!(coordinator, 3);
        self.ask(offsets.into_iter().map(Change::Offset).collect()).await
    }

    async fn append_records(&self, coordinator: i32, records: Vec<groups::Record>) -> Result<()> {
        assert_eq!(coordinator, 3);
        self.ask(records.into_iter().map(Change::Record).collect()).await
    }

    async fn load_offsets(&self, _: i32, show: &mut (dyn FnMut(Offset) + Send)) -> Result<()> {
        for change in &*self.stored.lock().unwrap() {
            if let Change::Offset(offset) = change {
                show(offset.clone());
            }
        }
        Ok(())
    }

    async fn load_records(
        &self,
        _: i32,
        show: &mut (dyn FnMut(groups::Record) + Send),
    ) -> Result<()> {
        for change in &*self.stored.lock().unwrap() {
            if let Change::Record(record) = change {
                show(record.clone());
            }
        }
        Ok(())
    }
}

struct Fixture {
    journal: StoreJournal,
    store: Arc<Script>,
    asked: UnboundedReceiver<(Vec<Change>, Promise)>,
}

impl Fixture {
    fn new() -> Self {
        let (sender, asked) = unbounded_channel();
        let store = Arc::new(Script { asked: sender, stored: Mutex::default() });
        let room = Arc::new(Semaphore::new(MAX_PENDING_KIB));
        let journal = StoreJournal::new(store.clone(), 3, 10_000, room);
        Self { journal, store, asked }
    }

    fn append(&self, records: &[Record]) -> Stored {
        self.journal.append(records, Limits::Apply).expect("there is room")
    }

    /// Gives the outcome of the call that is under way, or comes next, which must be this one.
    async fn answer(&mut self, changes: &[Record], outcome: Result<()>) {
        let (asked, promise) = self.asked.recv().await.unwrap();
        assert_eq!(asked, changes.iter().map(Change::of).collect::<Vec<_>>());
        if outcome.is_ok() {
            self.store.stored.lock().unwrap().extend(asked);
        }
        promise.send(outcome).unwrap();
    }

    async fn loaded(&self) -> Vec<Record> {
        let mut records = Vec::new();
        self.journal.load(&mut |record| records.push(record)).await.unwrap();
        records
    }
}

fn offset(offset: i64) -> Record {
    let key = offset_commit::Key { group: "g".into(), topic: "t".into(), partition: 2 };
    let value = offset_commit::Value {
        offset,
        leader_epoch: 5,
        metadata: "words".into(),
        commit_timestamp: 6,
        expire_timestamp: 7,
        topic_id: Uuid([8; 16]),
    };
    Record::OffsetCommit { key, value: Some(value) }
}

fn group(generation: i32) -> Record {
    let value = group_metadata::Value { generation, ..Default::default() };
    Record::GroupMetadata { key: group_metadata::Key { group: "g".into() }, value: Some(value) }
}

fn deleted() -> [Record; 2] {
    let Record::OffsetCommit { key, .. } = offset(0) else { unreachable!("it is an offset") };
    let group = group_metadata::Key { group: "g".into() };
    [Record::OffsetCommit { key, value: None }, Record::GroupMetadata { key: group, value: None }]
}

fn broken() -> Result<()> {
    Err(StoreError::Unavailable("as the test wants it".into()))
}

#[tokio::test]
async fn what_comes_during_a_call_goes_with_the_next_one_offsets_first() {
    let mut f = Fixture::new();
    let first = f.append(&[offset(1)]);
    let (asked, promise) = f.asked.recv().await.unwrap();
    assert_eq!(asked, [Change::of(&offset(1))]);
    let [no_offset, no_group] = deleted();
    let second = f.append(&[group(1), offset(2)]);
    let third = f.append(&[no_offset.clone(), no_group.clone()]);
    assert!(f.asked.try_recv().is_err(), "one call at a time");
    promise.send(Ok(())).unwrap();
    assert_eq!(first.await, Ok(()));

    f.answer(&[offset(2), no_offset], Ok(())).await;
    f.answer(&[group(1), no_group], Ok(())).await;
    assert_eq!((second.await, third.await), (Ok(()), Ok(())));
}

#[tokio::test]
async fn after_a_failure_nothing_is_stored_until_it_was_looked_what_is() {
    let mut f = Fixture::new();
    let stored = f.append(&[group(1), offset(1)]);
    f.answer(&[offset(1)], Ok(())).await;
    f.answer(&[group(1)], Ok(())).await;
    assert_eq!(stored.await, Ok(()));

    let fails = f.append(&[offset(2), group(2)]);
    let (_, promise) = f.asked.recv().await.unwrap();
    let behind = f.append(&[offset(3)]);
    promise.send(broken()).unwrap();
    assert_eq!((fails.await, behind.await), (Err(KafkaStorageError), Err(KafkaStorageError)));
    let refused = f.journal.append(&[offset(4)], Limits::DoNotApply);
    assert_eq!(refused.err(), Some(CoordinatorNotAvailable));
    assert!(f.asked.try_recv().is_err(), "nothing of it goes to the store");

    assert_eq!(f.loaded().await, [group(1), offset(1)]);
    let again = f.append(&[offset(5)]);
    f.answer(&[offset(5)], Ok(())).await;
    assert_eq!(again.await, Ok(()));
}

#[tokio::test]
async fn groups_are_loaded_before_offsets() {
    let mut f = Fixture::new();
    let [_, no_group] = deleted();
    // Deleted, and then committed to by somebody who is no member.
    let all = f.append(&[offset(1), no_group.clone()]);
    f.answer(&[offset(1)], Ok(())).await;
    f.answer(std::slice::from_ref(&no_group), Ok(())).await;
    assert_eq!(all.await, Ok(()));
    assert_eq!(f.loaded().await, [no_group, offset(1)]);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_an_error() {
    let f = Fixture::new();
    let record = groups::Record { key: (&b"\0\x02\0"[..]).into(), value: None };
    f.store.stored.lock().unwrap().push(Change::Record(record));
    let loaded = f.journal.load(&mut |_| {}).await;
    assert!(matches!(loaded, Err(StoreError::Corrupt(_))));
}

#[tokio::test]
async fn what_is_too_long_or_too_much_is_refused_unless_it_must_be() {
    let f = Fixture::new();
    let long = vec![offset(1); 200];
    let refused = f.journal.append(&long, Limits::Apply);
    assert_eq!(refused.err(), Some(UnknownServerError));
    assert!(f.journal.append(&long, Limits::DoNotApply).is_ok());

    let mut refused = None;
    for _ in 0..=MAX_PENDING_KIB {
        refused = f.journal.append(&[offset(1)], Limits::Apply).err();
        if refused.is_some() {
            break;
        }
    }
    assert_eq!(refused, Some(CoordinatorNotAvailable));
    assert!(f.journal.append(&[offset(1)], Limits::DoNotApply).is_ok());
}
