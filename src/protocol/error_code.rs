//! Kafka's error codes: the answers of the protocol, and the error type of handlers and machines.
//!
//! Source: `org.apache.kafka.common.protocol.Errors` of Apache Kafka 4.4. *Retriable* is what that
//! class says: a client tries such a request again by itself.

use super::wire::{Reader, Result, Wire, Writer};

macro_rules! error_codes {
    ($($code:literal => $name:ident $(, $retriable:ident)?;)*) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(i16)]
        pub enum ErrorCode {
            $(#[doc = concat!("Code ", stringify!($code))] $name = $code,)*
            #[default]
            None = 0,
        }

        impl ErrorCode {
            /// A code that this version does not know reads as `UnknownServerError`, as in Kafka.
            pub fn from_code(code: i16) -> Self {
                match code {
                    $($code => Self::$name,)*
                    0 => Self::None,
                    _ => Self::UnknownServerError,
                }
            }

            pub fn is_retriable(self) -> bool {
                match self {
                    $($(Self::$name => error_codes!($retriable),)?)*
                    _ => false,
                }
            }
        }
    };
    (retriable) => { true };
}

error_codes! {
    -1 => UnknownServerError;
    1 => OffsetOutOfRange;
    2 => CorruptMessage, retriable;
    3 => UnknownTopicOrPartition, retriable;
    4 => InvalidFetchSize;
    5 => LeaderNotAvailable, retriable;
    6 => NotLeaderOrFollower, retriable;
    7 => RequestTimedOut, retriable;
    8 => BrokerNotAvailable;
    9 => ReplicaNotAvailable, retriable;
    10 => MessageTooLarge;
    11 => StaleControllerEpoch;
    12 => OffsetMetadataTooLarge;
    13 => NetworkException, retriable;
    14 => CoordinatorLoadInProgress, retriable;
    15 => CoordinatorNotAvailable, retriable;
    16 => NotCoordinator, retriable;
    17 => InvalidTopicException;
    18 => RecordListTooLarge;
    19 => NotEnoughReplicas, retriable;
    20 => NotEnoughReplicasAfterAppend, retriable;
    21 => InvalidRequiredAcks;
    22 => IllegalGeneration;
    23 => InconsistentGroupProtocol;
    24 => InvalidGroupId;
    25 => UnknownMemberId;
    26 => InvalidSessionTimeout;
    27 => RebalanceInProgress;
    28 => InvalidCommitOffsetSize;
    29 => TopicAuthorizationFailed;
    30 => GroupAuthorizationFailed;
    31 => ClusterAuthorizationFailed;
    32 => InvalidTimestamp;
    33 => UnsupportedSaslMechanism;
    34 => IllegalSaslState;
    35 => UnsupportedVersion;
    36 => TopicAlreadyExists;
    37 => InvalidPartitions;
    38 => InvalidReplicationFactor;
    39 => InvalidReplicaAssignment;
    40 => InvalidConfig;
    41 => NotController, retriable;
    42 => InvalidRequest;
    43 => UnsupportedForMessageFormat;
    44 => PolicyViolation;
    45 => OutOfOrderSequenceNumber;
    46 => DuplicateSequenceNumber;
    47 => InvalidProducerEpoch;
    48 => InvalidTxnState;
    49 => InvalidProducerIdMapping;
    50 => InvalidTransactionTimeout;
    51 => ConcurrentTransactions, retriable;
    52 => TransactionCoordinatorFenced;
    53 => TransactionalIdAuthorizationFailed;
    54 => SecurityDisabled;
    55 => OperationNotAttempted;
    56 => KafkaStorageError, retriable;
    57 => LogDirNotFound;
    58 => SaslAuthenticationFailed;
    59 => UnknownProducerId;
    60 => ReassignmentInProgress;
    61 => DelegationTokenAuthDisabled;
    62 => DelegationTokenNotFound;
    63 => DelegationTokenOwnerMismatch;
    64 => DelegationTokenRequestNotAllowed;
    65 => DelegationTokenAuthorizationFailed;
    66 => DelegationTokenExpired;
    67 => InvalidPrincipalType;
    68 => NonEmptyGroup;
    69 => GroupIdNotFound;
    70 => FetchSessionIdNotFound, retriable;
    71 => InvalidFetchSessionEpoch, retriable;
    72 => ListenerNotFound, retriable;
    73 => TopicDeletionDisabled;
    74 => FencedLeaderEpoch, retriable;
    75 => UnknownLeaderEpoch, retriable;
    76 => UnsupportedCompressionType;
    77 => StaleBrokerEpoch;
    78 => OffsetNotAvailable, retriable;
    79 => MemberIdRequired;
    80 => PreferredLeaderNotAvailable, retriable;
    81 => GroupMaxSizeReached;
    82 => FencedInstanceId;
    83 => EligibleLeadersNotAvailable, retriable;
    84 => ElectionNotNeeded, retriable;
    85 => NoReassignmentInProgress;
    86 => GroupSubscribedToTopic;
    87 => InvalidRecord;
    88 => UnstableOffsetCommit, retriable;
    89 => ThrottlingQuotaExceeded, retriable;
    90 => ProducerFenced;
    91 => ResourceNotFound;
    92 => DuplicateResource;
    93 => UnacceptableCredential;
    94 => InconsistentVoterSet;
    95 => InvalidUpdateVersion;
    96 => FeatureUpdateFailed;
    97 => PrincipalDeserializationFailure;
    98 => SnapshotNotFound;
    99 => PositionOutOfRange;
    100 => UnknownTopicId, retriable;
    101 => DuplicateBrokerRegistration;
    102 => BrokerIdNotRegistered;
    103 => InconsistentTopicId, retriable;
    104 => InconsistentClusterId;
    105 => TransactionalIdNotFound;
    106 => FetchSessionTopicIdError, retriable;
    107 => IneligibleReplica;
    108 => NewLeaderElected;
    109 => OffsetMovedToTieredStorage;
    110 => FencedMemberEpoch;
    111 => UnreleasedInstanceId;
    112 => UnsupportedAssignor;
    113 => StaleMemberEpoch;
    114 => MismatchedEndpointType;
    115 => UnsupportedEndpointType;
    116 => UnknownControllerId;
    117 => UnknownSubscriptionId;
    118 => TelemetryTooLarge;
    119 => InvalidRegistration;
    120 => TransactionAbortable;
    121 => InvalidRecordState;
    122 => ShareSessionNotFound, retriable;
    123 => InvalidShareSessionEpoch, retriable;
    124 => FencedStateEpoch;
    125 => InvalidVoterKey;
    126 => DuplicateVoter;
    127 => VoterNotFound;
    128 => InvalidRegularExpression;
    129 => RebootstrapRequired;
    130 => StreamsInvalidTopology;
    131 => StreamsInvalidTopologyEpoch;
    132 => StreamsTopologyFenced;
    133 => ShareSessionLimitReached, retriable;
    134 => GroupDeletionFailed;
    135 => StreamsTopologyDescriptionUpdateFailed;
    136 => ControllerIdNotRegistered;
}

