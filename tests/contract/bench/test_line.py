"""The bench's long line: a network namespace and a device of its own, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """\
import os, socket, threading, time
from bench.instruments.line import FAR, NEAR, Line, leave_network

leave_network()
data = os.urandom(3_000_000)
with Line() as line, socket.create_server((NEAR, 5000)) as server:
    def serve():
        while True:
            there, _ = server.accept()
            there.sendall(there.recv(1) and data)
            there.close()
    threading.Thread(target=serve, daemon=True).start()
    for seconds in (0.0, 0.05):
        line.take(seconds)
        time.sleep(0.3)
        began = time.monotonic()
        with socket.create_connection((FAR, 5000)) as here:
            connected = time.monotonic() - began
            here.sendall(b"x")
            found = b"".join(iter(lambda: here.recv(65536), b""))
        print(connected >= 2 * seconds, time.monotonic() - began >= 4 * seconds, found == data)
    print(line.cpu > 0)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a network namespace and a device")
def test_bytes_arrive_whole_and_as_late_as_they_should() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["True"] * 7), done.stderr
