#!/usr/bin/env bash
# conformance.sh [PART…]: the long suites, or the named parts. Prints for each part `NAME: N passed, N failed`.
#
#   fuzz        every target of fuzz/ for a minute (FUZZ_SECONDS)
#   compaction  Kafka's own producer fills a compacted topic ten times, stand-alone and in weed (4 minutes)
#   suites      client libraries' own tests, and Kafka's, stand-alone and in weed (40 minutes, and what they fetch)
#   torture     KILLS (20) times kill -9 at random moments under load, stand-alone and in weed (SEED)
#   memory      MINUTES (10) of topics that come and go, 10,000 partitions and late consumers: memory must not grow
set -uo pipefail
cd "$(dirname "$0")/.."
all=(fuzz compaction suites torture memory)
parts=("$@")
((${#parts[@]})) || parts=("${all[@]}")
scripts/need.sh rust c c++ || exit 1

. scripts/brokers.sh

part_fuzz() { fuzz/run.sh; }
part_compaction() {
  local bad=0
  scripts/need.sh rust go java && scripts/build-weed.sh >/dev/null && cargo build --locked --release --features cli || return 1
  tests/compaction/run.py alone || bad=1
  tests/compaction/run.py weed || bad=1
  return $bad
}
part_suites() {
  local bad=0
  scripts/need.sh rust go c python java node && scripts/build-weed.sh >/dev/null && cargo build --locked --release --features cli || return 1
  with_broker alone-suites run_suites kafka-python kafka-go sarama franz-go-kgo kafka-itests groups-tools java-tools rskafka librdkafka || bad=1
  with_broker weed-suites run_suites kafka-go java-tools rskafka || bad=1
  return $bad
}
# kafka-go compares names: the broker is `localhost`, as it tells.
run_suites() {
  local address=${*: -1}
  SUITES_DIR=$PWD/build/suites tests/suites/kelp.sh "localhost:${address##*:}" "${@:1:$#-1}"
}
part_torture() {
  local passed=0 failed=0 broker port data command
  scripts/build-weed.sh >/dev/null && cargo build --locked --release --features cli || return 1
  for broker in alone weed; do
    # SeaweedFS has the ports behind the broker's.
    port=$(free_port 7) data=$PWD/build/crash/long-$broker
    rm -rf "$data" && mkdir -p "$data"
    # Not scripts/run.sh: a kill shall hit the broker that starts, not its build.
    command="tests/weed.sh all $data $port"
    [[ $broker == weed ]] || command=$(broker_command "$broker" "$port" "$data")
    if tests/crash/run.sh -kills "${KILLS:-20}" ${SEED:+-seed "$SEED"} -timeout 1h torture "127.0.0.1:$port" "$command"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
    fi
  done
  echo "torture: $passed passed, $failed failed"
  ((failed == 0))
}
part_memory() {
  local port data=build/crash/memory
  cargo build --locked --release --features cli || return 1
  port=$(free_port)
  rm -rf "$data" && mkdir -p "$data"
  tests/crash/run.sh -duration "${MINUTES:-10}m" -timeout 1h memory "127.0.0.1:$port" "$(broker_command alone "$port" "$data")"
}

bad=0
for part in "${parts[@]}"; do
  declare -F "part_$part" >/dev/null || { echo "conformance.sh: no part '$part'" >&2; exit 2; }
  echo "== $part"
  "part_$part" || bad=1
done
exit $bad
