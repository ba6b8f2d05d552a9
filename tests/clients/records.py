"""The records that every client sends and must read back, and the lines in which they travel between check.py and the adapters.

A line has the partition, offset, timestamp in ms, key and value of a record, then name and value of each header, with tabs between them.
Byte strings are base64; null is `-`.
"""
import base64
from typing import NamedTuple

COUNT = 10_000
PARTITIONS = 3
WORDS = b"kelp bull-kelp eelgrass sargassum dulse laver wakame kombu "


class Record(NamedTuple):
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def line(self):
        fields = [str(self.partition), str(self.offset), str(self.timestamp), encode(self.key), encode(self.value)]
        for name, value in self.headers:
            fields += [encode(name.encode()), encode(value)]
        return "\t".join(fields)


def parse(line):
    partition, offset, timestamp, key, value, *headers = line.rstrip("\n").split("\t")
    pairs = zip(headers[::2], headers[1::2], strict=True)
    return Record(int(partition), int(offset), int(timestamp), decode(key), decode(value),
                  tuple((decode(name).decode(), decode(value)) for name, value in pairs))


def encode(data):
    return "-" if data is None else base64.b64encode(data).decode()


def decode(field):
    return None if field == "-" else base64.b64decode(field)


def read(path):
    with open(path, encoding="ascii") as lines:
        return [parse(line) for line in lines]


def write(path, records):
    with open(path, "w", encoding="ascii") as out:
        out.writelines(record.line() + "\n" for record in records)


def make(start_ms, count=COUNT, partitions=PARTITIONS, shape=None):
    """Records that mix everything a record may hold. `shape` gives (key, value, headers) for the number of a record and its partition."""
    ends = [0] * partitions
    made = []
    for number in range(count):
        partition = number // 7 % partitions
        key, value, headers = (shape or anything)(number, partition)
        # The timestamps go back and forth within a batch: its deltas must be allowed to be negative.
        timestamp = start_ms + number * 3 - number % 10 * 7
        made.append(Record(partition, ends[partition], timestamp, key, value, headers))
        ends[partition] += 1
    return made


def text(number):
    """200 bytes that compress well and differ from record to record."""
    return (b"%08d " % number + WORDS * 4)[:200]


def anything(number, _partition):
    key = (None, b"", b"key-%d" % number, b"\x00\xff\t\n", b"key-%d" % (number % 50))[number % 5]
    value = {3: None, 5: b"", 7: bytes(range(100)) * 2}.get(number % 16, text(number))
    headers = (
        (),
        (("trace", b"%d" % number),),
        (("again", b"1"), ("again", b"2"), ("other", b"\x00\xff"), ("again", b"1")),
        (("null", None), ("empty", b""), ("größe", "größer".encode())),
    )[number % 4]
    return key, value, headers


def what_kafka_python_can(number, partition):
    key, value, headers = anything(number, partition)
    return key, text(number) if key is None and value is None else value, tuple((name, value or b"") for name, value in headers)


def what_kcat_can(number, partition):
    """Text without tabs and newlines; the headers of a partition are all the same; null (partition 0) or empty (the others), not both."""
    nothing = None if partition == 0 else b""
    key = (None, nothing, b"key-%d" % number)[number % 3]
    value = text(number)
    if number % 8 == 3:
        key, value = b"key-%d" % number, nothing  # kcat skips a line without anything
    headers = (
        (),
        (("again", b"1"), ("again", b"2"), ("other", b"x"), ("again", b"1")),
        (("null", None), ("empty", b""), ("größe", "größer".encode())),
    )[partition]
    return key, value, headers
