"""Free TCP ports on this machine."""

from __future__ import annotations

import socket

from headrace.model.errors import UnavailableError

LOOPBACK = "127.0.0.1"


def is_free(port: int, host: str = LOOPBACK) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do; without it a port whose last connections linger would look taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port(host: str = LOOPBACK) -> int:
    """Any port that nothing listens on."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def require_free(port: int, purpose: str, host: str = LOOPBACK) -> int:
    """The port, or an error that names its purpose; for ports that a user gave."""
    if not is_free(port, host):
        raise UnavailableError(
            f"Port {port} for {purpose} is taken: stop what listens on it or choose another port."
        )
    return port
