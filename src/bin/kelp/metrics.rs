//! Answers `GET /metrics`: as much of HTTP as Prometheus needs, and no more for anybody else.
//!
//! A connection brings one request and gets one answer. There are few at a time, and none for long:
//! who is slow is cut off, and others wait for its place.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

const MAX_CONNECTIONS: usize = 16;
const MAX_HEAD_BYTES: usize = 8 << 10;
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// For one request and its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Without free descriptors `accept` fails at once, and nothing tells when there are some again.
const PAUSE_WHEN_EXHAUSTED: Duration = Duration::from_millis(100);

/// What makes the page.
pub(crate) type Page = Arc<dyn Fn() -> String + Send + Sync>;

/// Serves until it is dropped.
pub(crate) async fn serve(listener: TcpListener, page: Page) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            unreachable!("the semaphore is never closed");
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let page = page.clone();
                tokio::spawn(async move {
                    match timeout(PATIENCE, answer(stream, &page)).await {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => tracing::debug!(%peer, "no metrics were sent: {error}"),
                        Err(_) => tracing::debug!(%peer, "who asked for metrics was too slow"),
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!("cannot accept connections for metrics: {error}");
                sleep(PAUSE_WHEN_EXHAUSTED).await;
            }
        }
    }
}

async fn answer(mut stream: TcpStream, page: &Page) -> io::Result<()> {
    let mut head = Vec::with_capacity(1024);
    let response = loop {
        let from = head.len().saturating_sub(END_OF_HEAD.len() - 1);
        if stream.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if head[from..].windows(END_OF_HEAD.len()).any(|bytes| bytes == END_OF_HEAD) {
            break respond(&head, page);
        }
        if head.len() > MAX_HEAD_BYTES {
            break Response::error("431 Request Header Fields Too Large");
        }
    };
    let Response { status, body, is_head } = response;
    let (kind, length) = ("text/plain; version=0.0.4; charset=utf-8", body.len());
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Allow: GET, HEAD\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    if !is_head {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await
}

struct Response {
    status: &'static str,
    body: String,
    is_head: bool,
}

impl Response {
    fn error(status: &'static str) -> Self {
        Self { status, body: format!("{status}\n"), is_head: false }
    }
}

fn respond(head: &[u8], page: &Page) -> Response {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words = std::str::from_utf8(line).unwrap_or_default().split(' ').collect::<Vec<_>>();
    let [method, target, version] = words[..] else { return Response::error("400 Bad Request") };
    if !version.starts_with("HTTP/1.") {
        return Response::error("400 Bad Request");
    }
    let is_head = method == "HEAD";
    let path = target.split('?').next().unwrap_or_default();
    match (method, path) {
        ("GET" | "HEAD", "/metrics") => Response { status: "200 OK", body: page(), is_head },
        ("GET" | "HEAD", _) => Response { is_head, ..Response::error("404 Not Found") },
        _ => Response::error("405 Method Not Allowed"),
    }
}
