//! DeleteTopics (20)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        topics: Vec<DeleteTopicState>  [6..],
        topic_names: Vec<Str>          [0..=5],
        timeout_ms: i32                [0..],
    }
    DeleteTopicState {
        name: Option<Str>  [6..],
        topic_id: Uuid     [6..],
    }

    Response {
        throttle_time_ms: i32                 [1..],
        responses: Vec<DeletableTopicResult>  [0..],
    }
    DeletableTopicResult {
        name: Option<Str>           [0.., null 6..] = Some(Str::new()),
        topic_id: Uuid              [6..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [5..],
    }
}
