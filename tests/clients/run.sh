#!/usr/bin/env bash
# run.sh HOST:PORT [CLIENT...]: the tests of client libraries against a broker (README.md). Without names, all of them:
# kcat confluent-kafka-python kafka-python kafka-go sarama franz-go java old
# `old` are all that speak as one of an old release would; CLIENT@LEVEL, as old.py names them, is one of these.
#
# What the clients need is put into build/clients of the project (setup.sh).
set -euo pipefail
all=(kcat confluent-kafka-python kafka-python kafka-go sarama franz-go java old)
here=$(cd "$(dirname "$0")" && pwd)
clients=$here
build=${CLIENTS_BUILD:-$here/../../build/clients}
. "$clients/setup.sh"
usage() { sed -n '2,4s/^# //p' "$0"; exit 2; }

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
