//! What an engine tells of itself, after what it was asked.

use crate::batch::{Batch, fetch};
use crate::broker::{Broker, PATIENCE};
use crate::groups::{Member, QUICK};
use crate::prometheus::Page;
use kelp::messages::{api_versions, metadata, offset_commit};
use kelp::metrics::names;
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::store::objects::memory::Memory;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

fn read(broker: &Broker) -> Page {
    Page::read(&broker.engine.metrics().finish())
}

/// Reads until it is so: connections end, and commits are tiered, on their own time. What has to be
/// so at once is asked for at once: a page is read line by line while the broker goes on.
fn until(broker: &Broker, is_so: impl Fn(&Page) -> bool) -> Page {
    let begin = Instant::now();
    loop {
        let page = read(broker);
        if is_so(&page) {
            return page;
        }
        assert!(begin.elapsed() < PATIENCE);
        thread::yield_now();
    }
}

/// A broker on a store of objects, so that there is a journal.
fn broker() -> Broker {
    Broker::sharing(Arc::new(Memory::default()), "kelp.registration=false")
}

fn commit(broker: &Broker, group: &str, topic: &str, offset: i64) {
    let partition = offset_commit::OffsetCommitRequestPartition {
        committed_offset: offset,
        ..Default::default()
    };
    let topic = offset_commit::OffsetCommitRequestTopic {
        name: topic.into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let request = offset_commit::Request {
        group_id: group.into(),
        topics: vec![topic],
        ..Default::default()
    };
    let answer: offset_commit::Response = broker.ask(ApiKey::OffsetCommit, 8, &request);
    assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::None);
}

#[test]
fn records_bytes_and_commits_are_those_that_were_sent() {
    let broker = broker();
    broker.create("clicks", 2);
    let before = read(&broker);
    let batches = [Batch::of(&["a", "b", "c"]), Batch::of(&["d"])];
    for batch in &batches {
        assert_eq!(broker.produce("clicks", batch).error_code, ErrorCode::None);
    }
    let bytes = batches.iter().map(|batch| batch.encode().len()).sum::<usize>() as f64;
    assert_eq!(broker.records("clicks").len(), 4);
    let page = read(&broker);

    let in_log = "kafka_server_brokertopicmetrics";
    let is = |series: &str, value: f64| assert_eq!(page.get(series), Some(value), "{series}");
    is(&format!("{in_log}_messagesin_total"), 4.0);
    is("kelp_log_batches_in_total", 2.0);
    is(&format!("{in_log}_bytesin_total"), bytes);
    is(&format!("{in_log}_bytesout_total"), bytes);
    is("kafka_log_log_logendoffset{topic=clicks,partition=0}", 4.0);
    is("kafka_log_log_logstartoffset{topic=clicks,partition=0}", 0.0);
    // Nobody has opened this one.
    is("kafka_log_log_logendoffset{topic=clicks,partition=1}", 0.0);
    is("kafka_controller_kafkacontroller_globalpartitioncount", 2.0);
    is("kelp_state{state=serving}", 1.0);
    is("kelp_state{state=fenced}", 0.0);
    is("kelp_leader_epoch", 1.0);

    let since = |series: &str| page.get(series).unwrap() - before.get(series).unwrap();
    assert_eq!(since("kelp_journal_commits_total"), 2.0);
    assert_eq!(since("kelp_journal_commit_seconds_count"), 2.0);
    // A round of tiering may come at any time, and puts objects too.
    assert!(since("kelp_store_call_seconds_count{call=put_new}") >= 2.0);
    let committed = since("kelp_journal_commit_bytes_total");
    assert!(committed > bytes && since("kelp_store_put_bytes_total") >= committed);
    assert_eq!(page.get("kelp_journal_waiting_bytes"), Some(0.0));
    assert!(page.get("kelp_journal_depth_bytes").is_some());
    let looked_for =
        ["hits", "misses"].map(|what| format!("kelp_cache_{what}_total{{cache=batches}}"));
    assert!(looked_for.iter().map(|series| page.get(series).unwrap()).sum::<f64>() >= 1.0);
}

#[test]
fn requests_are_told_by_version_and_time_and_their_answers_errors_by_name() {
    let broker = Broker::start();
    let mut client = broker.connect();
    for (version, topic) in [(9, "not-there"), (9, "nor-this"), (12, "!")] {
        let topic =
            metadata::MetadataRequestTopic { name: Some(topic.into()), ..Default::default() };
        let request = metadata::Request {
            topics: Some(vec![topic]),
            allow_auto_topic_creation: false,
            ..Default::default()
        };
        let _: metadata::Response = client.call(ApiKey::Metadata, version, &request);
    }
    let page = read(&broker);
    let requests = "kafka_network_requestmetrics";
    assert_eq!(
        page.family(&format!("{requests}_requests_total")),
        [("{request=Metadata,version=12}", 1.0), ("{request=Metadata,version=9}", 2.0)]
    );
    let errors = page.family(&format!("{requests}_errors_total"));
    let of = |error: &str| {
        let label = format!("{{request=Metadata,error={error}}}");
        errors.iter().find(|(labels, _)| *labels == label).map(|(_, count)| *count)
    };
    assert_eq!(of("UNKNOWN_TOPIC_OR_PARTITION"), Some(2.0), "{errors:?}");
    assert_eq!(of("INVALID_TOPIC_EXCEPTION"), Some(1.0), "{errors:?}");
    let count = format!("{requests}_totaltimems_count{{request=Metadata}}");
    assert_eq!(page.get(&count), Some(3.0));
    assert_eq!(page.get("kelp_requests_in_flight{request=Metadata}"), Some(0.0));
    // A host with a log of its own has no journal.
    assert_eq!(page.family("kelp_journal_commits_total"), []);
}

