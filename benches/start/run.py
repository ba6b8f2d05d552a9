#!/usr/bin/env python3
"""run.py [KELP] [PARTITIONS:GIB]…: how long `kelp serve --data` takes to start, by the size of its log.

For each size a store is made (store.py) and a broker started on it three times. Printed are, of the median start: the milliseconds from
the start of the process to the first answer of ApiVersions, those of a Metadata request for all topics, and the RSS then."""

import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import time

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
arguments = sys.argv[1:]
kelp = arguments.pop(0) if arguments and ":" not in arguments[0] else f"{root}/target/release/kelp"
sizes = arguments or ["1:0.01", "1000:10", "10000:100", "50000:100"]
data = os.environ.get("START_DIR", f"{root}/build/start")
STARTS = 3


def ask(connection, key, version, body=b""):
    frame = struct.pack(">hhih", key, version, 7, -1) + body
    connection.sendall(struct.pack(">i", len(frame)) + frame)
    answer = connection.makefile("rb")
    return answer.read(struct.unpack(">i", answer.read(4))[0])


def start(port):
    began = time.monotonic()
    broker = subprocess.Popen([kelp, "serve", "--listen", f"127.0.0.1:{port}", "--data", data], stdout=subprocess.DEVNULL)
    try:
        while True:
            try:
                connection = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                if broker.poll() is not None:
                    sys.exit(f"{kelp} ended with status {broker.returncode}")
                time.sleep(0.001)
        ask(connection, 18, 0)
        served = time.monotonic()
        answer = ask(connection, 3, 1, struct.pack(">i", -1))
        told = time.monotonic()
        with open(f"/proc/{broker.pid}/status") as status:
            rss = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        return (served - began) * 1e3, (told - served) * 1e3, rss / 1024, len(answer)
    finally:
        broker.kill()
        broker.wait()


with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
print("| partitions | log | starts in | Metadata of all | bytes of it | RSS |\n| --- | --- | --- | --- | --- | --- |")
for size in sizes:
    partitions, gib = size.split(":")
    shutil.rmtree(data, ignore_errors=True)
    subprocess.run([sys.executable, f"{root}/benches/start/store.py", data, partitions, gib], check=True, stdout=subprocess.DEVNULL)
    starts = [start(port) for _ in range(STARTS)]
    served, told, rss, length = (statistics.median(column) for column in zip(*starts))
    print(f"| {partitions} | {gib} GiB | {served:.0f} ms | {told:.0f} ms | {length} | {rss:.0f} MiB |", flush=True)
shutil.rmtree(data, ignore_errors=True)
