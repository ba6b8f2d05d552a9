#!/usr/bin/env bash
# need.sh rust go c c++ python java node: says what of these is missing on this machine, and how it is called.
set -euo pipefail
missing=()
has() { command -v "$1" >/dev/null 2>&1; }
for tool; do
  case $tool in
  rust) has cargo || missing+=("Rust 1.95 or newer (cargo)") ;;
  go) has go || missing+=("Go 1.26 or newer (go)") ;;
  c) has cc || missing+=("a C compiler (cc)") ;;
  c++) has c++ || missing+=("a C++ compiler (c++)") ;;
  python) has python3 || missing+=("Python 3.11 or newer (python3)") ;;
  java)
    has javac || missing+=("a JDK 17 or newer (javac)")
    has mvn || missing+=("Maven (mvn)")
    ;;
  node) has npm || missing+=("Node 20 or newer (npm)") ;;
  *) echo "need.sh: unknown tool $tool" >&2; exit 2 ;;
  esac
done
((${#missing[@]} == 0)) && exit 0
printf 'Kelp needs what is not on this machine:\n' >&2
printf '  %s\n' "${missing[@]}" >&2
exit 1
