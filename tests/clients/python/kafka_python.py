"""The adapter of kafka-python. The commands are those of ../go/main.go."""
import sys
import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

import records
from adapter_loop import serve

DEADLINE_S = 45
broker, *level = sys.argv[1:]
settings = {"bootstrap_servers": broker, "api_version": tuple(map(int, level[0].split("."))) if level else None}


def create(topic, partitions):
    with_admin(lambda admin: admin.create_topics({topic: {"num_partitions": int(partitions), "replication_factor": 1}}))


def delete(topic):
    with_admin(lambda admin: admin.delete_topics([topic]))


def with_admin(act):
    admin = KafkaAdminClient(**settings)
    act(admin)
    admin.close()


def produce(topic, codec, path):
    producer = KafkaProducer(**settings, enable_idempotence=not level, acks="all", compression_type=None if codec == "none" else codec,
                             batch_size=32768, linger_ms=20)
    sent = [(record, producer.send(topic, partition=record.partition, timestamp_ms=record.timestamp, key=record.key, value=record.value,
                                   headers=list(record.headers))) for record in records.read(path)]
    for record, ack in sent:
        offset = ack.get(DEADLINE_S).offset
        if offset != record.offset:
            raise RuntimeError(f"partition {record.partition}: record {record.offset} was acked at offset {offset}")
    producer.close()


def consume(topic, path, *spans):
    consumer = KafkaConsumer(**settings, auto_offset_reset="none")
    wanted = {TopicPartition(topic, partition): (start, count) for partition, start, count in (map(int, span.split(":")) for span in spans)}
    consumer.assign(list(wanted))
    for partition, (start, _) in wanted.items():
        consumer.seek(partition, start)
    missing, got, deadline = sum(count for _, count in wanted.values()), [], time.monotonic() + DEADLINE_S
    while missing > len(got):
        if time.monotonic() > deadline:
            raise RuntimeError(f"no more than {len(got)} of {missing} records in {DEADLINE_S} s")
        for messages in consumer.poll(1000).values():
            got += [records.Record(message.partition, message.offset, -1 if message.timestamp is None else message.timestamp, message.key, message.value,
                                   tuple(message.headers)) for message in messages]
    consumer.close()
    records.write(path, got)


serve(create, produce, consume, delete)
