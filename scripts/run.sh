#!/usr/bin/env bash
# PORT=9092 DATA=./data SET="NAME=VALUE …" run.sh: a Kafka broker on SeaweedFS, with these of Kafka's server properties. Builds it, then runs master,
# volume server, filer and gateway in one process until Ctrl-C. Everything is kept in DATA, and is there again at the next start; logs are in DATA/log,
# the ports of SeaweedFS in DATA/ports.
set -euo pipefail
port=${PORT:-9092} data=${DATA:-./data}
weed=$("$(dirname "$0")/build-weed.sh")
mkdir -p "$data/seaweedfs" "$data/log"
given=$data data=$(cd "$data" && pwd)

# Held until weed ends: it inherits the descriptor.
exec 9>"$data/lock"
flock -n 9 || { echo "a broker is running on $given already" >&2; exit 1; }

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
# Also when it is the near end of a connection; 06 is one that has ended.
in_use() { listens "$1" || grep -qE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F:]+ (0[0-57-9]|0[A-C]) " /proc/net/tcp /proc/net/tcp6 2>/dev/null; }
listens "$port" && { echo "port $port is in use: choose another one with PORT=..." >&2; exit 1; }

# The ports of last time, where they are still free, else the next free ones after PORT.
declare -A last taken=([$port]=1)
[[ -f $data/ports ]] && while IFS='=' read -r name number; do last[$name]=$number; done <"$data/ports"
flags=() next=$port chosen=""
for name in master.port master.port.grpc volume.port volume.port.grpc filer.port filer.port.grpc; do
  number=${last[$name]:-}
  while [[ -z $number || -n ${taken[$number]:-} ]] || in_use "$number"; do
    number=$((next += 1))
  done
  taken[$number]=1 flags+=("-$name=$number") chosen+="$name=$number"$'\n'
done
printf '%s' "$chosen" >"$data/ports"
for property in ${SET:-}; do flags+=("-mq.kafka.gateway.set=$property"); done

"$weed" -logdir="$data/log" -alsologtostderr=false server -dir="$data/seaweedfs" -ip=127.0.0.1 -ip.bind=127.0.0.1 "${flags[@]}" \
  -master.peers=none -master.telemetry=false -master.volumeSizeLimitMB=1024 -volume.max=0 -volume.preStopSeconds=0 \
  -filer -mq.kafka.gateway -mq.kafka.gateway.port="$port" >"$data/log/weed.out" 2>&1 &
pid=$!
stopped=
trap 'stopped=1; kill -TERM $pid 2>/dev/null || true' INT TERM

until listens "$port"; do
  [[ -z $stopped ]] || { wait $pid || true; exit 0; }
  kill -0 $pid 2>/dev/null || { wait $pid || true; echo "weed ended before it served:" >&2; tail -n 20 "$data/log/weed.out" >&2; exit 1; }
  sleep 0.1
done
echo "Kafka clients can connect to 127.0.0.1:$port; records are in SeaweedFS under $given"

# A signal interrupts the first wait, and weed then takes a moment to stop.
status=0
while kill -0 $pid 2>/dev/null; do wait $pid && status=0 || status=$?; done
exit $status
