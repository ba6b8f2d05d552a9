//! The spans that are open: what a log line is about. There are none unless the host's level is
//! [`KELP_LOG_DEBUG`](super::log::KELP_LOG_DEBUG) or finer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};

#[derive(Default)]
pub(super) struct Spans {
    last: AtomicU64,
    open: Mutex<HashMap<u64, Open>>,
}

struct Open {
    name: &'static str,
    fields: Fields,
    parent: Option<Id>,
    /// Those who have it, the spans in it among them.
    handles: usize,
}

thread_local! {
    /// The spans that this thread is in.
    static ENTERED: RefCell<Vec<Id>> = const { RefCell::new(Vec::new()) };
}

impl Spans {
    pub(super) fn open(&self, span: &Attributes<'_>) -> Id {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = Fields::default();
        span.record(&mut fields);
        let parent = span.parent().cloned().or_else(|| span.is_contextual().then(current)?);
        if let Some(parent) = &parent {
            self.keep(parent);
        }
        let name = span.metadata().name();
        self.lock().insert(id, Open { name, fields, parent, handles: 1 });
        Id::from_u64(id)
    }

    pub(super) fn record(&self, id: &Id, values: &Record<'_>) {
        if let Some(span) = self.lock().get_mut(&id.into_u64()) {
            values.record(&mut span.fields);
        }
    }

    pub(super) fn enter(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(id.clone()));
    }

    pub(super) fn exit(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            if let Some(place) = entered.iter().rposition(|entered| entered == id) {
                entered.remove(place);
            }
        });
    }

    pub(super) fn keep(&self, id: &Id) {
        if let Some(span) = self.lock().get_mut(&id.into_u64()) {
            span.handles += 1;
        }
    }

    /// True if that was the last one who had it.
    pub(super) fn let_go(&self, id: &Id) -> bool {
        let mut open = self.lock();
        let Some(span) = open.get_mut(&id.into_u64()) else { return false };
        span.handles -= 1;
        if span.handles > 0 {
            return false;
        }
        let parent = open.remove(&id.into_u64()).and_then(|span| span.parent);
        drop(open);
        if let Some(parent) = parent {
            self.let_go(&parent);
        }
        true
    }

    /// The span that this thread is in and those around it, the outermost first.
    pub(super) fn about(&self) -> String {
        let mut next = current();
        if next.is_none() {
            return String::new();
        }
        let open = self.lock();
        let mut texts = Vec::new();
        while let Some(span) = next.and_then(|id| open.get(&id.into_u64())) {
            texts.push(format!("{}{{{}}}: ", span.name, span.fields.text()));
            next = span.parent.clone();
        }
        texts.reverse();
        texts.concat()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn current() -> Option<Id> {
    ENTERED.with_borrow(|entered| entered.last().cloned())
}

/// Of each name the value that it got last.
#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.0 {
            let space = if text.is_empty() { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{space}{name}={value}");
        }
        text
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let value = format!("{value:?}");
        match self.0.iter_mut().find(|(name, _)| *name == field.name()) {
            Some((_, known)) => *known = value,
            None => self.0.push((field.name(), value)),
        }
    }
}
