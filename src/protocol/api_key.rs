//! Every API this engine speaks, one line each. Dispatch, the ApiVersions answer, header versions
//! and metric names all read this table, so they cannot disagree.

use std::ops::{RangeFrom, RangeInclusive};

macro_rules! for_each_api {
    ($then:ident) => {
        $then! {
            // Those with a handler in `api/`: they are advertised and dispatched.
            served {
                // key name                                  versions flexible    module
                0   => Produce                               0..=13,  9..,        produce;
                1   => Fetch                                 0..=18,  12..,       fetch;
                2   => ListOffsets                           0..=11,  6..,        list_offsets;
                3   => Metadata                              0..=13,  9..,        metadata;
                8   => OffsetCommit                          0..=10,  8..,        offset_commit;
                9   => OffsetFetch                           0..=10,  6..,        offset_fetch;
                10  => FindCoordinator                       0..=6,   3..,        find_coordinator;
                11  => JoinGroup                             0..=9,   6..,        join_group;
                12  => Heartbeat                             0..=4,   4..,        heartbeat;
                13  => LeaveGroup                            0..=5,   4..,        leave_group;
                14  => SyncGroup                             0..=5,   4..,        sync_group;
                15  => DescribeGroups                        0..=6,   5..,        describe_groups;
                16  => ListGroups                            0..=5,   3..,        list_groups;
                18  => ApiVersions                           0..=5,   3..,        api_versions;
                19  => CreateTopics                          0..=7,   5..,        create_topics;
                20  => DeleteTopics                          0..=6,   4..,        delete_topics;
                21  => DeleteRecords                         0..=2,   2..,        delete_records;
                22  => InitProducerId                        0..=5,   2..,        init_producer_id;
                23  => OffsetForLeaderEpoch                  0..=4,   4..,        offset_for_leader_epoch;
                29  => DescribeAcls                          0..=3,   2..,        describe_acls;
                30  => CreateAcls                            0..=3,   2..,        create_acls;
                31  => DeleteAcls                            0..=3,   2..,        delete_acls;
                32  => DescribeConfigs                       0..=4,   4..,        describe_configs;
                33  => AlterConfigs                          0..=2,   2..,        alter_configs;
                34  => AlterReplicaLogDirs                   0..=2,   2..,        alter_replica_log_dirs;
                35  => DescribeLogDirs                       0..=5,   2..,        describe_log_dirs;
                37  => CreatePartitions                      0..=3,   2..,        create_partitions;
                42  => DeleteGroups                          0..=3,   2..,        delete_groups;
                44  => IncrementalAlterConfigs               0..=1,   1..,        incremental_alter_configs;
                46  => ListPartitionReassignments            0..=0,   0..,        list_partition_reassignments;
                47  => OffsetDelete                          0..=0,   i16::MAX.., offset_delete;
                60  => DescribeCluster                       0..=2,   0..,        describe_cluster;
                61  => DescribeProducers                     0..=0,   0..,        describe_producers;
                74  => ListConfigResources                   0..=1,   0..,        list_config_resources;
                75  => DescribeTopicPartitions               0..=0,   0..,        describe_topic_partitions;
            }
            // Those that are tables only, until their handler comes.
            described {
                17  => SaslHandshake                         0..=1,   i16::MAX.., sasl_handshake;
                24  => AddPartitionsToTxn                    0..=5,   3..,        add_partitions_to_txn;
                25  => AddOffsetsToTxn                       0..=4,   3..,        add_offsets_to_txn;
                26  => EndTxn                                0..=5,   3..,        end_txn;
                27  => WriteTxnMarkers                       0..=2,   1..,        write_txn_markers;
                28  => TxnOffsetCommit                       0..=6,   3..,        txn_offset_commit;
                36  => SaslAuthenticate                      0..=2,   2..,        sasl_authenticate;
                38  => CreateDelegationToken                 0..=3,   2..,        create_delegation_token;
                39  => RenewDelegationToken                  0..=2,   2..,        renew_delegation_token;
                40  => ExpireDelegationToken                 0..=2,   2..,        expire_delegation_token;
                41  => DescribeDelegationToken               0..=3,   2..,        describe_delegation_token;
                43  => ElectLeaders                          0..=2,   2..,        elect_leaders;
                45  => AlterPartitionReassignments           0..=1,   0..,        alter_partition_reassignments;
                48  => DescribeClientQuotas                  0..=1,   1..,        describe_client_quotas;
                49  => AlterClientQuotas                     0..=1,   1..,        alter_client_quotas;
                50  => DescribeUserScramCredentials          0..=0,   0..,        describe_user_scram_credentials;
                51  => AlterUserScramCredentials             0..=0,   0..,        alter_user_scram_credentials;
                52  => Vote                                  0..=2,   0..,        vote;
                53  => BeginQuorumEpoch                      0..=1,   1..,        begin_quorum_epoch;
                54  => EndQuorumEpoch                        0..=1,   1..,        end_quorum_epoch;
                55  => DescribeQuorum                        0..=2,   0..,        describe_quorum;
                56  => AlterPartition                        0..=3,   0..,        alter_partition;
                57  => UpdateFeatures                        0..=2,   0..,        update_features;
                58  => Envelope                              0..=0,   0..,        envelope;
                59  => FetchSnapshot                         0..=1,   0..,        fetch_snapshot;
                62  => BrokerRegistration                    0..=4,   0..,        broker_registration;
                63  => BrokerHeartbeat                       0..=2,   0..,        broker_heartbeat;
                64  => UnregisterBroker                      0..=0,   0..,        unregister_broker;
                65  => DescribeTransactions                  0..=0,   0..,        describe_transactions;
                66  => ListTransactions                      0..=2,   0..,        list_transactions;
                67  => AllocateProducerIds                   0..=0,   0..,        allocate_producer_ids;
                68  => ConsumerGroupHeartbeat                0..=1,   0..,        consumer_group_heartbeat;
                69  => ConsumerGroupDescribe                 0..=1,   0..,        consumer_group_describe;
                70  => ControllerRegistration                0..=0,   0..,        controller_registration;
                71  => GetTelemetrySubscriptions             0..=0,   0..,        get_telemetry_subscriptions;
                72  => PushTelemetry                         0..=0,   0..,        push_telemetry;
                73  => AssignReplicasToDirs                  0..=0,   0..,        assign_replicas_to_dirs;
                76  => ShareGroupHeartbeat                   1..=1,   0..,        share_group_heartbeat;
                77  => ShareGroupDescribe                    1..=1,   0..,        share_group_describe;
                78  => ShareFetch                            1..=2,   0..,        share_fetch;
                79  => ShareAcknowledge                      1..=2,   0..,        share_acknowledge;
                80  => AddRaftVoter                          0..=1,   0..,        add_raft_voter;
                81  => RemoveRaftVoter                       0..=0,   0..,        remove_raft_voter;
                82  => UpdateRaftVoter                       0..=0,   0..,        update_raft_voter;
                83  => InitializeShareGroupState             0..=0,   0..,        initialize_share_group_state;
                84  => ReadShareGroupState                   0..=0,   0..,        read_share_group_state;
                85  => WriteShareGroupState                  0..=1,   0..,        write_share_group_state;
                86  => DeleteShareGroupState                 0..=0,   0..,        delete_share_group_state;
                87  => ReadShareGroupStateSummary            0..=1,   0..,        read_share_group_state_summary;
                88  => StreamsGroupHeartbeat                 0..=1,   0..,        streams_group_heartbeat;
                89  => StreamsGroupDescribe                  0..=1,   0..,        streams_group_describe;
                90  => DescribeShareGroupOffsets             0..=1,   0..,        describe_share_group_offsets;
                91  => AlterShareGroupOffsets                0..=0,   0..,        alter_share_group_offsets;
                92  => DeleteShareGroupOffsets               0..=0,   0..,        delete_share_group_offsets;
                93  => StreamsGroupTopologyDescriptionUpdate 0..=0,   0..,        streams_group_topology_description_update;
                94  => UnregisterController                  0..=0,   0..,        unregister_controller;
            }
        }
    };
}

