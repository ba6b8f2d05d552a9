//! Chunks on volume servers, by HTTP.

use super::calls::{connector, with_causes};
use super::file_ids::FileId;
use super::slices::Slices;
use super::{ObjectError, Result};
use bytes::{Buf, Bytes, BytesMut};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, ETAG, RANGE};
use hyper::http::request::Builder;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::ops::Range;
use std::time::Duration;

/// A volume server closes a connection that was idle for 30 s.
const IDLE: Duration = Duration::from_secs(20);

/// As many as are worth keeping open: several objects may be on their way at once.
const IDLE_CONNECTIONS: usize = 32;

/// The longest answer that is no content.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// A volume server that is asked for a range of a chunk reads the whole chunk first, to check it, and checks and
/// copies the range once more. So a range costs so many times its bytes, and a larger part is read with all
/// of its chunk (docs/performance.md).
const RANGE_COSTS: u64 = 2;

pub(super) struct Volumes {
    client: Client<HttpConnector, Full<Slices>>,
}

impl Volumes {
    pub(super) fn new() -> Self {
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_CONNECTIONS);
        Self { client: builder.build(connector()) }
    }

    /// Writes a chunk, as it is: without a multipart form around it. Gives its ETag.
    pub(super) async fn put(&self, id: &FileId, parts: Vec<Bytes>) -> Result<String> {
        let body = Slices::new(parts);
        let length = body.remaining();
        let query = if id.batch.fsync { "?fsync=true" } else { "" };
        let uri = format!("http://{}/{}{query}", id.batch.server, id.upload_name);
        let request = with_token(Request::put(uri), &id.batch.token)
            // Any other type, or none, and the volume server may find the bytes worth compressing.
            .header(CONTENT_TYPE, "application/octet-stream");
        let response = self.send(request, body).await?;
        let (status, etag) = (response.status(), etag(&response));
        let text = text(response).await?;
        if !status.is_success() {
            return Err(refused(status, &text));
        }
        if status != StatusCode::NO_CONTENT {
            let answer: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
            if answer["size"].as_u64() != Some(length as u64) {
                let text = String::from_utf8_lossy(&text);
                return Err(ObjectError(format!("{length} bytes were sent, the answer is {text}")));
            }
        }
        Ok(etag)
    }

    /// Reads a range of a chunk of `size` bytes to the end of `into`, perhaps with the rest of the chunk.
    pub(super) async fn read(
        &self,
        server: &str,
        (id, size): (&str, u64),
        token: &str,
        range: Range<u64>,
        into: &mut BytesMut,
    ) -> Result<()> {
        let request = Request::get(format!("http://{server}/{id}"));
        let mut request = with_token(request, token).header(ACCEPT_ENCODING, "identity");
        let (mut expected, mut sent) = (StatusCode::OK, 0..size);
        if (range.end - range.start) * RANGE_COSTS < size {
            expected = StatusCode::PARTIAL_CONTENT;
            request = request.header(RANGE, format!("bytes={}-{}", range.start, range.end - 1));
            sent = range.clone();
        }
        let response = self.send(request, Slices::new(vec![])).await?;
        let status = response.status();
        if status != expected {
            return Err(refused(status, &text(response).await?));
        }
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| ObjectError(with_causes(&e)))?;
            let Ok(data) = frame.into_data() else { continue };
            let (at, end) = (sent.start, sent.start + data.len() as u64);
            if end > sent.end {
                return Err(ObjectError("the answer is longer than what was asked for".into()));
            }
            let wanted = range.start.clamp(at, end) - at..range.end.clamp(at, end) - at;
            into.extend_from_slice(&data[wanted.start as usize..wanted.end as usize]);
            sent.start = end;
        }
        match sent.end - sent.start {
            0 => Ok(()),
            left => Err(ObjectError(format!("the last {left} bytes of the answer are missing"))),
        }
    }

    /// Deletes a chunk, and its copies on other servers. One that is not there is no error.
    pub(super) async fn delete(&self, id: &FileId) -> Result<()> {
        let uri = format!("http://{}/{}", id.batch.server, id.upload_name);
        let request =
            with_token(Request::builder().method(Method::DELETE).uri(uri), &id.batch.token);
        let response = self.send(request, Slices::new(vec![])).await?;
        let status = response.status();
        let text = text(response).await?;
        match status.is_success() || status == StatusCode::NOT_FOUND {
            true => Ok(()),
            false => Err(refused(status, &text)),
        }
    }

    async fn send(&self, request: Builder, body: Slices) -> Result<Response<Incoming>> {
        let request = request.body(Full::new(body)).map_err(|e| ObjectError(e.to_string()))?;
        self.client.request(request).await.map_err(|e| ObjectError(with_causes(&e)))
    }
}

fn with_token(request: Builder, token: &str) -> Builder {
    match token {
        "" => request,
        token => request.header(AUTHORIZATION, format!("BEARER {token}")),
    }
}

fn etag(response: &Response<Incoming>) -> String {
    let etag = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok());
    etag.unwrap_or_default().trim_matches('"').to_owned()
}

/// The whole answer, so that the connection can be used again.
async fn text(response: Response<Incoming>) -> Result<Bytes> {
    let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
    Ok(body.map_err(|e| ObjectError(e.to_string()))?.to_bytes())
}

fn refused(status: StatusCode, text: &[u8]) -> ObjectError {
    ObjectError(format!("{status}: {}", String::from_utf8_lossy(text).trim()))
}
