//! A whole connection to a broker in memory: frames, headers, and the handlers of all APIs that are
//! served.
//!
//! The clock is paused, so that what waits is over at once: the connection ends when nothing has
//! moved on it for as long as it may be idle.

#![no_main]

use kelp::api::{Broker, Connection};
use kelp::config::Config;
use kelp::config::listeners::Address;
use kelp::net::Network;
use kelp::store::memory::Memory;
use libfuzzer_sys::fuzz_target;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

fuzz_target!(|sent: &[u8]| {
    static CONFIG: OnceLock<Arc<Config>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        // Few partitions: many would make inputs slow that have nothing new.
        let text = "kelp.max.partitions=20\nsocket.request.max.bytes=65536";
        Arc::new(Config::from_text(text).expect("a good configuration"))
    });
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    let received = runtime.block_on(serve(config.clone(), sent));
    check_frames(&received);
});

async fn serve(config: Arc<Config>, sent: &[u8]) -> Vec<u8> {
    let broker = Arc::new(Broker::new(config, Arc::new(Memory::default()), Arc::default()));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 9092));
    let advertised = Address { host: "localhost".into(), port: 9092 };
    let connection = Arc::new(Connection::new(address, address, advertised, Arc::default()));
    let mut received = Vec::new();
    let reader = sent.chain(Silent);
    Network::new(broker).serve_stream(&connection, reader, &mut received).await;
    received
}

/// What comes from a client that has sent everything and keeps its connection.
struct Silent;

impl AsyncRead for Silent {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Poll::Pending
    }
}

/// Answers are whole frames, each with at least a correlation id.
fn check_frames(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk().expect("a length");
        let length = u32::from_be_bytes(*length) as usize;
        assert!((4..=rest.len()).contains(&length), "a frame of {length} bytes");
        bytes = &rest[length..];
    }
}
