#!/usr/bin/env bash
# run.sh [BROKER...]: the same load on each of these brokers, started here: kelp (stand-alone on a directory), weed (Kelp in SeaweedFS), kelp-filer
# (stand-alone on a filer of SeaweedFS), kafka (Apache Kafka). Without names, all four. kafka-again is a second Apache Kafka: what the table says of it is the noise of the machine.
#
# ROUNDS=3 DURATION=20s MAX_BYTES=2147483648 (of a produce workload) WARM=30 (seconds under load for a JVM first) PORT=19500 (the first of 30 ports)
# WORKLOADS="produce-1 consume-1 produce-4 consume-4 latency commits-1 commits-100 join-100 idle-5000" DATA=build/bench (deleted first)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
rounds=${ROUNDS:-3} warm=${WARM:-30} port=${PORT:-19500} data=${DATA:-$root/build/bench}
read -ra workloads <<<"${WORKLOADS:-produce-1 consume-1 produce-4 consume-4 latency commits-1 commits-100 join-100 idle-5000}"
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
start_kafka-again() { start_kafka "$1" kafka-again; }

declare -A pid address
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
  until "$data/peers" ping "${address[$1]}" 2>/dev/null; do
    kill -0 "${pid[$1]}" 2>/dev/null || { echo "$1 ended before it served:" >&2; tail -n 5 "$data/$1/log" >&2; exit 1; }
    sleep 0.2
  done
}
# What the broker deletes while du looks is not there for it, which is no failure.
bytes_on_disk() { { du -s --block-size=1 "$data/$1/data" 2>/dev/null || true; } | cut -f1; }

for name in "${brokers[@]}"; do
  declare -F "start_$name" >/dev/null || { sed -n '2,7s/^# \?//p' "$0"; exit 2; }
done
rm -rf "$data"
mkdir -p "$data"
(cd "$here" && CGO_ENABLED=0 go build -o "$data/peers" .)
for name in "${brokers[@]}"; do
  mkdir -p "$data/$name/data"
  address[$name]=127.0.0.1:$port
  "start_$name" "$port"
  port=$((port + 10))
done
for name in "${brokers[@]}"; do ready "$name"; done

# A JVM needs load to become fast.
for name in "${brokers[@]}"; do
  [[ $name == kafka* ]] || continue
  until=$((SECONDS + warm))
  while ((SECONDS < until)); do
    "$data/peers" -duration 3s -max-bytes 268435456 round "$name" "${address[$name]}" produce-1 consume-1 produce-4 consume-4 latency >>"$data/warm.json"
  done
done

for ((round = 1; round <= rounds; round++)); do
  for name in "${brokers[@]}"; do
    before=$(bytes_on_disk "$name")
    "$data/peers" "${flags[@]}" -session "${pid[$name]}" round "$name" "${address[$name]}" "${workloads[@]}" | sed "s/^/$round /" | tee -a "$data/rounds" | cut -d' ' -f2-
    # Only the first round: later ones delete topics meanwhile, some time after they were told to.
    if ((round == 1)); then
      echo "$round {\"broker\":\"$name\",\"workload\":\"disk\",\"bytes\":$(($(bytes_on_disk "$name") - before))}" >>"$data/rounds"
    fi
    "$data/peers" delete "${address[$name]}"
  done
done
cut -d' ' -f2- "$data/rounds" >"$data/results.json"
echo
"$data/peers" report "$data/results.json"
