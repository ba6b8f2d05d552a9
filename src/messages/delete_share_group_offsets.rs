//! DeleteShareGroupOffsets (92)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                                     [0..],
        topics: Vec<DeleteShareGroupOffsetsRequestTopic>  [0..],
    }
    DeleteShareGroupOffsetsRequestTopic {
        topic_name: Str  [0..],
    }

    Response {
        throttle_time_ms: i32                                 [0..],
        error_code: ErrorCode                                 [0..],
        error_message: Option<Str>                            [0..],
        responses: Vec<DeleteShareGroupOffsetsResponseTopic>  [0..],
    }
    DeleteShareGroupOffsetsResponseTopic {
        topic_name: Str             [0..],
        topic_id: Uuid              [0..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..],
    }
}
