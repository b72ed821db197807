"""Ends parts that may wait for something that never comes, such as an answer of Kafka."""

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
    """Closes parts one after the other, all of them in so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def close(self, part: Part) -> bool:
        """Whether it has ended. If not, it goes on doing so in a thread that holds up nothing."""
        name = type(part).__name__
        failed = threading.Event()

        def close() -> None:
            try:
                part.close()
            except Exception:
                failed.set()
                LOG.exception("%s could not be closed", name)

        thread = threading.Thread(target=close, name=f"closing-{name}", daemon=True)
        thread.start()
        thread.join(max(LEAST_SECONDS, self._until - time.monotonic()))
        if thread.is_alive():
            LOG.warning("%s has not ended in time: it is left as it is", name)
        return not thread.is_alive() and not failed.is_set()
