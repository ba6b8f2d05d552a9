#!/usr/bin/env bash
# all.sh: the scenarios of README.md on Kelp: stand-alone and in weed it is killed and started again; of two gateways on one filer, one takes
# over from the other. Expects what `scripts/test.sh build` made. Ends with `N passed, N failed`.
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

# Two gateways on the filer of one SeaweedFS.
two_gateways() { # SCENARIO [FLAG OF THE SECOND]
  local data=$PWD/build/crash/$1 port server status
  rm -rf "$data" && mkdir -p "$data"
  # SeaweedFS has the first seven, the gateways the last two.
  port=$(free_port 9)
  tests/weed.sh server "$data" "$port" >"$data/server.log" 2>&1 &
  server=$!
  await_port $((port + 5)) 60 "$server" || { tail -n 20 "$data/server.log"; return 1; }
  tests/crash/run.sh "$1" "127.0.0.1:$((port + 7))" "tests/weed.sh gateway $data $port $((port + 7))" \
    "127.0.0.1:$((port + 8))" "tests/weed.sh gateway $data $port $((port + 8)) ${2:-}"
  status=$?
  kill -TERM "$server" && wait "$server"
  return $status
}

scenario "kelp serve is killed twice" kills restart alone 2
scenario "weed is killed twice" kills restart weed 2
scenario "kelp serve is killed at any moment" kills torture alone 3
scenario "a paused gateway is taken over" two_gateways takeover -takeover
scenario "a second gateway stands by" two_gateways standby
echo "$passed passed, $failed failed"
((failed == 0))
