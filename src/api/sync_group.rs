//! SyncGroup: the answer waits until the leader has said who gets what.

use super::groups::{answered, reply};
use super::{Context, Reply};
use crate::coordinator::shard;
use crate::messages::sync_group::{Request, Response};
use crate::protocol::error_code::ErrorCode;

/// The first version that must name protocol type and protocol (KIP-559).
const PROTOCOL_SINCE: i16 = 5;

pub async fn handle(cx: &Context, request: Request) -> Reply<Response> {
    let has_protocol = request.protocol_type.is_some() && request.protocol_name.is_some();
    if cx.api_version >= PROTOCOL_SINCE && !has_protocol {
        return Reply::Ready(refused(ErrorCode::InconsistentGroupProtocol));
    }
    let asked = cx.ask(&request.group_id.clone(), shard::Request::SyncGroup(request));
    reply(asked, |answer| answered!(SyncGroup, answer).unwrap_or_else(refused))
}

fn refused(error_code: ErrorCode) -> Response {
    Response { error_code, ..Response::default() }
}
