#!/usr/bin/env bash
# run.sh HOST:PORT [CLIENT...]                      groups of client libraries against a broker (README.md)
# run.sh --restart COMMAND HOST:PORT [CLIENT...]    starts the broker by COMMAND, kills it under the groups, and starts it again
# Without names, all of them: java confluent-kafka-python franz-go sarama kafka-go kafka-python aiokafka kafkajs
set -euo pipefail
all=(java confluent-kafka-python franz-go sarama kafka-go kafka-python aiokafka kafkajs)
here=$(cd "$(dirname "$0")" && pwd)
clients=$here/..
build=${CLIENTS_BUILD:-$clients/../../build/clients}
. "$clients/setup.sh"
usage() { sed -n '2,4s/^# //p' "$0"; exit 2; }

check=check.py command=()
[[ ${1:-} == --restart ]] && check=restart.py command=("${2:-}") && shift 2
[[ ${1:-} == *:* ]] || usage
broker=$1
shift
[[ $# -gt 0 ]] || set -- "${all[@]}"
for client; do [[ " ${all[*]} " == *" $client "* ]] || usage; done
needs python3 "$1"
mkdir -p "$build"
build=$(cd "$build" && pwd)
for client; do
  "setup_$client" "$client"
  [[ $client != java ]] || javac -cp "$build/java/lib/*" -d "$build/java-group" "$here/members/Member.java"
done
export PYTHONPATH=$clients/../cases NODE_PATH=$build/node/node_modules
exec python3 "$here/$check" "$build" "$broker" "${command[@]}" "$@"
