"""The client libraries: how a member of each is started, and what they cannot do."""
from pathlib import Path
from typing import Callable, NamedTuple

HERE = Path(__file__).parent
STATIC, COOPERATIVE = "be a static member", "rebalance cooperatively"


class Client(NamedTuple):
    member: Callable[[Path], list]  # the command line, from the folder with all that run.sh has set up
    assignor: str = "range"
    cannot: tuple[str, ...] = ()


CLIENTS = {
    "java": Client(lambda build: ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", f"{build}/java/lib/*:{build}/java-group", "Member"]),
    "confluent-kafka-python": Client(lambda build: [build / "venv/bin/python", HERE / "members/confluent.py"]),
    "franz-go": Client(lambda build: [build / "go-group-member", "franz-go"]),
    "sarama": Client(lambda build: [build / "go-group-member", "sarama"], cannot=(COOPERATIVE,)),
    "kafka-go": Client(lambda build: [build / "go-group-member", "kafka-go"], cannot=(STATIC, COOPERATIVE)),
    "kafka-python": Client(lambda build: [build / "venv/bin/python", HERE / "members/kafka_python.py"]),
    "aiokafka": Client(lambda build: [build / "venv/bin/python", HERE / "members/aio.py"], cannot=(COOPERATIVE,)),
    "kafkajs": Client(lambda build: ["node", HERE / "members/member.js"], assignor="RoundRobinAssigner", cannot=(STATIC, COOPERATIVE)),
}


def folder_of(build, client, test):
    folder = build / "work/groups" / client / test
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def address(broker):
    host, port = broker.rsplit(":", 1)
    return host.strip("[]"), int(port)
