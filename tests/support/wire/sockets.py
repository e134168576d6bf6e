"""Two ends of a connection on this machine."""

from __future__ import annotations

import socket

Pair = tuple[socket.socket, socket.socket]
