//! Whole APIs, through sockets, on a store in memory.
//!
//! Expected values are Apache Kafka 4.4's answers to the same requests, unless a test says that
//! Kelp does something else.

mod alter_configs;
mod api_versions;
mod batch;
mod broker;
mod connection;
mod create_partitions;
mod create_topics;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_log_dirs;
mod describe_producers;
mod describe_topic_partitions;
mod engine;
mod fetch;
mod find_coordinator;
mod groups;
mod init_producer_id;
mod list_offsets;
mod metadata;
mod metrics;
mod offset_for_leader_epoch;
mod offsets;
mod pressure;
mod produce;
mod prometheus;
mod storage;
mod user_interfaces;
