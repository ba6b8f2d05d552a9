#!/usr/bin/env bash
# run.sh HOST:PORT [CLIENT...]: the tests of client libraries against a broker (README.md). Without names, all of them:
# kcat confluent-kafka-python kafka-python kafka-go sarama franz-go java old
# `old` are all that speak as one of an old release would; CLIENT@LEVEL, as old.py names them, is one of these.
#
# What the clients need is put into build/clients of the project, but for kcat, which is Debian's package and needs root once.
set -euo pipefail
all=(kcat confluent-kafka-python kafka-python kafka-go sarama franz-go java old)
here=$(cd "$(dirname "$0")" && pwd)
build=${CLIENTS_BUILD:-$here/../../build/clients}
usage() { sed -n '2,4s/^# //p' "$0"; exit 2; }

needs() { command -v "$1" >/dev/null || { echo "$1 is missing; it is needed for the client $2" >&2; exit 1; }; }

setup_kcat() {
  command -v kcat >/dev/null && return
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq kcat >&2
}
setup_python() {
  local made=$build/venv/requirements.txt from=$here/python/requirements.txt
  cmp -s "$from" "$made" && return
  python3 -m venv --clear "$build/venv" || { echo "python3 cannot make a venv (Debian: python3-venv)" >&2; exit 1; }
  "$build/venv/bin/pip" install -q -r "$from" >&2
  cp "$from" "$made"
}
setup_confluent-kafka-python() { setup_python; }
setup_kafka-python() { setup_python; }
setup_go() {
  needs go "$1"
  (cd "$here/go" && CGO_ENABLED=0 go build -o "$build/go-adapter" .) >&2
}
setup_kafka-go() { setup_go kafka-go; }
setup_sarama() { setup_go sarama; }
setup_franz-go() { setup_go franz-go; }
setup_java() {
  local made=$build/java/pom.xml from=$here/java/pom.xml
  needs java java
  cmp -s "$from" "$made" && return
  needs mvn java
  rm -rf "$build/java"
  mkdir -p "$build/java"
  mvn -q -B -f "$from" dependency:copy-dependencies -DoutputDirectory="$build/java/lib" >"$build/java/maven.log" 2>&1 || { cat "$build/java/maven.log" >&2; exit 1; }
  cp "$from" "$made"
}

setup_old() {
  setup_python
  setup_go "$1"
}

[[ ${1:-} == *:* ]] || usage
broker=$1
shift
[[ $# -gt 0 ]] || set -- "${all[@]}"
for client; do [[ $client == *@* || " ${all[*]} " == *" $client "* ]] || usage; done
needs python3 "$1"
mkdir -p "$build"
build=$(cd "$build" && pwd)
for client; do
  [[ $client != *@* ]] || client=old
  "setup_$client" "$client"
done
export PYTHONPATH=$here:$here/../cases
exec python3 "$here/check.py" "$build" "$broker" "$@"
