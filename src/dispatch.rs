//! The one place that sees every request: header, version, decode, handler, encode, metrics.
//!
//! Which APIs there are is said by the list in [`crate::protocol::api_key`]; a new one needs no
//! line here.

use crate::api::{self, Broker, Connection, Context, Reply};
use crate::metrics::Begun;
use crate::protocol::api_key::{ApiKey, for_each_api};
use crate::protocol::header::{self, RequestHeader};
use crate::protocol::wire::{Codes, Encoded, Reader, Wire, WireError};
use bytes::Bytes;
use std::sync::Arc;
use tracing::{Instrument, Span, debug_span};

/// An encoded answer, with its length before it.
pub type Answer = Encoded;

/// Why a frame is not served. The connection is closed, as Kafka does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the header of the request is garbage: {0}")]
    Header(WireError),
    #[error("unknown API key {0}")]
    UnknownApi(i16),
    #[error("{api:?} is not served in version {version}")]
    UnsupportedVersion { api: ApiKey, version: i16 },
    #[error("a request {api:?} of version {version} is garbage: {error}")]
    Body { api: ApiKey, version: i16, error: WireError },
}

/// Serves one request of a connection; its frame is a part of a buffer of so many bytes.
pub async fn dispatch(
    broker: &Arc<Broker>,
    connection: &Arc<Connection>,
    frame: Bytes,
    buffer_bytes: usize,
) -> Result<Reply<Answer>, Refused> {
    let frame_bytes = frame.len();
    let (header, body) = RequestHeader::read(frame).map_err(Refused::Header)?;
    let api = ApiKey::from_code(header.api_key).ok_or(Refused::UnknownApi(header.api_key))?;
    let call = Call { api, version: header.api_version, correlation_id: header.correlation_id };
    if !broker.offers(api) {
        return Err(Refused::UnknownApi(header.api_key));
    }
    if !api.versions().contains(&call.version) {
        return call.unsupported(connection, frame_bytes);
    }
    let request = Request::begin(call, connection, frame_bytes);
    if let Some(client_id) = header.client_id.as_deref() {
        connection.span.record("client_id", client_id);
    }
    let context = Context {
        broker: broker.clone(),
        connection: connection.clone(),
        api_version: call.version,
        client_id: header.client_id,
        buffer_bytes,
    };
    let span = request.span.clone();
    tracing::trace!(parent: &span, bytes = frame_bytes, "a request came");
    route(request, &context, body).instrument(span).await
}

macro_rules! routes {
    (
        served {$(
            $key:literal => $name:ident $versions:expr, $flexible:expr, $module:ident;
        )*}
        described {$($described:tt)*}
    ) => {
        async fn route(
            request: Request,
            context: &Context,
            body: Reader,
        ) -> Result<Reply<Answer>, Refused> {
            match request.call.api {
                $(ApiKey::$name => {
                    let body = request.call.decode(body)?;
                    let reply = api::$module::handle(context, body).await;
                    Ok(request.encode::<crate::messages::$module::Response>(reply.into()))
                })*
                other => Err(Refused::UnknownApi(other.code())),
            }
        }
    };
}

for_each_api!(routes);

/// What stands before each frame.
const LENGTH_BYTES: usize = 4;

/// What of a request's header its answer needs.
#[derive(Clone, Copy, Debug)]
struct Call {
    api: ApiKey,
    version: i16,
    correlation_id: i32,
}

impl Call {
    fn decode<R: Wire>(self, mut body: Reader) -> Result<R, Refused> {
        // What a client sends behind the body is ignored, as Kafka does.
        R::read(&mut body).map_err(|error| Refused::Body {
            api: self.api,
            version: self.version,
            error,
        })
    }

    /// Only ApiVersions can say that it does not speak a version: its client asks in order to
    /// learn them.
    fn unsupported(
        self,
        connection: &Arc<Connection>,
        frame_bytes: usize,
    ) -> Result<Reply<Answer>, Refused> {
        if self.api != ApiKey::ApiVersions {
            return Err(Refused::UnsupportedVersion { api: self.api, version: self.version });
        }
        let as_version_0 = Request::begin(Self { version: 0, ..self }, connection, frame_bytes);
        Ok(Reply::Ready(as_version_0.answer(&api::api_versions::unsupported())))
    }
}

/// A request that is under way. Dropped, it is counted as one that will not be answered.
struct Request {
    call: Call,
    connection: Arc<Connection>,
    /// `None` when it has its answer.
    begun: Option<Begun>,
    span: Span,
}

impl Request {
    fn begin(call: Call, connection: &Arc<Connection>, frame_bytes: usize) -> Self {
        let Call { api, version, correlation_id } = call;
        let connection = connection.clone();
        let metrics = &connection.metrics;
        metrics.network.bytes_in.add((LENGTH_BYTES + frame_bytes) as u64);
        let begun = Some(metrics.requests.begin(api.code(), version));
        let span = debug_span!(parent: &connection.span, "request", ?api, version, correlation_id);
        Self { call, connection, begun, span }
    }

    fn encode<T: Wire + Send + 'static>(self, reply: Reply<T>) -> Reply<Answer> {
        match reply {
            Reply::Ready(response) => Reply::Ready(self.answer(&response)),
            Reply::Deferred(response) => {
                let span = self.span.clone();
                let answer = async move { self.answer(&response.await) };
                Reply::Deferred(Box::pin(answer.instrument(span)))
            }
            Reply::Unanswered(work) => {
                self.end(&Codes::default());
                Reply::Unanswered(work)
            }
        }
    }

    fn answer<T: Wire>(self, response: &T) -> Answer {
        let Call { api, version, correlation_id } = self.call;
        let spares = &self.connection.spares;
        let (answer, codes) = header::response(api, version, correlation_id, response, spares);
        self.connection.metrics.network.bytes_out.add(answer.len() as u64);
        self.end(&codes);
        answer
    }

    fn end(mut self, codes: &Codes) {
        if let Some(begun) = self.begun.take() {
            self.connection.metrics.requests.end(begun, codes.none, &codes.errors);
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.connection.metrics.requests.give_up(begun);
        }
    }
}
