//! ListGroups: the groups of all coordinators of this broker.

use super::groups::answered;
use super::{Context, Reply};
use crate::coordinator::shard;
use crate::messages::list_groups::{ListedGroup, Request, Response};
use crate::protocol::error_code::ErrorCode;

pub async fn handle(cx: &Context, request: Request) -> Reply<Response> {
    let all = cx.broker.groups.ask_all(|| shard::Request::ListGroups(request.clone()));
    let all = match all {
        Ok(all) => all,
        Err(code) => return Reply::Ready(shape(Err(code))),
    };
    Reply::Deferred(Box::pin(async move {
        let mut groups = Vec::new();
        for asked in all {
            match answered!(ListGroups, asked.await) {
                Ok(more) => groups.extend(more),
                // It has become another broker's affair to list those.
                Err(ErrorCode::NotCoordinator) => {}
                Err(code) => return shape(Err(code)),
            }
        }
        shape(Ok(groups))
    }))
}

fn shape(groups: Result<Vec<ListedGroup>, ErrorCode>) -> Response {
    match groups {
        Ok(groups) => Response { groups, ..Response::default() },
        Err(error_code) => Response { error_code, ..Response::default() },
    }
}
