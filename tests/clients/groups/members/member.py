"""What the members in Python share: their arguments, their lines (../rules.py), and how they are told to leave."""
import os
import signal
import sys
import traceback
from threading import Event

broker, group, topic, name, assignor, session_ms, rebalance_ms, heartbeat_ms, instance = sys.argv[1:]
session_ms, rebalance_ms, heartbeat_ms = int(session_ms), int(rebalance_ms), int(heartbeat_ms)
instance = instance or None
leaving = Event()
signal.signal(signal.SIGTERM, lambda *_: leaving.set())


def say(*words):
    os.write(1, f"{name} {' '.join(map(str, words))}\n".encode())


def fail(_, failure, __):
    """A client's threads must not keep the process alive."""
    traceback.print_exception(failure, file=sys.stderr)
    say("FAILED", type(failure).__name__, str(failure).replace("\n", "; "))
    sys.stderr.flush()
    os._exit(1)


sys.excepthook = fail
