#!/usr/bin/env bash
# conformance.sh [PART…]: the long suites, or the named parts. Prints for each part `NAME: N passed, N failed`.
#
#   fuzz     every target of fuzz/ for a minute (FUZZ_SECONDS)
#   suites   client libraries' own tests of groups, and Kafka's (15 minutes, and what they fetch)
set -uo pipefail
cd "$(dirname "$0")/.."
all=(fuzz suites)
parts=("$@")
((${#parts[@]})) || parts=("${all[@]}")
scripts/need.sh rust c c++ || exit 1

. scripts/brokers.sh

part_fuzz() { fuzz/run.sh; }
part_suites() {
  scripts/need.sh rust go python java && cargo build --locked --release --features cli && with_broker suites run_suites
}
run_suites() { SUITES_DIR=$PWD/build/suites tests/suites/kelp.sh "localhost:${1##*:}"; }

bad=0
for part in "${parts[@]}"; do
  declare -F "part_$part" >/dev/null || { echo "conformance.sh: no part '$part'" >&2; exit 2; }
  echo "== $part"
  "part_$part" || bad=1
done
exit $bad
