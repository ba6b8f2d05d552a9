# Sourced: setup_CLIENT CLIENT puts what a client needs into $build, where it is not yet. kcat alone is Debian's package, and needs root once.
# $clients is this folder.

needs() { command -v "$1" >/dev/null || { echo "$1 is missing; it is needed for the client $2" >&2; exit 1; }; }

setup_kcat() {
  command -v kcat >/dev/null && return
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq kcat >&2
}
setup_python() {
  local made=$build/venv/requirements.txt from=$clients/python/requirements.txt
  cmp -s "$from" "$made" && return
  python3 -m venv --clear "$build/venv" || { echo "python3 cannot make a venv (Debian: python3-venv)" >&2; exit 1; }
  "$build/venv/bin/pip" install -q -r "$from" >&2
  cp "$from" "$made"
}
setup_confluent-kafka-python() { setup_python; }
setup_kafka-python() { setup_python; }
setup_aiokafka() { setup_python; }
setup_go() {
  needs go "$1"
  (cd "$clients/go" && CGO_ENABLED=0 go build -o "$build/go-adapter" . && CGO_ENABLED=0 go build -o "$build/go-group-member" ./groups) >&2
}
setup_kafka-go() { setup_go kafka-go; }
setup_sarama() { setup_go sarama; }
setup_franz-go() { setup_go franz-go; }
setup_java() {
  local made=$build/java/pom.xml from=$clients/java/pom.xml
  needs java java
  cmp -s "$from" "$made" && return
  needs mvn java
  rm -rf "$build/java"
  mkdir -p "$build/java"
  mvn -q -B -f "$from" dependency:copy-dependencies -DoutputDirectory="$build/java/lib" >"$build/java/maven.log" 2>&1 || { cat "$build/java/maven.log" >&2; exit 1; }
  cp "$from" "$made"
}
setup_kafkajs() {
  local made=$build/node/package-lock.json from=$clients/groups/members
  needs npm kafkajs
  cmp -s "$from/package-lock.json" "$made" && return
  mkdir -p "$build/node"
  cp "$from/package.json" "$build/node"
  cp "$from/package-lock.json" "$made"
  (cd "$build/node" && npm ci --silent --no-audit --no-fund >&2) || { rm -f "$made"; exit 1; }
}
