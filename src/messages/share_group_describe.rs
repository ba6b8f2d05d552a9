//! ShareGroupDescribe (77)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_ids: Vec<Str>                  [0..],
        include_authorized_operations: bool  [0..],
    }

    Response {
        throttle_time_ms: i32        [0..],
        groups: Vec<DescribedGroup>  [0..],
    }
    DescribedGroup {
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..],
        group_id: Str               [0..],
        group_state: Str            [0..],
        group_epoch: i32            [0..],
        assignment_epoch: i32       [0..],
        assignor_name: Str          [0..],
        members: Vec<Member>        [0..],
        authorized_operations: i32  [0..] = i32::MIN,
    }
    Member {
        member_id: Str                    [0..],
        rack_id: Option<Str>              [0..],
        member_epoch: i32                 [0..],
        client_id: Str                    [0..],
        client_host: Str                  [0..],
        subscribed_topic_names: Vec<Str>  [0..],
        assignment: Assignment            [0..],
    }
    TopicPartitions {
        topic_id: Uuid        [0..],
        topic_name: Str       [0..],
        partitions: Vec<i32>  [0..],
    }
    Assignment {
        topic_partitions: Vec<TopicPartitions>  [0..],
    }
}
