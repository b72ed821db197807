"""A server that ends does not wait for parts that do not."""

import threading
import time

from headrace.engine.closing import Closing


class Part:
    def __init__(self, wait=None, failure=None):
        self.wait, self.failure = wait, failure
        self.closed = False

    def close(self):
        if self.wait is not None:
            self.wait.wait(60)
        if self.failure is not None:
            raise self.failure
        self.closed = True


def test_what_hangs_is_left_and_what_comes_after_is_closed():
    never, last = threading.Event(), Part()
    closing = Closing(0.3)
    began = time.monotonic()
    assert closing.close(Part())
    assert not closing.close(Part(wait=never))
    assert not closing.close(Part(failure=OSError("no")))
    assert closing.close(last) and last.closed
    assert time.monotonic() - began < 10
    never.set()
