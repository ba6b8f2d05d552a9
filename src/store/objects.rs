//! A store of immutable objects: all that the object log asks of a host.

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

/// Objects that are put once and never changed.
///
/// `put_new` and `get` are linearizable for each key: look and insert are one step, and success
/// is durable. `list` gives keys in order and shows every key whose `put_new` was answered before
/// the call. `delete` may act late, partly, in any order. Keys are printable ASCII with `/`
/// between their parts, at most 200 bytes.
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
}
