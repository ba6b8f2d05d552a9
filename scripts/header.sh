#!/bin/sh
# Writes include/kelp.h anew from src/ffi/. A test compares the two.
set -eu
cd "$(dirname "$0")/.."

out=$(cargo check --lib --features header --message-format=json --quiet |
    sed -n '/"reason":"build-script-executed"/ { /[/#]kelp[@#]/ s/.*"out_dir":"\([^"]*\)".*/\1/p; }')
cp "$out/kelp.h" include/kelp.h
