//! Producer ids, handed out one by one from blocks that the store gave for good.

use crate::store::{Result, Storage};
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::Mutex;

pub struct ProducerIds {
    storage: Arc<dyn Storage>,
    /// What is left of the block. Held while a new one is asked for: one is enough for all.
    block: Mutex<Range<i64>>,
}

/// How many ids are asked for at once, as Kafka does. Those left over at the end are lost.
const BLOCK_SIZE: u32 = 1000;

impl ProducerIds {
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage, block: Mutex::new(0..0) }
    }

    /// An id that no other producer has or will have.
    pub async fn next(&self) -> Result<i64> {
        let mut block = self.block.lock().await;
        loop {
            if let Some(id) = block.next() {
                return Ok(id);
            }
            *block = self.storage.allocate_producer_ids(BLOCK_SIZE).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::Memory;
    use std::collections::HashSet;

    #[tokio::test]
    async fn ids_are_handed_out_once_also_by_two_processes() {
        let storage = Arc::new(Memory::default());
        let (a, b) = (ProducerIds::new(storage.clone()), ProducerIds::new(storage));
        let mut seen = HashSet::new();
        for _ in 0..1500 {
            assert!(seen.insert(a.next().await.unwrap()));
            assert!(seen.insert(b.next().await.unwrap()));
        }
        assert_eq!(seen.into_iter().max(), Some(3499), "from blocks of 1000");
    }
}
