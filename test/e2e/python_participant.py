"""Takes part in a leasehold file store, as docs/file-store.md describes it. Standard library only.

    python_participant.py contend DIR AGENT CYCLES WITNESS NAME...   acquire, renew, release, again
    python_participant.py acquire DIR AGENT NAME TTL_MS              prints the lease
    python_participant.py check DIR                                  verifies sha256, chain, fences
"""

import os, random, sys, time
from datetime import datetime, timezone

from python_store import BOOT, LockFile, Refused, compact, event_hash, publish, read_newest


class View:
    """The newest state, the time, and what has been decided on it."""

    def __init__(self, dir):
        self.state = read_newest(dir)
        head = self.head = self.state["head"]
        wall, mono = int(time.time() * 1000), time.monotonic_ns() / 1e6
        self.leases = {row["name"]: row for row in self.state["tables"].get("lease", [])}
        before = head["last_ms"]
        new_boot = head["boot"] != BOOT
        if new_boot:
            head["offset_ms"] = max(wall, before + 1) - int(mono)
        self.now = head["last_ms"] = max(int(mono + head["offset_ms"]), before)
        at = datetime.fromtimestamp(wall / 1000, timezone.utc)
        self.at = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if new_boot and head["boot"]:
            for row in self.leases.values():
                if row["ended_at"] is None and row["expires_ms"] > before:
                    row["expires_ms"] = self.now + row["ttl_ms"]
        head["boot"] = BOOT

    def record(self, type, agent, lock, data):
        head = self.head
        event = dict(position=head["position"] + 1, at=self.at, type=type, agent=agent)
        event.update(lock=lock, task=None, data=data)
        event["hash"] = event_hash(head["hash"], event)
        head["position"], head["hash"] = event["position"], event["hash"]
        events = self.state["events"]
        events.append(event)
        for old in events[:-1000]:
            self.state["checkpoint"] = {"position": old["position"], "hash": old["hash"]}
        self.state["events"] = events[-1000:]

    def next_fence(self):
        self.head["fences"] += 1
        return self.head["epoch"] * 2**40 + self.head["fences"]

    def commit(self, dir):
        self.state["tables"]["lease"] = list(self.leases.values())
        return publish(dir, self.state)


def acquire(view, agent, name, ttl_ms):
    last = view.leases.get(name)
    if any(place["name"] == name for place in view.state["tables"].get("place", [])):
        raise Refused("held")  # a free lock with a line belongs to its head
    if last and last["ended_at"] is None:
        if view.now < last["expires_ms"] or last["group"]:
            raise Refused("held")
        end(view, last, "expired", last["holder"])
        others = (row for row in view.leases.values() if row["holder"] == last["holder"])
        if all(row["ended_at"] for row in others):
            data = {"lock": name, "fence": last["fence"]}
            view.record("agent.lost", last["holder"], None, data)
    lease = dict(name=name, fence=view.next_fence(), holder=agent, holder_given=True)
    lease.update(process=None, group=None, seat=None, acquired_at=view.at, acquired_ms=view.now)
    lease.update(ttl_ms=ttl_ms, expires_ms=view.now + ttl_ms, ended_at=None, reason=None)
    view.leases[name] = lease
    seconds = ttl_ms // 1000 if ttl_ms % 1000 == 0 else ttl_ms / 1000
    view.record("lease.granted", agent, name, {"fence": lease["fence"], "ttl_seconds": seconds})
    return lease


def held(view, name, fence):
    lease = view.leases.get(name)
    if not lease or lease["fence"] != fence:
        raise Refused("fence_stale")
    if lease["ended_at"] or view.now >= lease["expires_ms"]:
        raise Refused("lease_expired")
    return lease


def renew(view, name, fence):
    lease = held(view, name, fence)
    lease["expires_ms"] = view.now + lease["ttl_ms"]


def release(view, agent, name, fence):
    end(view, held(view, name, fence), "released", agent)


def end(view, lease, how, agent):
    lease.update(ended_at=view.at, reason=how)
    data = {"fence": lease["fence"], "holder": lease["holder"]}
    view.record(f"lease.{how}", agent, lease["name"], data)


def write(dir, decide, *arguments):
    while True:
        with LockFile(dir):
            view = View(dir)
            answer = decide(view, *arguments)
            if view.commit(dir):
                return answer


# --- commands ---------------------------------------------------------------------------------


def contend(dir, agent, cycles, witness, *names):
    """Holds each lock in turn. A second holder would find our witness file, and say so."""
    for i in range(int(cycles)):
        name = names[(i + os.getpid()) % len(names)]
        while True:
            try:
                lease = write(dir, acquire, agent, name, 60_000)
                break
            except Refused as no:
                if str(no) != "held":
                    raise
                time.sleep(random.random() * 0.005)
        mark = os.path.join(witness, name)
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        if i % 3 == 0:
            write(dir, renew, name, lease["fence"])
        os.unlink(mark)
        write(dir, release, agent, name, lease["fence"])
        print(compact({"name": name, "fence": lease["fence"]}), flush=True)


def check(dir):
    state = read_newest(dir)
    position, previous = state["checkpoint"]["position"], state["checkpoint"]["hash"]
    for event in state["events"]:
        assert event["position"] == position + 1, f"gap before {event['position']}"
        assert event["hash"] == event_hash(previous, event), f"event {event['position']} changed"
        position, previous = event["position"], event["hash"]
    assert (position, previous) == (state["head"]["position"], state["head"]["hash"]), "end"
    print(compact({"events": len(state["events"]), "position": position}))


if __name__ == "__main__":
    command, dir, *rest = sys.argv[1:]
    if command == "contend":
        contend(dir, *rest)
    elif command == "check":
        check(dir)
    else:
        agent, name, ttl_ms = rest
        print(compact(write(dir, acquire, agent, name, int(ttl_ms))))
