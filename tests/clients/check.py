"""Lets each client write records and read them back, and compares. run.sh sets everything up and calls this; README.md says what is checked."""
import sys
import time
from pathlib import Path

import kwire
import old
import records
from adapters import CLIENTS, Adapter
from compare import CODECS, check_equal, check_stored, stored_batches

UNKNOWN_TOPIC_OR_PARTITION = 3
VISIBLE_TIMEOUT_S = 10
WRITER_TIMEOUT_S = 15  # kafka-go's Writer ends, or it loops for ever


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


def tests_of(name, broker):
    tests = [(codec, lambda adapter, codec=codec: round_trip(adapter, broker, codec)) for codec in CODECS]
    tests += [(test.__name__.removeprefix(name.replace("-", "_") + "_").replace("_", " "), lambda adapter, test=test: test(adapter, broker))
              for test in BY_NAME.get(name, ())]
    return tests


def check_client(name, tests, broker, build):
    """Runs all tests of one client; returns how many passed and failed."""
    adapter, passed = Adapter(name, broker, build), 0
    if adapter.client.cannot:
        print(f"     {name} cannot {'; '.join(adapter.client.cannot)}")
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
    build, levels = Path(build), [level for name in names for level in old.NAMES if name in ("old", level)]
    if unknown := set(names) - {*CLIENTS, "old", *levels}:
        sys.exit(f"no client {', '.join(sorted(unknown))}; old.py has the levels")
    results = [check_client(name, tests_of(name, address(broker)), broker, build) for name in names if name in CLIENTS]
    if levels:
        new = Adapter(old.NEW_CLIENT, broker, build)
        results += [check_client(name, old.tests_of(name, address(broker), new), broker, build) for name in levels]
        new.end()
    passed, failed = (sum(column) for column in zip(*results))
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
