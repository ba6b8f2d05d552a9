//! FindCoordinator: where the coordinator of a group or a transactional id is.
//!
//! Kelp has no coordinators yet, so none is available. The API is there all the same: librdkafka
//! takes a broker without it for one that is too old for lz4.
//!
//! Version notes: several keys at a time from version 4 on; share groups from version 6 on.

use super::Context;
use crate::messages::find_coordinator::{Coordinator, Request, Response};
use crate::protocol::error_code::ErrorCode;

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
        let keys = request.coordinator_keys.into_iter();
        let coordinators = keys.map(|key| Coordinator {
            error_code: refuse(version, request.key_type, &key),
            node_id: NOBODY,
            port: NOBODY,
            error_message: Some("".into()),
            key,
            ..Coordinator::default()
        });
        return Response { coordinators: coordinators.collect(), ..Response::default() };
    }
    let error_code = refuse(version, request.key_type, &request.key);
    let message = match error_code {
        ErrorCode::CoordinatorNotAvailable => "The coordinator is not available.",
        _ => "There is no coordinator of this type in this version.",
    };
    Response {
        error_code,
        error_message: Some(message.into()),
        node_id: NOBODY,
        port: NOBODY,
        ..Response::default()
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
    let partition = parts.next().and_then(|part| part.parse::<u32>().ok());
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
            (0, GROUP, "g", none),
            (4, TRANSACTION, "", none),
            (6, SHARE, share, none),
            (5, SHARE, share, invalid),
            (6, SHARE, "group", invalid),
            (6, 7, "g", invalid),
        ] {
            assert_eq!(refuse(version, key_type, key), code, "{version} {key_type} {key}");
        }
    }
}