macro_rules! api_keys {
    (served {$($served:tt)*} described {$($described:tt)*}) => {
        api_keys! { @all $($served)* $($described)* }
        api_keys! { @served $($served)* }
    };
    (@served $($key:literal => $name:ident $versions:expr, $flexible:expr, $module:ident;)*) => {
        impl ApiKey {
            /// What the ApiVersions answer offers and dispatch takes.
            pub const SERVED: &[Self] = &[$(Self::$name,)*];
        }
    };
    (@all $($key:literal => $name:ident $versions:expr, $flexible:expr, $module:ident;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i16)]
        pub enum ApiKey { $($name = $key,)* }

        impl ApiKey {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            pub fn from_code(code: i16) -> Option<Self> {
                match code {
                    $($key => Some(Self::$name),)*
                    _ => None,
                }
            }

            pub fn code(self) -> i16 {
                self as i16
            }

            pub fn versions(self) -> RangeInclusive<i16> {
                match self { $(Self::$name => $versions,)* }
            }

            /// The versions with compact lengths and tagged fields (KIP-482).
            pub fn flexible(self) -> RangeFrom<i16> {
                match self { $(Self::$name => $flexible,)* }
            }

            pub fn is_flexible(self, version: i16) -> bool {
                self.flexible().contains(&version)
            }
        }
    };
}

for_each_api!(api_keys);
pub(crate) use for_each_api;

#[cfg(test)]
mod tests {
    use super::super::wire::{Reader, Wire, Writer};
    use super::*;

    /// Every message, in every version, reads back what it wrote.
    fn round_trips<T: Wire + Default>(api: ApiKey) {
        for version in api.versions() {
            let flexible = api.is_flexible(version);
            let encode = |m: &T| {
                let mut w = Writer::new(version, flexible);
                m.write(&mut w);
                bytes::Bytes::from(w.finish().concat())
            };
            let bytes = encode(&T::sample());
            let mut r = Reader::new(bytes.clone(), version, flexible);
            let back = T::read(&mut r).unwrap_or_else(|e| panic!("{api:?} v{version}: {e:?}"));
            assert_eq!((r.rest().len(), encode(&back)), (0, bytes), "{api:?} v{version}");
            COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

    macro_rules! all {
        (served {$($served:tt)*} described {$($described:tt)*}) => {
            all! { $($served)* $($described)* }
        };
        ($($key:literal => $name:ident $versions:expr, $flexible:expr, $module:ident;)*) => {$(
            round_trips::<crate::messages::$module::Request>(ApiKey::$name);
            round_trips::<crate::messages::$module::Response>(ApiKey::$name);
        )*};
    }

    #[test]
    fn every_version_of_every_message_round_trips() {
        for_each_api!(all);
        println!("{COUNT:?} message versions");
    }
}
