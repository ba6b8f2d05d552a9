#!/usr/bin/env bash
# run.sh [BROKER...]: the same load on each of these brokers, started here: kelp (stand-alone on a directory), weed (Kelp in SeaweedFS), kelp-filer
# (stand-alone on a filer of SeaweedFS), kafka (Apache Kafka). Without names, all four. gateway is SeaweedFS' own Kafka gateway, as of the version in
# go-bindings/weed. kafka-again is a second Apache Kafka: what the table says of it is the noise of the machine.
#
# ROUNDS=3 DURATION=20s MAX_BYTES=2147483648 (of a produce workload) WARM=30 (seconds under load for a JVM first) PORT=19500 (the first of 30 ports
# for each broker) WORKLOADS="produce-1 consume-1 ..." (all: a table of all sizes; README.md) DATA=build/bench (deleted first)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
rounds=${ROUNDS:-3} warm=${WARM:-30} port=${PORT:-19500} data=${DATA:-$root/build/bench}
workloads=${WORKLOADS:-produce-1 consume-1 produce-4 consume-4 latency commits-1 commits-100 join-100 idle-5000}
if [[ $workloads == all ]]; then
  workloads=
  for size in 100 1024 10240; do
    for partitions in 1 4 64; do workloads+="produce-${partitions}x$size consume-${partitions}x$size "; done
  done
  workloads+="cold-4x1024 both-4 latency rate-5000 connections-1000"
fi
read -ra workloads <<<"$workloads"
# The only setting that is not a default: the three seconds that a new group waits for more members are the same for all brokers.
setting=group.initial.rebalance.delay.ms=0
flags=(-duration "${DURATION:-20s}" -max-bytes "${MAX_BYTES:-2147483648}")
brokers=("$@")
[[ $# -gt 0 ]] || brokers=(kelp weed kelp-filer kafka)

start_kelp() {
  local binary=$root/target/release/kelp
  [[ -x $binary ]] || { echo "$binary is missing: cargo build --release --features cli" >&2; exit 1; }
  spawn kelp "$binary" serve --listen "127.0.0.1:$1" --data "$data/kelp/data" --set $setting
}
# Its session has the server of the filer too: what it costs is counted, as it is for weed.
start_kelp-filer() { spawn kelp-filer "$root/tests/weed.sh" alone "$data/kelp-filer/data" "$1" --set $setting; }
start_weed() { PORT=$1 DATA=$data/weed/data SET=$setting spawn weed "$root/scripts/run.sh"; }
start_kafka() { spawn "${2:-kafka}" "$root/tests/peers/apache-kafka.sh" start "$data/${2:-kafka}/data" "$1" $setting; }
# Nothing is set: what it waits for when a group is new is not known of it.
start_gateway() { spawn gateway "$root/tests/peers/upstream-gateway.sh" start "$data/gateway/data" "$1"; }
start_kafka-again() { start_kafka "$1" kafka-again; }

# The gateway's answers to requests of new versions, and to some others, cannot be read: it gets old ones, and has no rows from what it fails at on.
declare -A pid address old=([gateway]=-old)
# spawn NAME COMMAND...: in a session of its own, so that all its processes can be ended.
spawn() {
  local name=$1
  shift
  setsid "$@" >"$data/$name/log" 2>&1 </dev/null &
  pid[$name]=$!
}
stop() {
  trap - EXIT
  local name
  for name in "${!pid[@]}"; do kill -TERM -- "-${pid[$name]}" 2>/dev/null || true; done
  wait
}
trap stop EXIT
trap 'exit 1' INT TERM

ready() {
  until "$data/peers" ${old[$1]:-} ping "${address[$1]}" 2>/dev/null; do
    kill -0 "${pid[$1]}" 2>/dev/null || { echo "$1 ended before it served:" >&2; tail -n 5 "$data/$1/log" >&2; exit 1; }
    sleep 0.01
  done
}
# Starts it a second time, as the first one also formats its storage, and takes the time.
restart() {
  kill -TERM -- "-${pid[$1]}"
  wait "${pid[$1]}" || true
  local begun=$EPOCHREALTIME
  "start_$1" "${address[$1]##*:}"
  ready "$1"
  awk -v name="$1" -v from="$begun" -v to="$EPOCHREALTIME" \
    'BEGIN { printf "0 {\"broker\":\"%s\",\"workload\":\"start\",\"seconds\":%.3f}\n", name, to - from }' >>"$data/rounds"
}
# What the broker deletes while du looks is not there for it, which is no failure.
bytes_on_disk() { { du -s --block-size=1 "$data/$1/data" 2>/dev/null || true; } | cut -f1; }
# What was deleted takes space on SeaweedFS until its volumes are vacuumed, which it does by itself in time. The journal is deleted within 30 s.
vacuum() {
  local master
  case $1 in
  weed) master=$(sed -n 's/^master.port=//p' "$data/weed/data/ports").$(sed -n 's/^master.port.grpc=//p' "$data/weed/data/ports") ;;
  kelp-filer) master=$((${address[$1]##*:} + 1)).$((${address[$1]##*:} + 2)) ;;
  *) return 0 ;;
  esac
  sleep 32
  printf 'lock\nvolume.vacuum -garbageThreshold=0.01\nunlock\n' | "$root/build/weed" shell -master="127.0.0.1:$master" >>"$data/$1/vacuum.log" 2>&1
}

for name in "${brokers[@]}"; do
  declare -F "start_$name" >/dev/null || { sed -n '2,8s/^# \?//p' "$0"; exit 2; }
done
rm -rf "$data"
mkdir -p "$data"
(cd "$here" && CGO_ENABLED=0 go build -o "$data/peers" .)
# What starting a broker is to measure must be there before.
for name in "${brokers[@]}"; do
  case $name in
  kafka*) "$root/tests/peers/apache-kafka.sh" classpath >/dev/null ;;
  weed | kelp-filer) "$root/scripts/build-weed.sh" >/dev/null ;;
  gateway) "$root/tests/peers/upstream-gateway.sh" build >/dev/null ;;
  esac
