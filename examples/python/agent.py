"""An agent that works on tasks until none is ready. Prints the id of each task it has done.

    LEASEHOLD_URL=… LEASEHOLD_TOKEN=… python3 agent.py [PROJECT]
"""

import sys

from leasehold_client import Held, Leasehold


def main():
    server = Leasehold()
    filter = {"project": sys.argv[1]} if len(sys.argv) > 1 else {}
    while True:
        with server.claim(**filter) as work:
            if work is None:
                return
            try:
                # Other agents build too, one at a time.
                build = server.call("lock.acquire", name="build", wait_seconds=30)
            except Held as held:
                raise SystemExit(f"{held}; next: {held.next}") from held
            # … your work; work.check() before what cannot be undone …
            server.call("lock.release", name="build", fence=build["fence"])
            print(work.task["id"], flush=True)


main()
