//! ListPartitionReassignments (46)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        timeout_ms: i32                                        [0..] = 60000,
        topics: Option<Vec<ListPartitionReassignmentsTopics>>  [0..],
    }
    ListPartitionReassignmentsTopics {
        name: Str                    [0..],
        partition_indexes: Vec<i32>  [0..],
    }

    Response {
        throttle_time_ms: i32                  [0..],
        error_code: ErrorCode                  [0..],
        error_message: Option<Str>             [0..] = Some(Str::new()),
        topics: Vec<OngoingTopicReassignment>  [0..],
    }
    OngoingTopicReassignment {
        name: Str                                      [0..],
        partitions: Vec<OngoingPartitionReassignment>  [0..],
    }
    OngoingPartitionReassignment {
        partition_index: i32         [0..],
        replicas: Vec<i32>           [0..],
        adding_replicas: Vec<i32>    [0..],
        removing_replicas: Vec<i32>  [0..],
    }
}
