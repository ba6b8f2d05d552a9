//! Builds the runtime and the parts of a broker, and owns their end.

mod metrics;
pub mod topics;

use crate::api::Broker;
use crate::config::Config;
use crate::log::{compaction, expiry, retention};
use crate::metrics::{Metrics, Text};
use crate::net::Network;
use crate::protocol::api_key::ApiKey;
use crate::store::objectlog::registration::this_process;
use crate::store::objectlog::{ObjectLog, Options};
use crate::store::objects::Objects;
use crate::store::objects::counted::Counted;
use crate::store::{State, Storage};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use topics::TopicSummary;

/// How long a broker whose data was taken over tells its clients where to go.
const FAREWELL: Duration = Duration::from_secs(10);

/// How long the end waits for a store that does not answer, and for threads.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the answers take that the store gives while it closes.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Where the data is kept.
pub enum Backend {
    /// In a store of objects: Kelp keeps the log on it.
    Objects(Arc<dyn Objects>),
    /// In a log of the host's own.
    Storage(Arc<dyn Storage>),
}

/// How the engine's threads are made.
#[derive(Clone, Default)]
pub struct ThreadOptions {
    /// Runs first on each I/O thread: a host may have signals that these must not get.
    pub on_thread_start: Option<Arc<dyn Fn() + Send + Sync>>,
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the engine stopped")]
    Stopped,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A broker: serves the sockets it is given until it is stopped or dropped.
///
/// Its calls are for the host's threads, not for tasks of an async runtime.
pub struct Engine {
    /// Only taken when dropped.
    runtime: Option<Runtime>,
    network: Arc<Network>,
    broker: Arc<Broker>,
    ended: watch::Sender<bool>,
}

impl Engine {
    /// Starts a broker; returns before its store is open, see [`Engine::state`].
    pub fn new(
        config: Config,
        backend: Backend,
        threads: ThreadOptions,
    ) -> Result<Self, EngineError> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(config.num_io_threads.unsigned_abs() as usize);
        builder.thread_name("kelp-io").enable_all();
        if let Some(start) = threads.on_thread_start {
            builder.on_thread_start(move || start());
        }
        let runtime = builder.build()?;
        let served = ApiKey::SERVED.iter();
        let apis = served.map(|api| (api.code(), format!("{api:?}"), *api.versions().end()));
        let metrics = Arc::new(Metrics::new(apis));
        let storage = {
            let _runtime = runtime.enter();
            open(&config, backend, &metrics)
        };
        let broker = Arc::new(Broker::new(Arc::new(config), storage, metrics));
        let network = Network::new(broker.clone());
        let ended = watch::Sender::new(false);
        let settings = |broker: &Arc<Broker>| {
            let broker = broker.clone();
            move || broker.settings.now()
        };
        runtime.spawn(retention::run(broker.log.clone(), settings(&broker)));
        runtime.spawn(compaction::run(broker.log.clone(), settings(&broker)));
        runtime.spawn(expiry::run(broker.log.clone(), settings(&broker)));
        runtime.spawn(watch_state(network.clone(), broker.clone(), ended.clone()));
        Ok(Self { runtime: Some(runtime), network, broker, ended })
    }

    /// Whether the broker may serve. It stays `Fenced` or `Failed` when it came to that.
    pub fn state(&self) -> watch::Receiver<State> {
        self.broker.storage.state()
    }

    /// The name of the cluster; empty before the store is open.
    pub fn cluster_id(&self) -> String {
        self.broker.storage.cluster_id()
    }

    /// Becomes true when the broker has ended: it was stopped, or its store ended it.
    pub fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    /// Serves one accepted client connection.
    pub fn serve(&self, stream: TcpStream) -> Result<(), EngineError> {
        let _runtime = self.handle()?.enter();
        Ok(self.network.serve(stream)?)
    }

    /// Accepts and serves connections.
    pub fn serve_listener(&self, listener: TcpListener) -> Result<(), EngineError> {
        let _runtime = self.handle()?.enter();
        Ok(self.network.serve_listener(listener)?)
    }

