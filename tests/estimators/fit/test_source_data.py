"""Networks that are grown from sources, beside those that are grown in memory from the same rows."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import opgrow
from opgrow.estimators import (
    BLSClassifier,
    HeMLGOPClassifier,
    HeMLGOPRegressor,
    HeMLRNClassifier,
    HeMLRNRegressor,
    HoMLGOPClassifier,
    HoMLRNClassifier,
    PLNClassifier,
    POPClassifier,
)
from opgrow.estimators.fit import source_data
from opgrow.rows.chunks import Source, from_arrays, from_chunks
from opgrow.rows.chunks import rows as chunk_rows_module
from opgrow.rows.chunks.storage import Storage
from opgrow.rows.chunks.survey import Division

N = 1500
#: Too little for the rows, which take 48,000 bytes: every path of data larger than memory is taken.
TINY = 30_000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(N, 8)) * 3 + 5).astype(np.float32)
    y = (np.sin(x[:, 0]) + x[:, 1] * x[:, 2] / 10 > 2).astype(int) + (x[:, 3] > 6)
    return x, y


class Counted(Source):
    """A source that counts how often each chunk is read."""

    def __init__(self, inner: Source) -> None:
        self.inner, self.sizes, self.dtype = inner, inner.sizes, inner.dtype
        self.n_features, self.reads = inner.n_features, np.zeros(inner.n_chunks, int)
        self.slow = False

    def read(self, number):
        self.reads[number] += 1
        return self.inner.read(number)


def settings(**changes):
    return {
        "preset": None,
        "n_min": 5,
        "n_step": 3,
        "max_neurons": 11,
        "max_layers": 2,
        "search_score": "gcv",
        "learning_rates": (0.01,),
        "epochs": (2,),
        "dropout": 0.0,
        "tune_perceptron": False,
        "fine_tune_epochs": 0,
        "validation_fraction": 0.0,
        "block_threshold": -1e9,
        "layer_threshold": -1e9,
        "n_jobs": 2,
        "random_state": 0,
    } | changes


def sets(model):
    return [step.operator_set for step in model.history_]


@pytest.mark.parametrize("chunk_rows", [64, 333, N])
@pytest.mark.parametrize("method", ["HeMLRN", "HoMLRN"])
def test_without_tuning_the_network_is_the_one_of_memory(method, chunk_rows, rows):
    x, y = rows
    cls = getattr(opgrow, f"{method}Classifier")
    known = cls(**settings()).fit(x, y)
    model = cls(**settings()).fit(from_arrays(x, y, chunk_rows=chunk_rows))
    assert sets(model) == sets(known)
    np.testing.assert_allclose(model.predict_proba(x), known.predict_proba(x), atol=1e-4)
    np.testing.assert_array_equal(model.classes_, known.classes_)


@pytest.mark.parametrize("chunk_rows", [100, 700])
def test_regression_with_several_targets_and_weights(chunk_rows, rows):
    x, _ = rows
    y = np.column_stack([np.sin(x[:, 0]), x[:, 1] * x[:, 2], 100 + x[:, 3]]).astype(np.float64)
    weight = np.random.default_rng(1).uniform(0, 2, N) * (np.arange(N) % 7 > 0)
    known = HeMLRNRegressor(**settings()).fit(x, y, weight)
    model = HeMLRNRegressor(**settings()).fit(from_arrays(x, y, weight, chunk_rows=chunk_rows))
    assert sets(model) == sets(known)
    np.testing.assert_allclose(model.predict(x), known.predict(x), atol=2e-3, rtol=1e-4)
    assert model.predict(x).shape == y.shape


def test_rows_that_are_held_out_are_predicted_with_the_limits_of_the_network(rows, monkeypatch):
    x, _ = rows
    limits, held_out = [], source_data.SourceData.held_out

    def watched(self, network, number):
        held = held_out(self, network, number)
        limits.append((network.head_low, network.head_high))
        return held

    monkeypatch.setattr(source_data.SourceData, "held_out", watched)
    source = from_arrays(x, x[:, 1] * x[:, 2], chunk_rows=400)
    network = HeMLGOPRegressor(**settings(validation_fraction=0.2)).fit(source).network_
    assert network.head_low is not None
    assert np.array_equal(limits, [(network.head_low, network.head_high)])
    features = network.features(x)
    assert (network.head_low < features.min(axis=0)).all()
    assert (network.head_high > features.max(axis=0)).all()


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 2.5, 2: 0.5}])
def test_class_weights_are_those_of_memory(class_weight, rows):
    x, y = rows
    make = partial(HeMLRNClassifier, **settings(class_weight=class_weight, max_layers=1))
    known, model = make().fit(x, y), make().fit(from_arrays(x, y, chunk_rows=200))
    assert sets(model) == sets(known)
    np.testing.assert_allclose(model.predict_proba(x), known.predict_proba(x), atol=1e-4)


def test_an_eval_set_decides_as_in_memory(rows):
    x, y = rows
    make = partial(HeMLRNClassifier, **settings(block_threshold=1e-3, layer_threshold=1e-3, max_neurons=40))
    held = x[:300], y[:300]
    known = make().fit(x[300:], y[300:], eval_set=held)
    model = make().fit(from_arrays(x[300:], y[300:], chunk_rows=128), eval_set=held)
    assert sets(model) == sets(known)
    assert [step.accepted for step in model.history_] == [step.accepted for step in known.history_]
    with pytest.raises(ValueError, match=r"eval_set has classes that y does not have: \[7\]"):
        make().fit(from_arrays(x, y), eval_set=(x[:2], [7, 7]))


def test_tuning_on_rows_that_fit_is_the_one_of_memory(rows):
    x, y = rows
    make = partial(HeMLGOPClassifier, **settings(fine_tune_epochs=2, dropout=0.2))
    known, model = make().fit(x, y), make().fit(from_arrays(x, y, chunk_rows=N))
    np.testing.assert_array_equal(model.predict_proba(x), known.predict_proba(x))


@pytest.mark.parametrize("cls", [HeMLGOPClassifier, HoMLGOPClassifier, HoMLRNClassifier])
def test_little_memory_grows_a_good_network_and_always_the_same(cls, rows):
    x, y = rows
    changes = {"validation_fraction": 0.2, "fine_tune_epochs": 2, "epochs": (6,), "memory_limit": TINY}
    make = partial(cls, **settings(**changes))
    source = from_arrays(x, y, chunk_rows=50)
    first, second = make().fit(source), make(n_jobs=1).fit(source)
    np.testing.assert_array_equal(first.predict_proba(x), second.predict_proba(x))
    in_memory = cls(**settings(**changes | {"memory_limit": None})).fit(x, y)
    assert first.score(source) > in_memory.score(x, y) - 0.08
    other = make(random_state=1).fit(source)
    assert (other.predict_proba(x) != first.predict_proba(x)).any()


def test_one_pass_a_search_and_one_for_the_statistics_of_a_tuned_block(rows):
    x, y = rows
    arrays = from_arrays(x, y, chunk_rows=50)
    changes = {"max_layers": 1, "memory_limit": TINY, "validation_fraction": 0.2}
    source = Counted(arrays)
    model = HeMLRNClassifier(**settings(**changes)).fit(source)
    assert len(model.history_) == 4  # three blocks and the layer
    assert set(source.reads) == {1 + 3}
    source = Counted(arrays)
    model = HeMLGOPClassifier(**settings(**changes | {"epochs": (2,)})).fit(source)
    tuned = sum(step.best_epoch > 0 for step in model.history_ if step.kind == "block")
    assert tuned > 0
    assert set(source.reads) == {1 + 3 * (1 + 2) + tuned}


def test_layers_above_the_first_do_not_read_the_source(rows):
    x, y = rows
    source = Counted(from_arrays(x, y, chunk_rows=50))
    HeMLRNClassifier(**settings(memory_limit=TINY, max_layers=1)).fit(source)
    one = source.reads.max()
    source.reads[:] = 0
    model = HeMLRNClassifier(**settings(memory_limit=TINY, max_layers=3)).fit(source)
    assert len(model.network_.topology()) >= 3
    # The last block of the first layer is computed once more: nobody has needed its outputs before.
    assert source.reads.max() == one + 1


def test_what_is_kept_in_memory_in_files_or_computed_again_is_the_same(rows, monkeypatch):
    x, y = rows
    result = []
    for memory, disk in ((1 << 30, 0), (0, None), (0, 0)):
        storage = Storage(memory, disk)
        monkeypatch.setattr(chunk_rows_module, "Storage", lambda limit, storage=storage: storage)
        source = from_arrays(x, y, chunk_rows=50)
        result.append(HeMLRNClassifier(**settings(memory_limit=TINY)).fit(source).predict_proba(x))
        assert (storage.in_memory > 0) == (memory > 0)
        assert (storage.on_disk > 0) == (disk is None)
    np.testing.assert_array_equal(result[1], result[0])
    np.testing.assert_array_equal(result[2], result[0])


def test_chunks_that_are_slow_to_read_are_kept_as_far_as_there_is_room(rows, monkeypatch):
    x, y = rows
    arrays = from_arrays(x, y, chunk_rows=50)
    known = HeMLRNClassifier(**settings(memory_limit=TINY, max_layers=1)).fit(arrays)
    # Of 50,000 bytes, 24,000 go to targets; inputs may fill them up to three quarters, 1,600 for each chunk.
    for disk, kept in ((1 << 30, N // 50), (50_000, 8), (0, 0)):
        monkeypatch.setattr(chunk_rows_module, "Storage", partial(Storage, disk=disk))
        source = Counted(arrays)
        source.slow = True
        model = HeMLRNClassifier(**settings(memory_limit=TINY, max_layers=1)).fit(source)
        np.testing.assert_array_equal(model.predict_proba(x), known.predict_proba(x))
        # The survey reads every chunk, and so does the first search; the two others, only what is not kept.
        assert (source.reads == 2).sum() == kept
        assert (source.reads == 4).sum() == N // 50 - kept


def test_a_full_disk_costs_time_and_not_the_fit(rows, monkeypatch):
    x, y = rows
    make = partial(HeMLRNClassifier, **settings(memory_limit=TINY))
    source = from_arrays(x, y, chunk_rows=50)
    known = make().fit(source)

    def full(self, array):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("opgrow.rows.chunks.spool.Spool.add", full)
    np.testing.assert_array_equal(make().fit(source).predict_proba(x), known.predict_proba(x))


def test_which_rows_validate_depends_on_their_number_alone():
    division = Division(seed=5, validates=0.2, sampled=0.1)
    whole = division.validating(0, 10_000)
    assert 0.18 < whole.mean() < 0.22
    np.testing.assert_array_equal(division.validating(4321, 100), whole[4321:4421])
    sampled = division.sample(0, 10_000)
    assert abs(np.corrcoef(whole, sampled)[0, 1]) < 0.04
    assert (Division(6, 0.2, 0.1).validating(0, 10_000) != whole).any()


def test_the_number_of_rows_in_memory_is_bounded(rows):
    x, y = rows
    estimator = HeMLRNClassifier(memory_limit=1000, validation_fraction=0.5)
    data = source_data.SourceData(estimator, from_arrays(x, y, chunk_rows=100), None, classification=True)
    data.survey(seed=0, n_threads=1)
    problem = data.problem(0)
    assert 150 < len(problem.x) < 350  # 256, which is the least
    assert 150 < problem.validation.n_rows < 350
    assert problem.n_rows + problem.validation.n_rows == N


def test_large_arrays_are_read_in_chunks(rows, tmp_path, monkeypatch):
    x, y = rows
    np.save(tmp_path / "X.npy", x)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    seen = []
    original = source_data.survey

    def watched(source, *arguments):
        seen.append(source.n_chunks)
        return original(source, *arguments)

    monkeypatch.setattr(source_data, "survey", watched)
    known = HeMLRNClassifier(**settings()).fit(mapped, y)
    assert not seen
    model = HeMLRNClassifier(**settings(memory_limit=40_000)).fit(mapped, y)
    assert seen[0] > 1
    assert sets(model) == sets(known)
    # With no limit of one's own, a quarter of all memory is one for memory maps.
    monkeypatch.setattr("opgrow.estimators.fit.sources.total_memory", lambda: 80_000)
    HeMLRNClassifier(**settings()).fit(mapped, y)
    assert len(seen) == 2
    HeMLRNClassifier(**settings()).fit(x, y)
    assert len(seen) == 2


def test_predictions_for_a_source_are_those_for_its_rows(rows):
    x, y = rows
    model = HeMLRNClassifier(**settings()).fit(x, y)
    source = from_arrays(x, y, chunk_rows=100)
    np.testing.assert_array_equal(model.predict(source), model.predict(x))
    np.testing.assert_allclose(model.predict_proba(source), model.predict_proba(x), atol=1e-6)
    assert model.score(source) == model.score(x, y)
    with pytest.raises(ValueError, match="the source has 7 features, but"):
        model.predict(from_arrays(x[:, :7]))
    with pytest.raises(ValueError, match="no targets to compare"):
        model.score(from_arrays(x))


def test_names_of_columns_are_kept_and_checked(rows):
    x, y = rows
    names = list("abcdefgh")
    source = from_chunks([(x[:700], y[:700]), (x[700:], y[700:])], feature_names=names)
    model = HeMLRNClassifier(**settings()).fit(source)
    assert model.feature_names_in_.tolist() == names
    other = from_chunks([(x, y)], feature_names=names[::-1])
    with pytest.raises(ValueError, match="not those that HeMLRNClassifier was fitted on"):
        model.predict(other)


def test_labels_of_text_come_back(rows, tmp_path):
    x, y = rows
    labels = np.array(["ash", "birch", "cedar"])[y]
    model = HeMLRNClassifier(**settings()).fit(from_arrays(x, labels, chunk_rows=400))
    assert model.classes_.tolist() == ["ash", "birch", "cedar"]
    model.save(tmp_path / "trees.safetensors")
    loaded = opgrow.load(tmp_path / "trees.safetensors")
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))


@pytest.mark.parametrize("cls", [POPClassifier, PLNClassifier, BLSClassifier])
def test_methods_that_need_all_rows_say_so(cls, rows):
    with pytest.raises(ValueError, match="needs all rows in memory and takes no source"):
        cls().fit(from_arrays(*rows))


@pytest.mark.parametrize(
    ("change", "fit", "message"),
    [
        ({"n_estimators": 3}, {}, "one network is grown from a source"),
        ({"distill": 5}, {}, "has no student"),
        ({"memory_limit": "much"}, {}, "memory_limit must be None, a number of bytes"),
        ({"memory_limit": 5000}, {}, "the largest chunk has 1500 rows.*make smaller chunks"),
        ({}, {"y": [1]}, "a source has its own targets"),
    ],
)
def test_what_a_source_cannot_do_is_refused(change, fit, message, rows):
    with pytest.raises(ValueError, match=message):
        HeMLRNClassifier(**settings(**change)).fit(from_arrays(*rows), **fit)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda x, y, w: x.__setitem__((700, 3), np.nan), "holds nan in row 200, column 3 of chunk 1"),
        (lambda x, y, w: y.__setitem__(3, 0.5), "numbers that are not whole"),
        (lambda x, y, w: y.fill(1), "needs at least 2 classes, got 1 class"),
        (lambda x, y, w: y.__setitem__(3, np.nan), "y of the source holds NaN"),
        (lambda x, y, w: w.__setitem__(3, -1), "weights of chunk 0 must be finite and at least 0"),
        (lambda x, y, w: w.fill(0), "zero for every row"),
    ],
)
def test_bad_rows_are_refused_in_one_sentence(spoil, message, rows):
    x, y, weight = rows[0].copy(), rows[1].astype(np.float64), np.ones(N)
    spoil(x, y, weight)
    with pytest.raises(ValueError, match=message):
        HeMLRNClassifier(**settings()).fit(from_arrays(x, y, weight, chunk_rows=500))


def test_a_source_without_targets_cannot_be_fitted(rows):
    with pytest.raises(ValueError, match="the source has no targets"):
        HeMLGOPRegressor(**settings()).fit(from_arrays(rows[0]))


def test_an_error_while_reading_reaches_the_user(rows):
    x, y = rows

    def chunk(number):
        if number == 2:
            raise RuntimeError("the network drive is gone")
        return x[:500], y[:500]

    source = from_chunks(chunk, n_chunks=3, sizes=[500] * 3)
    with pytest.raises(RuntimeError, match="the network drive is gone"):
        HeMLRNClassifier(**settings()).fit(source)


@pytest.mark.parametrize("cls", [HeMLGOPClassifier, HeMLRNClassifier])
def test_a_fit_that_is_cut_off_goes_on(cls, rows, tmp_path, monkeypatch):
    from opgrow.growth.checkpoints import folder

    class Cut(BaseException):
        pass

    x, y = rows
    source = from_arrays(x, y, chunk_rows=100)
    parameters = {"n_min": 4, "n_step": 3, "max_neurons": 7, "epochs": (3,), "learning_rates": (0.01,)}
    parameters |= {"patience": None, "random_state": 0, "memory_limit": TINY, "fine_tune_epochs": 2}
    whole = cls(**parameters).fit(source)
    write, cuts = folder.Folder.write, 0

    def write_and_cut(self, *what):
        write(self, *what)
        raise Cut

    monkeypatch.setattr(folder.Folder, "write", write_and_cut)
    parts = cls(**parameters, checkpoint_dir=tmp_path, checkpoint_seconds=0)
    while True:
        try:
            parts.fit(source)
            break
        except Cut:
            cuts += 1
    assert cuts > 3
    assert whole.network_.digest() == parts.network_.digest()
    with pytest.raises(ValueError, match="on other data"):
        parts.fit(from_arrays(x + np.float32(1e-3), y, chunk_rows=100))
