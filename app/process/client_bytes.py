"""What the system knows of a client's bytes, of which the supervisor reads none."""

import fcntl
import socket
import struct
import sys
import termios

TCP_INFO = struct.Struct("=B127xQ")
"""Of `struct tcp_info` (linux/tcp.h): the state, and the bytes received."""
ESTABLISHED = 1


def bytes_read(connection: socket.socket) -> int:
    """How many bytes of the client's a process has read; 0 when the system does not say."""
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO.size)
        waiting = fcntl.ioctl(connection, termios.FIONREAD, bytes(4))
    except OSError:
        return 0
    state, received = TCP_INFO.unpack(info)
    end = state != ESTABLISHED  # the client's end counts as a byte
    return int(received - int.from_bytes(waiting, sys.byteorder) - end)


def has_unread(connection: socket.socket) -> bool:
    """Whether there is something of the client that nobody has read."""
    try:
        return bool(connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except OSError:
        return False
