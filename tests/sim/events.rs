//! Counts what the object log says of itself, as a host's log would show it.

use crate::world::World;
use std::fmt::Debug;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

pub struct Events(World);

impl Events {
    pub fn new(world: World) -> Self {
        Self(world)
    }
}

/// What is counted, and as what.
const KINDS: [(&str, &str); 5] = [
    ("another process took over", "an owner that is fenced"),
    ("deleting commits that were referred to", "a commit that was referred to and goes"),
    ("merging entries", "an entry of many that were merged"),
    ("referring to commits", "a round that refers to commits"),
    ("the owner went on while its journal was read", "an opening that begins anew"),
];

struct Message<'a>(&'a World);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() != "message" {
            return;
        }
        let text = format!("{value:?}");
        for (_, kind) in KINDS.iter().filter(|(begin, _)| text.starts_with(begin)) {
            self.0.count(kind);
        }
        if std::env::var_os("KELP_TRACE").is_some() {
            println!("{text}");
        }
    }
}

impl Subscriber for Events {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut Message(&self.0));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
