"""Lets each client speak as one of an old release of Kafka would, and share a topic with a new client. README.md says what is checked.

A client at a level is named CLIENT@LEVEL.
"""
from typing import NamedTuple

import kwire
import records
from compare import CODECS, check_equal, check_stored, stored_batches

NEW_CLIENT = "franz-go"
COUNT = 1_500

LEVELS = {
    "sarama": ("0.8.2.0", "0.9.0.0", "0.10.2.0", "1.0.0", "2.0.0"),
    "franz-go": ("0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.0", "0.10.1", "0.10.2", "0.11.0", "1.0", "1.1",
                 *(f"2.{minor}" for minor in range(9)), *(f"3.{minor}" for minor in range(10)), *(f"4.{minor}" for minor in range(5))),
    "kafka-python": ("0.8.2", "0.9", "0.10"),
    "confluent-kafka-python": ("0.9.0",),
}
NAMES = [f"{client}@{level}" for client, levels in LEVELS.items() for level in levels]

# Kafka has LZ4 since 0.8.2, with a wrong checksum in messages of magic 0. Sarama refuses to use it there, and franz-go does not know the checksum.
LZ4_SINCE = {"sarama": (0, 10), "franz-go": (0, 10)}
ZSTD_SINCE = (2, 1)


class Level(NamedTuple):
    """What a client at a level can do."""
    codecs: list[str]
    has_timestamps: bool
    has_headers: bool

    def keeps(self, record):
        return record._replace(timestamp=record.timestamp if self.has_timestamps else -1, headers=record.headers if self.has_headers else ())


def level_of(name):
    client, level = name.split("@")
    version = tuple(map(int, level.split(".")))
    since = {"lz4": LZ4_SINCE.get(client, (0, 8, 2)), "zstd": ZSTD_SINCE}
    return Level([codec for codec in CODECS if version >= since.get(codec, version)], version >= (0, 10), version >= (0, 11))


def tests_of(name, broker, new):
    level = level_of(name)
    tests = [(codec, lambda old, codec=codec: share_a_topic(old, new, broker, codec)) for codec in level.codecs]
    # Batches of magic 2 are given away as they are: Kafka looks into none to see whether the client knows their codec.
    if name.startswith("franz-go") and not level.has_headers:
        tests.append(("is told that it cannot read zstd", lambda old: is_told_of_zstd(old, new, broker)))
    return tests


def share_a_topic(old, new, broker, codec):
    """The old client writes the first half, the new one the second, and both read everything."""
    k, level, half = kwire.K(broker), level_of(old.name), COUNT // 2
    topic = k.topic(parts=records.PARTITIONS)
    made = records.make(kwire.now() - 60_000, COUNT, shape=lambda number, partition: (old if number < half else new).client.shape(number, partition))
    earlier, later = [level.keeps(record) for record in made[:half]], made[half:]
    old.produce(topic, codec, earlier)
    new.produce(topic, codec, later)
    stored = sorted(earlier + later, key=lambda record: record.partition)
    batches = stored_batches(broker, topic, records.PARTITIONS)
    check_stored(batches, stored, codec, None)

    # The readers begin at the start, inside what the old client sent at once, and inside a batch of the new one.
    counts = [sum(record.partition == partition for record in stored) for partition in range(records.PARTITIONS)]
    starts = [0, 7, counts[2] // 2 + 7]
    spans = [(partition, start, count - start) for partition, (start, count) in enumerate(zip(starts, counts))]
    wanted = [record for record in stored if record.offset >= starts[record.partition]]
    for reader, keeps in ((new, lambda record: record), (old, level.keeps)):
        got = sorted(reader.consume(topic, *spans), key=lambda record: record.partition)
        check_equal(f"{reader.name} read", got, list(map(keeps, wanted)), None)
    k.cleanup()
    return f"{COUNT} records in {sum(map(len, batches))} batches"


def is_told_of_zstd(old, new, broker):
    k = kwire.K(broker)
    topic = k.topic()
    new.produce(topic, "zstd", records.make(kwire.now(), 100, 1))
    failure = old.command("consume", topic, "got", "0:0:100")
    kwire.want("UNSUPPORTED_COMPRESSION_TYPE" in (failure or ""), f"it ended with {failure or 'all records'}")
    k.cleanup()
