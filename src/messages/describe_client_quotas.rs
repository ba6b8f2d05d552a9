//! DescribeClientQuotas (48)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        components: Vec<ComponentData>  [0..],
        strict: bool                    [0..],
    }
    ComponentData {
        entity_type: Str  [0..],
        match_type: i8    [0..],
        r#match: Option<Str>  [0..] = Some(Str::new()),
    }

    Response {
        throttle_time_ms: i32            [0..],
        error_code: ErrorCode            [0..],
        error_message: Option<Str>       [0..] = Some(Str::new()),
        entries: Option<Vec<EntryData>>  [0..] = Some(Vec::new()),
    }
    EntryData {
        entity: Vec<EntityData>  [0..],
        values: Vec<ValueData>   [0..],
    }
    EntityData {
        entity_type: Str          [0..],
        entity_name: Option<Str>  [0..] = Some(Str::new()),
    }
    ValueData {
        key: Str    [0..],
        value: f64  [0..],
    }
}
