#!/usr/bin/env bash
# filer.sh: the tests of src/store/objects/filer against filers that it starts: one, and one whose volume servers ask for tokens. Expects build/weed.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/brokers.sh
bad=0
for security in "" '[jwt.signing]
key = "write"
expires_after_seconds = 4
[jwt.signing.read]
key = "read"
expires_after_seconds = 4'; do
  data=$PWD/build/filer port=$(free_port 7)
  rm -rf "$data" && mkdir -p "$data"
  echo "$security" >"$data/security.toml"
  tests/weed.sh server "$data" "$port" >"$data/log" 2>&1 &
  server=$!
  if await_port $((port + 6)) 120 "$server"; then
    env KELP_TEST_FILER=127.0.0.1:$((port + 5)).$((port + 6)) ${security:+KELP_TEST_TOKENS=1} \
      cargo test --locked --features cli,header --lib store::objects::filer -- --ignored --nocapture || bad=1
  else
    tail -n 20 "$data/log" && bad=1
  fi
  kill -TERM "$server" && wait "$server"
done
exit $bad
