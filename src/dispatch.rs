//! The one place that sees every request: header, version, decode, handler, encode.
//!
//! Which APIs there are is said by the list in [`crate::protocol::api_key`]; a new one needs no
//! line here.

use crate::api::{self, Broker, Connection, Context, Reply};
use crate::protocol::api_key::{ApiKey, for_each_api};
use crate::protocol::header::{self, RequestHeader};
use crate::protocol::wire::{Encoded, Reader, Wire, WireError};
use bytes::Bytes;
use std::sync::Arc;

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
    let (header, body) = RequestHeader::read(frame).map_err(Refused::Header)?;
    let api = ApiKey::from_code(header.api_key).ok_or(Refused::UnknownApi(header.api_key))?;
    let call = Call { api, version: header.api_version, correlation_id: header.correlation_id };
    tracing::trace!(peer = %connection.peer, ?call, client = header.client_id.as_deref());
    if !broker.offers(api) {
        return Err(Refused::UnknownApi(header.api_key));
    }
    if !api.versions().contains(&call.version) {
        return call.unsupported(connection);
    }
    let context = Context {
        broker: broker.clone(),
        connection: connection.clone(),
        api_version: call.version,
        client_id: header.client_id,
        buffer_bytes,
    };
    route(call, &context, body).await
}

macro_rules! routes {
    (
        served {$(
            $key:literal => $name:ident $versions:expr, $flexible:expr, $module:ident;
        )*}
        described {$($described:tt)*}
    ) => {
        async fn route(
            call: Call,
            context: &Context,
            body: Reader,
        ) -> Result<Reply<Answer>, Refused> {
            match call.api {
                $(ApiKey::$name => {
                    let request = call.decode(body)?;
                    let reply = api::$module::handle(context, request).await;
                    let connection = &context.connection;
                    Ok(call.encode::<crate::messages::$module::Response>(reply.into(), connection))
                })*
                other => Err(Refused::UnknownApi(other.code())),
            }
        }
    };
}

for_each_api!(routes);

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

    fn encode<T: Wire + Send + 'static>(
        self,
        reply: Reply<T>,
        connection: &Arc<Connection>,
    ) -> Reply<Answer> {
        match reply {
            Reply::Ready(response) => Reply::Ready(self.answer(&response, connection)),
            Reply::Deferred(response) => {
                let connection = connection.clone();
                Reply::Deferred(Box::pin(async move { self.answer(&response.await, &connection) }))
            }
            Reply::Unanswered(work) => Reply::Unanswered(work),
        }
    }

    fn answer<T: Wire>(self, response: &T, connection: &Connection) -> Answer {
        let Self { api, version, correlation_id } = self;
        header::response(api, version, correlation_id, response, &connection.spares)
    }

    /// Only ApiVersions can say that it does not speak a version: its client asks in order to
    /// learn them.
    fn unsupported(self, connection: &Connection) -> Result<Reply<Answer>, Refused> {
        if self.api != ApiKey::ApiVersions {
            return Err(Refused::UnsupportedVersion { api: self.api, version: self.version });
        }
        let as_version_0 = Self { version: 0, ..self };
        let answer = as_version_0.answer(&api::api_versions::unsupported(), connection);
        Ok(Reply::Ready(answer))
    }
}
