//! JoinGroup: the answer waits until the group's next generation begins.
//!
//! Unlike in Kafka, which leaves it unread, what a client sends behind it on the same connection is
//! handled meanwhile; its answers come behind this one (docs/groups.md).

use super::groups::{answered, reply};
use super::{Context, Reply};
use crate::coordinator::shard;
use crate::messages::join_group::{Request, Response};

pub async fn handle(cx: &Context, request: Request) -> Reply<Response> {
    let (group_id, member_id) = (request.group_id.clone(), request.member_id.clone());
    let asked = cx.ask(&group_id, shard::Request::JoinGroup(cx.client(), request));
    reply(asked, |answer| {
        answered!(JoinGroup, answer).unwrap_or_else(|error_code| Response {
            error_code,
            member_id,
            ..Response::default()
        })
    })
}
