"""A group whose members are processes, and a producer that goes on while they come and go."""
import os
import queue
import signal
import subprocess
import threading
import time

import kwire
from rules import Rules

PARTITIONS = 6
HEARTBEAT_MS = 500
START_S = 30  # for a process to start, and its client to find the group, on a busy machine


class Group:
    def __init__(self, client, command, broker, folder, assignor, session_ms):
        self.command, self.broker, self.folder, self.assignor = command, broker, folder, assignor
        self.session_ms, self.rebalance_ms = session_ms, session_ms * 3 // 2
        self.name = self.topic = kwire.uniq(f"group-{client}")
        self.kwire = kwire.K(broker)
        self.kwire.topic(self.topic, PARTITIONS)
        self.rules, self.processes, self.longest_s = Rules(), {}, 0
        self.pipe_out, self.pipe_in = os.pipe()
        self.lines, self.watching = queue.SimpleQueue(), []
        threading.Thread(target=self.read_lines, daemon=True).start()
        self.producer = Producer(broker, self.topic, self.lines)

    def start(self, member, instance="", command=None):
        """Starts a member: by `command` if it is not one of the group's client."""
        arguments = "{}:{}".format(*self.broker), self.name, self.topic, member, self.assignor, self.session_ms, self.rebalance_ms, HEARTBEAT_MS, instance
        with open(self.folder / f"{member}.stderr", "w") as log:
            process = subprocess.Popen([*(command or self.command), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=self.pipe_in, stderr=log)
        self.processes[member] = process
        # Through the pipe, so that it comes after all that the process said.
        self.watching.append(threading.Thread(target=lambda: os.write(self.pipe_in, f"{member} ENDED {process.wait()}\n".encode())))
        self.watching[-1].start()

    def leave(self, member):
        self.end(member, signal.SIGTERM)
        kwire.want(member in self.rules.left, f"{member} was to leave, and ended with {self.rules.ended[member]} before it had left")

    def crash(self, member):
        """Kills a member while it works."""
        self.until(lambda: self.rules.owned(member) <= self.rules.in_use, f"{member} to commit what it reads", START_S)
        self.end(member, signal.SIGKILL)

    def end(self, member, by):
        self.rules.may_end.add(member)
        self.processes.pop(member).send_signal(by)
        self.until(lambda: member in self.rules.ended, f"{member} to end", START_S)

    def until_shared(self, within_s):
        """Waits until the members share the partitions evenly."""
        def shared():
            sizes = [len(self.rules.owned(member)) for member in self.processes if member in self.rules.assigned]
            return len(sizes) == len(self.processes) and sum(sizes) == PARTITIONS and max(sizes) - min(sizes) <= 1

        started = time.monotonic()
        self.until(shared, f"{' '.join(self.processes)} to share the partitions", within_s)
        self.longest_s = max(self.longest_s, time.monotonic() - started)

    def until_all_is_read(self, within_s=START_S):
        """Ends the producer, and waits until all its records are read and committed, which the broker must then say too. Returns how many there are
        in each partition."""
        partitions = set(range(PARTITIONS))
        # A member that crashed may have committed what it could not say any more: its successor tells, when it has something to read.
        self.until(lambda: self.rules.in_use == partitions, "all partitions to be read", within_s)
        count = self.producer.end()
        self.until(lambda: all(self.rules.committed[partition] == count for partition in partitions), f"all {count} records of each partition to be read", START_S,
                   self.rules.committed.total)
        stored = self.kwire.committed(self.name, [{"name": self.topic, "parts": sorted(partitions)}])
        offsets = {stored[self.topic, partition]["off"] for partition in partitions}
        kwire.want(offsets == {count}, f"{count} is committed, and OffsetFetch says {offsets}")
        return count

    def go_on(self, count):
        """After until_all_is_read, and after the broker was started again."""
        topics, self.kwire = self.kwire.made, kwire.K(self.broker)
        self.kwire.made = topics
        self.rules.in_use.clear()
        self.producer = Producer(self.broker, self.topic, self.lines, count)

    def until(self, condition, what, within_s, progress=lambda: None):
        """Reads what the members say until `condition`. The time begins anew with each `progress`: a client that commits each record by itself may have
        very many before it."""
        reached, deadline = progress(), time.monotonic() + within_s
        while not condition():
            try:
                line = self.lines.get(timeout=max(deadline - time.monotonic(), 0))
            except queue.Empty:
                has = ", ".join(f"{member} has {sorted(self.rules.owned(member))}" for member in self.processes)
                raise kwire.Fail(f"waited {within_s} s for {what}; {has}") from None
            self.rules.apply(line)
            if reached != progress():
                reached, deadline = progress(), time.monotonic() + within_s

    def read_lines(self):
        with os.fdopen(self.pipe_out) as pipe, open(self.folder / "lines", "w") as log:
            for line in pipe:
                print(f"{time.time():.3f} {line}", end="", file=log, flush=True)
                self.lines.put(line)

    def close(self):
        self.producer.end()
        for process in self.processes.values():
            process.kill()
        for thread in self.watching:
            thread.join()
        os.close(self.pipe_in)
        self.kwire.cleanup()


class Producer(threading.Thread):
    """Writes a few records to each partition, again and again."""
    PACE_S = 0.05
    RECORDS = 2
    NOT_YET = 3, 5, 6  # UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER

    def __init__(self, broker, topic, lines, count=0):
        super().__init__(daemon=True)
        self.connection, self.topic = kwire.Conn(broker), topic
        self.lines, self.ending, self.count = lines, threading.Event(), count
        self.start()

    def run(self):
        try:
            while not self.ending.wait(self.PACE_S):
                self.write(range(PARTITIONS))
                self.count += self.RECORDS
        except Exception as failure:  # whoever waits for the members is told
            self.lines.put(f"the-producer FAILED {type(failure).__name__}: {failure}")

    def write(self, partitions):
        batch = kwire.batch([(None, b"record")] * self.RECORDS)
        while partitions:
            parts = [{"p": partition, "records": batch} for partition in partitions]
            answer = self.connection.call("Produce", {"acks": -1, "topics": [{"name": self.topic, "parts": parts}]})
            errors = {part["p"]: part["err"] for part in answer["topics"][0]["parts"]}
            kwire.want(not set(errors.values()) - {0, *self.NOT_YET}, f"errors {errors}")
            # A broker that has just started may not lead all of them yet.
            partitions = [partition for partition, error in errors.items() if error]
            time.sleep(self.PACE_S if partitions else 0)

    def end(self):
        """Returns how many records each partition got."""
        self.ending.set()
        self.join()
        return self.count
