//! Log lines on their way to the host.
//!
//! A subscriber for Kelp's own threads and calls only: a Rust program that embeds Kelp keeps its
//! global one.

use super::queue::{Notice, Queue};
use super::spans::Spans;
use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber, dispatcher, span};

/// Something is broken and somebody should act.
pub const KELP_LOG_ERROR: i32 = 1;
/// Something is wrong; Kelp goes on.
pub const KELP_LOG_WARN: i32 = 2;
/// What an operator wants to know.
pub const KELP_LOG_INFO: i32 = 3;
pub const KELP_LOG_DEBUG: i32 = 4;
pub const KELP_LOG_TRACE: i32 = 5;

/// Longer lines are cut: peers may give long names.
const LINE_MAX_BYTES: usize = 8 << 10;

/// A subscriber that queues lines of `level` and graver. 0 is [`KELP_LOG_INFO`].
pub(super) fn to_host(queue: Arc<Queue>, level: i32) -> Dispatch {
    let least = if level == 0 { KELP_LOG_INFO } else { level };
    Dispatch::new(HostLog { queue, least, spans: Spans::default() })
}

/// Makes `dispatch` this thread's own, until the thread ends.
pub(super) fn install(dispatch: &Dispatch) {
    thread_local! {
        static INSTALLED: RefCell<Option<dispatcher::DefaultGuard>> = const { RefCell::new(None) };
    }
    INSTALLED.with_borrow_mut(|guard| {
        // The guard before restores the one before it when dropped, so it goes first.
        *guard = None;
        *guard = Some(dispatcher::set_default(dispatch));
    });
}

struct HostLog {
    queue: Arc<Queue>,
    least: i32,
    spans: Spans,
}

fn number(level: &Level) -> i32 {
    match *level {
        Level::ERROR => KELP_LOG_ERROR,
        Level::WARN => KELP_LOG_WARN,
        Level::INFO => KELP_LOG_INFO,
        Level::DEBUG => KELP_LOG_DEBUG,
        Level::TRACE => KELP_LOG_TRACE,
    }
}

impl Subscriber for HostLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        number(metadata.level()) <= self.least
    }

    /// So what is finer costs a comparison.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match self.least {
            ..KELP_LOG_ERROR => LevelFilter::OFF,
            KELP_LOG_ERROR => LevelFilter::ERROR,
            KELP_LOG_WARN => LevelFilter::WARN,
            KELP_LOG_INFO => LevelFilter::INFO,
            KELP_LOG_DEBUG => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        })
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line { message: self.spans.about(), ..Line::default() };
        event.record(&mut line);
        self.queue.notice(Notice::Log {
            level: number(metadata.level()),
            target: metadata.target().to_owned(),
            text: line.finish(),
        });
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        self.spans.open(span)
    }

    fn record(&self, id: &span::Id, values: &span::Record<'_>) {
        self.spans.record(id, values);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, id: &span::Id) {
        self.spans.enter(id);
    }

    fn exit(&self, id: &span::Id) {
        self.spans.exit(id);
    }

    fn clone_span(&self, id: &span::Id) -> span::Id {
        self.spans.keep(id);
        id.clone()
    }

    fn try_close(&self, id: span::Id) -> bool {
        self.spans.let_go(&id)
    }
}

/// What it is about, the message, then the fields as `name=value`.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Line {
    fn finish(mut self) -> String {
        self.message.push_str(&self.fields);
        self.message.truncate(self.message.floor_char_boundary(LINE_MAX_BYTES));
        self.message
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::Task;
    use super::*;

    #[test]
    fn a_line_has_its_message_and_fields_and_only_grave_enough_ones_go_out() {
        let queue = Arc::new(Queue::default());
        dispatcher::with_default(&to_host(queue.clone(), 0), || {
            tracing::debug!("not asked for");
            tracing::warn!(peer = "127.0.0.1:1", bytes = 7, "closed {}", "early");
        });
        let Some(Task::Notice(Notice::Log { level, target, text })) = queue.next(true) else {
            panic!("no line came");
        };
        assert_eq!((level, text.as_str()), (2, "closed early peer=\"127.0.0.1:1\" bytes=7"));
        assert_eq!(target, module_path!());
        queue.close();
        assert!(queue.next(true).is_none());
    }

    #[test]
    fn lines_of_a_request_say_which_one_it_is_if_the_level_is_debug() {
        let queue = Arc::new(Queue::default());
        for level in [0, KELP_LOG_DEBUG] {
            dispatcher::with_default(&to_host(queue.clone(), level), || {
                let client_id = tracing::field::Empty;
                let connection = tracing::debug_span!("connection", peer = 1, client_id);
                let request = tracing::debug_span!(parent: &connection, "request", version = 9);
                for id in ["a", "b"] {
                    connection.record("client_id", id);
                }
                drop(connection);
                request.in_scope(|| tracing::info!("inside"));
                drop(request);
                tracing::info!("outside");
            });
        }
        queue.close();
        let mut lines = Vec::new();
        while let Some(Task::Notice(Notice::Log { text, .. })) = queue.next(true) {
            lines.push(text);
        }
        let about = "connection{peer=1 client_id=\"b\"}: request{version=9}: inside";
        assert_eq!(lines, ["inside", "outside", about, "outside"]);
    }

    #[test]
    fn lines_that_nobody_takes_are_dropped_and_counted() {
        let queue = Arc::new(Queue::default());
        dispatcher::with_default(&to_host(queue.clone(), 0), || {
            (0..1_003).for_each(|n| tracing::info!("line {n}"));
        });
        queue.close();
        let mut last = None;
        let mut lines = 0;
        while let Some(Task::Notice(Notice::Log { text, .. })) = queue.next(true) {
            (last, lines) = (Some(text), lines + 1);
        }
        assert_eq!((lines, last.as_deref()), (1_001, Some("3 log lines were dropped")));
    }
}
