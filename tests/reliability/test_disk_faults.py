"""Whatever the disk does while something is saved: what was there stays, and nothing is left beside it."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import opgrow
from opgrow import HeMLRNClassifier
from opgrow.bench.store import Store
from opgrow.cli import app
from opgrow.common import atomic
from opgrow.estimators import files as persistence

ERRORS = ("ENOSPC", "EIO", "EACCES", "EPERM", "EROFS", "EDQUOT", "EFBIG")
INTERRUPTED = "KeyboardInterrupt"
#: What is asked of the system for a file beside its place, and at the end for its folder.
BESIDE, FOLDER = ("open", "write", "fsync", "close"), ("open", "fsync", "close")


def places(n_files: int) -> list[str]:
    """All that is asked of the system to replace so many files, but for the flush of the folder."""
    links = ["link"] * n_files if n_files > 1 else []
    return [*BESIDE * n_files, *links, *["replace"] * n_files]


# --- what saves ---


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    """A model that was saved before, and the one that takes its place."""
    x, y = load_iris(return_X_y=True, as_frame=True)
    settings = {"n_estimators": 1, "max_layers": 1, "fine_tune_epochs": 1}
    old, new = (HeMLRNClassifier(n_min=n, random_state=0, **settings).fit(x, y) for n in (4, 6))
    return {"old": old, "new": new, "x": x, "y": y}


def invoke(*arguments: Any) -> None:
    """Run a command; its one-line error becomes the exception that it tells of."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    # A study tells of its runs before.
    said = [line for line in result.stderr.splitlines() if not line.startswith("[")]
    if result.exit_code == 130:
        assert said == ["error: interrupted"]
        raise KeyboardInterrupt
    if result.exit_code:
        assert result.exit_code == 2, result.output
        [line] = said
        raise CommandFailed(line)


class CommandFailed(Exception):
    pass


def save_with_encoder(models: dict[str, Any], which: str, folder: Path) -> None:
    persistence.save(models[which], folder / "m.safetensors", target="kind")


@pytest.fixture(scope="module")
def sources(models: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    """For commands: a model file and a table of each of the two."""
    for which, n_rows in (("old", 40), ("new", 60)):
        folder = tmp_path_factory.mktemp(which)
        files = folder / "m.safetensors", folder / "t.csv"
        models[which].save(files[0])
        models["x"].iloc[:n_rows].to_csv(files[1], index=False)
        models[f"{which} files"] = files


def predict(models: dict[str, Any], which: str, folder: Path) -> None:
    invoke("predict", *models[f"{which} files"], "--output", folder / "p.csv")


def export_by_command(models: dict[str, Any], which: str, folder: Path) -> None:
    invoke("export", models[f"{which} files"][0], "--format", "c", "--output", folder / "m.c")


def report_by_command(models: dict[str, Any], which: str, folder: Path) -> None:
    invoke("report", models[f"{which} files"][0], "--output", folder / "r.html")


def store(models: dict[str, Any], which: str, folder: Path) -> None:
    Store(folder).save("iris/0/PLN", {"seed": 0}, {"topology": models[which].network_.topology()})


def stored_name() -> str:
    """What the file of a run is called."""
    with tempfile.TemporaryDirectory() as folder:
        Store(folder).save("iris/0/PLN", {}, {})
        return next(Path(folder).iterdir()).name


def study(models: dict[str, Any], which: str, folder: Path) -> None:
    """The results of two splits, and then of one of them."""
    if which == "old" and "study" in models:
        shutil.copytree(models["study"], folder, dirs_exist_ok=True)
        return
    splits = 2 if which == "old" else 1
    options = ("--datasets", "iris", "--models", "PLN max_layers=1 max_neurons=40", "--jobs", 1)
    invoke("bench", "ablations", *options, "--splits", splits, "--out", folder)
    if which == "old":
        models["study"] = folder.parent / "study"
        shutil.copytree(folder, models["study"])


#: By name: the files that are written, and what writes them.
SAVERS: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any], str, Path], None]]] = {
    "save": (("m.safetensors",), lambda m, which, folder: m[which].save(folder / "m.safetensors")),
    "save with encoder": (("m.safetensors",), save_with_encoder),
    "export_onnx": (("m.onnx",), lambda m, which, folder: m[which].export_onnx(folder / "m.onnx")),
    "export_c": (("m.h", "m.c"), lambda m, which, folder: m[which].export_c(folder / "m.c")),
    "report": (("r.html",), lambda m, which, folder: m[which].report(folder / "r.html")),
    "drawing": (("d.svg",), lambda m, which, folder: m[which].plot().save(folder / "d.svg")),
    "opgrow predict": (("p.csv",), predict),
    "opgrow export": (("m.h", "m.c"), export_by_command),
    "opgrow report": (("r.html",), report_by_command),
    "bench store": ((stored_name(),), store),
    "opgrow bench": (("results.csv", "curves.csv", "tables.md", "index.html"), study),
}


