"""A member of confluent-kafka-python (librdkafka)."""
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

import member
from member import say

consumer = Consumer({
    "bootstrap.servers": member.broker, "group.id": member.group, "enable.auto.commit": False, "auto.offset.reset": "earliest",
    "partition.assignment.strategy": member.assignor, "session.timeout.ms": member.session_ms, "heartbeat.interval.ms": member.heartbeat_ms,
    "max.poll.interval.ms": member.rebalance_ms, **({"group.instance.id": member.instance} if member.instance else {}),
})
# In a cooperative rebalance the group may have a generation that the client has not heard of; a coordinator that started again may be loading.
NOT_YET = KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR
read = {}  # the next offset of each partition with records that are not committed


def commit():
    if not read:
        return
    try:
        answer = consumer.commit(offsets=[TopicPartition(member.topic, *next_of) for next_of in read.items()], asynchronous=False)
    except KafkaException as failure:
        if failure.args[0].code() not in NOT_YET:
            raise
        return
    for committed in answer:
        if committed.error:
            raise KafkaException(committed.error)
        say("COMMITTED", committed.partition, committed.offset)
    read.clear()


def assigned(_, partitions):
    say("ASSIGNED", *(p.partition for p in partitions))


def revoked(_, partitions):
    commit()
    say("REVOKED", *(p.partition for p in partitions))


def lost(_, partitions):
    say("LOST", *(p.partition for p in partitions))


consumer.subscribe([member.topic], on_assign=assigned, on_revoke=revoked, on_lost=lost)
while not member.leaving.is_set():
    message = consumer.poll(0 if read else 0.1)
    if message is None:
        commit()
    elif message.error():
        raise KafkaException(message.error())
    else:
        say("RECORD", message.partition(), message.offset())
        read[message.partition()] = message.offset() + 1
commit()
consumer.close()
say("LEFT")
