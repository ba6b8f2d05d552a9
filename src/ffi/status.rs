//! The one line of numbers for results: 0 is success, negative is Kelp's, positive is Kafka's.
//!
//! What a host answers stays an `i32`: a value that nobody defined must not be undefined behaviour.

use super::data::KelpStr;
use crate::store::StoreError;
use crate::store::objects::ObjectError;

/// The result of a call or an operation: 0 is success, negative numbers are Kelp's, positive ones
/// are the error codes of Kafka's protocol. A number is never used for anything else.
pub type KelpStatus = i32;

pub const KELP_OK: i32 = 0;
/// A pointer that must not be NULL was.
pub const KELP_NULL_POINTER: i32 = -1;
/// The engine was stopped, or is about to be.
pub const KELP_STOPPED: i32 = -2;
/// A bug in Kelp. The call failed; the process and all else go on.
pub const KELP_PANIC: i32 = -3;
/// An argument cannot be used: a struct_size, a property, an address.
pub const KELP_INVALID_ARGUMENT: i32 = -4;
/// The operating system refused a socket, a thread or memory.
pub const KELP_IO: i32 = -5;
/// The time was not enough.
pub const KELP_TIMED_OUT: i32 = -6;
/// The host's storage does not answer, or answers that something is broken. What the operation
/// should have changed may have been changed or not. The clients try again.
pub const KELP_UNAVAILABLE: i32 = -7;
/// There is nothing under that name.
pub const KELP_NOT_FOUND: i32 = -8;
/// There is something under that name already; nothing was changed.
pub const KELP_EXISTS: i32 = -9;
/// The log ends elsewhere; nothing was appended.
pub const KELP_CONFLICT: i32 = -10;
/// What is stored cannot be read.
pub const KELP_CORRUPT: i32 = -11;

/// Kafka: the offset is below the log's start or above its end.
pub const KELP_OFFSET_OUT_OF_RANGE: i32 = 1;
/// Kafka: no such topic or partition.
pub const KELP_UNKNOWN_TOPIC_OR_PARTITION: i32 = 3;
/// Kafka: another process has the partition now; nothing was changed.
pub const KELP_NOT_LEADER_OR_FOLLOWER: i32 = 6;
/// Kafka: the record or batch is longer than it may be.
pub const KELP_MESSAGE_TOO_LARGE: i32 = 10;
/// Kafka: a topic of that name exists.
pub const KELP_TOPIC_ALREADY_EXISTS: i32 = 36;

/// Why an operation of the host gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The host completed it with this status and, maybe, a text.
    Status(KelpStatus, String),
    /// The host did not complete it in time; it may still do it.
    TimedOut,
    /// The engine ended before the host was asked.
    Stopped,
    /// What the host answered makes no sense.
    Malformed(&'static str),
    /// The host has so many operations or bytes under way that it gets no more.
    Full,
    /// The host left this callback NULL.
    NotOffered,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status, text) if text.is_empty() => write!(f, "host: status {status}"),
            Self::Status(status, text) => write!(f, "host: {text} (status {status})"),
            Self::TimedOut => f.write_str("the host did not answer in time"),
            Self::Stopped => f.write_str("the engine was stopped"),
            Self::Malformed(what) => write!(f, "the host's answer is malformed: {what}"),
            Self::Full => f.write_str("too many operations wait for the host"),
            Self::NotOffered => f.write_str("the host does not offer this operation"),
        }
    }
}

impl From<Failure> for ObjectError {
    fn from(failure: Failure) -> Self {
        Self(failure.to_string())
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::TimedOut => Self::TimedOut,
            Failure::Malformed(_) => Self::Corrupt(failure.to_string()),
            Failure::Status(status, _) => match status {
                KELP_OFFSET_OUT_OF_RANGE => Self::OffsetOutOfRange,
                KELP_UNKNOWN_TOPIC_OR_PARTITION => Self::UnknownPartition,
                KELP_NOT_LEADER_OR_FOLLOWER => Self::Fenced,
                KELP_TOPIC_ALREADY_EXISTS => Self::TopicExists,
                KELP_TIMED_OUT => Self::TimedOut,
                KELP_CORRUPT => Self::Corrupt(failure.to_string()),
                _ => Self::Unavailable(failure.to_string()),
            },
            _ => Self::Unavailable(failure.to_string()),
        }
    }
}

/// The text that a caller's buffer gets when a call fails: cut to fit, always with its NUL.
///
/// # Safety
///
/// `buffer` is null or has room for `capacity` bytes.
pub(super) unsafe fn write_text(text: &str, buffer: *mut std::ffi::c_char, capacity: usize) {
    if buffer.is_null() || capacity == 0 {
        return;
    }
    let text = KelpStr::cut(text, capacity - 1);
    // SAFETY: the caller's buffer has room for the text, which was cut to it, and the NUL.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, text.len());
        *buffer.add(text.len()) = 0;
    }
}
