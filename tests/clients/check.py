"""Lets each client write records and read them back, and compares. run.sh sets everything up and calls this; README.md says what is checked.

The client libraries sit in adapters, one process for each client, which take the commands that ../clients/go/main.go lists.
"""
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable, NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "cases"))
import kwire
import records

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")  # in the order of their numbers in a batch's attributes
UNKNOWN_TOPIC_OR_PARTITION = 3
COMMAND_TIMEOUT_S = 60
VISIBLE_TIMEOUT_S = 10
WRITER_TIMEOUT_S = 15  # kafka-go's Writer ends, or it loops for ever


class Client(NamedTuple):
    adapter: Callable[[Path], list]  # the command line, from the folder with all that run.sh has set up
    cannot: tuple[str, ...] = ()
    shape: Callable = records.anything
    has_admin: bool = True
    sets_timestamps: bool = True
    reads_null: bool = True


CLIENTS = {
    "kcat": Client(
        lambda build: [sys.executable, HERE / "kcat/adapter.py"],
        ("create or delete a topic (kwire.py does)", "give a record its own headers or timestamp", "send null and empty values in one run"),
        shape=records.what_kcat_can, has_admin=False, sets_timestamps=False),
    "confluent-kafka-python": Client(lambda build: [build / "venv/bin/python", HERE / "python/adapter.py"]),
    "kafka-go": Client(lambda build: [build / "go-adapter", "kafka-go"], ("tell null from empty when it reads",), reads_null=False),
    "sarama": Client(lambda build: [build / "go-adapter", "sarama"]),
    "franz-go": Client(lambda build: [build / "go-adapter", "franz-go"]),
    "java": Client(lambda build: ["java", "-XX:+UseSerialGC", "-Xmx512m", "-cp", f"{build}/java/lib/*", HERE / "java/Adapter.java"]),
}


