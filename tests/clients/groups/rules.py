"""What members of a group may say: each line is held against what all of them said before.

All members write into one pipe, each line at once, before they ask the broker for anything that follows from it. So what one said before another
could know of it is also read before:

    NAME ASSIGNED PARTITION…        what it got, besides what it has
    NAME REVOKED PARTITION…         what it gave up
    NAME LOST PARTITION…            what was taken from it, committed or not, as it is no member any more
    NAME RECORD PARTITION OFFSET    it read this record
    NAME COMMITTED PARTITION NEXT   the broker acknowledged this offset
    NAME LEFT                       its client is closed
    NAME FAILED REASON…             it cannot go on

and `NAME ENDED STATUS`, from the driver, is the last of a process. A process that starts again has a new name.
"""
from collections import Counter

from kwire import want


class Rules:
    def __init__(self):
        self.owner = {}  # of each partition that has one
        self.position = {}  # of each owned partition: the next offset to come, or None before its owner's first record
        self.committed = Counter()
        self.in_use = set()  # the partitions of which their owner has committed something
        self.unsure = {}  # how far an owner that crashed, or lost the partition, had read: its commits up to there may have been stored
        self.read = Counter()  # how often each record was read
        self.assigned = set()  # the members that know what they have, if only nothing
        self.changes = Counter()  # how often each member got or gave up partitions
        self.gave_all = set()  # who gave up all that it had, and stayed
        self.may_lose = False  # while the broker is away, some clients give up their membership
        self.may_read_again = 0  # the records that were read, and lost before they were committed
        self.may_end, self.left, self.ended = set(), set(), {}

    def owned(self, member):
        return {partition for partition, owner in self.owner.items() if owner == member}

    def apply(self, line):
        member, event, *words = line.split()
        numbers = map(int, words) if event != "FAILED" else words
        getattr(self, f"on_{event.lower()}")(member, *numbers)

    def on_assigned(self, member, *partitions):
        for partition in partitions:
            want(partition not in self.owner, f"{member} was given partition {partition}, which {self.owner.get(partition)} has")
            self.owner[partition], self.position[partition] = member, None
            self.in_use.discard(partition)
        self.assigned.add(member)
        self.changes[member] += 1

    def on_record(self, member, partition, offset):
        self.must_own(member, partition, "read")
        if (position := self.position[partition]) is None:
            first = self.committed[partition]
            want(first <= offset <= self.unsure.pop(partition, first),
                 f"{member} began to read partition {partition} at {offset}, and {first} is committed")
        else:
            want(offset == position, f"{member} read offset {offset} of partition {partition}, and not {position}")
        self.position[partition] = offset + 1
        self.read[partition, offset] += 1

    def on_committed(self, member, partition, following):
        self.must_own(member, partition, "committed")
        position = self.position[partition]
        want(following == position, f"{member} committed {following} of partition {partition}, and read up to {position}")
        self.committed[partition] = following
        self.in_use.add(partition)

    def on_revoked(self, member, *partitions):
        for partition in partitions:
            self.must_own(member, partition, "gave up")
            want(self.position[partition] in (None, self.committed[partition]), f"{member} gave up partition {partition}, and had not committed what it read")
            del self.owner[partition]
        self.changes[member] += 1
        if partitions and not self.owned(member) and member not in self.may_end:
            self.gave_all.add(member)

    def on_lost(self, member, *partitions):
        want(self.may_lose, f"{member} was thrown out of the group and lost {partitions}")
        for partition in partitions:
            self.must_own(member, partition, "lost")
            if (position := self.position[partition]) is not None:
                self.unsure[partition] = position
                self.may_read_again += position - self.committed[partition]
            del self.owner[partition]
        self.changes[member] += 1

    def on_left(self, member):
        want(not self.owned(member), f"{member} left, and still has {self.owned(member)}")
        self.left.add(member)

    def on_failed(self, member, *reason):
        want(False, f"{member} failed: {' '.join(reason)}")

    def on_ended(self, member, status):
        want(member in self.may_end, f"the process of {member} ended by itself, with {status}")
        self.ended[member] = status
        for partition in self.owned(member):
            if (position := self.position[partition]) is not None:
                self.unsure[partition] = position
            del self.owner[partition]

    def must_own(self, member, partition, did):
        want(self.owner.get(partition) == member, f"{member} {did} partition {partition}, which {self.owner.get(partition, 'nobody')} has")

    def read_again(self):
        return sum(times - 1 for times in self.read.values())

    def must_read_once(self):
        want(self.read_again() <= self.may_read_again, f"{self.read_again()} records were read more than once, and {self.may_read_again} of them may be")
