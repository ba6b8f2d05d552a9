//! The table of all metrics: names, kinds, labels, and what they mean.
//!
//! Where Apache Kafka has a metric it keeps its name, in the form that Prometheus' JMX exporter gives
//! with the rules that Strimzi publishes, and what groups lag behind has the names of kafka-exporter:
//! so dashboards find it. The rest begins with `kelp_`.

/// All series of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    /// Times in milliseconds, where Kafka's name says so.
    HistogramMs,
    /// Times in seconds.
    HistogramSeconds,
}

impl Kind {
    /// What Prometheus calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::HistogramMs | Self::HistogramSeconds => "histogram",
        }
    }
}

macro_rules! families {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub static $constant: Family = Family {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*

        pub static ALL: &[&Family] = &[$(&$constant),*];
    };
}

families! {
    // Requests.
    REQUESTS = Counter "kafka_network_requestmetrics_requests_total" ["request", "version"]
        "Requests that came.";
    REQUEST_ERRORS = Counter "kafka_network_requestmetrics_errors_total" ["request", "error"]
        "Error codes in answers, NONE among them.";
    REQUEST_TIME = HistogramMs "kafka_network_requestmetrics_totaltimems" ["request"]
        "From when a request was read until its answer is there to be written.";
    IN_FLIGHT = Gauge "kelp_requests_in_flight" ["request"]
        "Requests that have no answer yet.";
    REQUEST_MEMORY_USED = Gauge "kafka_network_socketserver_memorypoolused" []
        "Bytes of requests in memory; queued.max.request.bytes is the limit.";
    REQUEST_MEMORY_FREE = Gauge "kafka_network_socketserver_memorypoolavailable" []
        "Bytes that further requests may take.";
    REQUEST_MEMORY_WAITING = Gauge "kelp_requests_waiting_for_memory" []
        "Connections that are not read from until others give memory back.";

    // Connections and clients.
    CONNECTIONS = Gauge "kafka_server_socket_server_metrics_connection_count" []
        "Open connections.";
    CONNECTIONS_ACCEPTED = Counter "kafka_server_socket_server_metrics_connection_creation_total" []
        "Connections that were taken.";
    CONNECTIONS_REFUSED = Counter "kelp_connections_refused_total" ["reason"]
        "Connections that were too many: the reason is the limit that they met.";
    CONNECTIONS_CLOSED = Counter "kelp_connections_closed_total" ["reason"]
        "Connections that ended.";
    NETWORK_BYTES_IN = Counter "kafka_server_socket_server_metrics_incoming_byte_total" []
        "Bytes read from clients.";
    NETWORK_BYTES_OUT = Counter "kafka_server_socket_server_metrics_outgoing_byte_total" []
        "Bytes written to clients.";
    CLIENTS = Gauge "kafka_server_socket_server_metrics_connections_software"
        ["clientSoftwareName", "clientSoftwareVersion"]
        "Connections by what clients call themselves; beyond 100 kinds, or 64 bytes, they are others.";

    // The log.
    RECORDS_IN = Counter "kafka_server_brokertopicmetrics_messagesin_total" []
        "Records that were stored.";
    BATCHES_IN = Counter "kelp_log_batches_in_total" []
        "Batches that were stored.";
    BYTES_IN = Counter "kafka_server_brokertopicmetrics_bytesin_total" []
        "Bytes of batches that were stored.";
    BYTES_OUT = Counter "kafka_server_brokertopicmetrics_bytesout_total" []
        "Bytes of batches that consumers were answered.";
    LOG_START = Gauge "kafka_log_log_logstartoffset" ["topic", "partition"]
        "The log start offset.";
    LOG_END = Gauge "kafka_log_log_logendoffset" ["topic", "partition"]
        "The high watermark: the next offset that consumers will get.";
    TOPICS = Gauge "kafka_controller_kafkacontroller_globaltopiccount" []
        "Topics.";
    PARTITIONS = Gauge "kafka_controller_kafkacontroller_globalpartitioncount" []
        "Partitions of all topics.";

    // Groups.
    GROUPS = Gauge "kafka_coordinator_group_groupmetadatamanager_numgroups" []
        "Classic groups.";
    GROUPS_PREPARING = Gauge "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance" []
        "Classic groups whose members join.";
    GROUPS_COMPLETING = Gauge "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance" []
        "Classic groups whose leader assigns.";
    GROUPS_STABLE = Gauge "kafka_coordinator_group_groupmetadatamanager_numgroupsstable" []
        "Classic groups whose members have their assignments.";
    GROUPS_EMPTY = Gauge "kafka_coordinator_group_groupmetadatamanager_numgroupsempty" []
        "Classic groups without members.";
    OFFSETS = Gauge "kafka_coordinator_group_groupmetadatamanager_numoffsets" []
        "Committed offsets.";
    MEMBERS = Gauge "kafka_consumergroup_members" ["consumergroup"]
        "Members of a group.";
    GROUP_OFFSET = Gauge "kafka_consumergroup_current_offset" ["consumergroup", "topic", "partition"]
        "What a group has committed.";
    LAG = Gauge "kafka_consumergroup_lag" ["consumergroup", "topic", "partition"]
        "Log end minus what a group has committed; 0 if it committed more.";

    // The object log.
    STATE = Gauge "kelp_state" ["state"]
        "1 for the state of the store: opening, standby, serving, fenced or failed.";
    EPOCH = Gauge "kelp_leader_epoch" []
        "The leader epoch of this process.";
    COMMITS = Counter "kelp_journal_commits_total" []
        "Objects that were committed to the journal.";
    COMMIT_BYTES = Counter "kelp_journal_commit_bytes_total" []
        "Their bytes.";
    COMMIT_TIME = HistogramSeconds "kelp_journal_commit_seconds" []
        "From when a commit is sent until it is certainly stored.";
    JOURNAL_DEPTH = Gauge "kelp_journal_depth_bytes" []
        "Bytes of the journal that are not in segments yet.";
    JOURNAL_WAITING = Gauge "kelp_journal_waiting_bytes" []
        "Bytes that wait for a commit to take them.";
    ROUND_TIME = HistogramSeconds "kelp_tiering_round_seconds" []
        "Rounds that moved the journal into segments.";
    CACHE_HITS = Counter "kelp_cache_hits_total" ["cache"]
        "Batches, or indexes of segments, that were found in memory.";
    CACHE_MISSES = Counter "kelp_cache_misses_total" ["cache"]
        "What was looked for in memory and was not there.";
    CACHE_BYTES = Gauge "kelp_cache_bytes" ["cache"]
        "Bytes in memory.";

    // The host.
    STORE_TIME = HistogramSeconds "kelp_store_call_seconds" ["call"]
        "Calls of a store of objects: put_new, get, list and delete.";
    STORE_ERRORS = Counter "kelp_store_errors_total" ["call"]
        "Those that failed.";
    STORE_BYTES_PUT = Counter "kelp_store_put_bytes_total" []
        "Bytes of objects that were put.";
    STORE_BYTES_GOT = Counter "kelp_store_got_bytes_total" []
        "Bytes of objects that were read.";
    HOST_OPERATIONS = Gauge "kelp_host_operations" []
        "Operations that the host has not completed (C ABI).";

    LEFT_OUT = Gauge "kelp_metrics_left_out" ["family"]
        "Series that are not told, as one name has at most 10,000.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_say_their_kind_and_unit() {
        let names: BTreeSet<_> = ALL.iter().map(|family| family.name).collect();
        assert_eq!(names.len(), ALL.len());
        for Family { name, kind, labels, help } in ALL {
            let plain = |text: &str| {
                text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                    && text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
            };
            assert!(plain(name) && labels.iter().all(|label| plain(label)), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
            assert_eq!(name.ends_with("_seconds"), *kind == Kind::HistogramSeconds, "{name}");
            assert_eq!(name.ends_with("ms"), *kind == Kind::HistogramMs, "{name}");
            assert!(!labels.contains(&"le") && help.ends_with('.') && !help.contains('\\'));
        }
    }

    #[test]
    fn the_page_on_metrics_has_the_same_table() {
        let page = include_str!("../../docs/metrics.md");
        let is_row = |line: &&str| line.starts_with("| `") && line.matches(" | ").count() == 3;
        let rows = page.lines().filter(is_row);
        let row = |family: &&Family| {
            let Family { name, kind, labels, help } = family;
            let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
            format!("| `{name}` | {} | {} | {} |", kind.name(), labels.join(", "), help)
        };
        let expected: Vec<_> = ALL.iter().map(row).collect();
        assert_eq!(rows.collect::<Vec<_>>(), expected, "\n{}\n", expected.join("\n"));
    }
}