class Adapter:
    """A client's process. Its files are in `folder`, which is also where it runs."""

    def __init__(self, name, broker, build):
        self.name, self.client = name, CLIENTS[name]
        self.folder = build / "work" / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / "stderr"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([*self.client.adapter(build), broker], cwd=self.folder, text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)

    def command(self, *words, timeout_s=COMMAND_TIMEOUT_S):
        """Runs one command; returns why it failed, or None."""
        late = threading.Timer(timeout_s, self.process.kill)
        late.start()
        try:
            print(*words, file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline().strip()
        except BrokenPipeError:
            answer = ""
        alive = late.is_alive()
        late.cancel()
        if answer == "ok":
            return None
        if answer.startswith("failed: "):
            return answer.removeprefix("failed: ")
        return self.last_words() if alive else f"no answer within {timeout_s} s"

    def last_words(self):
        self.process.wait()
        said = self.log.read_text(errors="replace").strip().splitlines() or ["nothing on stderr"]
        return f"the client's process ended with {self.process.returncode}: {said[-1]}"

    def must(self, *words):
        if failure := self.command(*words):
            raise kwire.Fail(f"{words[0]}: {failure}")

    def produce(self, topic, codec, sent):
        records.write(self.folder / "sent", sent)
        self.must("produce", topic, codec, "sent")

    def consume(self, topic, *spans):
        self.must("consume", topic, "got", *(f"{partition}:{start}:{count}" for partition, start, count in spans))
        return records.read(self.folder / "got")

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def round_trip(adapter, broker, codec):
    """A topic made, filled, read and deleted by one client."""
    client, topic = adapter.client, kwire.uniq(f"clients-{adapter.name}-{codec}")
    with_admin(adapter, broker, "create", topic, records.PARTITIONS)
    started = kwire.now()
    sent = records.make(started - 60_000, shape=client.shape)
    adapter.produce(topic, codec, sent)
    wanted = sorted(sent, key=lambda record: record.partition)
    now = None if client.sets_timestamps else (started, kwire.now())

    batches = stored_batches(broker, topic, records.PARTITIONS)
    check_stored(batches, wanted, codec, now)
    spans = [(partition, 0, sum(r.partition == partition for r in sent)) for partition in range(records.PARTITIONS)]
    got = sorted(adapter.consume(topic, *spans), key=lambda record: record.partition)
    check_equal("read", got, wanted, now, client.reads_null)

    with_admin(adapter, broker, "delete", topic)
    check_deleted(broker, topic)
    return f"{len(got)} records in {sum(map(len, batches))} batches"


def with_admin(adapter, broker, command, topic, *arguments):
    if adapter.client.has_admin:
        adapter.must(command, topic, *arguments)
        return
    k = kwire.K(broker)
    if command == "create":
        k.topic(topic, *arguments)
    else:
        k.call("DeleteTopics", {"names": [topic]})
    k.c.close()


def stored_batches(broker, topic, partitions):
    """The batches of each partition, by a raw fetch."""
    k, stored = kwire.K(broker), []
    for partition in range(partitions):
        end, batches = k.offset(topic, -1, partition)["off"], []
        while (batches[-1]["last"] + 1 if batches else 0) < end:
            answer = k.fetch(topic, batches[-1]["last"] + 1 if batches else 0, partition)
            kwire.want(answer["err"] == 0, f"raw fetch of partition {partition}: error {answer['err']}")
            more = kwire.read_batches(answer["records"])
            kwire.want(more, f"raw fetch of partition {partition}: nothing at {batches and batches[-1]['last'] + 1}, the end is {end}")
            batches += more
        stored.append(batches)
    k.c.close()
    return stored


def check_stored(stored, wanted, codec, now):
    """Codec bits and offsets of every batch; its records too where Python can decompress them."""
    for partition, batches in enumerate(stored):
        count = sum(record.partition == partition for record in wanted)
        kwire.want(len(batches) > 1, f"partition {partition}: {count} records came in one batch")
        kwire.want(len(batches) * 5 < count, f"partition {partition}: {count} records came in {len(batches)} batches")
        end = 0
        for batch in batches:
            kwire.want(batch["base"] == end, f"partition {partition}: a batch begins at {batch['base']}, the one before ends at {end}")
            kwire.want(batch["codec"] == CODECS.index(codec), f"partition {partition}: the batch at {end} is stored as {CODECS[batch['codec']]}, not {codec}")
            kwire.want(not batch["append"], f"partition {partition}: the batch at {end} has the broker's timestamps")
            end = batch["last"] + 1
        kwire.want(end == count, f"partition {partition} ends at {end}, not {count}")
    if codec in ("none", "gzip"):
        check_equal("stored", [record for partition, batches in enumerate(stored) for batch in batches for record in decoded(partition, batch)], wanted, now)


def decoded(partition, batch):
    for offset, timestamp, key, value, headers in batch["recs"]:
        yield records.Record(partition, offset, timestamp, key, value, tuple((name.decode(), value) for name, value in headers))


def check_equal(what, got, wanted, now, tells_null=True):
    """`now` is the first and last moment that a timestamp may have, for a client that gives none."""
    if now:
        for record in got:
            kwire.want(now[0] <= record.timestamp <= now[1], f"{what}: timestamp {record.timestamp} was given between {now[0]} and {now[1]}")
        got, wanted = ([record._replace(timestamp=0) for record in some] for some in (got, wanted))
    if not tells_null:
        got, wanted = (list(map(nulls_as_empty, some)) for some in (got, wanted))
    for has, wants in zip(got, wanted):
        if has != wants:
            different = [f"{field} {getattr(has, field)!r}, not {getattr(wants, field)!r}" for field in has._fields if getattr(has, field) != getattr(wants, field)]
            raise kwire.Fail(f"{what}: record {wants.offset} of partition {wants.partition} has {'; '.join(different)}")
    kwire.want(len(got) == len(wanted), f"{what}: {len(got)} records, not {len(wanted)}")


def nulls_as_empty(record):
    headers = tuple((name, value or b"") for name, value in record.headers)
    return record._replace(key=record.key or b"", value=record.value or b"", headers=headers)


def check_deleted(broker, topic):
    connection, deadline, error = kwire.Conn(broker), time.monotonic() + VISIBLE_TIMEOUT_S, None
    while error != UNKNOWN_TOPIC_OR_PARTITION:
        kwire.want(time.monotonic() < deadline, f"the deleted topic is still there after {VISIBLE_TIMEOUT_S} s: Metadata has error {error}")
        error = connection.call("Metadata", {"topics": [{"name": topic}], "auto": False})["topics"][0]["err"]
        time.sleep(0.02)
    connection.close()


def kafka_go_writer_ends_when_the_broker_makes_its_topic(adapter, broker):
    """It once asked for Metadata for ever, because of a wrong answer."""
    topic, deadline = kwire.uniq("clients-writer"), time.monotonic() + WRITER_TIMEOUT_S
    records.write(adapter.folder / "sent", records.make(kwire.now(), 300, 1))
    while failure := adapter.command("produce", topic, "none", "sent", timeout_s=WRITER_TIMEOUT_S):
        # Kafka makes the topic behind its first answer, and says UNKNOWN_TOPIC_OR_PARTITION in it: users of the Writer try again.
        kwire.want(f"[{UNKNOWN_TOPIC_OR_PARTITION}]" in failure and time.monotonic() < deadline, failure)
        time.sleep(0.1)
    adapter.must("delete", topic)


def kafka_go_writer_ends_when_its_topic_cannot_be(adapter, broker):
    records.write(adapter.folder / "sent", records.make(kwire.now(), 300, 1))
    failure = adapter.command("produce", "no:such:topic", "none", "sent", timeout_s=WRITER_TIMEOUT_S)
    kwire.want(failure, "it was told that its records are stored")
    kwire.want("[17]" in failure, f"it ended, but not because of INVALID_TOPIC_EXCEPTION: {failure}")


def sarama_skips_no_record_wherever_it_begins(adapter, broker):
    """It once skipped the records of batches that all said that their base offset is 0."""
    topic, batch_size = kwire.uniq("clients-batches"), 10
    adapter.must("create", topic, 1)
    sent = records.make(kwire.now(), 20 * batch_size, 1)
    for start in range(0, len(sent), batch_size):
        adapter.produce(topic, "none", sent[start:start + batch_size])
    batches = stored_batches(broker, topic, 1)[0]
    kwire.want(len(batches) >= 20, f"{len(batches)} batches: too few to see anything")
    for start in (0, 1, batch_size - 1, batch_size, batch_size + 5, 100, len(sent) - 1):
        got = adapter.consume(topic, (0, start, len(sent) - start))
        check_equal(f"read from {start} on", got, sent[start:], None)
    adapter.must("delete", topic)


BY_NAME = {
    "kafka-go": (kafka_go_writer_ends_when_the_broker_makes_its_topic, kafka_go_writer_ends_when_its_topic_cannot_be),
    "sarama": (sarama_skips_no_record_wherever_it_begins,),
}


def check_client(name, broker, build):
    """Runs all tests of one client; returns how many passed and failed."""
    client = CLIENTS[name]
    tests = [(codec, lambda adapter, codec=codec: round_trip(adapter, address(broker), codec)) for codec in CODECS]
    tests += [(test.__name__.removeprefix(name.replace("-", "_") + "_").replace("_", " "), lambda adapter, test=test: test(adapter, address(broker)))
              for test in BY_NAME.get(name, ())]
    if client.cannot:
        print(f"     {name} cannot {'; '.join(client.cannot)}")
    adapter, passed = Adapter(name, broker, build), 0
    for title, test in tests:
        if adapter.process.poll() is not None:
            adapter = Adapter(name, broker, build)
        started = time.monotonic()
        try:
            said, verdict = test(adapter) or "", "ok"
            passed += 1
        except kwire.Fail as failure:
            said, verdict = str(failure), "FAIL"
        except Exception as failure:  # a broken test is a failed test, and the others go on
            said, verdict = f"{type(failure).__name__}: {failure}", "FAIL"
        print(f"{verdict:4} {name} {title} ({time.monotonic() - started:.1f} s){said and ': ' + said[:1000]}", flush=True)
    adapter.end()
    return passed, len(tests) - passed


def address(broker):
    host, port = broker.rsplit(":", 1)
    return host.strip("[]"), int(port)


def main():
    build, broker, *names = sys.argv[1:]
    results = [check_client(name, broker, Path(build)) for name in names]
    passed, failed = (sum(column) for column in zip(*results))
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
