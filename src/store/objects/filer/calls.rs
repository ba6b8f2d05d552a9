//! Calls of the filer, by gRPC: which filer is called, and what is sent again.

use super::messages::{
    AssignVolumeRequest, AssignVolumeResponse, CreateEntryRequest, CreateEntryResponse,
    DeleteEntryRequest, DeleteEntryResponse, Entry, GetFilerConfigurationRequest,
    GetFilerConfigurationResponse, ListEntriesRequest, ListEntriesResponse,
    LookupDirectoryEntriesRequest, LookupDirectoryEntriesResponse,
};
use super::{ObjectError, Result, error};
use hyper::Uri;
use hyper::http::uri::PathAndQuery;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use prost::Message;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::sleep;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

/// How often a read is sent, when the connection breaks under it.
const READ_ATTEMPTS: usize = 3;

/// How long is waited before a filer that cannot be reached is tried again. One that restarts is back within seconds.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A peer that is silent for so long is asked whether it is there; SeaweedFS allows no less than 20 s.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// How long it may take to connect, and how long bytes may go without an answer of the peer's system.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a filer is: `HOST:PORT` as SeaweedFS names it, or `HOST:PORT.GRPC_PORT` when its gRPC is not at PORT + 10000.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    text: String,
    grpc: Uri,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not HOST:PORT or HOST:PORT.GRPC_PORT");
        let (host, ports) = text.rsplit_once(':').ok_or_else(wrong)?;
        let (port, grpc) = ports.split_once('.').map_or((ports, None), |(p, g)| (p, Some(g)));
        let port: u16 = port.parse().map_err(|_| wrong())?;
        let grpc = match grpc {
            Some(grpc) => grpc.parse().ok(),
            None => port.checked_add(10_000),
        };
        let grpc = grpc.filter(|_| !host.is_empty()).ok_or_else(wrong)?;
        let grpc = format!("http://{host}:{grpc}").parse().map_err(|_| wrong())?;
        Ok(Self { text: text.into(), grpc })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The filers. One of them is called, always the same while it can be reached: any will do, since a filer passes a
/// conditional create on to the one that owns the path.
pub(super) struct Calls {
    filers: Vec<Address>,
    /// The place in `filers` of the one that is called.
    current: AtomicUsize,
    client: Client<HttpConnector, Body>,
}

impl Calls {
    pub(super) fn new(filers: &[Address]) -> Result<Self> {
        if filers.is_empty() {
            return Err(error("no filer is named"));
        }
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .http2_only(true)
            .timer(TokioTimer::new())
            .http2_keep_alive_interval(KEEP_ALIVE_EVERY)
            .http2_keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
        let client = builder.build(connector());
        Ok(Self { filers: filers.to_vec(), current: AtomicUsize::new(0), client })
    }

    pub(super) async fn create_entry(
        &self,
        request: &CreateEntryRequest,
    ) -> Result<CreateEntryResponse> {
        self.once("/filer_pb.SeaweedFiler/CreateEntry", request).await
    }

    pub(super) async fn delete_entry(
        &self,
        request: &DeleteEntryRequest,
    ) -> Result<DeleteEntryResponse> {
        self.once("/filer_pb.SeaweedFiler/DeleteEntry", request).await
    }

    pub(super) async fn assign_volume(
        &self,
        request: &AssignVolumeRequest,
    ) -> Result<AssignVolumeResponse> {
        self.once("/filer_pb.SeaweedFiler/AssignVolume", request).await
    }

    /// Changes nothing, and is sent again when the connection broke; so is a list.
    pub(super) async fn look_up(
        &self,
        request: &LookupDirectoryEntriesRequest,
    ) -> Result<LookupDirectoryEntriesResponse> {
        const METHOD: &str = "/filer_pb.SeaweedFiler/LookupDirectoryEntries";
        let mut more = 1..READ_ATTEMPTS;
        loop {
            match self.unary(METHOD, request).await {
                Err(status) if is_broken(&status) && more.next().is_some() => {}
                answer => return answer.map_err(|status| failed(&status)),
            }
        }
    }

    pub(super) async fn list_entries(&self, request: &ListEntriesRequest) -> Result<Vec<Entry>> {
        let mut more = 1..READ_ATTEMPTS;
        loop {
            match self.stream(request).await {
                Err(status) if is_broken(&status) && more.next().is_some() => {}
                answer => return answer.map_err(|status| failed(&status)),
            }
        }
    }

    /// What each filer says of itself.
    pub(super) async fn configurations(
        &self,
    ) -> Result<Vec<(&Address, GetFilerConfigurationResponse)>> {
        const METHOD: &str = "/filer_pb.SeaweedFiler/GetFilerConfiguration";
        let mut all = Vec::new();
        for filer in &self.filers {
            let method = PathAndQuery::from_static(METHOD);
            let request = Request::new(GetFilerConfigurationRequest {});
            match self.grpc(filer).unary(request, method, ProstCodec::default()).await {
                Ok(answer) => all.push((filer, answer.into_inner())),
                // It may come later, and others may be there. `look_up` waits for one.
                Err(status) if is_unsent(&status) => {
                    tracing::warn!(%filer, "a filer cannot be reached");
                }
                Err(status) => return Err(failed(&status)),
            }
        }
        Ok(all)
    }

