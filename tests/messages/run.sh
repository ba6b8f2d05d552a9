#!/usr/bin/env bash
# run.sh: every message of Kelp's tables, in every version and both directions, byte for byte against what others write:
# Kafka's own classes, franz-go's kmsg for the versions that Kafka 4 dropped, and the kafka-protocol crate. And the tables
# against Kafka's schemas. Then the error codes, and what becomes of batches, against Kafka's own log.
#
# What the others need is put into build/messages of the project.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=tests/messages
build=$PWD/build/messages
mkdir -p "$build"

if ! cmp -s $here/pom.xml "$build/pom.xml"; then
  rm -rf "$build/lib"
  mvn -q -B -f $here/pom.xml dependency:copy-dependencies -DoutputDirectory="$build/lib" >"$build/maven.log" 2>&1 || { cat "$build/maven.log" >&2; exit 1; }
  cp $here/pom.xml "$build/pom.xml"
fi

python3 $here/schema.py src "$build"/lib/kafka-{clients,group-coordinator,transaction-coordinator}-4*.jar

javac -cp "$build/lib/*" -d "$build/classes" $here/KafkaMessages.java $here/KafkaBatches.java $here/KafkaLog.java
java -cp "$build/classes:$build/lib/*" KafkaMessages "$build/kafka.txt"
java -cp "$build/classes:$build/lib/*" KafkaBatches write "$build/kafka-batches.txt"
java -cp "$build/classes:$build/lib/*" KafkaLog "$build/log.txt"
(cd $here/kmsg && go run . "$build/kafka.txt" "$build/kmsg.txt")

# With the features of `make test`, so that nothing is built twice.
comparisons=(
  messages::against_others::every_message_is_what_others_write
  protocol::error_code::tests::the_codes_are_kafkas
  record::against_kafkas_log::batches_are_taken_and_refused_as_kafka_does
  record::against_kafka::batches_are_what_kafka_makes_and_reads
)
KELP_MESSAGES=$build \
  cargo test --locked --features cli --lib -- --ignored --exact --nocapture "${comparisons[@]}" | tee "$build/comparisons.log"
# A name that no test has is passed over in silence.
grep -q "^test result: ok. ${#comparisons[@]} passed" "$build/comparisons.log" || { echo "not all comparisons ran" >&2; exit 1; }
java -cp "$build/classes:$build/lib/*" KafkaBatches read "$build/kelp-batches.txt"

# A crate of its own, as this one is large and `cargo test` need not wait for it.
cargo run --locked --quiet --manifest-path $here/witness/Cargo.toml --target-dir "$build/witness" -- "$build/kelp.txt"
