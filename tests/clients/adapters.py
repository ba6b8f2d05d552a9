"""The processes in which the client libraries sit. They take the commands that go/main.go lists."""
import subprocess
import sys
import threading
from pathlib import Path
from typing import Callable, NamedTuple

import kwire
import records

HERE = Path(__file__).parent
COMMAND_TIMEOUT_S = 60


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
    "confluent-kafka-python": Client(lambda build: [build / "venv/bin/python", HERE / "python/confluent.py"]),
    "kafka-python": Client(
        lambda build: [build / "venv/bin/python", HERE / "python/kafka_python.py"],
        ("send a record without key and value", "send a header without a value"),
        shape=records.what_kafka_python_can),
    "kafka-go": Client(lambda build: [build / "go-adapter", "kafka-go"], ("tell null from empty when it reads",), reads_null=False),
    "sarama": Client(lambda build: [build / "go-adapter", "sarama"]),
    "franz-go": Client(lambda build: [build / "go-adapter", "franz-go"]),
    "java": Client(lambda build: ["java", "-XX:+UseSerialGC", "-Xmx512m", "-cp", f"{build}/java/lib/*", HERE / "java/Adapter.java"]),
}


class Adapter:
    """A client's process, at a level if its name is CLIENT@LEVEL. Its files are in `folder`, which is also where it runs."""

    def __init__(self, name, broker, build):
        library, _, level = name.partition("@")
        self.name, self.client = name, CLIENTS[library]
        self.folder = build / "work" / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / "stderr"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([*self.client.adapter(build), broker, *filter(None, [level])], cwd=self.folder, text=True,
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
