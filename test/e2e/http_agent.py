"""Works on tasks through HTTP with the client of examples/python, in step with other agents. Prints
one JSON line per task it completed.

    LEASEHOLD_URL=… LEASEHOLD_TOKEN=… http_agent.py
"""

import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../examples/python"))
from leasehold_client import Leasehold, Refused

server = Leasehold()
print(json.dumps("ready"), flush=True)
sys.stdin.readline()
while True:
    with server.claim(ttl_seconds=30) as work:
        if work is None:
            break
        task, fence = work.task["id"], work.lease["fence"]
        work.renew()
        assert work.lease["fence"] == fence and work.lease["ttl_seconds"] == 30
        work.move("done")
        try:
            work.move("done")
        except Refused as refused:
            assert refused.code in ("lease_expired", "illegal_move"), refused.code
        else:
            raise AssertionError("a second completion was accepted")
        print(json.dumps({"task": task, "fence": fence}), flush=True)
