"""The socket between a stateful task's Python and its state in the JVM, closed when the task ends.

The JVM's end stays open for ever, one file for each stateful task there ever was, if Python says
that it is done or closes its end first. It is closed if it still waits for Python when the task
ends. So Python says nothing, and closes its end after the JVM.
"""

from __future__ import annotations

import select
import socket
from contextlib import suppress
from typing import Any

from pyspark.sql.streaming.stateful_processor_api_client import (
    StatefulProcessorApiClient,
    StatefulProcessorHandleState,
)

# The clients of tasks that have ended wait here for the JVM; if they do in vain, not for ever.
MOST = 16

_open: list[StatefulProcessorApiClient] = []


def let_jvm_close_first() -> None:
    """From now on, in this process and in those forked from it."""
    begin, tell = StatefulProcessorApiClient.__init__, StatefulProcessorApiClient.set_handle_state

    def begun(self: StatefulProcessorApiClient, *args: Any, **named: Any) -> None:
        close_ended()
        begin(self, *args, **named)
        _open.append(self)

    def set_state(self: StatefulProcessorApiClient, state: StatefulProcessorHandleState) -> None:
        if state is StatefulProcessorHandleState.CLOSED:
            self.handle_state = state
        else:
            tell(self, state)

    StatefulProcessorApiClient.__init__ = begun  # type: ignore[method-assign]
    StatefulProcessorApiClient.set_handle_state = set_state  # type: ignore[method-assign]


def await_jvm(seconds: float) -> None:
    """Returns when the JVM has closed its end, or after so long; for a process that then ends."""
    for client in _open:
        _is_closed(client._client_socket, seconds)


def close_ended() -> None:
    """Closes the sockets whose other end is closed. A process works on one task at a time: those
    that are open now are of tasks before this one."""
    for client in list(_open):
        if len(_open) > MOST or _is_closed(client._client_socket):
            _open.remove(client)
            with suppress(OSError):
                client.sockfile.close()
            client._client_socket.close()


def _is_closed(connection: socket.socket, seconds: float = 0) -> bool:
    """Whether the other end is closed, now or within so long; answers may wait to be read."""
    events = select.poll()
    events.register(connection, getattr(select, "POLLRDHUP", select.POLLHUP))
    return bool(events.poll(1000 * seconds))
