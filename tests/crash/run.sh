#!/usr/bin/env bash
# run.sh [FLAGS] restart ADDRESS COMMAND                       kills the broker twice under load, and starts it again
# run.sh [FLAGS] torture ADDRESS COMMAND                       kills the broker at random moments under several loads
# run.sh [FLAGS] memory ADDRESS COMMAND                        what a broker takes in memory, and that it does not grow
# run.sh [FLAGS] takeover ADDRESS COMMAND ADDRESS COMMAND      pauses the first under load, the second takes over, the first wakes
# run.sh [FLAGS] standby ADDRESS COMMAND ADDRESS COMMAND       the second waits beside the first, which is killed under load
#
# A COMMAND is a line for the shell that starts a broker in the foreground, which then serves on ADDRESS (README.md).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${CRASH_BUILD:-$here/../../build/crash}
command -v go >/dev/null || { echo "go is missing" >&2; exit 1; }
[[ $# -gt 0 ]] || { sed -n '2,6s/^# //p' "$0"; exit 2; }
mkdir -p "$build"
build=$(cd "$build" && pwd)
(cd "$here" && CGO_ENABLED=0 go build -o "$build/crash" .) >&2
exec "$build/crash" -logs "$build" "$@"