def cases() -> Iterator[Any]:
    """At every place of every saver some errors and interruptions, drawn with a fixed seed."""
    draw = random.Random(8)
    for name, (files, _) in SAVERS.items():
        for number, place in enumerate(places(len(files))):
            if place != "link":  # which need not work; see below
                faults = draw.sample(ERRORS, 2 if len(files) == 1 else 1)
                for fault in (*faults, INTERRUPTED) if place in ("write", "replace") else faults:
                    yield pytest.param(name, number, fault, id=f"{name}-{number}-{place}-{fault}")


CASES = list(cases())


# --- what the disk does ---


class Disk:
    """Stands for `os` in `opgrow.common.atomic`: notes what is asked of it, and fails when it is told to.

    ``short`` bytes are what a write takes at most.
    """

    def __init__(self, fails_at: int | None = None, fault: str = "", short: int | None = None) -> None:
        self.fails_at, self.fault, self.short = fails_at, fault, short
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in ("open", "write", "fsync", "close", "link", "replace"):
            return real

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            if self.fails_at is not None and len(self.calls) == self.fails_at + 1:
                return self.fail(name, real, arguments)
            if name == "write" and self.short is not None:
                arguments = arguments[0], arguments[1][: self.short]
            return real(*arguments)

        return call

    def fail(self, name: str, real: Any, arguments: Any) -> Any:
        if name == "write":  # part of it arrives
            real(arguments[0], arguments[1][: len(arguments[1]) // 2])
        elif name == "close":  # as network file systems do, which only then tell of a failed write
            real(*arguments)
        if self.fault == INTERRUPTED:
            raise KeyboardInterrupt
        code = getattr(errno, self.fault)
        raise OSError(code, os.strerror(code))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "out"
    made.mkdir()
    return made


pytestmark = pytest.mark.usefixtures("sources")


def use(monkeypatch: pytest.MonkeyPatch, disk: Disk) -> Disk:
    monkeypatch.setattr(atomic, "os", disk)
    return disk


# --- what must hold ---


def test_there_are_at_least_a_hundred_faults() -> None:
    assert len(CASES) >= 100
    assert {case.values[2] for case in CASES} == {*ERRORS, INTERRUPTED}


@pytest.mark.parametrize("name", SAVERS)
def test_the_places_are_all_there_are(
    name: str, models: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, saver = SAVERS[name]
    saver(models, "old", folder)
    before = contents(folder)
    assert set(files) == set(before)
    disk = use(monkeypatch, Disk())
    saver(models, "new", folder)
    assert disk.calls == [*places(len(files)), *FOLDER]
    after = contents(folder)
    assert set(after) == set(files)
    assert any(after[file] != before[file] for file in files)


@pytest.mark.parametrize(("name", "number", "fault"), CASES)
def test_a_fault_leaves_what_was_there(
    name: str, number: int, fault: str, models: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, saver = SAVERS[name]
    saver(models, "old", folder)
    before = contents(folder)
    disk = Disk(number, fault)
    with monkeypatch.context() as patch:
        use(patch, disk)
        with pytest.raises((OSError, KeyboardInterrupt, CommandFailed)) as caught:
            saver(models, "new", folder)
    assert len(disk.calls) > number
    assert contents(folder) == before
    if fault == INTERRUPTED:
        assert caught.type is KeyboardInterrupt
    else:
        why = os.strerror(getattr(errno, fault))
        targets = [str(folder / file) for file in files]
        if caught.type is CommandFailed:
            assert str(caught.value) in [f"error: {why}: {target}" for target in targets]
        else:
            assert isinstance(caught.value, OSError)
            assert (caught.value.errno, caught.value.filename in targets) == (getattr(errno, fault), True)
    if files == ("m.safetensors",):
        topology = models["old"].network_.topology()
        read = persistence.read(folder / "m.safetensors").estimator
        assert read.network_.topology() == topology


@pytest.mark.parametrize("name", [name for name, (files, _) in SAVERS.items() if len(files) > 1])
def test_a_set_of_new_files_is_taken_back_as_a_whole(
    name: str, models: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, saver = SAVERS[name]
    if name == "opgrow bench":  # whose runs are kept before
        saver(models, "old", folder)
        for file in files:
            (folder / file).unlink()
    last_move = (len(BESIDE) + 1) * len(files) - 1
    disk = use(monkeypatch, Disk(last_move, "ENOSPC"))
    with pytest.raises((OSError, CommandFailed)):
        saver(models, "new", folder)
    assert disk.calls[last_move] == "replace"
    assert contents(folder) == {}


@pytest.mark.parametrize("name", ["save", "export_c", "opgrow bench"])
def test_an_interruption_right_after_the_first_move(
    name: str, models: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, saver = SAVERS[name]
    saver(models, "old", folder)
    before = contents(folder)

    def replace_and_interrupt(source: Any, target: Any) -> None:
        os.replace(source, target)
        monkeypatch.undo()
        raise KeyboardInterrupt

    disk = Disk()
    disk.replace = replace_and_interrupt  # type: ignore[attr-defined]
    use(monkeypatch, disk)
    with pytest.raises(KeyboardInterrupt):
        saver(models, "new", folder)
    found = contents(folder)
    assert set(found) == set(files)
    if len(files) > 1:
        assert found == before
    else:
        assert found != before
        opgrow.load(folder / files[0])


def test_a_file_system_without_links_takes_a_set_back_from_copies(
    models: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = SAVERS["export_c"][1]
    saver(models, "old", folder)
    before = contents(folder)

    def no_links(source: Any, target: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    def failing_for_the_source(part: Any, target: Any) -> None:
        if str(target).endswith(".c") and ".m.c." in str(part):
            monkeypatch.undo()
            raise OSError(errno.EIO, "Input/output error")
        os.replace(part, target)

    disk = Disk()
    disk.link, disk.replace = no_links, failing_for_the_source  # type: ignore[attr-defined]
    use(monkeypatch, disk)
    with pytest.raises(OSError, match="Input/output error"):
        saver(models, "new", folder)
    assert contents(folder) == before
    disk = Disk()
    disk.link = no_links  # type: ignore[attr-defined]
    use(monkeypatch, disk)
    saver(models, "new", folder)
    assert set(contents(folder)) == {"m.c", "m.h"}
    assert contents(folder) != before


@pytest.mark.parametrize("name", ["save", "export_c"])
def test_short_writes_are_continued(
    name: str, models: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = SAVERS[name][1]
    saver(models, "new", folder)
    whole = contents(folder)
    saver(models, "old", folder)
    disk = use(monkeypatch, Disk(short=100))
    saver(models, "new", folder)
    assert disk.calls.count("write") >= sum(map(len, whole.values())) // 100
    assert contents(folder) == whole


def test_a_write_that_takes_nothing_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Disk(short=0))
    with pytest.raises(OSError, match="Input/output error"):
        atomic.write_atomically(folder / "a", b"content")
    assert contents(folder) == {}


@pytest.mark.parametrize("place", [0, 1])
def test_when_only_the_folder_cannot_be_flushed_the_new_file_is_there(
    place: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    atomic.write_atomically(folder / "a", b"old")
    with monkeypatch.context() as patch:
        use(patch, Disk(len(places(1)) + place, "EIO"))
        with pytest.raises(OSError, match="Input/output error") as caught:
            atomic.write_atomically(folder / "a", b"new")
    assert caught.value.filename == str(folder / "a")
    assert contents(folder) == {"a": b"new"}
    use(monkeypatch, Disk(len(places(1)) + place, "EINVAL"))  # a file system that has no such thing
    atomic.write_atomically(folder / "a", b"newer")
    assert contents(folder) == {"a": b"newer"}


def test_a_file_is_on_the_disk_before_it_is_moved_and_the_folder_after(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = use(monkeypatch, Disk())
    atomic.write_atomically(folder / "a", b"content")
    assert disk.calls == ["open", "write", "fsync", "close", "replace", "open", "fsync", "close"]


# --- real faults ---

LIMITED = """
import resource, signal, sys
from pathlib import Path
from typer.testing import CliRunner
from opgrow import load
from opgrow.cli import app
folder = Path(sys.argv[1])
model = load(folder / "new" / "m.safetensors")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for save in (model.save, model.export_c, model.export_onnx, model.report):
    ending = {"save": "safetensors", "export_c": "c", "export_onnx": "onnx", "report": "html"}[save.__name__]
    try:
        save(folder / f"m.{ending}")
    except OSError as error:
        print(error.errno, Path(error.filename).name)
model = str(folder / "new" / "m.safetensors")
for command, file in (("export", "m.c"), ("report", "m.html")):
    result = CliRunner().invoke(app, [command, model, "--output", str(folder / file)])
    print(result.exit_code, result.stderr.strip())
"""


@pytest.mark.skipif(not hasattr(errno, "EDQUOT") or sys.platform == "win32", reason="needs limits of POSIX")
def test_a_limit_on_the_size_of_files(models: Any, folder: Path) -> None:
    (folder / "new").mkdir()
    models["new"].save(folder / "new" / "m.safetensors")
    old = models["old"]
    old.save(folder / "m.safetensors")
    old.export_c(folder / "m.c")
    old.export_onnx(folder / "m.onnx")
    old.report(folder / "m.html")
    before = contents(folder)
    found = subprocess.run(
        [sys.executable, "-c", LIMITED, str(folder)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    names = ("m.safetensors", "m.c", "m.onnx", "m.html")
    why = os.strerror(errno.EFBIG)
    assert found.stdout.splitlines() == [
        *(f"{errno.EFBIG} {name}" for name in names),
        f"2 error: {why}: {folder / 'm.c'}",
        f"2 error: {why}: {folder / 'm.html'}",
    ]
    assert contents(folder) == before
    assert opgrow.load(folder / "m.safetensors").network_.topology() == old.network_.topology()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything is writable for root")
def test_a_folder_that_cannot_be_written_to(models: Any, folder: Path) -> None:
    models["old"].save(folder / "m.safetensors")
    before = contents(folder)
    folder.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match="Nothing can be written to the folder"):
            models["new"].save(folder / "m.safetensors")
    finally:
        folder.chmod(0o700)
    assert contents(folder) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_standard_output(models: Any, folder: Path) -> None:
    model, table = models["new files"]
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [sys.executable, "-m", "opgrow", "predict", str(model), str(table)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert found.returncode == 2
    assert found.stderr == f"error: {os.strerror(errno.ENOSPC)}\n"
