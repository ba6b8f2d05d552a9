//! The way from I/O threads to the threads that call the host.
//!
//! Nothing here waits but a dispatcher with nothing to do.

use super::operation::Ticket;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What the host is called for.
pub(super) enum Task {
    Ask(Ticket),
    Release(Lent),
    Notice(Notice),
}

/// The host's token of memory that it gets back.
pub(super) struct Lent(pub(super) *mut c_void);

// SAFETY: the host allows its tokens on every thread; Kelp only hands them back.
unsafe impl Send for Lent {}

/// What the host is told, in order.
pub(super) enum Notice {
    Log { level: i32, target: String, text: String },
    State { state: i32, detail: String },
    TopicsChanged,
}

/// Log lines that wait while the host does not take them; more are dropped and counted.
const LOG_LINES_MAX: usize = 1_000;

#[derive(Default)]
pub(super) struct Queue {
    inner: Mutex<Inner>,
    wake: Condvar,
}

#[derive(Default)]
struct Inner {
    tasks: VecDeque<Task>,
    notices: VecDeque<Notice>,
    log_lines_dropped: u64,
    idle: usize,
    closed: bool,
}

impl Queue {
    /// Gives the task back when nobody is there any more to carry it out.
    pub(super) fn push(&self, task: Task) -> Result<(), Task> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(task);
        }
        inner.tasks.push_back(task);
        let idle = inner.idle;
        drop(inner);
        // Waking costs a system call, so it is only done for who sleeps.
        if idle > 0 {
            self.wake.notify_one();
        }
        Ok(())
    }

    pub(super) fn notice(&self, notice: Notice) {
        let mut inner = self.lock();
        let is_line = matches!(notice, Notice::Log { .. });
        if inner.closed || is_line && inner.notices.len() >= LOG_LINES_MAX {
            inner.log_lines_dropped += u64::from(is_line);
            return;
        }
        let is_of_topics = |notice: &Notice| matches!(notice, Notice::TopicsChanged);
        if is_of_topics(&notice) && inner.notices.iter().any(is_of_topics) {
            return; // One that waits tells the same.
        }
        inner.notices.push_back(notice);
        drop(inner);
        // Only the first dispatcher takes notices, and it may not be the one that is woken.
        self.wake.notify_all();
    }

    /// The next task, waiting for one. `None` when the queue is closed and empty.
    ///
    /// Notices are for the first dispatcher alone, as their order matters.
    pub(super) fn next(&self, is_first: bool) -> Option<Task> {
        let mut inner = self.lock();
        loop {
            if let Some(notice) = is_first.then(|| inner.notice()).flatten() {
                return Some(Task::Notice(notice));
            }
            if let Some(task) = inner.tasks.pop_front() {
                return Some(task);
            }
            if inner.closed {
                return None;
            }
            inner.idle += 1;
            inner = self.wake.wait(inner).unwrap_or_else(PoisonError::into_inner);
            inner.idle -= 1;
        }
    }

    /// What waits is still carried out, but that operations are not delivered any more.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        let (undelivered, rest) =
            inner.tasks.drain(..).partition(|task| matches!(task, Task::Ask(_)));
        inner.tasks = rest;
        drop(inner);
        self.wake.notify_all();
        // Dropped without the lock: who hears that an operation failed may come back here.
        drop::<VecDeque<Task>>(undelivered);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn notice(&mut self) -> Option<Notice> {
        if self.log_lines_dropped > 0 && self.notices.len() < LOG_LINES_MAX {
            let text = format!("{} log lines were dropped", self.log_lines_dropped);
            self.log_lines_dropped = 0;
            let target = module_path!().to_owned();
            self.notices.push_back(Notice::Log { level: super::log::KELP_LOG_WARN, target, text });
        }
        self.notices.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_topics_changed_waits_once_and_is_told_again_after_that() {
        let queue = Queue::default();
        let next = || match queue.next(true) {
            Some(Task::Notice(Notice::TopicsChanged)) => "topics",
            Some(Task::Notice(Notice::State { .. })) => "state",
            _ => "other",
        };
        queue.notice(Notice::TopicsChanged);
        queue.notice(Notice::State { state: 1, detail: String::new() });
        queue.notice(Notice::TopicsChanged);
        assert_eq!((next(), next()), ("topics", "state"));
        queue.notice(Notice::TopicsChanged);
        queue.close();
        assert_eq!(next(), "topics");
        assert!(queue.next(true).is_none());
    }
}
