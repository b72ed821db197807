"""How far the command log is applied; whoever waits for a command goes on when it is."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from headrace.catalog.command_log import Command, Unreadable
from headrace.engine.cluster.applied_commands import (
    AppliedCommands,
    CommandNotDoneError,
    TerminatedError,
)


@pytest.fixture
def commands():
    log = SimpleNamespace(topic="commands", end=lambda: 2)
    return AppliedCommands(log, timeout=5)


def command(sequence, after):
    return Command(f"type/T{sequence}/create", "", sequence=sequence, after=after)


def test_commands_are_applied_once_and_in_order(commands):
    applied = []
    for sequence in (0, 1, 0, 1):
        commands.receive(command(sequence, sequence - 1), lambda c: applied.append(c.sequence))
    assert applied == [0, 1]
    assert (commands.position, commands.last) == (2, 1)


def test_a_command_that_had_not_seen_the_one_before_is_void(commands):
    applied = []
    for sequence, after in ((0, -1), (1, -1), (2, 0)):
        commands.receive(command(sequence, after), lambda c: applied.append(c.sequence))
    assert applied == [0, 2]
    assert [commands.is_void(sequence) for sequence in range(3)] == [False, True, False]
    assert (commands.position, commands.last) == (3, 2)


def test_what_cannot_be_read_or_applied_is_passed_over(commands):
    def fail(_):
        raise ZeroDivisionError

    commands.receive(Unreadable(0, "not JSON"), fail)
    with pytest.raises(ZeroDivisionError):
        commands.receive(command(1, -1), fail)
    assert commands.position == 2


def test_an_own_command_is_not_heard_again(commands):
    with commands.lock:
        commands.mark_valid(0)
    assert not commands.receive(command(0, -1), lambda c: pytest.fail("it was applied before"))
    assert commands.receive(command(1, 0), lambda c: None)
    assert (commands.position, commands.last) == (2, 1)


def test_who_waits_for_the_end_of_the_log_goes_on_when_it_is_applied(commands):
    waiting = threading.Thread(target=commands.wait_for_end)
    waiting.start()
    for sequence in (0, 1):
        assert waiting.is_alive()
        commands.receive(command(sequence, sequence - 1), lambda c: None)
    waiting.join(5)
    assert not waiting.is_alive()


def test_a_command_that_does_not_come_is_told(commands):
    with pytest.raises(CommandNotDoneError, match="command sequence number: 7"):
        commands.admit(7, timeout=0.01)


def test_nothing_is_admitted_after_the_end(commands):
    commands.admit()
    commands.terminated = True
    with pytest.raises(TerminatedError, match="already shut down"):
        commands.admit()
