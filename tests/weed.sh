#!/usr/bin/env bash
# weed.sh all DIR PORT [FLAG...]                     everything in one process, Kafka on 127.0.0.1:PORT, SeaweedFS on PORT+1 to PORT+6
# weed.sh server DIR PORT [FLAG...]                  master, volume server and filer, on PORT+1 to PORT+6
# weed.sh gateway DIR PORT KAFKA_PORT [FLAG...]      a gateway on the filer of that server
# weed.sh kelp    DIR PORT KAFKA_PORT [OPTION...]    kelp serve on the filer of that server
# weed.sh alone   DIR PORT [OPTION...]               kelp serve on 127.0.0.1:PORT, and the server of its filer
#
# In the foreground, as the process itself: what signals it gets, weed gets. Logs go to stderr, data to DIR. WEED is the binary, else build/weed;
# KELP the other one, else target/release/kelp. FLAGs are weed's own: -takeover for a gateway, -mq.kafka.gateway.set=NAME=VALUE for all. OPTIONs are
# kelp's.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
weed=${WEED:-$root/build/weed} kelp=${KELP:-$root/target/release/kelp}
[[ $# -ge 3 && -x $weed ]] || { sed -n '2,10s/^# \?//p' "$0"; [[ -x $weed ]] || echo "$weed is missing: scripts/build-weed.sh"; exit 2; } >&2
what=$1 dir=$2 port=$3
shift 3
mkdir -p "$dir" && dir=$(cd "$dir" && pwd)
server=(server -dir="$dir" -ip=127.0.0.1 -ip.bind=127.0.0.1 -master.port=$((port + 1)) -master.port.grpc=$((port + 2)) -volume.port=$((port + 3))
  -volume.port.grpc=$((port + 4)) -filer -filer.port=$((port + 5)) -filer.port.grpc=$((port + 6)) -master.peers=none -master.telemetry=false
  -master.volumeSizeLimitMB=1024 -volume.max=0 -volume.preStopSeconds=0)
on_filer=(--filer "127.0.0.1:$((port + 5)).$((port + 6))")
cd "$dir" # Where weed looks for security.toml first.
case $what in
all) exec "$weed" -logtostderr "${server[@]}" -mq.kafka.gateway -mq.kafka.gateway.port="$port" "$@" ;;
server) exec "$weed" -logtostderr "${server[@]}" "$@" ;;
gateway)
  kafka_port=$1
  shift
  exec "$weed" -logtostderr mq.kafka.gateway -ip=127.0.0.1 -port="$kafka_port" -master="127.0.0.1:$((port + 1)).$((port + 2))" "$@"
  ;;
kelp)
  kafka_port=$1
  shift
  exec "$kelp" serve --listen "127.0.0.1:$kafka_port" "${on_filer[@]}" "$@"
  ;;
alone)
  "$weed" -logtostderr "${server[@]}" &
  server=$!
  # It waits for the filer.
  "$kelp" serve --listen "127.0.0.1:$port" "${on_filer[@]}" "$@" &
  kelp=$!
  trap 'kill -TERM $kelp 2>/dev/null || true' INT TERM
  status=0
  # A signal interrupts a wait.
  while kill -0 $kelp 2>/dev/null; do wait $kelp && status=0 || status=$?; done
  kill -TERM $server 2>/dev/null && wait $server || true
  exit $status
  ;;
*) exec "$0" ;;
esac
