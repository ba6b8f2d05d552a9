"""Lets groups of each client come, go, crash and start again, and holds them to rules.py. run.sh sets everything up and calls this; README.md says what is checked."""
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kwire
from clients import CLIENTS, COOPERATIVE, STATIC, address, folder_of
from group import PARTITIONS, START_S, Group

CLIENTS_AT_ONCE = 4
SHORT_SESSION_MS = 10_000
LONG_SESSION_MS = 30_000  # nothing may wait for it
MIXED = "java", "confluent-kafka-python", "franz-go", "kafka-python"


def join_and_leave(group):
    for member in "abc":
        group.start(member)
        group.until_shared(START_S + group.rebalance_ms / 1000)
    for member in "cb":
        group.leave(member)
        # Who leaves says so: the others need not wait for its session to end.
        group.until_shared(group.session_ms / 1000)
    group.leave("a")
    group.start("d")
    group.until_shared(START_S + group.rebalance_ms / 1000)
    records = PARTITIONS * group.until_all_is_read()
    group.rules.must_read_once()
    group.leave("d")
    return f"{records} records, each once"


def cooperative_join_and_leave(group):
    said = join_and_leave(group)
    kwire.want(not group.rules.gave_all, f"{', '.join(group.rules.gave_all)} gave up everything in a rebalance")
    return said


def crash(group):
    dead_s = (group.session_ms + group.rebalance_ms) / 1000
    for member in "abc":
        group.start(member)
    group.until_shared(START_S + group.rebalance_ms / 1000)
    group.crash("c")
    group.until_shared(dead_s)
    group.crash("b")
    group.start("b-again")
    group.until_shared(START_S + dead_s)
    records = PARTITIONS * group.until_all_is_read()
    return f"{records} records, {group.rules.read_again()} of them again"


def static_restart(group):
    for member in "ab":
        group.start(member, f"instance-{member}")
    group.until_shared(START_S + group.rebalance_ms / 1000)
    # One of them leads the group.
    for member, other in (("a", "b"), ("b", "a-again")):
        had, changes, again = group.rules.owned(member), group.rules.changes[other], f"{member}-again"
        group.crash(member)
        group.start(again, f"instance-{member}")
        group.until(lambda: group.rules.owned(again) == had, f"{again} to have what {member} had", group.session_ms / 1000)
        kwire.want(group.rules.changes[other] == changes, f"{other} was rebalanced when {member} started again")
    records = PARTITIONS * group.until_all_is_read()
    return f"{records} records, {group.rules.read_again()} of them again"


def mixed_join_and_leave(group, build):
    """A library reads what the others say of themselves when it leads, and what another one assigns when it does not."""
    for name in MIXED:
        group.start(name, command=CLIENTS[name].member(build))
        group.until_shared(START_S + group.rebalance_ms / 1000)
    # The first one leads; after it, another does.
    for name in MIXED[:-1]:
        group.leave(name)
        group.until_shared(group.session_ms / 1000)
    records = PARTITIONS * group.until_all_is_read()
    group.rules.must_read_once()
    group.leave(MIXED[-1])
    return f"{records} records, each once"


def scenarios(client):
    yield "three join one after the other, and leave", join_and_leave, client.assignor, LONG_SESSION_MS
    yield "two of three crash, and one comes back", crash, client.assignor, SHORT_SESSION_MS
    if STATIC not in client.cannot:
        yield "static members start again without a rebalance", static_restart, client.assignor, LONG_SESSION_MS
    if COOPERATIVE not in client.cannot:
        yield "three join and leave with cooperative-sticky", cooperative_join_and_leave, "cooperative-sticky", LONG_SESSION_MS


def check(name, title, scenario, command, broker, folder, assignor, session_ms):
    """Runs a scenario with a new group; returns whether it passed."""
    started, verdict = time.monotonic(), "FAIL"
    try:
        group = Group(name, command, broker, folder, assignor, session_ms)
        try:
            said = f"{scenario(group)}; at most {group.longest_s:.1f} s without a share"
        finally:
            group.close()
        verdict = "ok"
    except kwire.Fail as failure:
        said = f"{failure} ({folder} has what all said)"
    except Exception as failure:  # a broken test is a failed test, and the others go on
        said = f"{type(failure).__name__}: {failure}"
    print(f"{verdict:4} {name}: {title} ({time.monotonic() - started:.1f} s): {said}", flush=True)
    return verdict == "ok"


def check_client(name, broker, build):
    """Runs all scenarios of one client; returns which passed."""
    client = CLIENTS[name]
    if client.cannot:
        print(f"     {name} cannot {'; '.join(client.cannot)}", flush=True)
    return [
        check(name, title, scenario, client.member(build), broker, folder_of(build, name, scenario.__name__), assignor, session_ms)
        for title, scenario, assignor, session_ms in scenarios(client)
    ]


def check_mixed(broker, build):
    def scenario(group):
        return mixed_join_and_leave(group, build)

    title, folder = f"{', '.join(MIXED)} join one group, and leave", folder_of(build, "mixed", mixed_join_and_leave.__name__)
    return [check("mixed", title, scenario, None, broker, folder, "range", LONG_SESSION_MS)]


def main():
    build, broker, *names = sys.argv[1:]
    if unknown := set(names) - set(CLIENTS):
        sys.exit(f"no client {', '.join(sorted(unknown))}")
    names, broker, build = names or CLIENTS, address(broker), Path(build)
    checks = [lambda name=name: check_client(name, broker, build) for name in names]
    if set(MIXED) <= set(names):
        checks.append(lambda: check_mixed(broker, build))
    with ThreadPoolExecutor(CLIENTS_AT_ONCE) as pool:
        passed = [passed for results in pool.map(lambda check: check(), checks) for passed in results]
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    sys.exit(not all(passed))


main()
