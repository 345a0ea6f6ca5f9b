"""Works on tasks through HTTP, as docs say anybody can: claims, renews, completes. Standard library
only. Prints one JSON line per task it completed.

    LEASEHOLD_URL=… LEASEHOLD_TOKEN=… http_agent.py
"""

import http.client, json, os, sys, uuid
from urllib.parse import urlsplit

URL = urlsplit(os.environ["LEASEHOLD_URL"])
HEADERS = {
    "Authorization": "Bearer " + os.environ["LEASEHOLD_TOKEN"],
    "Content-Type": "application/json",
}
TRIES = 5


class Refused(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.code = error["code"]


class Server:
    def __init__(self):
        self.connection = None

    def call(self, operation, **input):
        """One effect however often it is sent: the request id stays the same."""
        body = json.dumps({**input, "request_id": str(uuid.uuid4())})
        for left in reversed(range(TRIES)):
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection(URL.hostname, URL.port, timeout=30)
                self.connection.request("POST", "/v1/" + operation, body, HEADERS)
                response = self.connection.getresponse()
                reply = json.loads(response.read())
            except (OSError, http.client.HTTPException):
                self.connection = None
                if left == 0:
                    raise
                continue
            if response.status == 200:
                return reply
            raise Refused(reply["error"])


def main():
    server = Server()
    print(json.dumps("ready"), flush=True)
    sys.stdin.readline()
    while True:
        claim = server.call("task.claim", ttl_seconds=30)
        if claim["task"] is None:
            return
        task, fence = claim["task"]["id"], claim["lease"]["fence"]
        lease = server.call("lock.renew", name="task:" + task, fence=fence, ttl_seconds=60)
        assert lease["fence"] == fence and lease["ttl_seconds"] == 60
        server.call("task.status", id=task, status="done", fence=fence)
        try:
            server.call("task.status", id=task, status="done", fence=fence)
        except Refused as refused:
            assert refused.code in ("lease_expired", "illegal_move"), refused.code
        else:
            raise AssertionError("a second completion was accepted")
        print(json.dumps({"task": task, "fence": fence}), flush=True)


main()
