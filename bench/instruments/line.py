"""A long line: packets between two addresses of one machine that arrive some time after they were sent.

Everything happens in a network namespace that this process makes for itself. There is a TUN device, and behind it an
address that nobody has: what is sent there comes back with source and destination exchanged, a little later. A client
that connects to `FAR` so reaches whoever listens at `NEAR`, over a real TCP connection with real round trips, windows
and slow starts. The device carries packets as large as IP allows, and as with network cards nobody computes checksums:
that keeps what the line itself costs low.

Run as a program, `python -m bench.instruments.line`, this is the line; it ends with its standard input, from which it
reads how many seconds a packet takes, a number in each line.
"""

from __future__ import annotations

import ctypes
import fcntl
import math
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from types import TracebackType

import psutil

from reconciler.model.base.errors import EnvironmentFault, Problem

NEAR, FAR = "10.111.0.1", "10.111.0.2"
_MASK = "255.255.255.0"
_DEVICE, _LOOPBACK = b"line0", b"lo"
_LARGEST = 65_535
# More than all windows of a race together: what is lost here would say nothing of a line.
_PACKETS_IN_QUEUE = 10_000
# Packets that are read before those are sent whose time has come.
_AT_ONCE = 64
# What TCP keeps of a connection: at the least, at first, and at the most. The usual second number has room for some
# dozens of usual packets; of ours it would hold one, and a connection would grow for seconds.
_WINDOW = "4096 4194304 33554432"
_WINDOWS = ("tcp_rmem", "tcp_wmem")
# From <linux/sched.h>, <linux/if_tun.h> and <linux/sockios.h>.
_CLONE_NEWNET = 0x40000000
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_IFF_TUN, _IFF_NO_PI, _IFF_VNET_HDR, _TUN_F_CSUM = 0x0001, 0x1000, 0x4000, 0x01
_SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK, _SIOCSIFMTU, _SIOCSIFTXQLEN = 0x8914, 0x8916, 0x891C, 0x8922, 0x8943
_IFF_UP_RUNNING = 0x0041
# How a packet is cut: what stands before the addresses (10 bytes say which checksum is left to the other side, then 12
# of an IPv4 header), source, destination, the rest.
_BEFORE, _ADDRESS = 10 + 12, 4

_Packet = tuple[bytearray, bytearray, bytearray, memoryview]


def leave_network() -> None:
    """Put this process, and all that it starts from now on, into a network of its own, with a loopback device.

    Call it before there is a second thread: a thread that is there already stays where it was.

    Raises:
        EnvironmentFault: AB353, it may not.
    """
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET) != 0:
        told = os.strerror(ctypes.get_errno())
        raise EnvironmentFault(Problem("AB353", "the long line", f"no network of its own: {told}", "run it as root"))
    _set(_LOOPBACK, _SIOCSIFFLAGS, struct.pack("H", _IFF_UP_RUNNING))
    for name in _WINDOWS:
        Path("/proc/sys/net/ipv4", name).write_text(_WINDOW)


class Line:
    """A line between `NEAR` and `FAR`, open for the length of a block; short at first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Line:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.instruments.line"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise EnvironmentFault(Problem("AB353", "the long line", "its device cannot be made", "run it as root"))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process is not None
        self._process.communicate()

    def take(self, seconds: float) -> None:
        """Let each packet take some seconds from now on, one way."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n".encode())
        self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """The process that carries the packets."""
        assert self._process is not None, "it is open"
        return self._process.pid

    @property
    def cpu(self) -> float:
        """CPU seconds that carrying the packets has taken until now."""
        return float(sum(psutil.Process(self.pid).cpu_times()[:2]))


def _set(device: bytes, request: int, value: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, request, struct.pack("16s24s", device, value))


def _address(text: str) -> bytes:
    return struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton(text))


def _device() -> int:
    """Make the device and return what its packets are read from and written to."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", _DEVICE, _IFF_TUN | _IFF_NO_PI | _IFF_VNET_HDR))
    fcntl.ioctl(device, _TUNSETOFFLOAD, _TUN_F_CSUM)
    for request, value in (
        (_SIOCSIFADDR, _address(NEAR)),
        (_SIOCSIFNETMASK, _address(_MASK)),
        (_SIOCSIFMTU, struct.pack("i", _LARGEST)),
        (_SIOCSIFTXQLEN, struct.pack("i", _PACKETS_IN_QUEUE)),
        (_SIOCSIFFLAGS, struct.pack("H", _IFF_UP_RUNNING)),
    ):
        _set(_DEVICE, request, value)
    return device


def _carry(device: int, orders: int) -> None:
    """Carry packets until there is nobody any more who gives orders."""
    seconds, on_their_way = 0.0, deque[tuple[float, _Packet, int]]()
    # New memory for each packet would cost more than to carry it.
    free: list[_Packet] = []
    poll = select.poll()
    for file in (device, orders):
        poll.register(file, select.POLLIN)
    while True:
        left = on_their_way[0][0] - time.monotonic() if on_their_way else None
        for file, _ in poll.poll(None if left is None else max(0, math.ceil(left * 1_000))):
            if file == device:
                _take_in(device, on_their_way, free, seconds)
            elif not (order := os.read(orders, 4096)):
                return
            else:
                seconds = float(order.split()[-1])
        now = time.monotonic()
        while on_their_way and on_their_way[0][0] <= now:
            _, packet, size = on_their_way.popleft()
            before, source, destination, rest = packet
            # Exchanged addresses leave checksums right.
            os.writev(device, (before, destination, source, rest[:size]))
            free.append(packet)


def _take_in(device: int, on_their_way: deque[tuple[float, _Packet, int]], free: list[_Packet], seconds: float) -> None:
    """Read packets that there are."""
    for _ in range(_AT_ONCE):
        packet = free.pop() if free else _new_packet()
        try:
            size = os.readv(device, packet) - _BEFORE - 2 * _ADDRESS
        except BlockingIOError:
            free.append(packet)
            return
        on_their_way.append((time.monotonic() + seconds, packet, size))


def _new_packet() -> _Packet:
    rest = memoryview(bytearray(_LARGEST))
    return bytearray(_BEFORE), bytearray(_ADDRESS), bytearray(_ADDRESS), rest


if __name__ == "__main__":
    opened = _device()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    _carry(opened, sys.stdin.fileno())
