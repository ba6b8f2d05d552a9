#!/usr/bin/env bash
# log-tools.sh BROKER: what Apache Kafka's tools print of topics, their settings and their records: kafka-topics, kafka-configs, kafka-get-offsets,
# kafka-delete-records, kafka-log-dirs, kafka-producer-perf-test and kafka-consumer-perf-test. Each check builds on those before it. The broker's
# own settings are changed, and set back.
. "$(dirname "$0")/lib.sh"
. "$HERE/tools.sh"
x=log-$$ # the prefix of every name
topic=$x-a
configs() { tool ConfigCommand "${at[@]}" "$@"; }
offsets() { tool GetOffsetShell "${at[@]}" "$@"; }
log_dirs() { tool LogDirsCommand "${at[@]}" --describe "$@"; }
# fails NAME REGEX COMMAND...: the tool must end with another status than 0, and say what REGEX matches.
fails() { ! "${@:3}" && grep -qE -- "$2" "$tmp/out"; set -- "$1" "$2" $?; check "$1" "$3"; shown "$3" "$2"; }
# printed: what a tool printed, its lines in order and parted by blanks.
printed() { grep -v '^SLF4J' "$tmp/out" | grep . | sort | paste -sd' '; }
# offsets_are NAME WANTED ARGUMENT...: WANTED are partition:offset.
offsets_are() { offsets --topic "$topic" "${@:3}"; equal "$1" "$2" "$(sed -n "s/^$topic://p" "$tmp/out" | paste -sd' ')"; }

# kafka-topics
expect topics.create "^Created topic $topic\.$" topics --create --topic "$topic" --partitions 3 --replication-factor 1 --config retention.ms=3600000
fails topics.create-again "Topic '$topic' already exists" topics --create --topic "$topic" --partitions 3
expect_not topics.create-if-not-exists 'Created|Error' topics --create --topic "$topic" --if-not-exists
expect topics.create-with-defaults "^Created topic $x-b\.$" topics --create --topic $x-b
expect topics.create-by-assignment "^Created topic $x-d\.$" topics --create --topic $x-d --replica-assignment "$NODE,$NODE"
expect topics.create-with-period "^WARNING: .*period|^Created topic $x\.with_both\.$" topics --create --topic $x.with_both --partitions 1
fails topics.create-bad-name "Topic name is invalid: 'a b' contains one or more characters" topics --create --topic 'a b'
fails topics.create-replicas 'replication factor of 2 cannot be reached' topics --create --topic $x-c --replication-factor 2
fails topics.create-unknown-config 'Unknown topic config name: no.such' topics --create --topic $x-c --config no.such=1
fails topics.create-bad-config 'Invalid value soon for configuration retention.ms: Not a number of type LONG' topics --create --topic $x-c --config retention.ms=soon
topics --list --topic "$x.*"
equal topics.list "$x-a $x-b $x-d $x.with_both" "$(printed)"
expect topics.describe "^Topic: $topic	TopicId: [A-Za-z0-9_-]{22}	PartitionCount: 3	ReplicationFactor: 1	Configs: .*retention.ms=3600000" topics --describe --topic "$topic"
equal topics.describe-partitions 3 "$(grep -cE "^	Topic: $topic	Partition: [0-2]	Leader: $NODE	Replicas: $NODE	Isr: $NODE	Elr: 	LastKnownElr: " "$tmp/out")"
id=$(sed -n 's/.*TopicId: \([^\t]*\).*/\1/p' "$tmp/out")
expect topics.describe-by-id "^Topic: $topic	TopicId: $id	PartitionCount: 3" topics --describe --topic-id "$id"
expect topics.describe-assigned "^Topic: $x-d	.*PartitionCount: 2	ReplicationFactor: 1" topics --describe --topic $x-d
expect topics.describe-overrides "^Topic: $topic	.*retention.ms=3600000" topics --describe --topics-with-overrides
for kind in under-replicated unavailable under-min-isr; do
  expect_not topics.$kind 'Topic|Error' topics --describe --$kind-partitions --topic "$x.*"
done
topics --describe --at-min-isr-partitions --topic "$topic"
equal topics.at-min-isr 3 "$(grep -c "Topic: $topic	Partition" "$tmp/out")"
fails topics.describe-unknown "Topic '$x-none' does not exist as expected" topics --describe --topic $x-none
expect_not topics.alter 'Error' topics --alter --topic "$topic" --partitions 5
expect topics.alter-described 'PartitionCount: 5' topics --describe --topic "$topic"
fails topics.alter-to-fewer "The topic $topic currently has 5 partition\(s\); 2 would not be an increase" topics --alter --topic "$topic" --partitions 2
fails topics.alter-unknown "Topic '$x-none' does not exist as expected" topics --alter --topic $x-none --partitions 2
expect_not topics.alter-if-exists 'Error' topics --alter --topic $x-none --partitions 2 --if-exists

# kafka-configs
of_topic=(--entity-type topics --entity-name "$topic")
expect configs.alter "^Completed updating config for topic $topic\.$" configs --alter "${of_topic[@]}" --add-config 'cleanup.policy=[compact,delete],segment.bytes=1048576'
expect configs.describe '^  cleanup.policy=compact,delete sensitive=false synonyms=\{DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete\}' configs --describe "${of_topic[@]}"
equal configs.describe-only-set 'cleanup.policy retention.ms segment.bytes' "$(sed -n 's/^  \([a-z.]*\)=.* sensitive=.*/\1/p' "$tmp/out" | grep -v min.insync.replicas | sort | paste -sd' ')"
expect configs.describe-all '^  max.message.bytes=1048588 sensitive=false synonyms=\{DEFAULT_CONFIG:message.max.bytes=1048588\}' configs --describe --all "${of_topic[@]}"
expect configs.delete "^Completed updating config for topic $topic\.$" configs --alter "${of_topic[@]}" --delete-config cleanup.policy,segment.bytes
expect_not configs.deleted 'cleanup.policy|segment.bytes' configs --describe "${of_topic[@]}"
fails configs.bad-value 'InvalidConfigurationException: Invalid value never for configuration retention.ms: Not a number of type LONG' configs --alter "${of_topic[@]}" --add-config retention.ms=never
fails configs.unknown 'InvalidConfigurationException: Unknown topic config name: no.such' configs --alter "${of_topic[@]}" --add-config no.such=1
fails configs.unknown-topic "UnknownTopicOrPartitionException" configs --alter --entity-type topics --entity-name $x-none --add-config retention.ms=1
expect configs.describe-unknown-topic "The topic '$x-none' doesn't exist" configs --describe --entity-type topics --entity-name $x-none
of_broker=(--entity-type brokers --entity-name "$NODE") of_brokers=(--entity-type brokers --entity-default)
expect configs.broker "^Completed updating config for broker $NODE\.$" configs --alter "${of_broker[@]}" --add-config message.max.bytes=2000000
expect configs.broker-described '^  message.max.bytes=2000000 sensitive=false synonyms=\{DYNAMIC_BROKER_CONFIG:message.max.bytes=2000000, DEFAULT_CONFIG:message.max.bytes=1048588\}' configs --describe "${of_broker[@]}"
expect configs.brokers '^Completed updating default config for brokers in the cluster' configs --alter "${of_brokers[@]}" --add-config log.retention.ms=7200000
expect configs.brokers-described '^  log.retention.ms=7200000 sensitive=false synonyms=\{DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7200000' configs --describe "${of_brokers[@]}"
expect configs.brokers-counts-for-topics '^  retention.ms=7200000 .*DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7200000' configs --describe --all --entity-type topics --entity-name $x-b
expect configs.broker-deleted 'Completed' configs --alter "${of_broker[@]}" --delete-config message.max.bytes
expect configs.brokers-deleted 'Completed' configs --alter "${of_brokers[@]}" --delete-config log.retention.ms
expect_not configs.broker-as-before 'message.max.bytes|log.retention.ms=7200000' configs --describe --entity-type brokers
fails configs.broker-read-only 'InvalidRequestException: Cannot update these configs dynamically: \[node.id\]' configs --alter "${of_broker[@]}" --add-config node.id=3

# kafka-producer-perf-test, kafka-consumer-perf-test
perf=$x-p
topics --create --topic $perf --partitions 3
sent='[0-9.]+ records/sec \([0-9.]+ MB/sec\), [0-9.]+ ms avg latency, [0-9.]+ ms max latency'
quantiles=', [0-9]+ ms 50th, [0-9]+ ms 95th, [0-9]+ ms 99th, [0-9]+ ms 99.9th'
produce() { tool ProducerPerformance --topic $perf --bootstrap-server "$BROKER" --throughput -1 "$@"; }
expect producer-perf "^3000 records sent, $sent$quantiles\.$" produce --num-records 3000 --record-size 100 --command-property acks=all --print-metrics
equal producer-perf.metrics 3000.000 "$(sed -n 's/^producer-metrics:record-send-total:.*: *//p' "$tmp/out")"
for codec in gzip snappy lz4 zstd; do
  expect producer-perf.$codec "^1000 records sent, $sent$quantiles\.$" produce --num-records 1000 --record-size 100 --command-property compression.type=$codec acks=1
done
expect producer-perf.warmup "^400 steady state records sent, $sent$quantiles\.$" produce --num-records 500 --record-size 100 --warmup-records 100
offsets --topic $perf
equal producer-perf.stored 7500 "$(sed -n "s/^$perf:[0-9]*://p" "$tmp/out" | awk '{ n += $1 } END { print n }')"
consume() { tool ConsumerPerformance "${at[@]}" --topic $perf "$@"; }
expect consumer-perf ', 7500, [0-9.]+, [0-9]+, [0-9]+, [0-9.]+, [0-9.]+$' consume --num-records 7500 --group $x-g
equal consumer-perf.megabytes 0.7153 "$(awk -F', ' '/, 7500, / { print $3 }' "$tmp/out")"
expect consumer-perf.details '^[0-9: -]+, 0, [0-9.]+, [0-9.]+, [0-9]+, ' consume --num-records 7500 --show-detailed-stats --reporting-interval 1 --hide-header
expect consumer-perf.from-latest '^WARNING: Exiting before consuming the expected number of records: timeout \(2000 ms\) exceeded' consume --num-records 10 --timeout 2000 --from-latest

# kafka-get-offsets, of 50 keys written twice
for key in {1..50}; do printf '%s\tvalue-%s\n' "$key" "$key"; done >"$tmp/in"
keyed() { input=$tmp/in tool ConsoleProducer "${at[@]}" --topic "$topic" --reader-property parse.key=true; }
keyed
sleep 0.01 # another millisecond
between=$(date +%s%3N)
sleep 0.01
keyed
offsets_are get-offsets '0:20 1:10 2:24 3:32 4:14'
offsets_are get-offsets.latest '0:20 1:10 2:24 3:32 4:14' --time latest
offsets_are get-offsets.earliest '0:0 1:0 2:0 3:0 4:0' --time -2
offsets_are get-offsets.earliest-local '0:0 1:0 2:0 3:0 4:0' --time earliest-local
offsets_are get-offsets.of-a-time '0:10 1:5 2:12 3:16 4:7' --time "$between"
offsets_are get-offsets.of-the-future '' --time 9999999999999
offsets_are get-offsets.tiered '' --time latest-tiered
offsets_are get-offsets.partitions '0:20 2:24' --partitions 0,2
offsets --topic-partitions "$topic:1,$x-none:0"
equal get-offsets.topic-partitions "$topic:1:10" "$(printed)"
offsets --topic-partitions "$x-[ad]:1-3"
equal get-offsets.ranges "$topic:1:10 $topic:2:24 $x-d:1:0" "$(printed)"
expect_not get-offsets.without-internal '^__' offsets --exclude-internal-topics
fails get-offsets.unknown-topic 'Could not match any topic-partitions with the specified filters' offsets --topic $x-none
fails get-offsets.unknown-partition 'Could not match any topic-partitions with the specified filters' offsets --topic "$topic" --partitions 7
for value in one two; do
  echo $value >"$tmp/in"
  input=$tmp/in tool ConsoleProducer "${at[@]}" --topic $x.with_both
  sleep 0.01
done
expect get-offsets.max-timestamp "^$x.with_both:0:1$" offsets --topic $x.with_both --time max-timestamp

# kafka-delete-records
deletion() { # PARTITION:OFFSET...
  printf '{"partitions":[%s],"version":1}' "$(printf ',{"topic":"%s","partition":%s,"offset":%s}' $(printf "%s\n" "$@" | sed "s/:/ /; s/^/$topic /") | cut -c2-)" >"$tmp/deletion.json"
  tool DeleteRecordsCommand "${at[@]}" --offset-json-file "$tmp/deletion.json"
}
expect delete-records "^partition: $topic-0	low_watermark: 7$" deletion 0:7 1:-1
expect delete-records.all "^partition: $topic-1	low_watermark: 10$" true
offsets_are delete-records.earliest '0:7 1:10 2:0 3:0 4:0' --time earliest
expect delete-records.never-back "^partition: $topic-0	low_watermark: 7$" deletion 0:3 2:999
expect delete-records.out-of-range "^partition: $topic-2	error: .*OffsetOutOfRangeException: The requested offset is not within the range" true
expect delete-records.read 'Processed a total of 83 messages' console --topic "$topic" --from-beginning --max-messages 83 --timeout-ms 20000

# kafka-log-dirs
dirs() { # of the broker: partitions with a size above 0, and those without
  grep '^{' "$tmp/out" | python3 -c '
import json, sys
[broker] = json.load(sys.stdin)["brokers"]
[directory] = broker["logDirs"]
assert directory["error"] is None and directory["logDir"]
for p in sorted(directory["partitions"], key=lambda p: p["partition"]):
    assert (p["offsetLag"], p["isFuture"]) == (0, False)
    print(broker["broker"], p["partition"], p["size"] > 0)' | paste -sd';'
}
expect log-dirs '^Received log directory information from brokers '"$NODE$" log_dirs --topic-list "$x.with_both,$x-d"
equal log-dirs.sizes "$NODE $x-d-0 False;$NODE $x-d-1 False;$NODE $x.with_both-0 True" "$(dirs)"
log_dirs --broker-list "$NODE" --topic-list $x-none
equal log-dirs.unknown-topic '' "$(dirs)"
fails log-dirs.unknown-broker 'ERROR: The given brokers do not exist from --broker-list: 7' log_dirs --broker-list "$NODE,7" --topic-list "$topic"

expect_not topics.delete 'Error' topics --delete --topic "$x-.*"
for _ in {1..40}; do topics --list; grep -q "^$x-" "$tmp/out" || break; sleep 0.25; done
expect_not topics.deleted "^$x-" true
fails topics.delete-unknown "Topic '$x-none' does not exist as expected" topics --delete --topic $x-none
expect_not topics.delete-if-exists 'Error' topics --delete --topic $x-none --if-exists
checks_end
