#!/usr/bin/env bash
# build-weed.sh: builds SeaweedFS with Kelp in it, and prints where it is. The first time takes minutes, most of them for SeaweedFS.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/need.sh rust go c
cargo rustc --quiet --locked --release --lib --crate-type staticlib --target-dir target >&2
archive=$(sha256sum target/release/libkelp.a | cut -c1-16)
# Go does not notice that an archive it links has changed, but it does notice another flag.
(cd go-bindings/weed && CGO_ENABLED=1 go build -buildvcs=false -ldflags "-X main.archive=$archive" -o ../../build/weed .) >&2
echo "$PWD/build/weed"
