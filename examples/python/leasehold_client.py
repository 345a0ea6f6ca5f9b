"""A client for Leasehold over HTTP, in one file and with the standard library only: copy it.

    from leasehold_client import Held, Leasehold

    server = Leasehold()                      # LEASEHOLD_URL and LEASEHOLD_TOKEN
    with server.claim(project="web") as work:
        if work:
            print(work.task["title"])         # renewed while this runs, done afterwards

Every operation of docs/reference.md can be asked: server.call("lock.acquire", name="db") where it
changes something, server.read("task.list", status="todo") where it does not.
"""

import http.client
import json
import os
import threading
import uuid
from urllib.parse import urlsplit

TRIES = 5
TIMEOUT_SECONDS = 30


class Refused(Exception):
    """An expected "no": what happened, why, and what to do next."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.code = error["code"]
        self.next = error.get("next", "")
        self.details = error.get("details", {})


class Held(Refused):
    """Another agent has the lock; details say who, since when and until when."""


class Lost(Refused):
    """The lease is over (fence_stale, lease_expired): stop, what you write is refused."""


class Conflict(Refused):
    """Somebody changed it since you read it; details have the present state."""


class NotAllowed(Refused):
    """The token is missing or unknown, or may not do this."""


class NotFound(Refused):
    """There is no such thing."""


class TryLater(Refused):
    """rate_limited or unavailable: the same request may pass later."""


KINDS = {
    "held": Held,
    "deadlock": Held,
    "fence_stale": Lost,
    "lease_expired": Lost,
    "conflict": Conflict,
    "illegal_move": Conflict,
    "unauthorized": NotAllowed,
    "forbidden": NotAllowed,
    "not_found": NotFound,
    "rate_limited": TryLater,
    "unavailable": TryLater,
}


class Leasehold:
    """One server, as the agent that the token names. A thread has its own connection."""

    def __init__(self, url=None, token=None):
        self.url = urlsplit(url or os.environ["LEASEHOLD_URL"])
        token = token or os.environ["LEASEHOLD_TOKEN"]
        self.headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        self.own = threading.local()

    def call(self, operation, **input):
        """Sent again after a lost reply it has one effect: the request id stays the same."""
        return self.read(operation, **{"request_id": str(uuid.uuid4()), **input})

    def read(self, operation, **input):
        """For operations that change nothing: those take no request id."""
        body = json.dumps(input)
        for left in reversed(range(TRIES)):
            try:
                status, reply = self._send(operation, body)
            except (OSError, http.client.HTTPException):
                self.own.connection = None
                if left == 0:
                    raise
                continue
            if status == 200:
                return reply
            error = reply["error"]
            raise KINDS.get(error["code"], Refused)(error)

    def _send(self, operation, body):
        connection = getattr(self.own, "connection", None)
        if connection is None:
            secure = self.url.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            connection = kind(self.url.hostname, self.url.port, timeout=TIMEOUT_SECONDS)
            self.own.connection = connection
        connection.request("POST", "/v1/" + operation, body, self.headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def claim(self, ttl_seconds=60, **filter):
        """The next ready task, or the one with this id, kept while the block runs."""
        return Work(self, ttl_seconds, filter)


class Work:
    """A claimed task: renewed by a thread, done when the block ends, failed when it raises."""

    def __init__(self, server, ttl_seconds, filter):
        self.server, self.ttl_seconds, self.filter = server, ttl_seconds, filter
        self.over = threading.Event()
        self.lost = None

    def __enter__(self):
        claim = self.server.call("task.claim", ttl_seconds=self.ttl_seconds, **self.filter)
        self.task, self.lease = claim["task"], claim["lease"]
        if self.task is None:
            return None
        self.renewing = threading.Thread(target=self._renew, daemon=True)
        self.renewing.start()
        return self

    def check(self):
        """Raises Lost when the lease is gone: call it before what cannot be undone."""
        if self.lost:
            raise self.lost

    def renew(self):
        """Extends the lease now. Raises Lost when it is over."""
        fence = self.lease["fence"]
        name, ttl_seconds = self.lease["name"], self.ttl_seconds
        self.lease = self.server.call("lock.renew", name=name, fence=fence, ttl_seconds=ttl_seconds)

    def move(self, status):
        """Every status but in_progress ends the lease."""
        self.over.set()
        fence = self.lease["fence"]
        self.server.call("task.status", id=self.task["id"], status=status, fence=fence)

    def _renew(self):
        while not self.over.wait(self.ttl_seconds / 3):
            try:
                self.renew()
            except TryLater:
                continue
            except (Refused, OSError, http.client.HTTPException) as error:
                if not self.over.is_set():
                    self.lost = error
                return

    def __exit__(self, kind, error, trace):
        if self.task is None or self.over.is_set():
            return
        self.over.set()
        self.renewing.join()
        if error is None:
            self.check()
        if not self.lost:
            self.move("done" if error is None else "failed")
