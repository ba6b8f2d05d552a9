#!/bin/sh
# Installs libkelp, shared and static, with its header and pkg-config file below PREFIX.
#
#   scripts/install.sh PREFIX        with DESTDIR set, below $DESTDIR/PREFIX
set -eu

if [ $# -ne 1 ]; then
    echo "usage: $0 PREFIX" >&2
    exit 2
fi
case $1 in
/*) prefix=$1 ;;
*) prefix=$PWD/$1 ;;
esac
into=${DESTDIR:-}$prefix
cd "$(dirname "$0")/.."

# Cargo gives a library of several kinds no link-time optimization, so each kind is built alone.
# The optimized archive is what Go links too.
cargo rustc --release --lib --crate-type cdylib
cargo rustc --release --lib --crate-type staticlib

version=$(cargo pkgid | sed 's/.*[#@]//')
# The number in build.rs: a program that was linked with it runs with every library that has it.
soname=$(sed -n 's/.*-soname,\(libkelp\.so\.[0-9]*\).*/\1/p' build.rs)

install -d "$into/lib/pkgconfig" "$into/include"
install -m 755 target/release/libkelp.so "$into/lib/libkelp.so.$version"
ln -sf "libkelp.so.$version" "$into/lib/$soname"
ln -sf "$soname" "$into/lib/libkelp.so"
install -m 644 target/release/libkelp.a "$into/lib/libkelp.a"
install -m 644 include/kelp.h "$into/include/kelp.h"
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" kelp.pc.in > "$into/lib/pkgconfig/kelp.pc"
chmod 644 "$into/lib/pkgconfig/kelp.pc"
