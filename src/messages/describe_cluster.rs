//! DescribeCluster (60)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        include_cluster_authorized_operations: bool  [0..],
        endpoint_type: i8                            [1..] = 1,
        include_fenced_brokers: bool                 [2..],
    }

    Response {
        throttle_time_ms: i32                [0..],
        error_code: ErrorCode                [0..],
        error_message: Option<Str>           [0..],
        endpoint_type: i8                    [1..] = 1,
        cluster_id: Str                      [0..],
        controller_id: i32                   [0..] = -1,
        brokers: Vec<DescribeClusterBroker>  [0..],
        cluster_authorized_operations: i32   [0..] = i32::MIN,
    }
    DescribeClusterBroker {
        broker_id: i32     [0..],
        host: Str          [0..],
        port: i32          [0..],
        rack: Option<Str>  [0..],
        is_fenced: bool    [2..],
    }
}
