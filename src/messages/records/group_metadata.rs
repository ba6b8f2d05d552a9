//! GroupMetadata (2), a record of `__consumer_offsets`

use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

/// Stands before the key.
pub const TYPE: i16 = 2;

message! {
    Key {
        group: Str  [0..],
    }

    Value {
        protocol_type: Str            [0..],
        generation: i32               [0..],
        protocol: Option<Str>         [0..] = Some(Str::new()),
        leader: Option<Str>           [0..] = Some(Str::new()),
        current_state_timestamp: i64  [2..] = -1,
        members: Vec<MemberMetadata>  [0..],
    }
    MemberMetadata {
        member_id: Str                  [0..],
        group_instance_id: Option<Str>  [3..],
        client_id: Str                  [0..],
        client_host: Str                [0..],
        rebalance_timeout: i32          [1..] = -1,
        session_timeout: i32            [0..],
        subscription: Bytes             [0..],
        assignment: Bytes               [0..],
    }
}
