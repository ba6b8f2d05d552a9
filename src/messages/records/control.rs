//! Key and value of the control records that end a transaction in a partition

use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Key {
        r#type: i16  [0..],
    }

    EndTransactionMarker {
        coordinator_epoch: i32  [0..],
    }
}
