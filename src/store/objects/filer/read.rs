//! Reads of objects, and look-ups of entries.

use super::messages::{
    Entry, FileChunk, Location, LookupDirectoryEntriesRequest, LookupDirectoryEntriesResponse,
    LookupDirectoryEntryRequest,
};
use super::{MAX_OBJECT_BYTES, ObjectError, PARALLEL, Result, Shared, split};
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, StreamExt};
use std::ops::Range;

/// What the filer says about paths: their entries, where the chunks of these are, and the tokens to read them.
pub(super) struct Found {
    pub(super) entries: Vec<Option<Entry>>,
    response: LookupDirectoryEntriesResponse,
}

impl Shared {
    pub(super) async fn get(&self, key: &str, offset: u64, len: u64) -> Result<Option<Bytes>> {
        let path = self.path(key)?;
        // An object never changes, but its chunks may go to other servers while they are read, or be deleted with it.
        // The second look tells which.
        for last in [false, true] {
            let Some((entry, found)) = self.find(&path).await? else { return Ok(None) };
            match self.read(&entry, &found, offset, len).await {
                Err(error) if !last => tracing::debug!("{path} is looked up again: {error}"),
                read => return read.map(Some),
            }
        }
        unreachable!("the last look returns")
    }

    /// The entry of an object.
    pub(super) async fn find(&self, path: &str) -> Result<Option<(Entry, Found)>> {
        let mut found = self.look_up(&[path]).await?;
        let entry = found.entries[0].take().filter(|entry| !entry.is_directory);
        Ok(entry.map(|entry| (entry, found)))
    }

    /// Asks for several entries at once.
    pub(super) async fn look_up(&self, paths: &[&str]) -> Result<Found> {
        let requests = paths.iter().map(|path| {
            let (directory, name) = split(path);
            LookupDirectoryEntryRequest { directory: directory.into(), name: name.into() }
        });
        let request = LookupDirectoryEntriesRequest { requests: requests.collect() };
        let mut response = self.calls.look_up(&request).await?;
        let results = std::mem::take(&mut response.results);
        if results.len() != paths.len() {
            let text = format!("{} answers to {} look-ups", results.len(), paths.len());
            return Err(ObjectError(text));
        }
        let mut entries = Vec::with_capacity(paths.len());
        for (path, result) in paths.iter().zip(results) {
            if !result.error.is_empty() {
                return Err(ObjectError(format!("look-up of {path}: {}", result.error)));
            }
            entries.push(result.entry.filter(|_| result.found));
        }
        Ok(Found { entries, response })
    }

    /// At most `len` bytes of an object from `offset` on.
    pub(super) async fn read(
        &self,
        entry: &Entry,
        found: &Found,
        offset: u64,
        len: u64,
    ) -> Result<Bytes> {
        if entry.chunks.is_empty() {
            let range = clamp(entry.content.len() as u64, offset, len);
            return Ok(entry.content.slice(range.start as usize..range.end as usize));
        }
        let range = clamp(size(entry)?, offset, len);
        let mut memory = BytesMut::with_capacity((range.end - range.start) as usize);
        let mut pieces = Vec::new();
        for chunk in &entry.chunks {
            let start = chunk.offset as u64;
            let (from, to) = (range.start.max(start), range.end.min(start + chunk.size));
            if from < to {
                // Memory for the pieces that follow; this one's stays in front.
                let rest = memory.split_off((to - from) as usize);
                pieces.push(self.read_piece(chunk, from - start..to - start, memory, found));
                memory = rest;
            }
        }
        let mut pieces = stream::iter(pieces).buffered(PARALLEL);
        let mut whole = BytesMut::new();
        while let Some(piece) = pieces.next().await {
            // One follows the other in memory: nothing is copied.
            whole.unsplit(piece?);
        }
        Ok(whole.freeze())
    }

    /// Asks one server after the other.
    async fn read_piece(
        &self,
        chunk: &FileChunk,
        range: Range<u64>,
        mut into: BytesMut,
        found: &Found,
    ) -> Result<BytesMut> {
        let id = chunk.file_id.as_str();
        let token = found.response.read_auth.get(id).map_or("", String::as_str);
        let mut failed = ObjectError(format!("chunk {id} has no server"));
        for Location { url } in found.servers(id) {
            into.clear();
            let chunk = (id, chunk.size);
            match self.volumes.read(url, chunk, token, range.clone(), &mut into).await {
                Ok(()) => return Ok(into),
                Err(error) => failed = ObjectError(format!("chunk {id} from {url}: {error}")),
            }
        }
        Err(failed)
    }
}

impl Found {
    /// Where a chunk can be read.
    pub(super) fn servers(&self, file_id: &str) -> &[Location] {
        let volume = file_id.split(',').next().unwrap_or_default();
        self.response.locations_map.get(volume).map_or(&[], |found| &found.locations)
    }
}

/// What there is of `len` bytes from `offset` on in an object of `size` bytes.
fn clamp(size: u64, offset: u64, len: u64) -> Range<u64> {
    let start = offset.min(size);
    start..start + len.min(size - start)
}

/// The size of an object of chunks, each of which begins where the one before it ends.
fn size(entry: &Entry) -> Result<u64> {
    let mut end = 0;
    for chunk in &entry.chunks {
        let plain = !chunk.is_chunk_manifest && !chunk.is_compressed && chunk.cipher_key.is_empty();
        let fits = chunk.size <= MAX_OBJECT_BYTES as u64 - end;
        if !plain || chunk.offset != end as i64 || !fits {
            return Err(ObjectError(format!("{} is not an object that Kelp wrote", entry.name)));
        }
        end += chunk.size;
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_at_the_end() {
        assert_eq!(clamp(10, 3, 4), 3..7);
        assert_eq!(clamp(10, 7, u64::MAX), 7..10);
        assert_eq!(clamp(10, 11, 5), 10..10);
        assert_eq!(clamp(0, u64::MAX, u64::MAX), 0..0);
    }

    #[test]
    fn chunks_must_follow_each_other() {
        let chunk = |offset, size| FileChunk { offset, size, ..Default::default() };
        let entry = |chunks| Entry { chunks, ..Default::default() };
        assert_eq!(size(&entry(vec![chunk(0, 8), chunk(8, 2)])), Ok(10));
        assert!(size(&entry(vec![chunk(0, 8), chunk(9, 2)])).is_err());
        assert!(size(&entry(vec![chunk(0, u64::MAX), chunk(-1, 2)])).is_err());
        let manifest = FileChunk { is_chunk_manifest: true, ..chunk(0, 8) };
        assert!(size(&entry(vec![manifest])).is_err());
    }
}