impl ErrorCode {
    pub fn code(self) -> i16 {
        self as i16
    }

    pub fn is_error(self) -> bool {
        self != Self::None
    }

    /// The name that Kafka has for it: `NOT_LEADER_OR_FOLLOWER`.
    pub fn name(self) -> String {
        let mut name = String::new();
        for c in format!("{self:?}").chars() {
            if c.is_ascii_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(c.to_ascii_uppercase());
        }
        name
    }
}

/// What a handler found, as the field of an answer.
impl<T> From<std::result::Result<T, Self>> for ErrorCode {
    fn from(result: std::result::Result<T, Self>) -> Self {
        result.err().unwrap_or_default()
    }
}

impl Wire for ErrorCode {
    #[cfg(test)]
    fn sample() -> Self {
        Self::OffsetOutOfRange
    }
    #[inline]
    fn read(r: &mut Reader) -> Result<Self> {
        i16::read(r).map(Self::from_code)
    }
    #[inline]
    fn write(&self, w: &mut Writer) {
        w.note(self.code());
        self.code().write(w);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs what tests/messages/run.sh makes"]
    fn the_codes_are_kafkas() {
        let folder = std::env::var("KELP_MESSAGES").unwrap();
        let file = std::fs::read_to_string(format!("{folder}/log.txt")).unwrap();
        let kafkas: Vec<(i16, String, bool)> = file
            .lines()
            .filter_map(|line| line.strip_prefix("error "))
            .map(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                (words[1].parse().unwrap(), words[0].to_string(), words[2] == "true")
            })
            .collect();
        let ours: Vec<(i16, String, bool)> = (i16::MIN..=i16::MAX)
            .map(|code| (code, ErrorCode::from_code(code)))
            .filter(|(number, code)| code.code() == *number)
            .map(|(number, code)| (number, code.name(), code.is_retriable()))
            .collect();
        assert_eq!(ours, kafkas);
        println!("errors: {} codes, their names and which are retriable are Kafka's", ours.len());
    }
}