#[test]
fn a_fetch_that_waits_is_in_flight_until_its_client_goes() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    let in_flight = |page: &Page| page.get("kelp_requests_in_flight{request=Fetch}");
    let mut request = fetch("clicks", 0);
    (request.min_bytes, request.max_wait_ms) = (1, i32::MAX);
    let mut client = broker.connect();
    client.send(ApiKey::Fetch, 12, &request);
    let memory = "kafka_network_socketserver_memorypoolused";
    let is_held = |page: &Page| page.get(memory).unwrap() > 0.0;
    until(&broker, |page| in_flight(page) == Some(1.0) && is_held(page));

    drop(client);
    let page = until(&broker, |page| in_flight(page) == Some(0.0));
    let counted = "kafka_network_requestmetrics_totaltimems_count{request=Fetch}";
    assert_eq!(page.get(counted), Some(0.0));
    let connections = "kafka_server_socket_server_metrics_connection_count";
    let closed = "kelp_connections_closed_total{reason=client}";
    until(&broker, |page| {
        page.get(connections) == Some(0.0)
            && page.get(closed).unwrap() >= 1.0
            && page.get(memory) == Some(0.0)
    });
}

#[test]
fn connections_are_told_by_the_software_of_their_clients() {
    let broker = Broker::with("max.connections=2");
    let hello = api_versions::Request {
        client_software_name: "sarama".into(),
        client_software_version: "1.47.0".into(),
        ..Default::default()
    };
    let mut clients = [broker.connect(), broker.connect()];
    for client in &mut clients {
        for _ in 0..2 {
            let _: api_versions::Response = client.call(ApiKey::ApiVersions, 3, &hello);
        }
    }
    assert!(broker.connect().is_closed());
    let page = read(&broker);
    let software = "kafka_server_socket_server_metrics_connections_software";
    let labels = "{clientSoftwareName=sarama,clientSoftwareVersion=1.47.0}";
    assert_eq!(page.family(software), [(labels, 2.0)]);
    assert_eq!(page.get("kafka_server_socket_server_metrics_connection_count"), Some(2.0));
    assert_eq!(page.get("kafka_server_socket_server_metrics_connection_creation_total"), Some(2.0));
    assert_eq!(page.get("kelp_connections_refused_total{reason=max.connections}"), Some(1.0));
    drop(clients);
    until(&broker, |page| page.family(software).is_empty());
}

#[test]
fn groups_are_told_by_state_and_what_they_lag_behind_by_partition() {
    let broker = Broker::sharing(Arc::new(Memory::default()), QUICK);
    broker.create("clicks", 2);
    broker.find_coordinator("group");
    assert_eq!(broker.produce("clicks", &Batch::of(&["a", "b", "c"])).error_code, ErrorCode::None);
    commit(&broker, "g\"1\"", "clicks", 1);
    commit(&broker, "g2", "clicks", 7);
    let _member = Member::joined(&broker);
    let page = read(&broker);
    assert_eq!(
        page.family("kafka_consumergroup_lag"),
        [
            ("{consumergroup=g\"1\",topic=clicks,partition=0}", 2.0),
            ("{consumergroup=g2,topic=clicks,partition=0}", 0.0),
        ]
    );
    let committed = "kafka_consumergroup_current_offset{consumergroup=g2,topic=clicks,partition=0}";
    assert_eq!(page.get(committed), Some(7.0));
    let groups = "kafka_coordinator_group_groupmetadatamanager";
    assert_eq!(page.get(&format!("{groups}_numgroups")), Some(3.0));
    assert_eq!(page.get(&format!("{groups}_numgroupsempty")), Some(2.0));
    assert_eq!(page.get(&format!("{groups}_numgroupscompletingrebalance")), Some(1.0));
    assert_eq!(page.get(&format!("{groups}_numoffsets")), Some(2.0));
    let members = page.family("kafka_consumergroup_members");
    assert_eq!(members.iter().map(|(_, count)| *count).sum::<f64>(), 1.0, "{members:?}");
}

#[test]
fn every_series_is_of_a_family_in_the_table() {
    let broker = broker();
    broker.create("clicks", 1);
    let text = broker.engine.metrics().finish();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let known =
            |family: &&&names::Family| line == format!("{} {}", family.name, family.kind.name());
        assert!(names::ALL.iter().any(|family| known(&family)), "{line}");
    }
}
