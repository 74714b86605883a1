"""A fit that is cut off goes on where it was, and grows the same network."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save
from sklearn.datasets import make_classification, make_regression
from torturer import FITS
from typer.testing import CliRunner

import opgrow
from opgrow.cli import app
from opgrow.common.checksums import seal, tensors_in
from opgrow.growth.checkpoints import folder as folder_module
from opgrow.growth.checkpoints import identity as identity_module
from opgrow.growth.checkpoints.codec import decode, encode
from opgrow.training.schedule import Schedule, TrainingState
from opgrow.training.settings import TuningSettings

X, Y = make_classification(200, 6, n_informative=4, n_classes=3, random_state=0)
T = make_regression(200, 6, noise=1.0, random_state=0)[1]
SMALL = {"preset": None, "n_min": 5, "n_step": 3, "max_neurons": 8, "max_layers": 1, "fine_tune_epochs": 3}
QUICK = SMALL | {"epochs": (3, 2), "learning_rates": (0.01, 0.001), "patience": None}


def small(**changes):
    return opgrow.HeMLGOPClassifier(**(QUICK | {"random_state": 0} | changes))


def same(one, other) -> bool:
    return one.network_.digest() == other.network_.digest()


def _environment():
    """For a Python in which this file is a module."""
    folders = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(f for f in folders if f)}


class Cut(BaseException):
    """What a test raises where another process would be killed."""


@pytest.fixture
def cut_after(monkeypatch):
    """Let the growth end with a Cut as it writes for the given time; the file is there."""

    whole = folder_module.Folder.write

    def arm(count):
        left = [count]

        def write(self, path, record, value):
            whole(self, path, record, value)
            if not self._closed:  # or it is a thread of a fit that was cut off before
                left[0] -= 1
                if left[0] == 0:
                    raise Cut

        monkeypatch.setattr(folder_module.Folder, "write", write)

    return arm


@pytest.mark.parametrize(
    ("name", "every"), [("one network", 1), *((name, 1 if name in ("PLN", "BLS") else 7) for name in FITS)]
)
def test_a_fit_that_is_cut_off_again_and_again_grows_the_same_network(name, every, tmp_path, cut_after):
    estimator, parameters = FITS[name]
    cls, y = getattr(opgrow, estimator), Y if estimator.endswith("Classifier") else T
    whole = cls(**parameters).fit(X, y)
    parts = cls(**parameters, checkpoint_dir=tmp_path / "fit", checkpoint_seconds=0)
    cuts = 0
    while True:
        cut_after(every)
        try:
            parts.fit(X, y)
            break
        except Cut:
            cuts += 1
            assert cuts < 500
    assert cuts > 0
    assert same(whole, parts)
    for one, other in zip(whole.history_, parts.history_, strict=True):
        differing = {k: v for k, v in one.to_dict().items() if k[-8:] != "_seconds"}
        assert json.dumps(differing) == json.dumps({k: other.to_dict()[k] for k in differing})
    left = {path.name for path in (tmp_path / "fit").iterdir()}
    assert not any("part" in name or name.endswith(".tmp") for name in left)


@pytest.mark.cpu
def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    small(checkpoint_dir=tmp_path).fit(X, Y)
    monkeypatch.setattr("opgrow.growth.methods.hemlgop.search", lambda *a: pytest.fail("searched again"))
    monkeypatch.setattr("opgrow.training.native.NativeTrainer.epoch", lambda *a: pytest.fail("tuned again"))
    small(checkpoint_dir=tmp_path).fit(X, Y)


def test_history_tells_of_the_time_of_all_runs(tmp_path):
    small(checkpoint_dir=tmp_path).fit(X, Y)
    taken = [json.loads(_text(path))["record"]["seconds"] for path in tmp_path.glob("*.safetensors")]
    again = small(checkpoint_dir=tmp_path).fit(X, Y)
    assert sum(step.search_seconds + step.tuning_seconds for step in again.history_) >= 0.999 * sum(taken) > 0


def test_an_optimiser_of_the_user_goes_on_too(tmp_path, cut_after):
    def make(groups):
        return torch.optim.SGD(groups, lr=0.01, momentum=0.9)

    whole = small(optimizer=make).fit(X, Y)
    parts = small(optimizer=make, checkpoint_dir=tmp_path / "fit", checkpoint_seconds=0)
    while True:
        cut_after(3)
        try:
            parts.fit(X, Y)
            break
        except Cut:
            continue
    assert same(whole, parts)


def test_threads_do_not_make_another_fit(tmp_path, cut_after):
    one = small(preset="balanced", checkpoint_dir=tmp_path / "fit", n_jobs=1)
    cut_after(4)
    with pytest.raises(Cut):
        one.fit(X, Y)
    cut_after(0)
    two = small(preset="balanced", checkpoint_dir=tmp_path / "fit", n_jobs=2).fit(X, Y)
    assert same(two, small(preset="balanced").fit(X, Y))


def test_a_fit_without_a_seed_goes_on_with_the_one_it_had(tmp_path, cut_after):
    cut_after(2)
    with pytest.raises(Cut):
        small(random_state=None, checkpoint_dir=tmp_path / "fit").fit(X, Y)
    cut_after(0)
    first = small(random_state=None, checkpoint_dir=tmp_path / "fit").fit(X, Y)
    assert same(first, small(random_state=None, checkpoint_dir=tmp_path / "fit").fit(X, Y))


def _refused():
    gop, other = opgrow.HeMLGOPClassifier, opgrow.HeMLRNClassifier
    return [
        (gop, {"n_min": 6}, (X, Y), "with n_min=5, and this one has n_min=6"),
        (gop, {"loss": torch.nn.functional.mse_loss}, (X, Y), 'with loss="auto"'),
        (gop, {"random_state": 1}, (X, Y), "with the seed"),
        (gop, {}, (X[:150], Y[:150]), "on other data: X was 200 x 6 float64"),
        (gop, {}, (X, np.roll(Y, 1)), "on other data: y was"),
        (gop, {}, (X, Y, np.arange(200.0)), "on other data: sample_weight was"),
        (gop, {}, (X, Y, None, (X, Y)), "on other data: eval_set X was none"),
        (other, {}, (X, Y), "with estimator HeMLGOPClassifier"),
    ]


@pytest.mark.parametrize(("cls", "changes", "data", "message"), _refused())
def test_another_fit_is_refused(cls, changes, data, message, tmp_path):
    small(checkpoint_dir=tmp_path).fit(X, Y)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match="choose another folder") as caught:
        cls(**(QUICK | {"random_state": 0, "checkpoint_dir": tmp_path} | changes)).fit(*data)
    assert message in str(caught.value)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_another_version_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr(identity_module.Identity.__init__, "__defaults__", ("0.0.1", identity_module.FORMAT))
        small(checkpoint_dir=tmp_path).fit(X, Y)
    with pytest.raises(ValueError, match=r"library 0\.0\.1, and this one has"):
        small(checkpoint_dir=tmp_path).fit(X, Y)


def test_a_folder_of_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(ValueError, match=r"holds 'thesis.tex' and no checkpoint"):
        small(checkpoint_dir=tmp_path).fit(X, Y)
    with pytest.raises(NotADirectoryError, match="must be a folder"):
        small(checkpoint_dir=tmp_path / "thesis.tex").fit(X, Y)
    with pytest.raises(ValueError, match="checkpoint_dir must be a path or None, got 3"):
        small(checkpoint_dir=3).fit(X, Y)
    with pytest.raises(ValueError, match="checkpoint_seconds must be a number"):
        small(checkpoint_dir=tmp_path / "new", checkpoint_seconds=-1).fit(X, Y)
    assert {path.name for path in tmp_path.iterdir()} <= {"thesis.tex", "lock"}
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_a_second_fit_in_the_same_folder_is_refused_while_the_first_one_runs(tmp_path):
    began, go_on = threading.Event(), threading.Event()

    class Wait(opgrow.estimators.listeners.Callback):
        def on_step_end(self, event):
            began.set()
            go_on.wait(60)

    first = small(checkpoint_dir=tmp_path, callbacks=[Wait()])
    thread = threading.Thread(target=first.fit, args=(X, Y))
    thread.start()
    try:
        assert began.wait(60)
        with pytest.raises(BlockingIOError, match="Another fit works in"):
            small(checkpoint_dir=tmp_path).fit(X, Y)
        code = (
            "from test_checkpoints import *; import sys\n"
            "try: small(checkpoint_dir=sys.argv[1]).fit(X, Y)\n"
            "except BlockingIOError as e: print('refused:', e)\n"
        )
        command = [sys.executable, "-c", code, str(tmp_path)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, check=True, env=_environment()
        )
        assert "refused: Another fit works in" in done.stdout
    finally:
        go_on.set()
        thread.join()
    assert same(first, small().fit(X, Y))


def _damages():
    def shorten(data):
        return data[: len(data) // 2]

    def other_shape(data):
        head = int.from_bytes(data[:8], "little")
        text = json.loads(data[8 : 8 + head])
        name = next(name for name in text if name != "__metadata__")
        text[name]["shape"].insert(0, 1)
        new = json.dumps(text).encode()
        return len(new).to_bytes(8, "little") + new + data[8 + head :]

    def flip(place):
        def flipped(data):
            found = bytearray(data)
            found[int(place * (len(data) - 1))] ^= 1
            return bytes(found)

        return flipped

    return {
        "shorter": shorten,
        "shape": other_shape,
        "empty": lambda data: b"",
        "longer": lambda data: data + b" ",
        "a bit of the text": flip(0.1),
        "a bit of an array": flip(0.98),
        "the last bit": flip(1.0),
        "an absurd header": lambda data: (10**15).to_bytes(8, "little") + data[8:],
    }


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """The folders of two fits that are done, each of which has more than three files."""
    folders = [tmp_path_factory.mktemp("fit") for _ in range(2)]
    for seed, folder in enumerate(folders):
        small(checkpoint_dir=folder, random_state=seed).fit(X, Y)
    return folders


def assert_refused(folder, name):
    """In one sentence that names the file; nothing in the folder changes."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match="delete the folder to start again") as caught:
        small(checkpoint_dir=folder).fit(X, Y)
    assert str(caught.value).startswith(f"{str(folder / name)!r} is damaged: ")
    assert "\n" not in str(caught.value)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("which", "damage"),
    [
        (which, damage)
        for which in ("run.json", "network01-0001.safetensors", "last")
        for damage in _damages()
        if (which, damage) != ("run.json", "shape")  # there are no arrays in it
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(which, damage, grown, tmp_path):
    folder = shutil.copytree(grown[0], tmp_path / "fit")
    name = sorted(folder.glob("*.safetensors"))[-1].name if which == "last" else which
    content = (folder / name).read_bytes()
    found = _damages()[damage](content)
    assert found != content
    (folder / name).write_bytes(found)
    assert_refused(folder, name)


def test_a_whole_file_in_a_wrong_place_is_refused(grown, tmp_path):
    folder = shutil.copytree(grown[0], tmp_path / "fit")
    first, second, *_, last = sorted(folder.glob("*.safetensors"))
    whole = {path: path.read_bytes() for path in folder.iterdir()}

    def restore():
        for path, content in whole.items():
            path.write_bytes(content)

    first.write_bytes(whole[second])
    second.write_bytes(whole[first])
    assert_refused(folder, first.name)
    restore()
    second.write_bytes((grown[1] / second.name).read_bytes())  # of another fit
    assert_refused(folder, second.name)
    restore()
    (folder / "run.json").write_bytes((grown[1] / "run.json").read_bytes())
    assert_refused(folder, first.name)
    restore()
    (folder / "network02-0001.safetensors").write_bytes(whole[first])
    assert_refused(folder, "network02-0001.safetensors")
    (folder / "network02-0001.safetensors").unlink()
    second.unlink()
    assert_refused(folder, second.name)
    restore()
    (folder / "run.json").unlink()
    assert_refused(folder, "run.json")
    restore()
    last.unlink()  # which is no damage: the fit was cut off there
    (folder / "mine.safetensors").write_bytes(b"what somebody keeps here is not ours")
    assert same(small(checkpoint_dir=folder).fit(X, Y), small().fit(X, Y))


def test_a_checkpoint_without_checksums_is_refused(grown, tmp_path):
    folder = shutil.copytree(grown[0], tmp_path / "fit")
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(run["identity"] | {"format": 1}, indent=1))
    assert_refused(folder, "run.json")


