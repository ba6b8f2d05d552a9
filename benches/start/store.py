#!/usr/bin/env python3
"""store.py DIR PARTITIONS GIB [ENTRIES]: makes a directory for `kelp serve --data` that holds GIB of log.

The log is spread over PARTITIONS in topics of 1,000, each partition's over ENTRIES (10) ranges in segments of about 64 MiB. What a start
reads is as a broker writes it (docs/object-log.md): metadata snapshot, checkpoint with entries and one producer for each partition,
and the index of each range. The batches are holes in the files: they take no room, and cannot be read."""

import os
import struct
import sys
import time
import uuid

SEGMENT_BYTES, CHUNK_BYTES, BATCH_RECORDS = 64 << 20, 256 << 10, 100
BROKER, EPOCH, NONCE = 1, 1, 7
FENCE, SEGMENT, CHECKPOINT, SNAPSHOT = 2, 3, 4, 6
TOPIC_PARTITIONS = 1000


def crc_tables():
    tables = [[0] * 256 for _ in range(8)]
    for n in range(256):
        crc = n
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        tables[0][n] = crc
    for n in range(256):
        for k in range(1, 8):
            tables[k][n] = tables[0][tables[k - 1][n] & 255] ^ tables[k - 1][n] >> 8
    return tables


TABLES = crc_tables()


def crc32c(data, crc=0):
    """Eight bytes at a time, as there is nothing for it in Python's own library."""
    t0, t1, t2, t3, t4, t5, t6, t7 = TABLES
    crc ^= 0xFFFFFFFF
    whole = len(data) & ~7
    for low, high in struct.iter_unpack("<II", data[:whole]):
        low ^= crc
        crc = (t7[low & 255] ^ t6[low >> 8 & 255] ^ t5[low >> 16 & 255] ^ t4[low >> 24]
               ^ t3[high & 255] ^ t2[high >> 8 & 255] ^ t1[high >> 16 & 255] ^ t0[high >> 24])
    for byte in data[whole:]:
        crc = t0[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def sealed(kind, epoch, number, body, checked=True, length=None):
    head = struct.pack(">4sHHIQQQ", b"KELP", 1, kind, epoch, number, NONCE, len(body) if length is None else length)
    crc = crc32c(body, crc32c(head)) if checked else crc32c(head)
    return head + struct.pack(">I", crc) + body


def write(key, parts):
    """Parts are bytes, or a number of bytes that are a hole."""
    path = os.path.join(directory, "objects", key)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        for part in parts:
            file.seek(part, os.SEEK_CUR) if isinstance(part, int) else file.write(part)
        file.truncate()


def text(value):
    return struct.pack(">I", len(value)) + value.encode()


directory, partitions, gib = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
entries = int(sys.argv[4]) if len(sys.argv) > 4 else 10
began, now = time.time(), int(time.time() * 1000)
ids = [uuid.uuid4().bytes for _ in range(-(-partitions // TOPIC_PARTITIONS))]
all_partitions = [(ids[n // TOPIC_PARTITIONS], n % TOPIC_PARTITIONS) for n in range(partitions)]
range_bytes = int(gib * (1 << 30) / partitions / entries)
range_records = max(1, range_bytes // CHUNK_BYTES + 1) * BATCH_RECORDS

# Segments, each with the same range of several partitions, as the rounds of tiering make them.
ranges = {partition: [] for partition in all_partitions}
count = 0
for n in range(entries):
    place, members = 40, []
    for i, partition in enumerate(all_partitions):
        members.append((partition, place))
        place += range_bytes
        if place < SEGMENT_BYTES and i + 1 < partitions:
            continue
        count += 1
        indexes = bytearray()
        for (topic, index), start in members:
            base = n * range_records
            chunks = [(base + at // CHUNK_BYTES * BATCH_RECORDS, now, start + at, min(CHUNK_BYTES, range_bytes - at), 0)
                      for at in range(0, range_bytes, CHUNK_BYTES)]
            body = topic + struct.pack(">iqqI", index, base, base + range_records, len(chunks))
            body += b"".join(struct.pack(">qqQII", *chunk) for chunk in chunks)
            body += struct.pack(">I", crc32c(body))
            ranges[topic, index].append((base, base + range_records, EPOCH, count, place + len(indexes), len(body), range_bytes, now, now))
            indexes += body
        head = sealed(SEGMENT, EPOCH, count, b"", checked=False, length=place - 40 + len(indexes))
        write(f"segment/{BROKER}/{EPOCH:010}-{count:010}", [head, place - 40, bytes(indexes)])
        place, members = 40, []

body = bytearray(struct.pack(">IQI", EPOCH, 0, partitions))
for n, (topic, index) in enumerate(sorted(all_partitions)):
    end = entries * range_records
    body += topic + struct.pack(">iqqqI", index, 0, end, 0, 1) + struct.pack(">iq", EPOCH, 0)
    body += struct.pack(">IqhB", 1, n, 0, 5)
    for batch in range(5):
        base = end - (5 - batch) * 10
        body += struct.pack(">iiqqq", base, base + 9, base, base + 9, now)
    body += struct.pack(">I", entries) + b"".join(struct.pack(">qqIQQIQqq", *entry) for entry in ranges[topic, index])
write(f"checkpoint/{BROKER}/{EPOCH:010}-{1:010}", [sealed(CHECKPOINT, EPOCH, 1, bytes(body))])
checkpoint_bytes = len(body)

body = struct.pack(">qQ", partitions, 0) + text("start") + struct.pack(">II", 0, len(ids))
for n, topic in enumerate(ids):
    body += topic + struct.pack(">i", min(TOPIC_PARTITIONS, partitions - n * TOPIC_PARTITIONS)) + text(f"many-{n}") + struct.pack(">I", 0)
write(f"metadata/snapshot/{len(ids):020}", [sealed(SNAPSHOT, 0, len(ids), body)])

print(f"{gib:g} GiB in {partitions} partitions: {count} segments, a checkpoint of {checkpoint_bytes / 1e6:.1f} MB, made in {time.time() - began:.0f} s")
