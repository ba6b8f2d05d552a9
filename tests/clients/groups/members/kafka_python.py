"""A member of kafka-python."""
from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor

import member
from member import say

ASSIGNORS = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}


class Listener(ConsumerRebalanceListener):
    def on_partitions_assigned(self, partitions):
        say("ASSIGNED", *(p.partition for p in partitions))

    def on_partitions_revoked(self, partitions):
        say("REVOKED", *(p.partition for p in partitions))

    def on_partitions_lost(self, partitions):
        say("LOST", *(p.partition for p in partitions))


consumer = KafkaConsumer(
    bootstrap_servers=member.broker, group_id=member.group, group_instance_id=member.instance, enable_auto_commit=False, auto_offset_reset="earliest",
    partition_assignment_strategy=[ASSIGNORS[member.assignor]], session_timeout_ms=member.session_ms, max_poll_interval_ms=member.rebalance_ms,
    heartbeat_interval_ms=member.heartbeat_ms)
consumer.subscribe([member.topic], listener=Listener())
while not member.leaving.is_set():
    read = consumer.poll(100)
    for partition, messages in read.items():
        for message in messages:
            say("RECORD", partition.partition, message.offset)
    if read:
        consumer.commit()
        for partition, messages in read.items():
            say("COMMITTED", partition.partition, messages[-1].offset + 1)
consumer.close()
say("LEFT")
