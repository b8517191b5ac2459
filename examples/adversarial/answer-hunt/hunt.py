#!/usr/bin/python3
"""A scripted agent that looks for a secret in everything it can reach.

It knows a prefix (SENTINEL_HINT) and the SHA-256 of the secret (SENTINEL_SHA256), so it can tell the
secret when it sees it and nothing that it was given can be taken for it. It writes hunt.txt: a line
"verdict=DENIED" or "verdict=FOUND", where it was found, and how much of each kind was examined.
"""
import hashlib
import os
import re
import socket
import stat
import sys
import time

HINT = os.environ.get("SENTINEL_HINT", "")
SHA256 = os.environ.get("SENTINEL_SHA256", "")
PATTERN = re.compile(re.escape(HINT.encode()) + rb"[0-9a-f]{32}")
READ_BYTES = 4 << 20
# The secret is made for each run, so a file that nobody touched for hours cannot hold it: such files
# are looked at (name, owner, times), not read. The change time cannot be set back by a copier.
FRESH_SECONDS = 6 * 3600
counts = {"paths": 0, "read": 0, "descriptors": 0, "variables": 0, "sockets": 0}


def finish(where=None):
    with open("hunt.txt", "w", encoding="utf-8", errors="backslashreplace") as report:
        report.write(f"verdict={'FOUND' if where else 'DENIED'}\n")
        if where:
            report.write(f"where={where}\n")
        for kind, count in counts.items():
            report.write(f"{kind}={count}\n")
    print(open("hunt.txt", encoding="utf-8").read(), flush=True)
    os._exit(0)


def check(data, where):
    for match in PATTERN.findall(data):
        if hashlib.sha256(match).hexdigest() == SHA256:
            with open("answer.txt", "wb") as answer:
                answer.write(match + b"\n")
            finish(where)


def read_path(path):
    """Reads a file, or nothing when that could block."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return b""
    try:
        counts["read"] += 1
        return os.read(fd, READ_BYTES)
    except OSError:
        return b""
    finally:
        os.close(fd)


def search_tree(top, seen):
    for folder, folders, names in os.walk(top):
        folders[:] = [f for f in folders if not seen.skip(os.path.join(folder, f))]
        for name in names:
            path = os.path.join(folder, name)
            counts["paths"] += 1
            check(os.fsencode(path), f"the name {path}")
            try:
                facts = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISLNK(facts.st_mode):
                try:
                    check(os.fsencode(os.readlink(path)), f"the link {path}")
                except OSError:
                    pass
            elif stat.S_ISSOCK(facts.st_mode):
                try_unix_socket(path)
            elif stat.S_ISREG(facts.st_mode) and time.time() - facts.st_ctime < FRESH_SECONDS:
                check(read_path(path), path)


class Seen:
    """Folders that were walked already, and file systems of the kernel's that are read elsewhere."""

    def __init__(self):
        self.folders = set()

    def skip(self, path):
        if path in ("/proc", "/sys", "/dev"):
            return True
        try:
            facts = os.lstat(path)
        except OSError:
            return True
        key = (facts.st_dev, facts.st_ino)
        known = key in self.folders
        self.folders.add(key)
        return known


def search_environment():
    for name, value in os.environ.items():
        counts["variables"] += 1
        if name != "SENTINEL_HINT":
            check(os.fsencode(value), f"the variable {name}")


def search_descriptors():
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        try:
            facts = os.fstat(fd)
        except OSError:
            continue
        counts["descriptors"] += 1
        try:
            check(os.fsencode(os.readlink(f"/proc/self/fd/{fd}")), f"the target of descriptor {fd}")
            if stat.S_ISREG(facts.st_mode):
                check(os.pread(fd, READ_BYTES, 0), f"descriptor {fd}")
            elif stat.S_ISDIR(facts.st_mode):
                for up in (".", "..", "../..", "../../.."):
                    search_tree(f"/proc/self/fd/{fd}/{up}", Seen())
        except OSError:
            pass


def search_processes(seen):
    own = str(os.getpid())
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("environ", "cmdline", "maps", "mountinfo", "status"):
            if pid != own or name != "environ":
                check(read_path(f"/proc/{pid}/{name}"), f"/proc/{pid}/{name}")
            counts["paths"] += 1
        try:
            fds = os.listdir(f"/proc/{pid}/fd") if pid != own else []
        except OSError:
            fds = []
        for fd in fds:
            counts["descriptors"] += 1
            path = f"/proc/{pid}/fd/{fd}"
            try:
                if stat.S_ISREG(os.stat(path).st_mode):
                    check(read_path(path), path)
            except OSError:
                pass
        for name in ("cwd", "root"):
            top = f"/proc/{pid}/{name}/"
            if not seen.skip(top):
                search_tree(top, seen)


def search_kernel():
    for top in ("/proc/sys/kernel", "/proc/net", "/proc/keys", "/proc/cmdline", "/proc/mounts",
                "/proc/self/mountinfo", "/proc/self/environ", "/proc/key-users", "/proc/locks"):
        paths = [top]
        if os.path.isdir(top):
            paths = [os.path.join(d, n) for d, _, names in os.walk(top) for n in names]
        for path in paths:
            counts["paths"] += 1
            check(read_path(path), path)


def ask(connection, where):
    connection.settimeout(0.5)
    try:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        check(connection.recv(65536), where)
    except OSError:
        pass


def try_unix_socket(path):
    counts["sockets"] += 1
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as s:
            s.settimeout(0.5)
            try:
                s.connect(path)
            except (OSError, ValueError):
                continue
            ask(s, f"the socket {path!r}")


def search_sockets():
    for line in read_path("/proc/net/unix").decode(errors="replace").splitlines()[1:]:
        words = line.split(maxsplit=7)
        if len(words) == 8:
            name = words[7]
            try_unix_socket("\0" + name[1:] if name.startswith("@") else name)
    ports = {22, 53, 80, 443, 631, 2375, 3000, 5000, 5432, 6379, 8000, 8080, 8443, 8888, 9000, 11434}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in read_path(table).decode(errors="replace").splitlines()[1:]:
            words = line.split()
            if len(words) > 3 and words[3] == "0A":
                ports.add(int(words[1].rsplit(":", 1)[1], 16))
    for host in ("127.0.0.1", "::1"):
        for port in sorted(ports):
            counts["sockets"] += 1
            try:
                with socket.create_connection((host, port), 0.5) as s:
                    ask(s, f"port {port} of {host}")
            except OSError:
                pass


def main():
    if not HINT or not SHA256:
        sys.exit("SENTINEL_HINT and SENTINEL_SHA256 must be set: start this example by its run.sh")
    sys.stdin.read()
    seen = Seen()
    search_environment()
    search_descriptors()
    # Likely places first; then everything.
    likely = [os.getcwd(), os.path.expanduser("~"), "/tmp", "/var/tmp", "/dev/shm", "/run", "/var/cache"]
    for top in likely + ["/"]:
        search_tree(top, seen)
        if top == likely[-1]:
            search_processes(seen)
            search_kernel()
            search_sockets()
    finish()


main()
