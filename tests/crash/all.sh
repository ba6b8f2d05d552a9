#!/usr/bin/env bash
# all.sh: the scenarios of README.md on Kelp: stand-alone and in weed it is killed and started again; of two brokers on one filer, gateways in weed
# or stand-alone, one takes over from the other. Expects what `scripts/test.sh build` made. Ends with `N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/brokers.sh
passed=0 failed=0
scenario() { # NAME COMMAND…
  local name=$1
  shift
  echo "-- $name"
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED: $name"; fi
}

# A restart after kill -9 on the same host waits for nothing but the start itself.
kills() { # SCENARIO BROKER COUNT
  local port data=build/crash/$1-$2
  port=$(free_port)
  rm -rf "$data" && mkdir -p "$data"
  tests/crash/run.sh -within 30s -kills "$3" "$1" "127.0.0.1:$port" "$(broker_command "$2" "$port" "$data")"
}

# Brokers on the filer of one SeaweedFS, each a `gateway` in weed or `kelp` by itself.
on_one_filer() { # SCENARIO FIRST [SECOND [FLAG OF THE SECOND]]
  local data=$PWD/build/crash/$1-$2-${3:-} port server status
  rm -rf "$data" && mkdir -p "$data"
  # SeaweedFS has the first seven, the brokers the last two.
  port=$(free_port 9)
  tests/weed.sh server "$data" "$port" >"$data/server.log" 2>&1 &
  server=$!
  await_port $((port + 5)) 60 "$server" || { tail -n 20 "$data/server.log"; return 1; }
  local brokers=("127.0.0.1:$((port + 7))" "tests/weed.sh $2 $data $port $((port + 7))")
  [[ -z ${3:-} ]] || brokers+=("127.0.0.1:$((port + 8))" "tests/weed.sh $3 $data $port $((port + 8)) ${4:-}")
  tests/crash/run.sh "$1" "${brokers[@]}"
  status=$?
  kill -TERM "$server" && wait "$server"
  return $status
}

scenario "kelp serve is killed twice" kills restart alone 2
scenario "weed is killed twice" kills restart weed 2
scenario "kelp serve on a filer is killed twice" on_one_filer restart kelp
scenario "kelp serve is killed at any moment" kills torture alone 3
scenario "a paused gateway is taken over" on_one_filer takeover gateway gateway -takeover
scenario "a second gateway stands by" on_one_filer standby gateway gateway
# What one has written the other reads.
scenario "kelp serve takes over from a paused gateway" on_one_filer takeover gateway kelp --take-over
scenario "a gateway stands by for kelp serve" on_one_filer standby kelp gateway
echo "$passed passed, $failed failed"
((failed == 0))
