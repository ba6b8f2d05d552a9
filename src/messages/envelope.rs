//! Envelope (58)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        request_data: Bytes               [0..],
        request_principal: Option<Bytes>  [0..] = Some(Bytes::new()),
        client_host_address: Bytes        [0..],
    }

    Response {
        response_data: Option<Bytes>  [0..],
        error_code: ErrorCode         [0..],
    }
}
