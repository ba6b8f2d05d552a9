//! Messages that are kept in logs, or carried as bytes inside other messages: one table for each.
//!
//! A 16-bit number stands before each one. It is the version; but before the key of a
//! coordinator's record it is the record's type, and the version is always 0.
//!
//! Source: the schemas of Apache Kafka 4.4.

use crate::protocol::wire::Wire;
use std::ops::{RangeFrom, RangeInclusive};

pub mod consumer_group_current_member_assignment;
pub mod consumer_group_member_metadata;
pub mod consumer_group_metadata;
pub mod consumer_group_partition_metadata;
pub mod consumer_group_regular_expression;
pub mod consumer_group_target_assignment_member;
pub mod consumer_group_target_assignment_metadata;
pub mod consumer_protocol;
pub mod control;
pub mod group_metadata;
pub mod legacy_offset_commit;
pub mod offset_commit;
pub mod transaction_log;

/// One of the list's messages, and in which versions it exists.
pub trait Versioned: Wire + Default {
    const VERSIONS: RangeInclusive<i16>;
    /// The versions with compact lengths and tagged fields (KIP-482).
    const FLEXIBLE: RangeFrom<i16>;
}

macro_rules! for_each_record {
    ($then:ident) => {
        $then! {
            // Kafka's name, versions, flexible, struct
            LegacyOffsetCommitKey                      => 0..=0, i16::MAX.., legacy_offset_commit::Key;
            LegacyOffsetCommitValue                    => 0..=0, i16::MAX.., legacy_offset_commit::Value;
            OffsetCommitKey                            => 0..=0, i16::MAX.., offset_commit::Key;
            OffsetCommitValue                          => 0..=4, 4..,        offset_commit::Value;
            GroupMetadataKey                           => 0..=0, i16::MAX.., group_metadata::Key;
            GroupMetadataValue                         => 0..=4, 4..,        group_metadata::Value;
            ConsumerGroupMetadataKey                   => 0..=0, i16::MAX.., consumer_group_metadata::Key;
            ConsumerGroupMetadataValue                 => 0..=0, 0..,        consumer_group_metadata::Value;
            ConsumerGroupPartitionMetadataKey          => 0..=0, i16::MAX.., consumer_group_partition_metadata::Key;
            ConsumerGroupPartitionMetadataValue        => 0..=0, 0..,        consumer_group_partition_metadata::Value;
            ConsumerGroupMemberMetadataKey             => 0..=0, i16::MAX.., consumer_group_member_metadata::Key;
            ConsumerGroupMemberMetadataValue           => 0..=0, 0..,        consumer_group_member_metadata::Value;
            ConsumerGroupTargetAssignmentMetadataKey   => 0..=0, i16::MAX.., consumer_group_target_assignment_metadata::Key;
            ConsumerGroupTargetAssignmentMetadataValue => 0..=0, 0..,        consumer_group_target_assignment_metadata::Value;
            ConsumerGroupTargetAssignmentMemberKey     => 0..=0, i16::MAX.., consumer_group_target_assignment_member::Key;
            ConsumerGroupTargetAssignmentMemberValue   => 0..=0, 0..,        consumer_group_target_assignment_member::Value;
            ConsumerGroupCurrentMemberAssignmentKey    => 0..=0, i16::MAX.., consumer_group_current_member_assignment::Key;
            ConsumerGroupCurrentMemberAssignmentValue  => 0..=0, 0..,        consumer_group_current_member_assignment::Value;
            ConsumerGroupRegularExpressionKey          => 0..=0, i16::MAX.., consumer_group_regular_expression::Key;
            ConsumerGroupRegularExpressionValue        => 0..=0, 0..,        consumer_group_regular_expression::Value;
            TransactionLogKey                          => 0..=0, i16::MAX.., transaction_log::Key;
            TransactionLogValue                        => 0..=1, 1..,        transaction_log::Value;
            ConsumerProtocolSubscription               => 0..=3, i16::MAX.., consumer_protocol::Subscription;
            ConsumerProtocolAssignment                 => 0..=3, i16::MAX.., consumer_protocol::Assignment;
            ControlRecordTypeSchema                    => 0..=0, i16::MAX.., control::Key;
            EndTxnMarker                               => 0..=0, i16::MAX.., control::EndTransactionMarker;
        }
    };
}

macro_rules! versioned {
    ($($name:ident => $versions:expr, $flexible:expr, $module:ident::$message:ident;)*) => {$(
        impl Versioned for $module::$message {
            const VERSIONS: RangeInclusive<i16> = $versions;
            const FLEXIBLE: RangeFrom<i16> = $flexible;
        }
    )*};
}

for_each_record!(versioned);
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use for_each_record;
