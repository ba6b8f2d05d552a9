//! ConsumerGroupMemberMetadata (5), a record of `__consumer_offsets`

use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

/// Stands before the key.
pub const TYPE: i16 = 5;

message! {
    Key {
        group_id: Str   [0..],
        member_id: Str  [0..],
    }

    Value {
        instance_id: Option<Str>                                [0..] = Some(Str::new()),
        rack_id: Option<Str>                                    [0..] = Some(Str::new()),
        client_id: Str                                          [0..],
        client_host: Str                                        [0..],
        subscribed_topic_names: Vec<Str>                        [0..],
        subscribed_topic_regex: Option<Str>                     [0..] = Some(Str::new()),
        rebalance_timeout_ms: i32                               [0..] = -1,
        server_assignor: Option<Str>                            [0..] = Some(Str::new()),
        classic_member_metadata: Option<ClassicMemberMetadata>  [0.., tag 0] = Some(ClassicMemberMetadata::default()),
    }
    ClassicMemberMetadata {
        session_timeout_ms: i32                    [0..],
        supported_protocols: Vec<ClassicProtocol>  [0..],
    }
    ClassicProtocol {
        name: Str        [0..],
        metadata: Bytes  [0..],
    }
}
