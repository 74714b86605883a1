"""Comparing speed with another commit: processes in turn, and what is refused."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from opgrow.bench import against, checkout
from opgrow.bench.against import measure_against
from opgrow.cli.bench import app


@pytest.fixture
def itself(monkeypatch):
    """The other commit is this one."""

    @contextmanager
    def checked_out(commit, folder):
        yield replace(checkout.here(), name=commit)

    monkeypatch.setattr(against, "checked_out", checked_out)
    monkeypatch.setattr(against, "_SECONDS", 0.0)


def test_both_sides_and_the_peer_are_timed(itself, monkeypatch):
    works = [work for work in against._works() if work.key in ("search small", "predict 1")]
    monkeypatch.setattr(against, "_works", lambda: works)
    search, predict = measure_against("0123abc", None, 1, quick=True, n_threads=1)
    assert search.name == "search, 144 sets, 40 neurons, 460 x 8"
    assert (search.value > 0, set(search.peers)) == (True, {"0123abc"})
    assert set(predict.peers) == {"0123abc", "MLPClassifier((200, 200))"}
    assert all(value > 0 for value in predict.peers.values())
    assert predict.note.startswith("this: ")
    assert predict.note.endswith(" parameters")


def test_data_that_are_missing_are_left_out(itself, monkeypatch, tmp_path):
    monkeypatch.setattr(against, "_Worker", lambda side, n_threads: nullcontext())  # there is nothing to ask
    monkeypatch.delenv("OPGROW_DATA", raising=False)
    works = [against._Work("fit", "fit", data="no_such_data", slow=True)]
    monkeypatch.setattr(against, "_works", lambda: works)
    assert list(measure_against("0123abc", str(tmp_path), 1, quick=False, n_threads=1)) == []


def test_a_process_that_ends_early_is_named(itself, monkeypatch, capfd):
    works = [against._Work("forward nothing", "forward, nothing")]
    monkeypatch.setattr(against, "_works", lambda: works)
    with pytest.raises(RuntimeError, match="the process of commit this has ended"):
        list(measure_against("0123abc", None, 1, quick=True, n_threads=1))
    assert "nothing" in capfd.readouterr().err


def test_a_commit_has_a_worktree_and_an_environment_of_its_own(tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(checkout, "_run", lambda *command: commands.append(command) or "")
    source = tmp_path / "source"
    source.mkdir()
    needed = '"numpy>=1.26", "no-such-package[extra]>=3; python_version > \'3\'"'
    (source / "pyproject.toml").write_text(f"[project]\ndependencies = [{needed}]\n")
    checkout._install_missing(tmp_path / "python", source)
    constraints = ("--constraint", source / "constraints.txt", "no-such-package")
    assert [command[-3:] for command in commands] == [constraints]


def test_what_git_does_not_know_is_refused():
    with pytest.raises(
        ValueError, match="--against must be a commit of the repository .* got 'no such commit'"
    ):
        list(measure_against("no such commit", None, 1, quick=True, n_threads=1))


def test_a_command_that_fails_says_why():
    with pytest.raises(RuntimeError, match="no_such_option"):
        checkout._run("git", "--no_such_option")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--isa", "v3"], "--isa and --folder are for --against"),
        (["--against", "HEAD", "--pop"], "leave out --pop"),
    ],
)
def test_options_that_do_not_go_together(options, message):
    result = CliRunner().invoke(app, ["speed", *options])
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)


def test_packages_of_this_environment_are_found_from_another(tmp_path):
    checkout._run(checkout.here().python, "-m", "venv", "--without-pip", tmp_path)
    python = tmp_path / "bin" / "python"
    checkout._reuse_packages(python)
    done = subprocess.run([python, "-c", "import safetensors"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
