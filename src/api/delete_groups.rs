//! DeleteGroups: groups without members go, and their offsets with them.

use super::groups::answered;
use super::{Context, Reply};
use crate::coordinator::shard;
use crate::messages::delete_groups::{DeletableGroupResult, Request, Response};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;
use std::collections::HashSet;

pub async fn handle(cx: &Context, request: Request) -> Reply<Response> {
    let mut seen = HashSet::new();
    let names = request.groups_names.into_iter().filter(|name| seen.insert(name.clone()));
    let ask = |name: Str| {
        let asked = cx.ask(&name, shard::Request::DeleteGroup(name.clone()));
        (name, asked)
    };
    let all: Vec<_> = names.map(ask).collect();
    Reply::Deferred(Box::pin(async move {
        let mut response = Response::default();
        for (name, asked) in all {
            let deleted = answered!(DeleteGroup, asked.await);
            response.results.push(deleted.unwrap_or_else(|code| refused(name, code)));
        }
        response
    }))
}

fn refused(group_id: Str, error_code: ErrorCode) -> DeletableGroupResult {
    DeletableGroupResult { group_id, error_code, ..DeletableGroupResult::default() }
}
