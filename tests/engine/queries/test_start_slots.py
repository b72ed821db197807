"""Few queries start at a time, in order, and none for ever."""

from __future__ import annotations

import threading

from headrace.engine.queries.start_slots import StartSlots
from server_process import eventually


class Queue:
    """Queries that ask for a slot, each on a thread of its own."""

    def __init__(self, most):
        self.slots = StartSlots(most)
        self.let_in: list[str] = []
        self.threads: dict[str, threading.Thread] = {}

    def ask(self, name, timeout=30.0):
        def take():
            if self.slots.take(name, timeout):
                self.let_in.append(name)

        self.threads[name] = threading.Thread(target=take, daemon=True)
        self.threads[name].start()
        waits, thread = self.slots._asked, self.threads[name]
        eventually(lambda: waits.get(name) is True or not thread.is_alive(), 5)

    def join(self, name):
        self.threads[name].join(5)
        assert not self.threads[name].is_alive()


def test_so_many_start_at_once_and_others_in_the_order_in_which_they_asked():
    queue = Queue(2)
    for name in "abcde":
        queue.ask(name)
    assert queue.let_in == ["a", "b"] and queue.slots.has("a") and not queue.slots.has("c")
    for done, next_in in (("b", "c"), ("a", "d"), ("c", "e")):
        queue.slots.leave(done)
        queue.join(next_in)
        assert queue.let_in[-1] == next_in


def test_who_does_not_wait_any_more_is_passed_over_and_keeps_its_place():
    queue = Queue(1)
    queue.ask("a")
    queue.ask("b", timeout=0)  # and comes again
    queue.join("b")
    queue.ask("c")
    queue.slots.leave("a")
    queue.join("c")
    for name in "db":
        queue.ask(name)
    queue.slots.leave("c")
    queue.join("b")
    assert queue.let_in == ["a", "c", "b"]
    queue.slots.leave("b")
    queue.join("d")


def test_who_leaves_while_it_waits_is_not_let_in():
    queue = Queue(1)
    for name in "abc":
        queue.ask(name)
    queue.slots.leave("b")
    queue.join("b")
    queue.slots.leave("a")
    queue.join("c")
    assert queue.let_in == ["a", "c"]
