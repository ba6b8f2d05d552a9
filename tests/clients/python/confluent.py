"""The adapter of confluent-kafka-python (librdkafka). The commands are those of ../go/main.go."""
import sys

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import records
from adapter_loop import serve

DEADLINE_S = 45
broker, *level = sys.argv[1:]
settings = {"bootstrap.servers": broker}
if level:
    settings |= {"api.version.request": False, "broker.version.fallback": level[0]}
admin = AdminClient(settings)


def create(topic, partitions):
    admin.create_topics([NewTopic(topic, int(partitions), 1)])[topic].result(DEADLINE_S)


def delete(topic):
    admin.delete_topics([topic])[topic].result(DEADLINE_S)


def produce(topic, codec, path):
    producer = Producer(settings | {
        "enable.idempotence": not level, "max.in.flight": 1 if level else 5, "acks": "all", "compression.type": codec,
        "batch.size": 32768, "linger.ms": 20, "message.timeout.ms": DEADLINE_S * 1000,
    })
    failures = []

    def acked(record):
        def check(error, message):
            if error:
                failures.append(error.str())
            elif message.offset() != record.offset:
                failures.append(f"partition {record.partition}: record {record.offset} was acked at offset {message.offset()}")
        return check

    for record in records.read(path):
        producer.produce(topic, partition=record.partition, timestamp=record.timestamp, key=record.key, value=record.value,
                         headers=list(record.headers), on_delivery=acked(record))
        producer.poll(0)
    if left := producer.flush(DEADLINE_S):
        failures.append(f"{left} records without an answer after {DEADLINE_S} s")
    if failures:
        raise RuntimeError(failures[0])


def consume(topic, path, *spans):
    # librdkafka wants a group id; nothing is committed and no group is joined.
    consumer = Consumer(settings | {"group.id": "none", "enable.auto.commit": False, "auto.offset.reset": "error"})
    wanted = [tuple(map(int, span.split(":"))) for span in spans]
    consumer.assign([TopicPartition(topic, partition, start) for partition, start, _ in wanted])
    missing, got = sum(count for _, _, count in wanted), []
    while missing > len(got):
        messages = consumer.consume(min(1000, missing - len(got)), DEADLINE_S)
        if not messages:
            raise RuntimeError(f"no more than {len(got)} of {missing} records in {DEADLINE_S} s")
        for message in messages:
            if message.error():
                raise KafkaException(message.error())
            kind, timestamp = message.timestamp()
            timestamp = -1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp
            got.append(records.Record(message.partition(), message.offset(), timestamp, message.key(), message.value(),
                                      tuple(message.headers() or ())))
    consumer.close()
    records.write(path, got)


serve(create, produce, consume, delete)
