//! A store of immutable objects: all that the object log asks of a host.

#[cfg(any(test, feature = "faults"))]
pub mod contract;
pub mod counted;
pub mod directory;
#[cfg(feature = "filer")]
pub mod filer;
pub mod memory;

use super::StoreError;
use bytes::Bytes;

/// What became of a [`Objects::put_new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    Created,
    /// The key has an object already; nothing was changed.
    Exists,
}

/// The outcome is unknown, or the store does not answer. The text is for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ObjectError(pub String);

impl From<ObjectError> for StoreError {
    fn from(error: ObjectError) -> Self {
        Self::Unavailable(error.0)
    }
}

/// Objects that are put once and never changed.
///
/// `put_new` and `get` are linearizable for each key: look and insert are one step, and success
/// is durable. `list` gives keys in order and shows every key whose `put_new` was answered before
/// the call; only a page without keys is the end. `delete` may act late, partly, in any order; a key
/// without an object is no error. Keys are as [`is_key`] says, and none is the folder of another.
#[async_trait::async_trait]
pub trait Objects: Send + Sync + 'static {
    /// Stores `parts`, one after the other, as the object `key`, unless the key has one.
    async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put, ObjectError>;

    /// Up to `len` bytes of an object from `offset` on; a range past its end is cut. `None` if
    /// there is no such object.
    async fn get(&self, key: &str, offset: u64, len: u64) -> Result<Option<Bytes>, ObjectError>;

    /// Keys that begin with `prefix` and come after `after`, in order, at most `limit`.
    async fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, ObjectError>;

    async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError>;

    /// Where the objects are, as people know it.
    fn location(&self) -> String {
        super::LOG_DIR.into()
    }

    /// Whether bytes that lie in memory are put a second time for less than it takes to keep them
    /// where they were put first.
    fn copies_cheaply(&self) -> bool {
        false
    }
}

/// The last key of those that begin with `prefix` and come after `after`.
pub async fn last_key(
    objects: &dyn Objects,
    prefix: &str,
    after: &str,
) -> Result<Option<String>, ObjectError> {
    const PAGE: usize = 1_000;
    let mut last = None;
    let mut after = after.to_owned();
    while let Some(key) = objects.list(prefix, &after, PAGE).await?.pop() {
        after.clone_from(&key);
        last = Some(key);
    }
    Ok(last)
}

/// Longest key.
pub(crate) const MAX_KEY_BYTES: usize = 200;

/// Whether `key` may be the key of an object: printable ASCII, in parts with `/` between them, none
/// of which is empty or has a meaning of its own in a file system, at most 200 bytes.
pub fn is_key(key: &str) -> bool {
    key.len() <= MAX_KEY_BYTES
        && key.bytes().all(|byte| byte.is_ascii_graphic())
        && key.split('/').all(|part| !matches!(part, "" | "." | ".."))
}
