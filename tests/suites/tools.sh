# Sourced by the suites of Kafka's own tools, after lib.sh: runs the tools in one JVM (ToolServer.java), and checks what they print.
classpath=$("$HERE/../peers/apache-kafka.sh" classpath)
suite=$(basename "$0" .sh)
tmp=$(mktemp -d)

coproc SERVER { exec java -Xmx512m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$classpath" "$HERE/ToolServer.java" 2>"$LOGS/$suite.err"; }
members=() # processes that a suite started
trap 'kill "$SERVER_PID" "${members[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT
: >"$LOGS/$suite.log"

# tool CLASS ARGUMENT...: runs it with the file $input as its standard input; what it prints comes to $tmp/out.
input=/dev/null
tool() {
  local status end IFS=$'\t'
  printf '%s\n' "$input"$'\t'"$tmp/out"$'\t60\t'"org.apache.kafka.tools.$*" >&"${SERVER[1]}" && read -r status <&"${SERVER[0]}" && read -r end <&"${SERVER[0]}" || return 125
  { echo "== $* ($status)"; cat "$tmp/out"; } >>"$LOGS/$suite.log"
  return "$status"
}
at=(--bootstrap-server "$BROKER")
groups() { tool consumer.group.ConsumerGroupCommand "${at[@]}" "$@"; }
console() { tool consumer.ConsoleConsumer "${at[@]}" "$@"; }
topics() { tool TopicCommand "${at[@]}" "$@"; }
# The last lines of what a tool printed, under the check that did not like it.
shown() { [[ $1 == 0 ]] || { echo "   wanted: $2"; grep -v '^\s*at ' "$tmp/out" | grep . | tail -n 5 | cut -c1-300 | sed 's/^/   /'; }; }

# expect NAME REGEX COMMAND...: the tool prints what REGEX matches. Several of these tools end with 0 when they have failed.
expect() { "${@:3}"; grep -qE -- "$2" "$tmp/out"; set -- "$1" "$2" $?; check "$1" "$3"; shown "$3" "$2"; }
# expect_not NAME REGEX COMMAND...: the tool ends with 0, and prints nothing that REGEX matches.
expect_not() { "${@:3}" && ! grep -qE -- "$2" "$tmp/out"; set -- "$1" "$2" $?; check "$1" "$3"; shown "$3" "not: $2"; }
# equal NAME WANTED GOT
equal() { [[ $3 == "$2" ]]; set -- "$@" $?; check "$1" "$4"; shown "$4" "$2, got: $3"; }
# eventually REGEX COMMAND...: repeats a tool until it prints what REGEX matches, at most 40 times.
eventually() {
  local n
  for n in {1..40}; do "${@:2}"; grep -qE -- "$1" "$tmp/out" && return; sleep 0.25; done
}
