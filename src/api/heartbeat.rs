//! Heartbeat: a member is alive, and hears whether its group rebalances.

use super::groups::{answered, reply};
use super::{Context, Reply};
use crate::coordinator::shard;
use crate::messages::heartbeat::{Request, Response};
use crate::protocol::error_code::ErrorCode;

pub async fn handle(cx: &Context, request: Request) -> Reply<Response> {
    let asked = cx.ask(&request.group_id.clone(), shard::Request::Heartbeat(request));
    reply(asked, |answer| match answered!(Heartbeat, answer) {
        Ok(response) => response,
        // As Kafka: members get a session's time anyway when the group is loaded.
        Err(ErrorCode::CoordinatorLoadInProgress) => Response::default(),
        Err(error_code) => Response { error_code, ..Response::default() },
    })
}
