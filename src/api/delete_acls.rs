//! DeleteAcls: there is no authorizer that would have any.

use super::{Context, NO_AUTHORIZER};
use crate::messages::delete_acls::{DeleteAclsFilterResult, Request, Response};
use crate::protocol::error_code::ErrorCode;

pub async fn handle(_: &Context, request: Request) -> Response {
    let refused = |_| DeleteAclsFilterResult {
        error_code: ErrorCode::SecurityDisabled,
        error_message: Some(NO_AUTHORIZER.into()),
        matching_acls: Vec::new(),
    };
    let filter_results = request.filters.into_iter().map(refused).collect();
    Response { filter_results, ..Response::default() }
}
