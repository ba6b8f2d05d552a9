"""The adapter of kcat, a command-line client on librdkafka. The commands are those of ../go/main.go, without create and delete."""
import json
import subprocess
import sys

import records
from adapter_loop import serve

DEADLINE_S = 45
broker = sys.argv[1]


def kcat(*arguments, **more):
    done = subprocess.run(["kcat", "-b", broker, "-q", *arguments], capture_output=True, timeout=DEADLINE_S, **more)
    if done.returncode:
        raise RuntimeError(f"kcat ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def produce(topic, codec, path):
    """One kcat for each partition: partition, headers, and whether nothing is null or empty are options of the whole run."""
    by_partition = {}
    for record in records.read(path):
        by_partition.setdefault(record.partition, []).append(record)
    for partition, sent in by_partition.items():
        options = ["-P", "-t", topic, "-p", str(partition), "-z", codec, "-K", "\t", "-X", "acks=all", "-X", "enable.idempotence=true",
                   "-X", "batch.size=32768", "-X", "linger.ms=20"]
        for name, value in sent[0].headers:
            options += ["-H", name if value is None else f"{name}={value.decode()}"]
        if any(record.value is None for record in sent):
            options.append("-Z")
        kcat(*options, input=b"".join(line(record) for record in sent))


def line(record):
    return (b"" if record.key is None else record.key + b"\t") + (record.value or b"") + b"\n"


def consume(topic, path, *spans):
    got = []
    for span in spans:
        partition, start, count = span.split(":")
        out = kcat("-C", "-t", topic, "-p", partition, "-o", start, "-c", count, "-J")
        got += map(from_json, out.splitlines())
    records.write(path, got)


def from_json(text):
    read = json.loads(text)
    names = read.get("headers", [])
    as_bytes = lambda value: None if value is None else value.encode()
    headers = tuple((name, as_bytes(value)) for name, value in zip(names[::2], names[1::2], strict=True))
    return records.Record(read["partition"], read["offset"], read["ts"], as_bytes(read["key"]), as_bytes(read["payload"]), headers)


serve(produce, consume)
