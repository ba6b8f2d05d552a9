//! A store of objects whose calls are counted and timed.

use super::{ObjectError, Objects, Put};
use crate::metrics::{Call, StoreCalls};
use bytes::Bytes;
use std::sync::Arc;
use tokio::time::Instant;

pub struct Counted {
    objects: Arc<dyn Objects>,
    calls: Arc<StoreCalls>,
}

impl Counted {
    pub fn new(objects: Arc<dyn Objects>, calls: Arc<StoreCalls>) -> Self {
        Self { objects, calls }
    }

    async fn count<T>(
        &self,
        call: Call,
        made: impl Future<Output = Result<T, ObjectError>>,
    ) -> Result<T, ObjectError> {
        let begun = Instant::now();
        let answer = made.await;
        self.calls.count(call, begun.elapsed(), answer.is_err());
        answer
    }
}

#[async_trait::async_trait]
impl Objects for Counted {
    async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put, ObjectError> {
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let put = self.count(Call::PutNew, self.objects.put_new(key, parts)).await?;
        self.calls.bytes_put.add(bytes);
        Ok(put)
    }

    async fn get(&self, key: &str, offset: u64, len: u64) -> Result<Option<Bytes>, ObjectError> {
        let got = self.count(Call::Get, self.objects.get(key, offset, len)).await?;
        self.calls.bytes_got.add(got.as_ref().map_or(0, |bytes| bytes.len() as u64));
        Ok(got)
    }

    async fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, ObjectError> {
        self.count(Call::List, self.objects.list(prefix, after, limit)).await
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError> {
        self.count(Call::Delete, self.objects.delete(keys)).await
    }

    fn location(&self) -> String {
        self.objects.location()
    }

    fn copies_cheaply(&self) -> bool {
        self.objects.copies_cheaply()
    }
}
