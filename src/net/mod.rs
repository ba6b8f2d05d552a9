//! Bytes to frames and back: sockets, limits, memory. Nothing here looks into a body.

mod answers;
mod budget;
mod connection;
mod connections;
mod frames;
mod idle;
mod listener;

use crate::api::{Broker, Connection};
use crate::config::listeners::advertised;
use crate::dispatch::Refused;
use crate::metrics::{Text, names};
use crate::protocol::error_code::ErrorCode;
use crate::store::State;
use budget::Requests;
use connections::{Admission, Connections};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::Instrument;

/// All connections of an engine, and what they share.
pub struct Network {
    broker: Arc<Broker>,
    limits: Limits,
    /// The memory of requests that are read or handled.
    requests: Requests,
    connections: Arc<Connections>,
    /// Every listener's task has a receiver, and drops it when its socket is closed.
    listening: watch::Sender<()>,
    phase: watch::Sender<Phase>,
}

/// How far the stop has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Open,
    /// No new connection and no new request; what is under way is answered.
    Draining,
    Closed,
}

struct Limits {
    max_request_bytes: usize,
    max_idle: Option<Duration>,
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum Closed {
    #[error("the client closed it")]
    ByPeer,
    #[error("the engine stops")]
    Stopping,
    #[error("another process has the data")]
    NotServing,
    #[error("it broke: {0}")]
    Broken(#[from] io::Error),
    #[error("a frame cannot have {0} bytes")]
    BadLength(i32),
    #[error(transparent)]
    Refused(Refused),
    #[error("a produce with acks=0 failed with {0:?}")]
    AcksZero(ErrorCode),
    #[error("no byte moved for connections.max.idle.ms")]
    Idle,
    #[error("a frame does not come to its end while others wait for its memory")]
    Stalled,
    #[error("its answers are not read while others want their memory")]
    Unread,
    #[error("max.connections is reached")]
    TooMany,
    #[error("max.connections.per.ip is reached")]
    TooManyOfAddress,
}

impl Closed {
    /// A word for it, as metrics tell it.
    fn reason(&self) -> &'static str {
        match self {
            Self::ByPeer => "client",
            Self::Stopping => "stop",
            Self::NotServing => "not_serving",
            Self::Broken(_) => "broken",
            Self::BadLength(_) => "bad_length",
            Self::Refused(_) => "bad_request",
            Self::AcksZero(_) => "acks_0_failed",
            Self::Idle => "connections.max.idle.ms",
            Self::Stalled => "stalled",
            Self::Unread => "unread",
            Self::TooMany => "max.connections",
            Self::TooManyOfAddress => "max.connections.per.ip",
        }
    }
}

impl Network {
    pub fn new(broker: Arc<Broker>) -> Arc<Self> {
        let config = &broker.config;
        let limits = Limits {
            max_request_bytes: config.socket_request_max_bytes.unsigned_abs() as usize,
            max_idle: u64::try_from(config.connections_max_idle_ms).ok().map(Duration::from_millis),
        };
        let requests = Requests::new(config.request_bytes().unwrap_or(usize::MAX));
        let connections = Arc::new(Connections::default());
        let (listening, phase) = (watch::Sender::new(()), watch::Sender::new(Phase::Open));
        Arc::new(Self { broker, limits, requests, connections, listening, phase })
    }

    /// Serves a connection to its end, in a task of its own. Must be called in the runtime.
    pub fn serve(self: &Arc<Self>, stream: std::net::TcpStream) -> io::Result<()> {
        if *self.phase.borrow() >= Phase::Draining {
            return Err(io::Error::other("the engine stops"));
        }
        stream.set_nonblocking(true)?;
        self.start(TcpStream::from_std(stream)?)
    }

