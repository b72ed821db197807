"""Closes parts of the server with a time limit, since one may block on Kafka for ever."""

from __future__ import annotations

import logging
import threading
import time
from typing import Protocol

LOG = logging.getLogger(__name__)

# A part has this long even if others have used up the time.
LEAST_SECONDS = 0.5


class Part(Protocol):
    def close(self) -> None: ...


class Closing:
    """Closes parts one after the other, within a number of seconds for all."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def close(self, part: Part) -> bool:
        """Whether the part was closed in time; if not, a background thread goes on closing it."""
        name = type(part).__name__
        failed = threading.Event()

        def close() -> None:
            try:
                part.close()
            except Exception:  # the other parts are to be closed, too
                failed.set()
                LOG.exception("%s could not be closed", name)

        thread = threading.Thread(target=close, name=f"closing-{name}", daemon=True)
        thread.start()
        thread.join(max(LEAST_SECONDS, self._until - time.monotonic()))
        if thread.is_alive():
            LOG.warning("%s has not ended in time: it is left as it is", name)
        return not thread.is_alive() and not failed.is_set()
