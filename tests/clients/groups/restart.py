"""Kills the broker under groups of all clients, and starts it again: restart.py BUILD HOST:PORT COMMAND [CLIENT...]. COMMAND, for the shell, is the
broker in the foreground. README.md says what is checked."""
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import kwire
from clients import CLIENTS, address, folder_of
from group import PARTITIONS, START_S, Group

SESSION_MS = 60_000  # longer than a broker takes to start
MEMBERS = "ab"


class Broker:
    def __init__(self, command, broker, log):
        self.command, self.address, self.log = command, broker, log
        self.start()

    def start(self):
        # A group of its own, so that all its processes can be killed.
        self.process = subprocess.Popen(["bash", "-c", f"exec env {self.command}"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)
        deadline = time.monotonic() + 120
        while True:
            try:
                return kwire.Conn(self.address).close()
            except OSError:
                kwire.want(self.process.poll() is None and time.monotonic() < deadline, "the broker did not start")
                time.sleep(0.1)

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Restarts:
    def __init__(self, names, broker, build):
        self.failed, self.groups = {}, {}
        for name in names:
            client = CLIENTS[name]
            group = Group(name, client.member(build), broker, folder_of(build, name, "restart"), client.assignor, SESSION_MS)
            group.rules.may_lose = True
            self.groups[name] = group

    def each(self, step):
        """Does the same to each group that has not failed; returns what comes of it by client."""
        results = {}
        for name, group in self.groups.items():
            if name not in self.failed:
                try:
                    results[name] = step(name, group)
                except Exception as failure:  # the others go on
                    self.failed[name] = f"{type(failure).__name__}: {failure}"
        return results

    def run(self, broker):
        for member in MEMBERS:
            self.each(lambda _, group: group.start(member))
        self.each(lambda _, group: group.until_shared(START_S + group.rebalance_ms / 1000))
        counts = self.each(lambda _, group: group.until_all_is_read())
        broker.kill()
        broker.start()
        self.each(lambda name, group: group.go_on(counts[name]))
        counts = self.each(lambda _, group: group.until_all_is_read(START_S + SESSION_MS / 1000))
        self.each(lambda _, group: group.rules.must_read_once())
        for member in MEMBERS:
            self.each(lambda _, group: group.leave(member))
        for name in self.groups:
            if name in self.failed:
                print(f"FAIL {name}: {self.failed[name]}")
            else:
                print(f"ok   {name}: {counts[name] * PARTITIONS} records, each once")


def main():
    build, broker, command, *names = sys.argv[1:]
    work = Path(build) / "work/groups"
    work.mkdir(parents=True, exist_ok=True)
    with open(work / "broker.log", "w") as log:
        server = Broker(command, address(broker), log)
        try:
            restarts = Restarts(names or CLIENTS, address(broker), Path(build))
            try:
                restarts.run(server)
            finally:
                for group in restarts.groups.values():
                    group.close()
        finally:
            server.kill()
    print(f"{len(restarts.groups) - len(restarts.failed)} passed, {len(restarts.failed)} failed")
    sys.exit(len(restarts.failed) > 0)


main()
