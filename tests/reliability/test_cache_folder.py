"""Where numba keeps compiled kernels if neither the package nor a home can be written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numba
import pytest

from opgrow.kernels.cache_folder import choose_cache_folder

pytestmark = pytest.mark.skipif(os.name == "nt", reason="users and permissions of POSIX")


@pytest.fixture
def no_home(tmp_path, monkeypatch):
    """Nothing can be written but the folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).is_relative_to(tmp_path))
    monkeypatch.setitem(os.environ, "NUMBA_CACHE_DIR", "")
    return tmp_path / f"opgrow-kernels-{os.getuid()}"


def test_a_user_without_a_home_has_a_folder_that_the_next_process_finds_again(no_home):
    for _ in range(2):
        os.environ["NUMBA_CACHE_DIR"] = ""
        choose_cache_folder()
        assert os.environ["NUMBA_CACHE_DIR"] == numba.config.CACHE_DIR == str(no_home)
    assert no_home.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("trap", ["open to others", "a link"])
def test_a_folder_that_others_can_write_is_not_used(trap, no_home, tmp_path):
    """Cached kernels are executed."""
    if trap == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        no_home.symlink_to(tmp_path / "elsewhere")
    else:
        no_home.mkdir()
        no_home.chmod(0o777)
    choose_cache_folder()
    chosen = Path(os.environ["NUMBA_CACHE_DIR"])
    assert chosen.resolve() not in (no_home.resolve(), tmp_path / "elsewhere")
    assert chosen.stat().st_mode & 0o777 == 0o700


def test_numba_chooses_where_it_can(monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    choose_cache_folder()
    assert "NUMBA_CACHE_DIR" not in os.environ
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/somewhere")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    choose_cache_folder()
    assert os.environ["NUMBA_CACHE_DIR"] == "/somewhere"
