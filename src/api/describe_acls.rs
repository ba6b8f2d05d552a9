//! DescribeAcls: there is no authorizer, and so no ACL. User interfaces ask when they start.

use super::Context;
use crate::messages::describe_acls::{Request, Response};
use crate::protocol::error_code::ErrorCode;

pub async fn handle(_: &Context, _: Request) -> Response {
    Response {
        error_code: ErrorCode::SecurityDisabled,
        error_message: Some("No Authorizer is configured on the broker".into()),
        ..Response::default()
    }
}
