"""Arrays that ranks of one machine exchange through memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from opgrow.distributed.shared_memory import SLOT, MemoryLine, create_file, possible

pytestmark = pytest.mark.skipif(not possible(), reason="needs Linux on x86")


@pytest.fixture
def lines() -> Iterator[list[MemoryLine]]:
    name = create_file(3)
    assert name is not None
    yield [MemoryLine(name, rank, 3, timeout=30.0) for rank in range(3)]
    os.unlink(name)


def total(line: MemoryLine, values: np.ndarray) -> np.ndarray:
    parts = [pieces.view(values.dtype).sum(axis=0) for pieces in line.exchange(values.view(np.uint8))]
    return np.concatenate(parts)


@pytest.mark.parametrize("size", [1, 100, SLOT // 8, SLOT // 8 + 1, SLOT])
def test_every_rank_sees_what_all_have_handed_over(lines: list[MemoryLine], size: int) -> None:
    rng = np.random.default_rng(0)
    rounds = [[rng.normal(size=size) for _ in lines] for _ in range(4)]

    def work(rank: int) -> list[np.ndarray]:
        return [total(lines[rank], values[rank]) for values in rounds]

    with ThreadPoolExecutor(3) as pool:
        actual = list(pool.map(work, range(3)))
    for rank in range(3):
        for values, seen in zip(rounds, actual[rank], strict=True):
            np.testing.assert_array_equal(seen, np.stack(values).sum(axis=0))


def test_a_rank_that_leaves_is_not_waited_for(lines: list[MemoryLine]) -> None:
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda line: total(line, np.ones(1))[0], lines))
        assert done == [3.0, 3.0, 3.0]
        lines[2].leave()
        waiting = [pool.submit(total, line, np.ones(1)) for line in lines[:2]]
        for other in waiting:
            with pytest.raises(RuntimeError, match="a rank has left"):
                other.result(timeout=30)


def test_what_a_rank_handed_over_before_it_left_counts(lines: list[MemoryLine]) -> None:
    with ThreadPoolExecutor(2) as pool:
        early = [pool.submit(total, line, np.ones(1)) for line in lines[1:]]
        while lines[1].filled[1:].min() < 1:
            pass
        lines[2].left[2] = 1
        assert total(lines[0], np.ones(1)) == 3.0
        assert [other.result(timeout=30)[0] for other in early] == [3.0, 3.0]


def test_a_process_that_has_ended_is_not_waited_for(lines: list[MemoryLine]) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lines[0].watch([child.pid])
    child.kill()
    with pytest.raises(RuntimeError, match="its process has ended"):
        total(lines[0], np.ones(1))
    child.wait()
    lines[0].leave()


def test_a_rank_that_does_not_answer_is_given_up(lines: list[MemoryLine]) -> None:
    lines[0].timeout = 0.1
    with pytest.raises(RuntimeError, match="has not answered for 0.1 s"):
        total(lines[0], np.ones(1))
