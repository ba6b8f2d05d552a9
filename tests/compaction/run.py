#!/usr/bin/env python3
"""run.py alone|weed: Kafka's kafka-verifiable-producer fills a compacted topic with repeating keys, ten times; each time the log is rewritten until
nothing is left of what came before. All that is read must be what was acknowledged, at its offset, with the last value of every key; also after a
kill -9 and a restart. The broker is target/release/kelp on a directory, or build/weed; Apache Kafka's tools are fetched on first use."""
import contextlib
import json
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
sys.path.insert(0, str(here.parent / "cases"))
from kwire import Fail, K, want  # noqa: E402

TURNS, RECORDS, KEYS, RATE = 10, 3000, 97, 1000
# A loaded machine takes its time; nothing is measured.
PATIENCE_S = 120


SETTINGS = ["kelp.round.interval.ms=300", "log.cleaner.backoff.ms=100"]


def free_port():
    """One with six free ones behind it, which SeaweedFS has."""
    while True:
        first = random.randrange(20000, 32000)
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + 7):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first


def start(kind, port, data):
    command = {
        "alone": [root / "target/release/kelp", "serve", "--listen", f"127.0.0.1:{port}", "--data", data, *(word for s in SETTINGS for word in ("--set", s))],
        "weed": [root / "tests/weed.sh", "all", data, str(port), *(f"-mq.kafka.gateway.set={s}" for s in SETTINGS)],
    }[kind]
    broker = subprocess.Popen(command, stderr=subprocess.DEVNULL if kind == "weed" else None)
    end = time.time() + PATIENCE_S
    while True:
        try:
            return broker, K(("127.0.0.1", port))
        except (OSError, Fail):
            want(time.time() < end and broker.poll() is None, "the broker does not start")
            time.sleep(0.2)


def produce(port, topic, first):
    """Lets Kafka's tool write; gives offset, key and value of each record that was acknowledged."""
    tool = [str(here.parent / "peers" / "apache-kafka.sh"), "tool", "org.apache.kafka.tools.VerifiableProducer",
            "--bootstrap-server", f"127.0.0.1:{port}", "--topic", topic, "--max-messages", str(RECORDS),
            "--repeating-keys", str(KEYS), "--throughput", str(RATE), "--acks", "-1", "--value-prefix", str(first)]
    lines = subprocess.run(tool, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()
    sent = [json.loads(line) for line in lines if '"producer_send_success"' in line]
    want(len(sent) == RECORDS, f"{len(sent)} of {RECORDS} records were acknowledged")
    return {record["offset"]: (record["key"].encode(), record["value"].encode()) for record in sent}


def check(k, topic, acked):
    """Reads all that is left. Gives its first offset and the number of records."""
    read = {offset: (key, value) for offset, _, key, value, _ in k.values(topic)}
    for offset, record in read.items():
        want(acked.get(offset) == record, f"at {offset} is {record}, acknowledged was {acked.get(offset)}")
    last = {key: offset for offset, (key, _) in sorted(acked.items())}
    for key, offset in last.items():
        want(offset in read, f"the last record of key {key} at {offset} is gone")
    want(k.offset(topic, -1)["off"] == max(acked) + 1, "the log end moved")
    return min(read), len(read)


def main(kind):
    data, port = tempfile.mkdtemp(), free_port()
    broker, k = start(kind, port, data)
    try:
        topic = k.topic("compacted", cleanup_policy="compact", segment_ms=200, min_cleanable_dirty_ratio="0.01", delete_retention_ms=0)
        acked = {}
        for turn in range(TURNS):
            begin = len(acked)
            acked.update(produce(port, topic, turn))
            end = time.time() + PATIENCE_S
            while True:
                first, count = check(k, topic, acked)
                if first >= begin:
                    break
                want(time.time() < end, f"turn {turn}: offset {first} below {begin} is still there")
                time.sleep(0.2)
            print(f"turn {turn + 1}: {len(acked)} written, {count} left, the first at {first}")
        broker.send_signal(signal.SIGKILL)
        broker.wait()
        broker, k = start(kind, port, data)
        first, count = check(k, topic, acked)
        want(count < RECORDS * 2, f"{count} records are left")
        print(f"after a kill -9: {count} left, the first at {first}")
    finally:
        broker.kill()
        broker.wait()
        shutil.rmtree(data, ignore_errors=True)


try:
    main(sys.argv[1])
except Fail as failed:
    print(f"compaction-on-{sys.argv[1]}: {failed}")
    print(f"compaction-on-{sys.argv[1]}: 0 passed, 1 failed")
    sys.exit(1)
print(f"compaction-on-{sys.argv[1]}: 1 passed, 0 failed")
