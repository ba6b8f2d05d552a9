//! Gateways that crash at any await, their clients, and a tierer that drops frames of deleted topics.

use crate::reference::Answer;
use crate::world::{Frame, Shared};
use crate::{Met, Wrong};
use kelp::protocol::wire::Uuid;
use kelp::store::StoreError;
use kelp::store::objectlog::metadata::Metadata;
use kelp::store::objectlog::metadata::faults::Settings;
use kelp::store::topics::{ConfigChanges, Topic, TopicChange};
use rand::RngExt;
use rand::rngs::SmallRng;
use std::hash::Hasher;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// What became of a run.
pub(crate) struct Run {
    pub(crate) met: Met,
    pub(crate) violation: Option<String>,
    pub(crate) digest: u64,
}

const GATEWAYS: usize = 3;

/// How often a gateway starts anew.
const LIVES: usize = 3;

/// Names that topics fight for.
const NAMES: [&str; 3] = ["clicks", "orders", "views"];

/// Whose settings are changed: all brokers', or one's.
const BROKERS: [&str; 2] = ["", "1"];

/// By then everything has long been answered.
const END: Duration = Duration::from_secs(7_200);

pub(crate) fn run(seed: u64, wrong: Wrong, print: bool) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without sockets");
    runtime.block_on(async {
        let world = Shared::new(seed, wrong, print);
        if timeout(END, all_gateways(&world)).await.is_err() {
            world.lock().violated("a gateway hangs".into());
        }
        check_the_end(&world).await;
        let world = world.lock();
        let digest = world.digest.finish();
        Run { met: world.met.clone(), violation: world.violation.clone(), digest }
    })
}

async fn all_gateways(world: &Shared) {
    let every = world.roll(|rng| rng.random_range(1..5));
    let mut gateways = JoinSet::new();
    for _ in 0..GATEWAYS {
        let world = world.clone();
        gateways.spawn(async move {
            for _ in 0..LIVES {
                live(&world, every).await;
            }
        });
    }
    join(world, gateways).await;
}

/// One start of a gateway, until its clients are content or it crashes.
async fn live(world: &Shared, snapshot_every: u64) {
    let (nonce, settings, life) = {
        let mut world = world.lock();
        world.processes += 1;
        let settings = Settings { snapshot_every, off: world.wrong.rule };
        let crashes = world.rng.random_bool(0.5);
        let until = Duration::from_millis(world.rng.random_range(1..2_000));
        (world.processes, settings, if crashes { until } else { END })
    };
    let serve = async {
        let opened = Metadata::open_with(Arc::new(world.clone()), nonce, settings).await;
        let metadata = match opened {
            Ok(metadata) => Arc::new(metadata),
            Err(error) => return world.lock().violated(format!("cannot open: {error}")),
        };
        let mut tasks = JoinSet::new();
        let clients = world.roll(|rng| rng.random_range(1..3));
        for _ in 0..clients {
            let client = Client { world: world.clone(), metadata: metadata.clone(), nonce };
            tasks.spawn(client.work());
        }
        let tierer = Client { world: world.clone(), metadata, nonce };
        tasks.spawn(tierer.tier());
        join(world, tasks).await;
    };
    // All that the gateway does is in this future, and ends with it.
    if timeout(life, serve).await.is_err() {
        world.lock().meet("a crash");
    }
}

async fn join(world: &Shared, mut tasks: JoinSet<()>) {
    while let Some(done) = tasks.join_next().await {
        if let Err(panicked) = done {
            world.lock().violated(format!("a gateway panicked: {panicked}"));
        }
    }
}

/// A client of a gateway.
struct Client {
    world: Shared,
    metadata: Arc<Metadata>,
    nonce: u64,
}

impl Client {
    async fn work(self) {
        for _ in 0..self.world.roll(|rng| rng.random_range(1..6)) {
            let patience = self.world.roll(|rng| match rng.random_bool(0.1) {
                true => Duration::from_millis(rng.random_range(1..100)),
                false => END,
            });
            if timeout(patience, self.ask()).await.is_err() {
                self.world.lock().meet("a caller went away");
            }
            self.check_view();
            self.produce();
            let pause = self.world.roll(|rng| rng.random_range(1..300));
            sleep(Duration::from_millis(pause)).await;
        }
    }

