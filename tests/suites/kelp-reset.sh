#!/usr/bin/env bash
# kelp-reset.sh FILE HOST:PORT: the RESET_CMD of kafka-itests.sh for a stand-alone Kelp, as kafka-reset.sh is for Apache Kafka, and it is called the
# same way: kelp-reset.sh stop HOST:PORT only ends the broker. The broker is KELP, by default this checkout's release build; its data is in memory.
#
# It refuses a property that it does not know, so those are left out: the broker names one at each start, and the list is kept for the next one.
# Feature levels (`#feature NAME=LEVEL`) it has none.
set -eu
file=$1 host=${2%:*} port=${2##*:}
kelp=${KELP:-$(cd "$(dirname "$0")/../.." && pwd)/target/release/kelp}
state=${SUITES_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/kelp-suites}/kelp-reset-$port
mkdir -p "$state"
answers() { (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null; }
if [[ -f $state/pid ]]; then
  kill -9 "$(cat "$state/pid")" 2>/dev/null || true
  rm "$state/pid"
  while answers; do sleep 0.05; done
fi
[[ $file == stop ]] && exit

touch "$state/unknown"
for _ in {1..100}; do
  { grep -v '^#' "$file" | grep -vFf <(sed 's/$/=/' "$state/unknown") || true; } >"$state/server.properties"
  setsid nohup "$kelp" serve --listen "$host:$port" --memory --config "$state/server.properties" --set node.id=0 >"$state/out" 2>&1 </dev/null &
  pid=$!
  until answers; do
    kill -0 $pid 2>/dev/null || break
    sleep 0.02
  done
  if kill -0 $pid 2>/dev/null; then
    echo $pid >"$state/pid"
    exit
  fi
  sed -n 's/^kelp: unknown property //p' "$state/out" | grep . >>"$state/unknown" || break
done
cat "$state/out" >&2
exit 1
