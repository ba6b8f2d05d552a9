//! The topics that an engine has, for a host that shows them elsewhere.

use super::data::KelpStr;
use super::engine::KelpEngine;
use super::guard;
use super::status::{KELP_NULL_POINTER, KELP_UNAVAILABLE, KelpStatus};
use crate::engine::topics::TopicSummary;
use std::ptr;
use std::vec::IntoIter;

/// A topic, and what its settings and the broker's come to.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KelpTopicSummary {
    pub id: [u8; 16],
    pub name: KelpStr,
    /// How long records are kept, in milliseconds: what retention.ms is for the topic. -1: none go
    /// by their age.
    pub retention_ms: i64,
    pub partition_count: i32,
    /// 1: Kafka's own, such as __consumer_offsets, which holds the state of coordinators.
    pub is_internal: u32,
}

/// The topics of one moment. Opaque to C. One thread at a time may use it.
pub struct KelpTopicList {
    rest: IntoIter<TopicSummary>,
    /// The topic that was given last, and what it points into.
    given: Option<(KelpTopicSummary, TopicSummary)>,
}

impl KelpTopicList {
    fn next(&mut self) -> *const KelpTopicSummary {
        self.given = self.rest.next().map(|summary| (KelpTopicSummary::of(&summary), summary));
        self.given.as_ref().map_or(ptr::null(), |(given, _)| given)
    }
}

impl KelpTopicSummary {
    /// Points into the topic.
    fn of(summary: &TopicSummary) -> Self {
        Self {
            id: summary.topic.id.0,
            name: KelpStr::of(&summary.topic.name),
            retention_ms: summary.retention_ms.unwrap_or(-1),
            partition_count: summary.topic.partitions,
            is_internal: summary.is_internal.into(),
        }
    }
}

/// Makes a list of all topics as they are now, in the order of their names.
///
/// It waits for no storage and no client. From any thread, also from a callback; `topics_changed`
/// of kelp_host tells when it is worth to ask again. Since KELP_ABI_VERSION 5.
///
/// KELP_UNAVAILABLE while the engine does not serve: before its storage is open, while another
/// process has the data, and after it was stopped, fenced, or failed.
///
/// # Safety
///
/// `engine` is NULL or was not freed. `list` is NULL or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_topic_list_new(
    engine: *const KelpEngine,
    list: *mut *mut KelpTopicList,
) -> KelpStatus {
    guard(|| {
        // SAFETY: null is checked; otherwise a live engine, only used shared, and the caller's place.
        let (engine, list) = unsafe { (engine.as_ref(), list.as_mut()) };
        let (engine, list) = (engine.ok_or(KELP_NULL_POINTER)?, list.ok_or(KELP_NULL_POINTER)?);
        *list = ptr::null_mut();
        let topics = engine.topics().ok_or(KELP_UNAVAILABLE)?;
        let new = KelpTopicList { rest: topics.into_iter(), given: None };
        *list = Box::into_raw(Box::new(new));
        Ok(())
    })
}

/// Goes to the next topic; the first call goes to the first. NULL behind the last, or if `list` is
/// NULL. The topic and its name are Kelp's, until the next call of this function or
/// `kelp_topic_list_free`.
///
/// # Safety
///
/// `list` is NULL or was not freed, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_topic_list_next(list: *mut KelpTopicList) -> *const KelpTopicSummary {
    let mut topic = ptr::null();
    guard(|| {
        // SAFETY: null is checked; nobody else uses it.
        topic = unsafe { list.as_mut() }.ok_or(KELP_NULL_POINTER)?.next();
        Ok(())
    });
    topic
}

/// Frees a list, and all that it gave. The engine may be gone already.
///
/// # Safety
///
/// `list` is NULL or was not freed, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_topic_list_free(list: *mut KelpTopicList) {
    guard(|| {
        if !list.is_null() {
            // SAFETY: the pointer came from a box in `kelp_topic_list_new`, and is given up.
            drop(unsafe { Box::from_raw(list) });
        }
        Ok(())
    });
}