    /// Asks for one thing, and holds the gateway to its answer.
    async fn ask(&self) {
        let told = match self.world.roll(|rng| rng.random_range(0..20)) {
            0..8 => self.create().await,
            8..11 => self.delete().await,
            11..14 => self.alter().await,
            14..16 => self.alter_broker().await,
            16..18 => self.allocate().await,
            _ => return self.refresh().await,
        };
        let seq = self.metadata.seq();
        let mut world = self.world.lock();
        match told {
            Ok(answer) => {
                match answer {
                    Answer::NameTaken(_) => world.meet("a name was taken"),
                    Answer::Allocated(..) => world.meet("an allocation was answered"),
                    Answer::NotMore(_) => world.meet("a topic had as many partitions already"),
                    _ => {}
                }
                world.happened(format!("process {} was told {answer:?}", self.nonce));
                if !world.reference.told(self.nonce, answer.clone(), seq) {
                    world.violated(format!("{answer:?} was answered, the log does not say so"));
                }
            }
            Err(error) => world.violated(format!("a command fails: {error}")),
        }
    }

    async fn create(&self) -> Result<Answer, StoreError> {
        let name = self.world.roll(|rng| NAMES[rng.random_range(0..NAMES.len())]);
        let id = Uuid(self.world.roll(|rng| rng.random()));
        let topic = Topic { id, name: name.into(), partitions: 1, ..Topic::default() };
        match self.metadata.create_topic(topic).await {
            Ok(()) => Ok(Answer::Created(id)),
            Err(StoreError::TopicExists) => Ok(Answer::NameTaken(id)),
            Err(error) => Err(error),
        }
    }

    /// Deletes a topic of this gateway's view, which may be gone by now.
    async fn delete(&self) -> Result<Answer, StoreError> {
        let topics = self.metadata.topics();
        let index = self.world.roll(|rng| rng.random_range(0..NAMES.len()));
        let id = topics.iter().nth(index).map_or(Uuid::ZERO, |topic| topic.id);
        match self.metadata.delete_topic(id).await {
            Ok(()) => Ok(Answer::Deleted(id)),
            Err(StoreError::UnknownPartition) => Ok(Answer::NoSuchTopic(id)),
            Err(error) => Err(error),
        }
    }

    /// Grows a topic of this gateway's view, or sets one of its configs or takes it away.
    async fn alter(&self) -> Result<Answer, StoreError> {
        let topics = self.metadata.topics();
        let index = self.world.roll(|rng| rng.random_range(0..NAMES.len()));
        let topic = topics.iter().nth(index);
        let id = topic.map_or(Uuid::ZERO, |topic| topic.id);
        let change = self.world.roll(|rng| match rng.random_bool(0.5) {
            true => {
                let partitions = topic.map_or(1, |topic| topic.partitions) + 1;
                TopicChange { partitions: Some(partitions), ..TopicChange::default() }
            }
            false => TopicChange { partitions: None, configs: config_change(rng) },
        });
        match self.metadata.alter_topic(id, change).await {
            Ok(()) => Ok(Answer::Altered(id)),
            Err(StoreError::UnknownPartition) => Ok(Answer::NoSuchTopic(id)),
            Err(StoreError::NotMorePartitions) => Ok(Answer::NotMore(id)),
            Err(error) => Err(error),
        }
    }

    async fn alter_broker(&self) -> Result<Answer, StoreError> {
        let (broker, changes) = self.world.roll(|rng| {
            (BROKERS[rng.random_range(0..BROKERS.len())].to_string(), config_change(rng))
        });
        self.metadata.alter_broker(broker.clone(), changes).await?;
        Ok(Answer::BrokerAltered(broker))
    }

