#!/usr/bin/env bash
# test.sh [PART…]: all tests, or the named parts, one after the other. Each part's output is shown and also kept
# in build/test/PART.log; the minutes of each part are printed at the end.
#
#   build    weed, kelp, hosts in memory         go       the Go binding, the filer, the gateway
#   lint     formatting, clippy, go vet          cases    reported failures of Kafka servers, on four brokers
#   rust     unit, API, ABI and C host tests     clients  Kafka's client libraries and tools write and read
#   sim      simulations: object log, groups      crash    kill -9, take-over
#   messages every message against Kafka's own classes
#   groups   Kafka's client libraries in groups
#   filer    objects on a filer, from Rust
set -uo pipefail
cd "$(dirname "$0")/.."
all=(build lint rust messages sim go filer cases clients groups crash)
parts=("$@")
((${#parts[@]})) || parts=("${all[@]}")
scripts/need.sh rust go c python java node || exit 1
logs=build/test
mkdir -p "$logs"

. scripts/brokers.sh

part_lint() {
  cargo fmt --check && cargo clippy --all-targets --all-features --locked -- -D warnings &&
    (cd fuzz && cargo fmt --check && check_fuzz) &&
    for module in go-bindings go-bindings/weed tests/clients/go tests/crash tests/messages/kmsg benches/peers; do
      (cd "$module" && test -z "$(gofmt -l . | tee /dev/stderr)" && go vet ./...) || return 1
    done
}
# The path of libFuzzer is for the linker, which is not run; without one it would be compiled, which takes C++.
check_fuzz() { CUSTOM_LIBFUZZER_PATH=/none/libFuzzer.a RUSTC_BOOTSTRAP=1 cargo check --locked --target-dir ../build/fuzz-check; }
part_rust() { cargo test --locked --features cli,header; }
part_messages() { tests/messages/run.sh; }
part_sim() { cargo test --locked --release --features faults --test sim --test sim_metadata --test sim_groups -- --nocapture; }
part_build() {
  # Go does not see that an archive it links has changed: what is there already would stay as it is.
  rm -f build/memory-host build/memory-host-dynamic
  scripts/build-weed.sh && cargo build --locked --release --features cli && scripts/install.sh build/install &&
    (cd go-bindings && go build -o ../build/memory-host ./examples/memory &&
      PKG_CONFIG_PATH=$PWD/../build/install/lib/pkgconfig go build -tags dynamic -o ../build/memory-host-dynamic ./examples/memory)
}
part_go() {
  (cd go-bindings && GODEBUG=cgocheck=1 go test -count=1 -race -v ./...) && (cd go-bindings/weed && go test -count=1 -v ./...)
}

part_filer() { tests/filer.sh; }

# The cases of issue trackers that need what Kelp has so far.
cases=(01 02 03 04 05 06 08 09 10 11 12 13 14 15 16 18 20 21 22 23 24 25 26)
run_cases() { # NAME ADDRESS
  local bad=0 n
  for n in "${cases[@]}"; do
    KW_STRICT=1 timeout 110 python3 tests/cases/"$n"-*.py "$2" || bad=$((bad + 1))
  done
  echo "$1: $((${#cases[@]} - bad)) passed, $bad failed"
  ((bad == 0))
}
part_cases() {
  local bad=0 broker
  for broker in weed alone memory-host; do
    with_broker "$broker" run_cases "cases-on-$broker" || bad=1
  done
  # Those that ask a store for something: all else is the same as above.
  local cases=(03 06 08 11 12 13 14 16 18 26)
  with_broker alone-filer run_cases cases-on-alone-filer || bad=1
  return $bad
}
part_clients() {
  local bad=0
  with_broker weed run_clients || bad=1
  with_broker alone run_clients franz-go || bad=1
  with_broker memory-host run_clients franz-go || bad=1
  with_broker memory-host-dynamic run_clients franz-go || bad=1
  with_broker weed run_tools log-tools || bad=1
  with_broker alone run_tools log-tools || bad=1
  return $bad
}
run_clients() { tests/clients/run.sh "${@: -1}" "${@:1:$#-1}"; }
part_groups() {
  local bad=0 port
  with_broker weed run_groups || bad=1
  with_broker alone run_groups franz-go || bad=1
  with_broker alone run_tools groups-tools || bad=1
  rm -rf build/brokers/groups
  port=$(free_port)
  tests/clients/groups/run.sh --restart "$(broker_command alone "$port" build/brokers/groups)" "127.0.0.1:$port" || bad=1
  return $bad
}
# What Kafka's own tools say.
run_tools() { SUITES_DIR=$PWD/build/suites tests/suites/run.sh "$2" "$1"; }
run_groups() { tests/clients/groups/run.sh "${@: -1}" "${@:1:$#-1}"; }
part_crash() { tests/crash/all.sh; }

passed=() failed=() minutes=()
for part in "${parts[@]}"; do
  declare -F "part_$part" >/dev/null || { echo "test.sh: no part '$part'" >&2; exit 2; }
  echo "== $part"
  start=$SECONDS
  if "part_$part" 2>&1 | tee "$logs/$part.log"; then passed+=("$part"); else failed+=("$part"); fi
  minutes+=("$(printf '%-8s %4.1f min' "$part" "$(awk "BEGIN { print ($SECONDS - $start) / 60 }")")")
done
echo "== minutes"
printf '%s\n' "${minutes[@]}"
((${#failed[@]})) && echo "failed: ${failed[*]}"
echo "parts: ${#passed[@]} passed, ${#failed[@]} failed"
((${#failed[@]} == 0))
