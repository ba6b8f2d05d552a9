//! CreateAcls: there is no authorizer that would keep them.

use super::{Context, NO_AUTHORIZER};
use crate::messages::create_acls::{AclCreationResult, Request, Response};
use crate::protocol::error_code::ErrorCode;

pub async fn handle(_: &Context, request: Request) -> Response {
    let refused = |_| AclCreationResult {
        error_code: ErrorCode::SecurityDisabled,
        error_message: Some(NO_AUTHORIZER.into()),
    };
    let results = request.creations.into_iter().map(refused).collect();
    Response { results, ..Response::default() }
}
