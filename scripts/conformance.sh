#!/usr/bin/env bash
# conformance.sh [PART…]: the long suites, or the named parts. Prints for each part `NAME: N passed, N failed`.
#
#   fuzz     every target of fuzz/ for a minute (FUZZ_SECONDS)
set -uo pipefail
cd "$(dirname "$0")/.."
all=(fuzz)
parts=("$@")
((${#parts[@]})) || parts=("${all[@]}")
scripts/need.sh rust c c++ || exit 1

part_fuzz() { fuzz/run.sh; }

bad=0
for part in "${parts[@]}"; do
  declare -F "part_$part" >/dev/null || { echo "conformance.sh: no part '$part'" >&2; exit 2; }
  echo "== $part"
  "part_$part" || bad=1
done
exit $bad
