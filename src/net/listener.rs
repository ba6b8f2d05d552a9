//! Accepts connections.

use super::{Network, Phase};
use crate::store::State;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Without free descriptors or memory `accept` fails at once, and nothing tells when there are
/// some again.
const PAUSE_WHEN_EXHAUSTED: Duration = Duration::from_millis(100);

impl Network {
    /// Accepts and serves connections until the engine stops, in a task of its own, once the
    /// store is open. Must be called in the runtime.
    pub fn serve_listener(self: &Arc<Self>, listener: std::net::TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let network = self.clone();
        let is_listening = self.listening.subscribe();
        tokio::spawn(async move {
            tokio::select! {
                () = network.accept(listener) => {}
                () = network.reached(Phase::Draining) => {}
            }
            drop(is_listening);
        });
        Ok(())
    }

    async fn accept(self: &Arc<Self>, listener: TcpListener) {
        let mut state = self.broker.storage.state();
        let open = |state: &State| matches!(state, State::Serving | State::Fenced(_));
        if state.wait_for(open).await.is_err() {
            return;
        }
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    if let Err(error) = self.start(stream) {
                        tracing::debug!(%peer, "a connection broke at once: {error}");
                    }
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!("cannot accept connections: {error}");
                    tokio::time::sleep(PAUSE_WHEN_EXHAUSTED).await;
                }
            }
        }
    }
}

/// Errors of a connection that was gone before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