    /// Listens on `HOST:PORT`; gives the port, which the operating system chooses for port 0.
    pub fn listen(&self, address: &str) -> Result<u16, EngineError> {
        let listener = TcpListener::bind(address)?;
        let port = listener.local_addr()?.port();
        self.serve_listener(listener)?;
        Ok(port)
    }

    /// Ends in good order: takes nothing new, answers what is under way, at most so long, closes
    /// the store and then all connections.
    pub fn stop(&self, drain: Duration) {
        let Ok(handle) = self.handle() else { return };
        handle.block_on(end(&self.network, &self.broker, drain));
        self.ended.send_replace(true);
    }

    /// What there is to tell of this broker now. It waits for nobody.
    pub fn metrics(&self) -> Text {
        metrics::write(&self.broker, &self.network)
    }

    /// All topics as they are now; `None` while the broker does not serve.
    pub fn topics(&self) -> Option<Vec<TopicSummary>> {
        let serves = !*self.ended.borrow() && *self.state().borrow() == State::Serving;
        serves.then(|| topics::all(&self.broker))
    }

    /// Calls `told` when the broker begins to serve, and whenever [`Engine::topics`] may give
    /// something else than after the call before. It must not wait.
    pub fn follow_topics(&self, told: impl Fn() + Send + Sync + 'static) {
        self.spawn(topics::follow(self.broker.storage.clone(), told));
    }

    /// Runs a task as long as the engine is there.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(task);
        }
    }

    fn handle(&self) -> Result<&Handle, EngineError> {
        match &self.runtime {
            Some(runtime) if !*self.ended.borrow() => Ok(runtime.handle()),
            _ => Err(EngineError::Stopped),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.ended.send_replace(true);
        let Some(runtime) = self.runtime.take() else { return };
        if Handle::try_current().is_ok() {
            // A thread of an async runtime must not block.
            runtime.shutdown_background();
        } else {
            runtime.shutdown_timeout(PATIENCE);
        }
    }
}

/// Begins to open the store. Must be called in the runtime.
fn open(config: &Config, backend: Backend, metrics: &Metrics) -> Arc<dyn Storage> {
    match backend {
        Backend::Storage(storage) => storage,
        Backend::Objects(objects) => {
            let owner = this_process(config.address());
            let options = Options {
                registration: config.registration,
                take_over: config.takeover,
                metrics: metrics.journal.clone(),
                round_interval: Duration::from_millis(config.round_interval_ms.unsigned_abs()),
                ..Options::new(config.node_id, owner)
            };
            let objects = Counted::new(objects, metrics.store_calls.clone());
            ObjectLog::start(Arc::new(objects), options)
        }
    }
}

/// Lets the coordinators read their records when the store is open, and ends a broker whose store
/// serves nothing more.
async fn watch_state(network: Arc<Network>, broker: Arc<Broker>, ended: watch::Sender<bool>) {
    let mut state = broker.storage.state();
    let open = |state: &State| !matches!(state, State::Opening | State::Standby(_));
    if state.wait_for(open).await.is_err() {
        return;
    }
    broker.groups.refresh();
    let over = |state: &State| matches!(state, State::Fenced(_) | State::Failed(_));
    let over = match state.wait_for(over).await {
        Ok(state) => state.clone(),
        Err(_) => return,
    };
    broker.groups.end();
    if let State::Fenced(owner) = &over {
        tracing::error!(?owner, "another process took the data over; this broker ends");
        sleep(FAREWELL).await;
    }
    if let State::Failed(reason) = &over {
        tracing::error!("the store cannot be read: {reason}");
    }
    end(&network, &broker, Duration::ZERO).await;
    ended.send_replace(true);
}

/// Requests that are under way get their answers; those that wait for the store get them when it
/// closes, as it carries out what it was given. Who waits for a group is sent away.
async fn end(network: &Network, broker: &Broker, drain: Duration) {
    broker.groups.end();
    let answered = network.drain(drain).await;
    match timeout(PATIENCE, broker.storage.close()).await {
        Ok(()) if answered => {}
        Ok(()) if network.drain(LAST_ANSWERS).await => {}
        Ok(()) => tracing::warn!("some requests are not answered, as the engine stops"),
        Err(_) => tracing::error!("the store did not close in {PATIENCE:?}"),
    }
    network.close().await;
}
