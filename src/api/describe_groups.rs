//! DescribeGroups: state, protocol and members of groups.

use super::groups::answered;
use super::{Context, GROUP_OPERATIONS, Reply};
use crate::coordinator::shard;
use crate::messages::describe_groups::{DescribedGroup, Request, Response};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;

pub async fn handle(cx: &Context, request: Request) -> Reply<Response> {
    let client = cx.client();
    let ask = |group: Str| {
        let asked = shard::Request::DescribeGroup(client.clone(), group.clone());
        let asked = cx.ask(&group, asked);
        (group, asked)
    };
    let all: Vec<_> = request.groups.into_iter().map(ask).collect();
    Reply::Deferred(Box::pin(async move {
        let mut response = Response::default();
        for (group, asked) in all {
            let described = answered!(DescribeGroup, asked.await);
            let mut described = described.unwrap_or_else(|code| refused(group, code));
            if request.include_authorized_operations && !described.error_code.is_error() {
                described.authorized_operations = GROUP_OPERATIONS;
            }
            response.groups.push(described);
        }
        response
    }))
}

fn refused(group_id: Str, error_code: ErrorCode) -> DescribedGroup {
    DescribedGroup { error_code, group_id, ..DescribedGroup::default() }
}
