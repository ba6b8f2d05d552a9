//! FindCoordinator: where the coordinator of a group or a transactional id is.
//!
//! Groups are all coordinated here. Their topic is created for the first one who asks, and the
//! answer waits for it: Kafka answers COORDINATOR_NOT_AVAILABLE until it is there. Transactional
//! ids and share groups have no coordinator yet.
//!
//! Version notes: several keys at a time from version 4 on; share groups from version 6 on.

use super::Context;
use crate::config::listeners::Address;
use crate::messages::find_coordinator::{Coordinator, Request, Response};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

const BATCHES_SINCE: i16 = 4;
const SHARE_SINCE: i16 = 6;

/// The node, and the port, that nobody has.
const NOBODY: i32 = -1;

pub async fn handle(cx: &Context, request: Request) -> Response {
    let version = cx.api_version;
    if version >= BATCHES_SINCE {
        let mut coordinators = Vec::with_capacity(request.coordinator_keys.len());
        for key in request.coordinator_keys {
            let found = find(cx, request.key_type, &key).await;
            let (node_id, host, port, error_code) = place(cx, found);
            let error_message = Some("".into());
            let key = Coordinator { key, node_id, host, port, error_code, error_message };
            coordinators.push(key);
        }
        return Response { coordinators, ..Response::default() };
    }
    let found = find(cx, request.key_type, &request.key).await;
    let (node_id, host, port, error_code) = place(cx, found);
    let message = match error_code {
        ErrorCode::None => "NONE",
        ErrorCode::CoordinatorNotAvailable => "The coordinator is not available.",
        _ => "There is no coordinator of this type in this version.",
    };
    let error_message = Some(message.into());
    Response { error_code, error_message, node_id, host, port, ..Response::default() }
}

async fn find(cx: &Context, key_type: i8, key: &str) -> Result<Address, ErrorCode> {
    if key_type != GROUP || !cx.broker.storage.has_groups() {
        return Err(refuse(cx.api_version, key_type, key));
    }
    match cx.broker.make_room_for_groups().await {
        Ok(()) => Ok(cx.advertised()),
        Err(refusal) => {
            tracing::warn!(error = refusal.message, "groups cannot be kept");
            Err(ErrorCode::CoordinatorNotAvailable)
        }
    }
}

fn place(cx: &Context, found: Result<Address, ErrorCode>) -> (i32, Str, i32, ErrorCode) {
    match found {
        Ok(Address { host, port }) => {
            (cx.broker.config.node_id, host.into(), port.into(), ErrorCode::None)
        }
        Err(code) => (NOBODY, Str::new(), NOBODY, code),
    }
}

fn refuse(version: i16, key_type: i8, key: &str) -> ErrorCode {
    match key_type {
        GROUP | TRANSACTION => ErrorCode::CoordinatorNotAvailable,
        SHARE if version >= SHARE_SINCE && is_share_key(key) => ErrorCode::CoordinatorNotAvailable,
        _ => ErrorCode::InvalidRequest,
    }
}

/// `group:topic id:partition`, of which the group may have colons too.
fn is_share_key(key: &str) -> bool {
    let mut parts = key.rsplitn(3, ':');
    let partition = parts.next().and_then(|part| part.parse::<i32>().ok());
    let topic_id = parts.next().is_some_and(|id| id.len() == 22);
    partition.is_some() && topic_id && parts.next().is_some_and(|group| !group.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_types_of_a_version_have_a_coordinator_at_all() {
        let (none, invalid) = (ErrorCode::CoordinatorNotAvailable, ErrorCode::InvalidRequest);
        let share = "group:BvVsnUTzSEaZZ7tOGZcYcg:0";
        for (version, key_type, key, code) in [
            (4, TRANSACTION, "", none),
            (6, SHARE, share, none),
            (6, SHARE, "a:b:BvVsnUTzSEaZZ7tOGZcYcg:-1", none),
            (5, SHARE, share, invalid),
            (6, SHARE, "group", invalid),
            (6, SHARE, "group:x:0", invalid),
            (6, 7, "g", invalid),
        ] {
            assert_eq!(refuse(version, key_type, key), code, "{version} {key_type} {key}");
        }
    }
}
