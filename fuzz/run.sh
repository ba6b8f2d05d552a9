#!/usr/bin/env bash
# run.sh [TARGET…]: fuzzes every target, or the named ones, for a minute each (FUZZ_SECONDS). What is found goes on
# from run to run in corpus/; a failing input is kept in artifacts/ and fails the run. The last line counts.
set -uo pipefail
cd "$(dirname "$0")"
# Sanitizers are switches of nightly compilers only.
export RUSTC_BOOTSTRAP=1
logs=../build/fuzz
mkdir -p "$logs"

cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz || exit 1
cargo fuzz build --fuzz-dir . || exit 1

targets=("$@")
((${#targets[@]})) || mapfile -t targets < <(cargo fuzz list --fuzz-dir .)
passed=0 failed=0
for target in "${targets[@]}"; do
  mkdir -p "corpus/$target"
  if cargo fuzz run --fuzz-dir . "$target" "corpus/$target" "seeds/$target" -- \
    -max_total_time="${FUZZ_SECONDS:-60}" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=256 \
    -print_final_stats=1 >"$logs/$target.log" 2>&1; then
    passed=$((passed + 1)) outcome=passed
  else
    failed=$((failed + 1)) outcome=FAILED
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$logs/$target.log")
  echo "$target: $outcome, ${runs:-no} runs (build/fuzz/$target.log)"
done
echo "fuzz: $passed passed, $failed failed"
((failed == 0))