def test_no_array_of_another_shape_gets_to_the_kernels(tmp_path):
    """Every array of every file, one at a time, with a row more: an error each time, never a crash."""
    checkpoint = tmp_path / "fit"
    opgrow.POPFastClassifier(**FITS["POPFast"][1], checkpoint_dir=checkpoint).fit(X, Y)
    refused = 0
    run = identity_module.read_run(checkpoint / "run.json").key
    for file in sorted(checkpoint.glob("*.safetensors")):
        content = file.read_bytes()
        text, arrays = _text(file), load(content)
        unsealed = text[: text.rindex(',"checksum"')] + "}"
        for name, array in arrays.items():
            longer = np.concatenate([array, array[:1]]) if len(array) else np.ones(3, array.dtype)
            forged = arrays | {name: longer}
            sealed = seal(unsealed, tensors_in(save(forged)), f"{run} {file.name}")
            file.write_bytes(save(forged, metadata={"opgrow-checkpoint": sealed}))
            with pytest.raises(ValueError, match="expected"):
                opgrow.POPFastClassifier(**FITS["POPFast"][1], checkpoint_dir=checkpoint).fit(X, Y)
            refused += 1
        file.write_bytes(content)
    assert refused > 4


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_a_full_disk_ends_a_fit_that_can_go_on(number, tmp_path, monkeypatch):
    flush, left = os.fsync, [8]

    def full(handle):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(number, os.strerror(number))
        flush(handle)

    fit = small(checkpoint_dir=tmp_path / "fit", checkpoint_seconds=0)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="network01") as caught:
        fit.fit(X, Y)
    assert caught.value.errno == number
    monkeypatch.undo()
    assert not list((tmp_path / "fit").glob(".*.tmp"))
    assert same(fit.fit(X, Y), small().fit(X, Y))


