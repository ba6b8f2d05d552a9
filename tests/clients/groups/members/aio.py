"""A member of aiokafka."""
import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

import member
from member import say

ASSIGNORS = {"range": RangePartitionAssignor}


class Listener(ConsumerRebalanceListener):
    def __init__(self):
        self.owned, self.committing = [], asyncio.Lock()

    async def on_partitions_assigned(self, assigned):
        self.owned = [p.partition for p in assigned]
        say("ASSIGNED", *self.owned)

    async def on_partitions_revoked(self, _):
        await self.give_up()

    async def give_up(self):
        """Called beside the loop, which may be at its commit; and at the end, as aiokafka tells nothing when it is stopped."""
        async with self.committing:
            if self.owned:
                say("REVOKED", *self.owned)
            self.owned = []


async def main():
    listener = Listener()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=member.broker, group_id=member.group, group_instance_id=member.instance, enable_auto_commit=False, auto_offset_reset="earliest",
        partition_assignment_strategy=[ASSIGNORS[member.assignor]], session_timeout_ms=member.session_ms, rebalance_timeout_ms=member.rebalance_ms,
        heartbeat_interval_ms=member.heartbeat_ms)
    consumer.subscribe([member.topic], listener=listener)
    await consumer.start()
    while not member.leaving.is_set():
        # It gives nothing during a rebalance, and waits; so this is outside of the lock.
        read = await consumer.getmany(timeout_ms=100)
        if not read:
            continue
        async with listener.committing:
            for partition, messages in read.items():
                for message in messages:
                    say("RECORD", partition.partition, message.offset)
            following = {partition: messages[-1].offset + 1 for partition, messages in read.items()}
            await consumer.commit(following)
            for partition, offset in following.items():
                say("COMMITTED", partition.partition, offset)
    await listener.give_up()
    await consumer.stop()
    say("LEFT")


asyncio.run(main())