    async fn allocate(&self) -> Result<Answer, StoreError> {
        let count = self.world.roll(|rng| rng.random_range(1..100));
        let ids = self.metadata.allocate_producer_ids(count).await?;
        Ok(Answer::Allocated(ids.start, (ids.end - ids.start) as u32))
    }

    /// What anybody knew before is known after.
    async fn refresh(&self) {
        let known = self.world.lock().known;
        let done = self.metadata.refresh().await;
        let seq = self.metadata.seq();
        if done.is_err() || seq < known {
            let text = format!("read to {seq}, another had applied {known} before: {done:?}");
            self.world.lock().violated(text);
        }
    }

    /// A gateway's state is what a replay gives.
    fn check_view(&self) {
        let (seq, topics) = (self.metadata.seq(), self.metadata.topics());
        let brokers = self.metadata.broker_configs();
        let mut world = self.world.lock();
        if !brokers.is_empty() {
            world.meet("settings of brokers were read");
        }
        world.known = world.known.max(seq);
        let cluster_id = self.metadata.cluster_id();
        if let Some(wrong) = world.compare(seq, &topics, &brokers, Some(&cluster_id)) {
            world.violated(format!("a gateway at {seq} {wrong}"));
        }
    }

    /// Appends to a topic that this gateway takes for live. The journal is one step here.
    fn produce(&self) {
        let topics = self.metadata.topics();
        let mut world = self.world.lock();
        for topic in topics.iter() {
            let frame = Frame { topic: topic.id, number: world.frames.acked.len() };
            world.frames.journal.push(frame);
            world.frames.acked.push(frame);
        }
    }

    /// Moves frames from the journal into segments, but for those of deleted topics.
    async fn tier(self) {
        for _ in 0..3 {
            let pause = self.world.roll(|rng| rng.random_range(1..300));
            sleep(Duration::from_millis(pause)).await;
            if self.world.lock().wrong.metadata_before_journal {
                self.refresh().await;
                sleep(Duration::from_millis(pause)).await;
            }
            let frames = self.world.lock().frames.journal.clone();
            if !self.world.lock().wrong.metadata_before_journal {
                self.refresh().await;
            }
            let topics = self.metadata.topics();
            let mut world = self.world.lock();
            for frame in frames {
                // Another tierer may have been faster.
                let Some(at) = world.frames.journal.iter().position(|f| *f == frame) else {
                    continue;
                };
                world.frames.journal.swap_remove(at);
                match topics.by_id(frame.topic) {
                    Some(_) => world.frames.segments.push(frame),
                    None => world.meet("a frame of a deleted topic was dropped"),
                }
            }
        }
    }
}

/// One of a few configs gets a value, or has none any more.
fn config_change(rng: &mut SmallRng) -> ConfigChanges {
    let name = ["one", "two"][rng.random_range(0..2)].to_string();
    let value = rng.random_bool(0.7).then(|| rng.random_range(0..100).to_string());
    [(name, value)].into()
}

/// Who opens last, undisturbed, finds all that anybody was told.
async fn check_the_end(world: &Shared) {
    sleep(END).await;
    let nonce = u64::MAX;
    let last = timeout(END, Metadata::open(Arc::new(world.clone()), nonce)).await;
    let Ok(Ok(metadata)) = last else {
        return world.lock().violated("the log cannot be opened any more".into());
    };
    let client = Client { world: world.clone(), metadata: Arc::new(metadata), nonce };
    client.check_view();
    let mut world = world.lock();
    let (seq, end) = (client.metadata.seq(), world.reference.seq());
    if seq != end {
        world.violated(format!("a replay ends at {seq}, the log at {end}"));
    }
    let live = world.reference.last().topics.clone();
    let frames = &world.frames;
    let mut of_live = frames.acked.iter().filter(|frame| live.contains_key(&frame.topic));
    let is_stored = |f: &&Frame| frames.journal.contains(f) || frames.segments.contains(f);
    if let Some(lost) = of_live.find(|frame| !is_stored(frame)) {
        let text = format!("an acked frame of the live topic {} is gone", lost.topic);
        world.violated(text);
    }
}
