# Sourced by scripts that need a running broker.
#
# with_broker NAME COMMAND [ARG…]   starts a broker of that name on free ports, its data in build/brokers/NAME (emptied),
#                                   runs COMMAND ARG… HOST:PORT, ends the broker, and gives COMMAND's status
#
#   weed                 Kelp in weed, records in its filer
#   alone                kelp serve on a directory
#   alone-filer          kelp serve on a filer
#   alone-suites         kelp serve on a directory, with what tests/suites/README.md asks for
#   weed-suites          Kelp in weed, with the same
#   memory-host          the Go in-memory host of kelp_storage
#   memory-host-dynamic  the same, linked with an installed libkelp.so

# The first of COUNT (1) free ports in a row.
free_port() { # [COUNT]
  python3 - "${1:-1}" <<'P'
import random, socket, sys
while True:
    sockets, first = [], random.randrange(20000, 32000)
    try:
        for port in range(first, first + int(sys.argv[1])):
            sockets.append(socket.socket())
            sockets[-1].bind(("127.0.0.1", port))
    except OSError:
        continue
    print(first)
    break
P
}

# The command that runs a broker in the foreground.
broker_command() { # NAME PORT DATA
  case $1 in
  weed) echo "PORT=$2 DATA=$3 scripts/run.sh" ;;
  alone) echo "target/release/kelp serve --listen 127.0.0.1:$2 --data $3" ;;
  alone-filer) echo "tests/weed.sh alone $3 $2" ;;
  alone-suites)
    echo "target/release/kelp serve --data $3 --listen 127.0.0.1:$2 --advertise localhost:$2" \
      "--listen 127.0.0.1:$(($2 + 3)) --advertise 127.0.0.1:$(($2 + 4))" \
      "--set num.partitions=4 --set group.initial.rebalance.delay.ms=0 --set group.min.session.timeout.ms=1000"
    ;;
  weed-suites)
    echo "PORT=$2 DATA=$3 SET='advertised.listeners=PLAINTEXT://localhost:$2" \
      "num.partitions=4 group.initial.rebalance.delay.ms=0 group.min.session.timeout.ms=1000' scripts/run.sh"
    ;;
  memory-host) echo "build/memory-host -listen 127.0.0.1:$2" ;;
  memory-host-dynamic) echo "LD_LIBRARY_PATH=build/install/lib build/memory-host-dynamic -listen 127.0.0.1:$2" ;;
  *) echo "no broker '$1'" >&2; return 1 ;;
  esac
}

# Waits until something listens at 127.0.0.1:PORT, at most SECONDS, while PID lives.
await_port() { # PORT SECONDS PID
  local end=$((SECONDS + $2))
  until (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; do
    ((SECONDS < end)) && kill -0 "$3" 2>/dev/null || return 1
    sleep 0.1
  done
}

with_broker() { # NAME COMMAND [ARG…]
  local name=$1 port data log command pid status
  shift
  # The suites use those behind it as well.
  port=$(free_port 10) data=build/brokers/$name log=build/brokers/$name.log
  rm -rf "$data" && mkdir -p "$data"
  command=$(broker_command "$name" "$port" "$data") || return 1
  # A group of its own, so that all its processes can be ended.
  setsid bash -c "exec env $command" >"$log" 2>&1 </dev/null &
  pid=$!
  if await_port "$port" 120 "$pid"; then
    "$@" "127.0.0.1:$port"
    status=$?
  else
    echo "$name did not start:" && tail -n 20 "$log"
    status=1
  fi
  # A broker that ended by itself has failed, whatever the tests say.
  kill -TERM "$pid" 2>/dev/null || { echo "$name ended during the tests:"; tail -n 20 "$log"; status=1; }
  wait "$pid"
  kill -KILL -- "-$pid" 2>/dev/null
  return "$status"
}
