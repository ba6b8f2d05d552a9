//! Every struct of the interface has the same size and offsets in Rust and in C.

use crate::build;
use kelp::ffi::batch::{KelpBatchFields, KelpBatchRecord, KelpRecordHeader};
use kelp::ffi::data::*;
use kelp::ffi::engine::KelpConfig;
use kelp::ffi::host::KelpHost;
use kelp::ffi::objects::*;
use kelp::ffi::operation::KelpOp;
use kelp::ffi::storage::*;
use kelp::ffi::topic_list::KelpTopicSummary;
use std::fmt::Write;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

/// Where a struct or field is: its name in C, and its size or offset in Rust.
struct Place {
    struct_name: &'static str,
    field: Option<&'static str>,
    bytes: usize,
}

macro_rules! layout {
    ($($rust:ident = $c:ident { $($field:ident),* };)*) => {
        fn places() -> Vec<Place> {
            let mut places = Vec::new();
            $(
                // Does not compile when a field is missing here.
                let _ = |all: $rust| { let $rust { $($field: _),* } = all; };
                let struct_name = stringify!($c);
                places.push(Place { struct_name, field: None, bytes: size_of::<$rust>() });
                $(places.push(Place {
                    struct_name,
                    field: Some(stringify!($field)),
                    bytes: offset_of!($rust, $field),
                });)*
            )*
            places
        }
    };
}

layout! {
    KelpStr = kelp_str { ptr, len };
    KelpBytes = kelp_bytes { ptr, len };
    KelpOp = kelp_op { kind, timeout_ms, host, error, kelp };
    KelpPutNew = kelp_put_new { op, key, parts, part_count, total_bytes };
    KelpGet = kelp_get { op, key, offset, length, data };
    KelpList = kelp_list { op, prefix, after, limit, keys, key_count };
    KelpDelete = kelp_delete { op, keys, key_count };
    KelpObjects = kelp_objects { struct_size, reserved, put_new, get, list, delete_keys };
    KelpSetting = kelp_setting { name, value };
    KelpTopic = kelp_topic { id, name, settings, setting_count, partition_count, reserved };
    KelpPartition = kelp_partition { topic, topic_id, index, reserved };
    KelpRecord = kelp_record { key, value, is_tombstone, reserved };
    KelpLoadTopics = kelp_load_topics { op, cluster_id, topics, topic_count };
    KelpCreateTopic = kelp_create_topic { op, topic };
    KelpAlterTopic = kelp_alter_topic { op, topic };
    KelpDeleteTopic = kelp_delete_topic { op, topic, topic_id };
    KelpOpenPartition = kelp_open_partition {
        op, partition, log_start_offset, log_end_offset, leader_epoch, reserved
    };
    KelpAppend = kelp_append {
        op, partition, expected_base_offset, next_offset, slices, slice_count, total_bytes,
        log_end_offset
    };
    KelpRead = kelp_read {
        op, partition, offset, max_bytes, at_least_one, reserved, slices, slice_count
    };
    KelpSetLogStart = kelp_set_log_start { op, partition, offset, log_start_offset };
    KelpSeekTime = kelp_seek_time { op, partition, timestamp, offset };
    KelpAllocateProducerIds = kelp_allocate_producer_ids { op, count, reserved, first };
    KelpAppendRecords = kelp_append_records { op, log, records, record_count };
    KelpLoadRecords = kelp_load_records {
        op, log, position, records, record_count, next_position
    };
    KelpOffset = kelp_offset {
        group, topic, topic_id, partition, leader_epoch, offset, metadata, commit_timestamp,
        expire_timestamp, is_tombstone, reserved
    };
    KelpCommitOffsets = kelp_commit_offsets { op, log, offsets, offset_count };
    KelpLoadOffsets = kelp_load_offsets {
        op, log, position, offsets, offset_count, next_position
    };
    KelpStorage = kelp_storage {
        struct_size, reserved, load_topics, create_topic, delete_topic, open_partition, append,
        read, set_log_start, seek_time, allocate_producer_ids, append_records, load_records,
        commit_offsets, load_offsets, alter_topic
    };
    KelpBatchFields = kelp_batch_fields {
        struct_size, attributes, base_offset, last_offset_delta, leader_epoch, producer_id,
        base_sequence, producer_epoch, reserved, max_timestamp, delete_horizon_ms, record_count,
        level, max_bytes
    };
    KelpRecordHeader = kelp_record_header { key, value };
    KelpBatchRecord = kelp_batch_record { offset, timestamp, key, value, headers, header_count };
    KelpHost = kelp_host {
        struct_size, log_level, ctx, storage, objects, release, log, state, topics_changed
    };
    KelpTopicSummary = kelp_topic_summary { id, name, retention_ms, partition_count, is_internal };
    KelpConfig = kelp_config { struct_size, io_threads, dispatch_threads, reserved, properties };
}

#[test]
fn c_and_rust_agree_on_every_size_and_offset() {
    let mut program = "#include <kelp.h>\n#include <stdio.h>\nint main(void) {\n".to_owned();
    let mut rust = String::new();
    for Place { struct_name, field, bytes } in places() {
        let (name, c) = match field {
            None => (struct_name.to_owned(), format!("sizeof({struct_name})")),
            Some(field) => {
                (format!("{struct_name}.{field}"), format!("offsetof({struct_name}, {field})"))
            }
        };
        writeln!(program, "  printf(\"{name} %zu\\n\", {c});").unwrap();
        writeln!(rust, "{name} {bytes}").unwrap();
    }
    program.push_str("  return 0;\n}\n");
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layout.c");
    std::fs::write(&source, program).unwrap();
    let program = build::c_program(source.to_str().unwrap(), "layout", &[]);
    let output = Command::new(program).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), rust);
}
