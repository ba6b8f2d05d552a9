//! The topics, for a host that shows them elsewhere.

use crate::api::Broker;
use crate::api::topics::is_internal;
use crate::log::retention::Retention;
use crate::store::topics::Topic;
use crate::store::{State, Storage};
use std::sync::Arc;

/// A topic, and what its settings come to.
pub struct TopicSummary {
    pub topic: Arc<Topic>,
    /// Whether it holds the state of coordinators.
    pub is_internal: bool,
    /// How long records are kept; `None` if none go by their age.
    pub retention_ms: Option<i64>,
}

pub(super) fn all(broker: &Broker) -> Vec<TopicSummary> {
    let config = broker.settings.now();
    let summary = |topic: &Arc<Topic>| TopicSummary {
        topic: topic.clone(),
        is_internal: is_internal(&topic.name),
        retention_ms: Retention::of(&topic.configs, &config).and_then(|retention| retention.ms()),
    };
    broker.topics().iter().map(summary).collect()
}

/// Calls `told` when the store serves, and then whenever topics may have changed.
pub(super) async fn follow(storage: Arc<dyn Storage>, told: impl Fn()) {
    if storage.state().wait_for(|state| *state == State::Serving).await.is_err() {
        return;
    }
    let Some(mut changes) = storage.changes() else { return };
    loop {
        told();
        if changes.changed().await.is_err() {
            return;
        }
    }
}
