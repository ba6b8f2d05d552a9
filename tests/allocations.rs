//! Counts what a request costs in heap allocations, from socket to socket on the store in memory.
//!
//! All threads of the process are counted. The client here allocates nothing while it counts.

#![allow(unsafe_code)]

#[allow(dead_code)]
#[path = "api/batch.rs"]
mod batch;
#[allow(dead_code)]
#[path = "api/broker.rs"]
mod broker;

use batch::{Batch, fetch, produce};
use broker::{Broker, Client};
use kelp::messages::offset_commit;
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::protocol::wire::{Uuid, Wire};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

const REQUESTS: usize = 1000;

/// What a request may cost, and a little for vectors that grow now and then.
const MAX: f64 = 8.0 + 0.05;

/// What a commit of ten offsets may cost.
const MAX_OF_COMMIT: f64 = 18.0 + 0.05;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is the system's allocator's; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: what is promised to us is what it asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the block is the system's allocator's, and what is promised to us is what it asks for.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block is the system's allocator's.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Sends the same request over and over; gives how many allocations each one cost.
fn cost(client: &mut Client, api: ApiKey, version: i16, request: &impl Wire) -> f64 {
    let body = client.frame(api, version, request);
    let frame = [&(body.len() as u32).to_be_bytes(), &body[..]].concat();
    client.stream.write_all(&frame).unwrap();
    let answer = client.receive_frame().unwrap();
    let mut buffer = vec![0; 4 + answer.len()];
    let mut exchange = || {
        client.stream.write_all(&frame).unwrap();
        client.stream.read_exact(&mut buffer).unwrap();
    };
    (0..REQUESTS / 10).for_each(|_| exchange());
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    (0..REQUESTS).for_each(|_| exchange());
    let after = ALLOCATIONS.load(Ordering::Relaxed);
    assert_eq!(buffer[4..8], answer[..4], "an answer to the same request");
    (after - before) as f64 / REQUESTS as f64
}

/// Ten partitions of a topic, from somebody who is no member.
fn commit(topic_id: Uuid) -> offset_commit::Request {
    let partition = |partition_index| offset_commit::OffsetCommitRequestPartition {
        partition_index,
        committed_offset: 7,
        ..Default::default()
    };
    let partitions = (0..10).map(partition).collect();
    let topic =
        offset_commit::OffsetCommitRequestTopic { topic_id, partitions, ..Default::default() };
    offset_commit::Request { group_id: "g".into(), topics: vec![topic], ..Default::default() }
}

// One test, so that nothing else runs while it counts.
#[test]
fn requests_cost_few_allocations() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    broker.create("committed", 10);
    let batch = Batch::of(&["v".repeat(16 * 1024).as_str()]);
    assert_eq!(broker.produce("clicks", &batch).error_code, ErrorCode::None);
    let mut client = broker.connect();
    let request = produce("clicks", batch.encode());
    let produce = cost(&mut client, ApiKey::Produce, 9, &request);
    let mut one_batch = fetch("clicks", 0);
    one_batch.topics[0].partitions[0].partition_max_bytes = 1;
    let fetch = cost(&mut client, ApiKey::Fetch, 12, &one_batch);
    broker.find_coordinator("g");
    let commit = cost(&mut client, ApiKey::OffsetCommit, 10, &commit(broker.topic_id("committed")));
    println!(
        "allocations: {produce:.2} for a produce, {fetch:.2} for a fetch, {commit:.2} for a commit"
    );
    assert!(produce <= MAX && fetch <= MAX && commit <= MAX_OF_COMMIT);
}
