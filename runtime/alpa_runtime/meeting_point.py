"""Where the processes of a mesh meet."""

from __future__ import annotations

import socket


class MeetingPoint:
    """A port of this host that nobody else is given before the service of jax listens there.

    A port that is only looked up is free again at once, and the next connection of any process may
    take it; the service then ends its process by a segmentation fault. The port is held by a socket
    that does not listen and shares it, as the service's own does, with sockets of the same user.
    """

    def __init__(self, host: str) -> None:
        """Takes a port that is free.

        Args:
            host: the address of a network interface of this host.

        Raises:
            OSError: no port is free, or the address is none of this host's.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            self._socket.bind((host, 0))
        except BaseException:
            self._socket.close()
            raise
        port = self._socket.getsockname()[1]
        self.address = f"[{host}]:{port}" if family == socket.AF_INET6 else f"{host}:{port}"

    def close(self) -> None:
        """Gives the port free; a service that listens there goes on."""
        self._socket.close()