done
for name in "${brokers[@]}"; do
  mkdir -p "$data/$name/data"
  address[$name]=127.0.0.1:$port
  "start_$name" "$port"
  ready "$name"
  # The gateway's script waits for SeaweedFS to settle.
  [[ $name == gateway ]] || restart "$name"
  port=$((port + 30))
done

# A JVM needs load to become fast, and what a master of SeaweedFS has no file ids for in its first 15 s goes another way than later.
for name in "${brokers[@]}"; do
  "$data/peers" ${old[$name]:-} -duration 30s -max-bytes 33554432 round "$name" "${address[$name]}" produce-1 >>"$data/warm.json" || [[ $name == gateway ]]
  [[ $name == kafka* ]] || continue
  until=$((SECONDS + warm))
  while ((SECONDS < until)); do
    "$data/peers" -duration 3s -max-bytes 268435456 round "$name" "${address[$name]}" produce-1 consume-1 produce-4 consume-4 latency >>"$data/warm.json"
  done
done

for ((round = 1; round <= rounds; round++)); do
  for name in "${brokers[@]}"; do
    before=$(bytes_on_disk "$name")
    "$data/peers" ${old[$name]:-} "${flags[@]}" -session "${pid[$name]}" round "$name" "${address[$name]}" "${workloads[@]}" |
      sed -u "s/^/$round /" | tee -a "$data/rounds" | cut -d' ' -f2- || [[ $name == gateway ]]
    # Only the first round: later ones delete topics meanwhile, some time after they were told to.
    if ((round == 1)); then
      vacuum "$name"
      echo "$round {\"broker\":\"$name\",\"workload\":\"disk\",\"bytes\":$(($(bytes_on_disk "$name") - before))}" >>"$data/rounds"
    fi
    "$data/peers" ${old[$name]:-} delete "${address[$name]}" || [[ $name == gateway ]]
  done
done
cut -d' ' -f2- "$data/rounds" >"$data/results.json"
echo
"$data/peers" report "$data/results.json"
