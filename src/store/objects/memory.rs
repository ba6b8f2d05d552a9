//! [`Objects`] in memory: for tests, and for a broker that keeps nothing.

use super::{ObjectError, Objects, Put, is_key};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct Memory {
    objects: Mutex<BTreeMap<String, Bytes>>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl Objects for Memory {
    async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put, ObjectError> {
        if !is_key(key) {
            return Err(ObjectError(format!("no key: {key:?}")));
        }
        // Copied, as a part may be a slice of a much larger buffer that it would keep alive.
        let object = Bytes::from(parts.concat());
        match self.lock().entry(key.to_owned()) {
            Entry::Occupied(_) => Ok(Put::Exists),
            Entry::Vacant(vacant) => {
                vacant.insert(object);
                Ok(Put::Created)
            }
        }
    }

    async fn get(&self, key: &str, offset: u64, len: u64) -> Result<Option<Bytes>, ObjectError> {
        let Some(object) = self.lock().get(key).cloned() else { return Ok(None) };
        let size = object.len() as u64;
        let start = offset.min(size);
        let end = offset.saturating_add(len).min(size);
        Ok(Some(object.slice(start as usize..end as usize)))
    }

    async fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, ObjectError> {
        let from = if after < prefix { Bound::Included(prefix) } else { Bound::Excluded(after) };
        let objects = self.lock();
        let keys = objects.range::<str, _>((from, Bound::Unbounded)).map(|(key, _)| key);
        Ok(keys.take_while(|key| key.starts_with(prefix)).take(limit).cloned().collect())
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError> {
        let mut objects = self.lock();
        for key in keys {
            objects.remove(&key);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objects::contract;
    use std::sync::Arc;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn memory_keeps_the_contract() {
        contract::holds(Arc::new(Memory::default())).await;
    }
}
