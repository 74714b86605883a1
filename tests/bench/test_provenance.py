"""Where figures are from, against what git and the system say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opgrow.bench import provenance


def test_the_commit_is_the_one_that_is_checked_out():
    here = Path(provenance.__file__).parent
    done = subprocess.run(["git", "-C", str(here), "rev-parse", "HEAD"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("this is no checkout")
    assert len(provenance.commit()) >= 7
    assert done.stdout.startswith(provenance.commit())


def test_a_machine_has_a_name():
    assert provenance.machine().strip()
