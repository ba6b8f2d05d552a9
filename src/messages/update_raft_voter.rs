//! UpdateRaftVoter (82)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        cluster_id: Option<Str>                      [0..] = Some(Str::new()),
        current_leader_epoch: i32                    [0..],
        voter_id: i32                                [0..],
        voter_directory_id: Uuid                     [0..],
        listeners: Vec<Listener>                     [0..],
        k_raft_version_feature: KRaftVersionFeature  [0..],
    }
    Listener {
        name: Str  [0..],
        host: Str  [0..],
        port: u16  [0..],
    }
    KRaftVersionFeature {
        min_supported_version: i16  [0..],
        max_supported_version: i16  [0..],
    }

    Response {
        throttle_time_ms: i32          [0..],
        error_code: ErrorCode          [0..],
        current_leader: CurrentLeader  [0.., tag 0],
    }
    CurrentLeader {
        leader_id: i32     [0..] = -1,
        leader_epoch: i32  [0..] = -1,
        host: Str          [0..],
        port: i32          [0..],
    }
}