    /// Makes one call. It is sent once: whether a request arrived that got no answer is not known.
    async fn once<Q, A>(&self, method: &'static str, request: &Q) -> Result<A>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.unary(method, request).await.map_err(|status| failed(&status))
    }

    async fn unary<Q, A>(&self, method: &'static str, request: &Q) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let method = PathAndQuery::from_static(method);
        let mut turn = self.turn();
        loop {
            let request = Request::new(request.clone());
            let answer = turn.grpc().unary(request, method.clone(), ProstCodec::default()).await;
            match answer {
                Err(status) if is_unsent(&status) => turn.next().await,
                answer => return Ok(answer?.into_inner()),
            }
        }
    }

    async fn stream(&self, request: &ListEntriesRequest) -> Result<Vec<Entry>, Status> {
        let method = PathAndQuery::from_static("/filer_pb.SeaweedFiler/ListEntries");
        let codec = ProstCodec::<ListEntriesRequest, ListEntriesResponse>::default;
        let mut turn = self.turn();
        loop {
            let request = Request::new(request.clone());
            let answer = turn.grpc().server_streaming(request, method.clone(), codec()).await;
            let mut stream = match answer {
                Err(status) if is_unsent(&status) => {
                    turn.next().await;
                    continue;
                }
                answer => answer?.into_inner(),
            };
            let mut entries = Vec::new();
            while let Some(response) = stream.message().await? {
                entries.extend(response.entry);
            }
            return Ok(entries);
        }
    }

    fn grpc(&self, filer: &Address) -> Grpc<Client<HttpConnector, Body>> {
        Grpc::with_origin(self.client.clone(), filer.grpc.clone())
    }

    fn turn(&self) -> Turn<'_> {
        Turn { calls: self, place: self.current.load(Ordering::Relaxed), pause: FIRST_PAUSE }
    }
}

/// The search for a filer that can be reached. It goes on until the caller gives up.
struct Turn<'a> {
    calls: &'a Calls,
    place: usize,
    pause: Duration,
}

impl Turn<'_> {
    fn grpc(&self) -> Grpc<Client<HttpConnector, Body>> {
        self.calls.grpc(&self.calls.filers[self.place])
    }

    /// Turns to the next filer, as this one cannot be reached; after the last one it waits a little.
    async fn next(&mut self) {
        let (failed, count) = (self.place, self.calls.filers.len());
        self.place = (failed + 1) % count;
        // The others need not find out as well.
        let current = &self.calls.current;
        let _ = current.compare_exchange(failed, self.place, Ordering::Relaxed, Ordering::Relaxed);
        if self.place == 0 {
            sleep(self.pause).await;
            self.pause = LONGEST_PAUSE.min(2 * self.pause);
        }
    }
}

/// Whether there was no connection, so that the filer has not seen the request.
fn is_unsent(status: &Status) -> bool {
    let source = std::error::Error::source(status);
    source.and_then(|source| source.downcast_ref::<legacy::Error>()).is_some_and(|e| e.is_connect())
}

/// Whether the answer is missing, as opposed to one that says no: only what a peer says has no source.
fn is_broken(status: &Status) -> bool {
    status.code() == Code::Unavailable || std::error::Error::source(status).is_some()
}

fn failed(status: &Status) -> ObjectError {
    match std::error::Error::source(status) {
        Some(source) => ObjectError(with_causes(source)),
        None => ObjectError(format!("the filer says: {}", status.message())),
    }
}

/// An error and what it comes from.
pub(super) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let errors = std::iter::successors(Some(error), |error| error.source());
    errors.map(|error| error.to_string()).collect::<Vec<_>>().join(": ")
}

pub(super) fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(PATIENCE));
    connector
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grpc(text: &str) -> Option<String> {
        text.parse::<Address>().ok().map(|address| address.grpc.to_string())
    }

    #[test]
    fn an_address_is_written_as_seaweedfs_writes_it() {
        assert_eq!(grpc("localhost:8888").as_deref(), Some("http://localhost:18888/"));
        assert_eq!(grpc("10.0.0.1:8888.9999").as_deref(), Some("http://10.0.0.1:9999/"));
        assert_eq!(grpc("[::1]:8888").as_deref(), Some("http://[::1]:18888/"));
        let wrong = ["", "localhost", ":8888", "localhost:", "a:8888.", "a:x", "a:60000", "a b:1"];
        for text in wrong {
            assert_eq!(grpc(text), None, "{text:?}");
        }
    }
}
