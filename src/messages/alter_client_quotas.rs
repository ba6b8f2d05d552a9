//! AlterClientQuotas (49)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        entries: Vec<EntryData>  [0..],
        validate_only: bool      [0..],
    }
    EntryData {
        entity: Vec<EntityData>  [0..],
        ops: Vec<OpData>         [0..],
    }
    EntityData {
        entity_type: Str          [0..],
        entity_name: Option<Str>  [0..] = Some(Str::new()),
    }
    OpData {
        key: Str      [0..],
        value: f64    [0..],
        remove: bool  [0..],
    }

    Response {
        throttle_time_ms: i32            [0..],
        entries: Vec<ResponseEntryData>  [0..],
    }
    ResponseEntryData {
        error_code: ErrorCode            [0..],
        error_message: Option<Str>       [0..] = Some(Str::new()),
        entity: Vec<ResponseEntityData>  [0..],
    }
    ResponseEntityData {
        entity_type: Str          [0..],
        entity_name: Option<Str>  [0..] = Some(Str::new()),
    }
}
