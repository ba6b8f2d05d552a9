//! What can have configs, as the APIs for them name it (`ConfigResource.Type` of Apache Kafka 4.4).

pub(super) const TOPIC: i8 = 2;
pub(super) const BROKER: i8 = 4;
pub(super) const BROKER_LOGGER: i8 = 8;
pub(super) const CLIENT_METRICS: i8 = 16;
pub(super) const GROUP: i8 = 32;