    fn start(self: &Arc<Self>, stream: TcpStream) -> io::Result<()> {
        let (peer, local) = (stream.peer_addr()?, stream.local_addr()?);
        stream.set_nodelay(true)?;
        socket2::SockRef::from(&stream).set_keepalive(true)?;
        let config = self.broker.settings.now();
        let admission = match self.connections.admit(peer.ip().to_canonical(), &config) {
            Ok(admission) => admission,
            Err(refused) => {
                tracing::warn!(%peer, "closed a connection: {refused}");
                self.broker.metrics.network.refused.count(refused.reason());
                return Ok(());
            }
        };
        let advertised = advertised(&self.broker.config.endpoints, local);
        let metrics = self.broker.metrics.clone();
        metrics.network.accepted.increment();
        let connection = Arc::new(Connection::new(peer, local, advertised, metrics));
        let span = connection.span.clone();
        tokio::spawn(self.clone().run(stream, connection, admission).instrument(span));
        Ok(())
    }

    /// Serves a connection that is no socket, to its end: for `fuzz/`.
    #[doc(hidden)]
    #[cfg(feature = "fuzzing")]
    pub async fn serve_stream(
        &self,
        connection: &Arc<Connection>,
        reader: impl tokio::io::AsyncRead + Unpin,
        writer: impl tokio::io::AsyncWrite + Unpin,
    ) {
        connection::serve(self, connection, reader, writer).await;
    }

    async fn run(
        self: Arc<Self>,
        mut stream: TcpStream,
        connection: Arc<Connection>,
        admission: Admission,
    ) {
        let (reader, writer) = stream.split();
        let served = async {
            match self.serving().await {
                Ok(()) => connection::serve(&self, &connection, reader, writer).await,
                Err(closed) => closed,
            }
        };
        let closed = tokio::select! {
            biased;
            closed = served => closed,
            () = self.reached(Phase::Closed) => Closed::Stopping,
        };
        let peer = connection.peer;
        self.broker.metrics.network.closed.count(closed.reason());
        match closed {
            // Nobody needs to be told of what happens every day.
            Closed::ByPeer | Closed::Stopping | Closed::Broken(_) => {
                tracing::debug!(%peer, "a connection ended: {closed}");
            }
            _ => tracing::warn!(%peer, "closed a connection: {closed}"),
        }
        drop(stream);
        drop(admission);
    }

    /// Waits until the store is open. A client that came too early is not sent away; but if
    /// another process has the data, it shall go there.
    async fn serving(&self) -> Result<(), Closed> {
        let mut state = self.broker.storage.state();
        let opened = async {
            let opened = state.wait_for(|state| *state != State::Opening).await;
            opened.map(|state| State::clone(&state))
        };
        let opened = tokio::select! {
            biased;
            opened = opened => opened,
            () = self.reached(Phase::Draining) => return Err(Closed::Stopping),
        };
        match opened {
            // Who is fenced tells its clients who is the successor.
            Ok(State::Serving | State::Fenced(_)) => Ok(()),
            _ => Err(Closed::NotServing),
        }
    }

    /// Tells what there is now of connections and of their requests' memory.
    pub fn write_metrics(&self, text: &mut Text) {
        let [small, large] = [self.requests.small.count(), self.requests.large.count()];
        text.single(&names::CONNECTIONS, self.connections.open());
        text.single(&names::REQUEST_MEMORY_USED, small.0 + large.0);
        text.single(&names::REQUEST_MEMORY_FREE, small.1 + large.1);
        text.single(&names::REQUEST_MEMORY_WAITING, small.2 + large.2);
    }

    async fn reached(&self, phase: Phase) {
        // It fails when the sender is gone, which is `self`.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }

    /// Takes no more connections and requests, and waits for the answers of those that are under
    /// way, at most so long. A connection is closed when it has all its answers; true if all are.
    pub async fn drain(&self, within: Duration) -> bool {
        self.enter(Phase::Draining);
        self.listening.closed().await;
        timeout(within, self.connections.all_closed()).await.is_ok()
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.enter(Phase::Closed);
        self.connections.all_closed().await;
    }

    fn enter(&self, next: Phase) {
        self.phase.send_if_modified(|phase| {
            let goes_on = next > *phase;
            *phase = next.max(*phase);
            goes_on
        });
    }
}