def test_time_goes_on_with_what_was_left(tmp_path):
    small(checkpoint_dir=tmp_path).fit(X, Y)
    last = sorted(tmp_path.glob("*.safetensors"))[-1]
    elapsed = json.loads(_text(last))["record"]["elapsed"]
    seen = []

    class Look(opgrow.estimators.listeners.Callback):
        def on_fit_start(self, event):
            seen.append(event.seconds)

    small(checkpoint_dir=tmp_path, callbacks=[Look()]).fit(X, Y)
    assert seen == [elapsed]
    assert elapsed > 0


def test_the_folder_is_not_part_of_the_model(tmp_path):
    fitted = small(checkpoint_dir=tmp_path / "fit").fit(X, Y)
    fitted.save(tmp_path / "model.safetensors")
    assert str(tmp_path).encode() not in (tmp_path / "model.safetensors").read_bytes()
    assert opgrow.load(tmp_path / "model.safetensors").checkpoint_dir is None


def test_values_come_back_as_they_were():
    scores = np.array([[float("nan"), 0.1], [float("-inf"), 1e-310]])
    state = TrainingState(
        Schedule.begin("accuracy", scores, TuningSettings(epochs=(1, 2, 3))),
        exact=True,
        rng="{}",
        arrays={"theta": np.arange(3, dtype=np.float32), "empty": np.zeros((0, 4)), "step": np.array(7.0)},
    )
    plain, arrays = encode(state)
    back = decode(TrainingState, json.loads(json.dumps(plain)), arrays)
    assert repr(back) == repr(state)


