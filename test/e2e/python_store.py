"""The protocol of docs/file-store.md: reading and publishing states. Standard library only."""

import hashlib, json, os, random, re, socket, time

OPENING, MIDDLE, CLOSING = b'{"sha256":"', b'","state":', b"}\n"
GENESIS = "0" * 64


class Refused(Exception):
    pass


def compact(value):
    """The text that JSON.stringify gives."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def event_hash(previous, event):
    fields = {k: event[k] for k in ("position", "at", "type", "agent", "lock", "task", "data")}
    return sha256(f"{previous}\n{compact(fields)}".encode())


# --- this process -----------------------------------------------------------------------------

BOOT = open("/proc/sys/kernel/random/boot_id").read().strip()
SEAT = BOOT + "/" + os.readlink("/proc/self/ns/pid")
START = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19])


def is_dead(pid, start):
    try:
        fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    except OSError:
        return True
    return int(fields[19]) != start or fields[0] in "ZX"


# --- the folder -------------------------------------------------------------------------------


def numbers(dir):
    """State numbers, highest first; listed until two listings agree on the highest."""
    last = None
    while True:
        names = os.listdir(dir) if os.path.isdir(dir) else []
        found = [re.fullmatch(r"state\.([1-9]\d{0,14})\.json", name) for name in names]
        found = sorted((int(match[1]) for match in found if match), reverse=True)
        if last is not None and found[:1] == last[:1]:
            return found
        last = found


def state_path(dir, number):
    return os.path.join(dir, f"state.{number}.json")


def parse(data):
    text = data[len(OPENING) + 64 + len(MIDDLE) : -len(CLOSING)]
    whole = data.startswith(OPENING) and data.endswith(CLOSING)
    if not whole or data[len(OPENING) : len(OPENING) + 64] != sha256(text).encode():
        raise Refused("damaged")
    return json.loads(text)


def read_newest(dir):
    while True:
        found = numbers(dir)
        if not found:
            return empty(dir)
        try:
            with open(state_path(dir, found[0]), "rb") as file:
                state = parse(file.read())
        except FileNotFoundError:
            continue  # pruned meanwhile: there are newer ones
        if state["format"] != 1 or state["head"]["boot"].startswith("moved to "):
            raise Refused("unavailable")
        return state  # with tables and fields that we may not know: they go back as they came


def empty(dir):
    side = os.path.join(dir, "epoch")
    epoch = int(open(side).read()) if os.path.exists(side) else 0
    head = dict(epoch=epoch, fences=0, task_number=0, position=0, hash=GENESIS)
    head.update(boot="", offset_ms=0, last_ms=0)
    checkpoint = {"position": 0, "hash": GENESIS}
    state = dict(format=1, number=0, id="0", lineage=[], head=head, checkpoint=checkpoint)
    return {**state, "events": [], "tables": {"lease": [], "place": []}}


def sync_folder(dir):
    fd = os.open(dir, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def publish(dir, state):
    """True when `state` is part of the store, False when another writer was first."""
    state["number"] += 1
    state["id"] = f"{state['number']}.{os.urandom(8).hex()}"
    state["lineage"] = [*state["lineage"], state["id"]][-512:]
    text = compact(state).encode()
    mark = sha256(SEAT.encode())[:8]
    temporary = os.path.join(dir, f"tmp.{mark}.{os.getpid()}.{START}.{os.urandom(6).hex()}")
    os.makedirs(dir, mode=0o700, exist_ok=True)
    fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY, 0o600)
    with open(fd, "wb") as file:
        file.write(OPENING + sha256(text).encode() + MIDDLE + text + CLOSING)
        file.flush()
        os.fsync(fd)
    try:
        os.link(temporary, state_path(dir, state["number"]))
        sync_folder(dir)
        return read_back(dir, state)
    except FileExistsError:
        return False
    finally:
        remove(temporary)


def remove(path):
    try:
        os.unlink(path)
    except OSError:
        pass


def read_back(dir, state):
    newest = read_newest(dir)
    if state["id"] in newest["lineage"]:
        for number in reversed(numbers(dir)[16:]):
            remove(state_path(dir, number))
        return True
    if int(newest["lineage"][0].split(".")[0]) > state["number"]:
        raise Refused("unknown")
    remove(state_path(dir, state["number"]))
    return False


# --- the lock file: only saves work ----------------------------------------------------------


class LockFile:
    def __init__(self, dir):
        self.path = os.path.join(dir, "write.lock")

    def __enter__(self):
        seen, since, self.mine = None, time.monotonic(), None
        while True:
            try:
                flags = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY
                fd = os.open(self.path, flags, 0o600)
            except FileExistsError:
                text = self.read().rstrip()
                if text != seen:
                    seen, since = text, time.monotonic()
                if time.monotonic() - since > self.patience(text):
                    remove(self.path)
                time.sleep(random.random() * 0.004)
                continue
            except OSError:
                return
            ref = dict(host=socket.gethostname(), seat=SEAT, pid=os.getpid(), start=START)
            self.mine = compact({**ref, "id": os.urandom(6).hex()})
            os.write(fd, self.mine.encode())
            os.close(fd)
            return

    def patience(self, text):
        try:
            ref = json.loads(text)
            return 0 if ref["seat"] == SEAT and is_dead(ref["pid"], ref["start"]) else 0.5
        except (ValueError, KeyError, TypeError):
            return 0.1

    def read(self):
        try:
            return open(self.path).read()
        except OSError:
            return ""

    def __exit__(self, *_):
        text = self.read()
        if self.mine and text.startswith(self.mine):
            remove(self.path)
            if len(text) > len(self.mine):
                time.sleep(0.004)
