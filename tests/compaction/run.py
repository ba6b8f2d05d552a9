#!/usr/bin/env python3
"""run.py KELP: Kafka's kafka-verifiable-producer fills a compacted topic with repeating keys, ten times; each time the log is rewritten until
nothing is left of what came before. All that is read must be what was acknowledged, at its offset, with the last value of every key; also after a
kill -9 and a restart. KELP is the program; Apache Kafka's tools are fetched on first use."""
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "cases"))
from kwire import Fail, K, want  # noqa: E402

TURNS, RECORDS, KEYS, RATE = 10, 3000, 97, 1000
# A loaded machine takes its time; nothing is measured.
PATIENCE_S = 120


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(kelp, port, data):
    broker = subprocess.Popen([kelp, "serve", "--listen", f"127.0.0.1:{port}", "--data", data,
                               "--set", "kelp.round.interval.ms=300", "--set", "log.cleaner.backoff.ms=100"])
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


def main(kelp):
    data, port = tempfile.mkdtemp(), free_port()
    broker, k = start(kelp, port, data)
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
        broker, k = start(kelp, port, data)
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
    print(f"compaction: {failed}")
    print("compaction: 0 passed, 1 failed")
    sys.exit(1)
print("compaction: 1 passed, 0 failed")