# --- signals and the command line ---

_FIT = """
import sys
from test_checkpoints import *
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a shell ignore it
class Say(opgrow.estimators.listeners.Callback):
    def on_epoch_end(self, event): print("epoch", flush=True)
clf = small(epochs=(400, 400), checkpoint_dir=sys.argv[1], checkpoint_seconds=1000, callbacks=[Say()])
clf.fit(X, Y)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 1), (signal.SIGTERM, 143)])
def test_signals_save_what_is_under_way(number, code, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", _FIT, str(tmp_path / "fit")],
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "epoch\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode in (code, -number)
    assert "KeyboardInterrupt" in errors if number == signal.SIGINT else "Traceback" not in errors
    drafts = sorted((tmp_path / "fit").glob("network01-*.safetensors"))
    assert len(drafts) == 2
    assert json.loads(_text(drafts[-1]))["record"]["finished"] is False


def _text(path: Path) -> str:
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return file.metadata()["opgrow-checkpoint"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    rows = [f"{','.join(map(repr, row))},{label}" for row, label in zip(X.tolist(), Y, strict=True)]
    path.write_text("\n".join(["a,b,c,d,e,f,target", *rows]))
    return path


def _run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


OPTIONS = (
    "-p",
    "preset=null",
    "-p",
    "n_min=5",
    "-p",
    "max_neurons=8",
    "-p",
    "max_layers=1",
    "-p",
    "epochs=[3,2]",
)
RATES = ("-p", "learning_rates=[0.01,0.001]", "-q")


@pytest.mark.cpu
def test_the_command_goes_on_where_it_was_cut_off(table, tmp_path, cut_after):
    model, whole = tmp_path / "model.safetensors", tmp_path / "whole.safetensors"
    assert _run("fit", table, "-o", whole, *OPTIONS, *RATES).exit_code == 0
    cut_after(2)
    arguments = ("fit", table, "-o", model, *OPTIONS, *RATES)
    with pytest.raises(Cut):
        CliRunner().invoke(app, [str(a) for a in (*arguments, "--resume")], catch_exceptions=False)
    assert (tmp_path / "model.safetensors.checkpoint" / "run.json").exists()
    cut_after(0)
    again = _run(*arguments, "--checkpoint", tmp_path / "model.safetensors.checkpoint")
    assert again.exit_code == 2
    assert "add --resume to go on with it" in again.output
    assert not model.exists()
    assert _run(*arguments, "--resume").exit_code == 0
    assert same(*(opgrow.load(path) for path in (model, whole)))
    assert not (tmp_path / "model.safetensors.checkpoint").exists()


def test_the_command_says_what_a_signal_has_left(table, tmp_path):
    model = tmp_path / "model.safetensors"
    command = [sys.executable, "-m", "opgrow", "fit", str(table), "-o", str(model), *OPTIONS[:8], "--resume"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [
            *command,
            "-p",
            "epochs=[100000]",
            "-p",
            "learning_rates=[0.01]",
            "-p",
            "checkpoint_seconds=0",
            "-q",
        ],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    folder = tmp_path / "model.safetensors.checkpoint"
    while len(list(folder.glob("network*"))) < 2:
        assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 143
    assert f"saved in {folder}: the same command with --resume goes on" in " ".join(errors.split())
    assert "Traceback" not in errors


# --- real kills ---


def test_killed_fits_end_with_the_same_network(tmp_path):
    """The short form of ``make torture``."""
    kills = os.environ.get("OPGROW_KILLS", "12")
    seed = os.environ.get("OPGROW_KILLS_SEED", "0")
    script = Path(__file__).with_name("torturer.py")
    done = subprocess.run(
        [sys.executable, str(script), kills, seed, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=6 * 3600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    print(found)
    assert found["different"] == []
    assert found["kills"] == int(kills)
