//! One handler for each API, in a file named as its message.
//!
//! A handler authorizes, validates, asks the rooms below and shapes the answer. It knows nothing
//! of sockets and clocks, and calls no other handler.

use crate::protocol::wire::Str;
use crate::store::BoxFuture;
use std::net::SocketAddr;
use std::sync::Arc;

/// What a handler needs besides its request.
#[derive(Clone)]
pub struct Context {
    pub broker: Arc<Broker>,
    pub connection: Arc<Connection>,
    pub api_version: i16,
    pub client_id: Option<Str>,
}

/// The parts of an engine that handlers ask.
pub struct Broker {}

/// What is known of the client's connection.
#[derive(Debug)]
pub struct Connection {
    pub peer: SocketAddr,
    /// Our end: which address and listener the client came to.
    pub local: SocketAddr,
}

/// What becomes of a request. The requests of a connection are handled one after the other; the
/// next one starts when this value is there, and answers go out in the order of the requests.
pub enum Reply<T> {
    Ready(T),
    /// The request took its place (its batches are submitted, its poll is parked); the answer
    /// comes later and does not hold up the requests behind it.
    Deferred(BoxFuture<'static, T>),
    /// A produce with acks=0 is never answered.
    None,
    /// How a produce with acks=0 says that it failed.
    Close,
}

impl<T> From<T> for Reply<T> {
    fn from(answer: T) -> Self {
        Self::Ready(answer)
    }
}
