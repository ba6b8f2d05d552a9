//! What a partition's log is made of, for who decides what of it goes.

/// A log in parts, oldest first, without those wholly below the log start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub log_start_offset: i64,
    pub log_end_offset: i64,
    /// Compaction has taken away what is superseded by a record below it.
    pub clean_end_offset: i64,
    pub parts: Vec<Part>,
}

/// A run of offsets whose batches are stored together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub base_offset: i64,
    pub end_offset: i64,
    pub bytes: u64,
    /// The largest of the first batch; -1 if it is not known yet.
    pub first_timestamp: i64,
    /// The largest of all; -1 if it is not known yet. Batches without timestamps are as old as
    /// their part.
    pub max_timestamp: i64,
    /// Whether it can be rewritten.
    pub is_settled: bool,
}

impl Layout {
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }
}
