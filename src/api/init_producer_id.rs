//! InitProducerId: gives an idempotent producer its id.
//!
//! A producer without a transactional id that comes with an id and an epoch gets a new id, as in
//! Kafka: nobody keeps who had the old one, so its epoch cannot be raised (KIP-360).

use super::Context;
use crate::messages::init_producer_id::{Request, Response};
use crate::protocol::error_code::ErrorCode;

/// In a request: the producer has no id or epoch yet. In an answer: it got none.
const NONE: i16 = -1;

pub async fn handle(cx: &Context, request: Request) -> Response {
    match assign(cx, &request).await {
        Ok(producer_id) => Response { producer_id, producer_epoch: 0, ..Default::default() },
        Err(error_code) => Response { error_code, producer_epoch: NONE, ..Default::default() },
    }
}

async fn assign(cx: &Context, request: &Request) -> Result<i64, ErrorCode> {
    let has_id = request.producer_id != i64::from(NONE);
    if has_id != (request.producer_epoch != NONE) {
        return Err(ErrorCode::InvalidRequest);
    }
    match request.transactional_id.as_deref() {
        Some("") => Err(ErrorCode::InvalidRequest),
        // No transactions yet, so nobody coordinates them.
        Some(_) => Err(ErrorCode::CoordinatorNotAvailable),
        None => Ok(cx.broker.producer_ids.next().await?),
    }
}
