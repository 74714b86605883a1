"""Changes that hold as long as somebody needs them."""

from __future__ import annotations

import os
import threading
import time

import pytest

from opgrow.common.shared_change import SharedChange


def test_the_first_changes_and_the_last_undoes():
    said = []

    def change():
        said.append("changed")
        return lambda: said.append("undone")

    shared = SharedChange(change)
    with shared():
        with shared():
            assert said == ["changed"]
        assert said == ["changed"]
    assert said == ["changed", "undone"]


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="no forks on this system")
def test_a_fork_waits_until_no_thread_holds_the_lock():
    """Otherwise the child, in which that thread does not exist, would wait for ever."""
    changing = threading.Event()

    def change():
        changing.set()
        time.sleep(0.2)
        return lambda: None

    shared = SharedChange(change)

    def use():
        with shared():
            pass

    thread = threading.Thread(target=use)
    thread.start()
    changing.wait()
    child = os.fork()
    if child == 0:
        os._exit(int(not shared.lock.acquire(timeout=5)))
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
