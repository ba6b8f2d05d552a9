//! ListPartitionReassignments: with one broker no partition is ever on its way to another.

use super::Context;
use crate::messages::list_partition_reassignments::{Request, Response};

pub async fn handle(_: &Context, _: Request) -> Response {
    Response { error_message: None, ..Response::default() }
}
