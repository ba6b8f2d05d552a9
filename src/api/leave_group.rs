//! LeaveGroup: members go, by themselves or because an administrator removes them.

use super::groups::{answered, reply};
use super::{Context, Reply};
use crate::coordinator::shard;
use crate::messages::leave_group::{Request, Response};

pub async fn handle(cx: &Context, request: Request) -> Reply<Response> {
    let asked = cx.ask(&request.group_id.clone(), shard::Request::LeaveGroup(cx.client(), request));
    reply(asked, |answer| {
        let refused = |error_code| Response { error_code, ..Response::default() };
        answered!(LeaveGroup, answer).unwrap_or_else(refused)
    })
}
