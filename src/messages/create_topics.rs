//! CreateTopics (19)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        topics: Vec<CreatableTopic>  [0..],
        timeout_ms: i32              [0..] = 60000,
        validate_only: bool          [1..],
    }
    CreatableTopic {
        name: Str                                     [0..],
        num_partitions: i32                           [0..],
        replication_factor: i16                       [0..],
        assignments: Vec<CreatableReplicaAssignment>  [0..],
        configs: Vec<CreatableTopicConfig>            [0..],
    }
    CreatableReplicaAssignment {
        partition_index: i32  [0..],
        broker_ids: Vec<i32>  [0..],
    }
    CreatableTopicConfig {
        name: Str           [0..],
        value: Option<Str>  [0..] = Some(Str::new()),
    }

    Response {
        throttle_time_ms: i32              [2..],
        topics: Vec<CreatableTopicResult>  [0..],
    }
    CreatableTopicResult {
        name: Str                                    [0..],
        topic_id: Uuid                               [7..],
        error_code: ErrorCode                        [0..],
        error_message: Option<Str>                   [1..] = Some(Str::new()),
        topic_config_error_code: ErrorCode           [5.., tag 0],
        num_partitions: i32                          [5..] = -1,
        replication_factor: i16                      [5..] = -1,
        configs: Option<Vec<CreatableTopicConfigs>>  [5..] = Some(Vec::new()),
    }
    CreatableTopicConfigs {
        name: Str           [5..],
        value: Option<Str>  [5..] = Some(Str::new()),
        read_only: bool     [5..],
        config_source: i8   [5..] = -1,
        is_sensitive: bool  [5..],
    }
}
