//! Chunks of an object that is put.

use super::file_ids::FileId;
use super::messages::FileChunk;
use super::slices::cut;
use super::{CHUNK_BYTES, ObjectError, PARALLEL, Shared, since_1970};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::timeout;

/// A chunk that a volume server has.
pub(super) struct Upload {
    id: FileId,
    pub(super) chunk: FileChunk,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum NotUploaded {
    #[error("the master assigns no file ids")]
    NoFileId,
    #[error(transparent)]
    Failed(#[from] ObjectError),
}

impl Shared {
    /// Writes parts to volume servers, and waits for file ids as long as `patience`. When it fails no chunk stays, as far
    /// as that is known.
    pub(super) async fn upload(
        &self,
        path: &str,
        parts: &[Bytes],
        size: usize,
        patience: Duration,
    ) -> Result<Vec<Upload>, NotUploaded> {
        let offsets = (0..size).step_by(CHUNK_BYTES);
        let chunk = |offset| {
            self.upload_chunk(path, parts, offset, CHUNK_BYTES.min(size - offset), patience)
        };
        let chunks: Vec<_> = offsets.map(chunk).collect();
        let mut chunks = stream::iter(chunks).buffered(PARALLEL);
        let mut uploads = Vec::new();
        while let Some(done) = chunks.next().await {
            match done {
                Ok(upload) => uploads.push(upload),
                // One chunk that is missing makes the others useless.
                Err(why) => {
                    drop(chunks);
                    self.discard(uploads);
                    return Err(why);
                }
            }
        }
        Ok(uploads)
    }

    /// Writes one chunk under a fresh file id. It tries a second volume when the first one did not take it: file ids
    /// are assigned ahead, and a volume may have become full or read-only since. That is safe, as no entry names the
    /// chunk yet.
    async fn upload_chunk(
        &self,
        path: &str,
        parts: &[Bytes],
        offset: usize,
        length: usize,
        patience: Duration,
    ) -> Result<Upload, NotUploaded> {
        let mut again = true;
        loop {
            let id = self.ids.take(path, self.collection(path), length, patience).await?;
            match self.volumes.put(&id, cut(parts, offset, length)).await {
                Ok(e_tag) => {
                    let chunk = FileChunk {
                        file_id: id.name.clone(),
                        offset: offset as i64,
                        size: length as u64,
                        modified_ts_ns: since_1970().as_nanos() as i64,
                        e_tag,
                        ..Default::default()
                    };
                    return Ok(Upload { id, chunk });
                }
                Err(error) => {
                    id.batch.refused.store(true, Ordering::Relaxed);
                    let text = format!("chunk {} to {}: {error}", id.name, id.batch.server);
                    if !again {
                        return Err(NotUploaded::Failed(ObjectError(text)));
                    }
                    tracing::warn!("{text}");
                    again = false;
                }
            }
        }
    }

    /// Deletes the chunks of a put that was lost, in the background: nobody waits for it.
    pub(super) fn discard(&self, uploads: Vec<Upload>) {
        if uploads.is_empty() {
            return;
        }
        let (volumes, limit) = (self.volumes.clone(), self.timeout);
        tokio::spawn(async move {
            for Upload { id, .. } in uploads {
                let late = |_| Err(ObjectError("no answer".into()));
                let deleted = timeout(limit, volumes.delete(&id)).await.unwrap_or_else(late);
                if let Err(error) = deleted {
                    let garbage = "is garbage, which volume.fsck of weed shell finds";
                    tracing::warn!("chunk {} {garbage}: {error}", id.name);
                }
            }
        });
    }
}
