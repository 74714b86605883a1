"""The paper's figures are complete, typed correctly, and agree with each other where they can be checked."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

import pytest

from opgrow import estimators
from opgrow.bench import published as module
from opgrow.bench.models import methods
from opgrow.bench.published import METHODS, QUANTITIES, RESULTS, RUNS, TABLES, printed, published
from opgrow.bench.published_datasets import DATASETS
from opgrow.bench.published_settings import SETTINGS, UNSTATED, settings

SMALL = {"pima", "olympic_sports", "hollywood3d", "cmc", "yeast"}
LARGE = {"scene15", "mit_indoor", "caltech101", "caltech256", "pubfig", "cfw60k"}


def n_parameters(*widths: int) -> int:
    """Weights, bias and two of the batch norm for a hidden neuron; weights and bias for an output."""
    *hidden, last, outputs = widths
    return sum((a + 3) * b for a, b in zip([*hidden], [*hidden[1:], last], strict=True)) + (
        last * outputs + outputs
    )


def perceptron_flops(*widths: int) -> int:
    """Two operations for a weight, four for a hidden neuron, two for an output."""
    *hidden, last, outputs = widths
    layers = zip([*hidden], [*hidden[1:], last], strict=True)
    return sum(2 * a * b + 4 * b for a, b in layers) + 2 * last * outputs + 2 * outputs


def in_thousands(number: int) -> str:
    return f"{number / 1000:.1f}k"


def test_every_method_has_its_figures_on_every_data_set():
    assert set(DATASETS) == SMALL | LARGE
    assert len(METHODS) == 8
    assert len(RESULTS) == 88
    counts = {q: sum(getattr(r, q) is not None for r in RESULTS.values()) for q in QUANTITIES}
    assert counts == {"accuracy": 82, "parameters": 82, "seconds": 40, "flops": 82}


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_gaps_are_those_of_the_paper(quantity):
    for (dataset, method), figures in RESULTS.items():
        gap = dataset in LARGE and (method == "POP" or quantity == "seconds")
        assert (getattr(figures, quantity) is None) == gap
        assert (printed(dataset, method, quantity) is None) == gap


def test_no_row_of_the_tables_is_long_or_short():
    for rows in module._PRINTED.values():
        assert set(rows) in (SMALL, SMALL | LARGE)
        assert all(len(row.split()) == len(METHODS) for row in rows.values())


@pytest.mark.parametrize(
    ("dataset", "method", "accuracy", "parameters", "seconds", "flops"),
    [
        ("pima", "HeMLGOP", 0.8181, 800, 217, 2_200),
        ("pima", "POP", 0.7905, 43_200, 183_362, 126_400),
        ("cmc", "HeMLRN", 0.6263, 3_000, 477, 9_000),
        ("cmc", "BLS", 0.5523, 7_900, 0.18, 14_400),
        ("yeast", "PLN", 0.6308, 219_700, 3.05, 728_500),
        ("yeast", "PMLP", 0.6329, 44_800, 33, 88_800),
        ("hollywood3d", "HoMLRN", 0.7442, 18_700, 447, 66_800),
        ("olympic_sports", "HoMLGOP", 0.8708, 11_900, 1063, 22_100),
        ("olympic_sports", "BLS", 0.8588, 43_840, 0.38, 118_200),
        ("scene15", "HoMLGOP", 0.9157, 110_900, None, 356_800),
        ("mit_indoor", "PLN", 0.6438, 122_300, None, 289_800),
        ("caltech101", "HoMLRN", 0.9087, 123_500, None, 124_300),
        ("caltech256", "PMLP", 0.7926, 235_900, None, 470_500),
        ("pubfig", "HeMLRN", 0.9885, 119_700, None, 294_100),
        ("cfw60k", "HoMLRN", 0.5780, 203_500, None, 205_100),
        ("cfw60k", "BLS", 0.7519, 5_092_000, None, 11_182_900),
    ],
)
def test_figures_are_those_of_the_paper(dataset, method, accuracy, parameters, seconds, flops):
    result = published(dataset, method)
    assert (result.dataset, result.method) == (dataset, method)
    assert result.accuracy == accuracy
    assert (result.parameters, result.seconds, result.flops) == (parameters, seconds, flops)


def best(quantity: str, dataset: str, choose=min) -> set[str]:
    values = {m: getattr(published(dataset, m), quantity) for m in METHODS}
    value = choose(v for v in values.values() if v is not None)
    return {m for m, v in values.items() if v == value}


def test_the_best_of_each_row_are_those_in_bold():
    bold = {
        "hollywood3d": ("PMLP", "PLN", "PLN"),
        "olympic_sports": ("POP", "PLN", "PLN"),
        "cmc": ("HeMLRN", "HeMLGOP HoMLGOP", "HoMLGOP"),
        "pima": ("HeMLGOP", "HeMLGOP", "HeMLGOP"),
        "yeast": ("HeMLGOP", "HeMLGOP HoMLGOP", "HeMLGOP"),
        "scene15": ("HeMLGOP", "HeMLGOP", "HeMLGOP"),
        "mit_indoor": ("HeMLGOP", "HeMLGOP", "HeMLGOP"),
        "caltech101": ("HeMLGOP", "HeMLGOP", "HoMLRN"),
        "caltech256": ("PMLP", "HeMLGOP", "HeMLGOP"),
        "pubfig": ("HeMLGOP", "HeMLGOP HoMLGOP", "HoMLGOP"),
        "cfw60k": ("HoMLGOP", "HeMLGOP", "HoMLGOP"),
    }
    for dataset, (accuracy, parameters, flops) in bold.items():
        assert best("accuracy", dataset, max) == set(accuracy.split())
        assert best("parameters", dataset) == set(parameters.split())
        assert best("flops", dataset) == set(flops.split())
    fastest = {"hollywood3d": "PLN", "olympic_sports": "PLN", "cmc": "BLS", "pima": "BLS", "yeast": "BLS"}
    assert all(best("seconds", dataset) == {method} for dataset, method in fastest.items())


def test_figures_keep_their_digits():
    assert printed("cmc", "HoMLRN", "accuracy") == "58.90"
    assert printed("olympic_sports", "BLS", "parameters") == "43.84k"
    assert printed("hollywood3d", "HoMLGOP", "parameters") == "7.0k"
    assert printed("hollywood3d", "HeMLGOP", "seconds") == "1002"
    assert printed("cfw60k", "PLN", "flops") == "15449.4k"


@pytest.mark.parametrize(
    ("dataset", "method", "hidden", "size"),
    [
        ("pima", "HeMLGOP", [60], 782),
        ("yeast", "HeMLGOP", [60], 1_270),
        ("scene15", "HeMLGOP", [120], 63_615),
        ("caltech256", "HeMLGOP", [120], 92_897),
        ("cfw60k", "HeMLGOP", [160], 162_900),
        ("pima", "POP", [200, 200], 43_202),
        ("pima", "PMLP", [200, 200], 43_202),
        ("scene15", "PMLP", [200, 200, 200], 187_215),
    ],
)
def test_sizes_are_those_of_topologies(dataset, method, hidden, size):
    facts = DATASETS[dataset]
    assert n_parameters(facts.inputs, *hidden, facts.classes) == size
    assert printed(dataset, method, "parameters") == in_thousands(size)


@pytest.mark.parametrize("dataset", DATASETS)
def test_sizes_and_flops_of_PMLP_follow_from_its_depth(dataset):
    facts = DATASETS[dataset]
    template = settings(dataset, "PMLP").widths
    fitting = [
        depth
        for depth in range(1, len(template) + 1)
        if printed(dataset, "PMLP", "parameters")
        == in_thousands(n_parameters(facts.inputs, *template[:depth], facts.classes))
    ]
    assert len(fitting) == 1
    widths = (facts.inputs, *template[: fitting[0]], facts.classes)
    assert printed(dataset, "PMLP", "flops") == in_thousands(perceptron_flops(*widths))


def test_sizes_of_POP_follow_from_two_layers_but_for_the_noted_one():
    for dataset in SMALL:
        facts, result = DATASETS[dataset], published(dataset, "POP")
        fits = printed(dataset, "POP", "parameters") == in_thousands(
            n_parameters(facts.inputs, 200, 200, facts.classes)
        )
        assert fits == (result.note == "")


def cheapest_networks(dataset: str, method: str) -> dict[int, int]:
    """The least FLOPs of a network of each size that the method can grow in up to four layers, by size.

    No hidden neuron takes less than 2 D + 3 operations (multiplication, maximum, bias, an activation of one,
    batch norm), and no output less than 2 for each of its weights. More layers change no count below.
    """
    facts, stated = DATASETS[dataset], settings(dataset, method)
    widths = {200} if stated.widths else set(range(stated.n_min, stated.max_neurons + 1, stated.n_step))
    largest = 1.01 * published(dataset, method).parameters + 100
    bodies, cheapest = {(facts.inputs, 0): 0}, {}
    for _ in range(4):
        deeper: dict[tuple[int, int], int] = {}
        for (last, size), flops in bodies.items():
            for width in widths:
                body = width, size + (last + 3) * width
                if body[1] <= largest:
                    deeper[body] = min(flops + (2 * last + 3) * width, deeper.get(body, 10**9))
        for (last, size), flops in deeper.items():
            whole = size + (last + 1) * facts.classes
            cheapest[whole] = min(flops + 2 * last * facts.classes, cheapest.get(whole, 10**9))
        bodies = deeper
    return cheapest


def sizes_and_flops() -> Iterator[tuple[str, bool]]:
    """How each printed size comes out, and whether some network of that size has as few FLOPs as printed."""
    for (dataset, method), figures in RESULTS.items():
        size = printed(dataset, method, "parameters")
        if method in ("PLN", "BLS") or size is None:  # their widths are not given, or nothing is printed
            continue
        cheapest = cheapest_networks(dataset, method)
        rounded = [flops for n, flops in cheapest.items() if in_thousands(n) == size]
        truncated = [flops for n, flops in cheapest.items() if in_thousands(n - n % 100) == size]
        how = "rounded" if rounded else "truncated" if truncated else "not"
        yield how, how != "not" and min(rounded or truncated) <= figures.flops + 50


def test_most_sizes_come_out_and_many_flops_cannot_be_right():
    result = list(sizes_and_flops())
    assert Counter(how for how, _ in result) == {"rounded": 56, "truncated": 3, "not": 1}
    assert sum(how != "not" and not possible for how, possible in result) == 14


def test_notes_name_every_figure_that_cannot_be_right():
    few = {key for key, r in RESULTS.items() if r.flops is not None and r.flops < 1.01 * r.parameters}
    assert few == {key for key, r in RESULTS.items() if "FLOPs" in r.note}
    assert len(few) == 4
    assert "30 points" in published("cfw60k", "HoMLRN").note
    assert "64,416" in published("olympic_sports", "POP").note
    assert "9144" in DATASETS["caltech101"].note
    assert "ELU" in TABLES["operators"].note


def test_text_and_table_differ_about_ratios_as_noted():
    speed = {d: published(d, "POP").seconds / published(d, "HeMLGOP").seconds for d in SMALL}
    assert all(f"{ratio:,.0f}" in TABLES["seconds"].note for ratio in speed.values())
    for dataset in ("yeast", "caltech256", "cfw60k"):
        cheapest = min(published(dataset, method).flops for method in ("PLN", "BLS"))
        assert (cheapest > 200 * published(dataset, "HeMLGOP").flops) == (dataset == "yeast")


def whole_rows(dataset: str, rows: int) -> int:
    """Accuracies of a data set that are a whole number of so many rows, within 0.01 points."""
    texts = [printed(dataset, method, "accuracy") for method in METHODS]
    # In hundredths of a point, and times `rows`, everything is a whole number.
    counts = [int(text.replace(".", "")) * rows for text in texts if text]
    return sum(min(count % 10_000, -count % 10_000) <= rows for count in counts)


@pytest.mark.parametrize(
    ("dataset", "classes", "fitting"),
    [
        ("pima", (500, 268), 7),
        ("cmc", (629, 333, 511), 6),
        ("yeast", (463, 429, 244, 163, 51, 44, 35, 30, 20, 5), 6),
    ],
)
def test_accuracies_speak_for_a_third_of_the_rows(dataset, classes, fitting):
    samples = DATASETS[dataset].samples
    assert sum(classes) == samples
    rows = sum(round(0.33 * n) for n in classes)
    assert f" {fitting} of 8 are whole numbers of {rows} rows" in DATASETS[dataset].note
    assert whole_rows(dataset, rows) == fitting
    assert max(whole_rows(dataset, n) for n in range(50, samples // 2 + 1) if n != rows) <= 4


def test_data_sets_are_named_sized_and_explained():
    assert {d for d, facts in DATASETS.items() if facts.size == "small"} == SMALL
    for name, facts in DATASETS.items():
        assert facts.name == name
        assert (facts.samples < 2000) == (facts.size == "small")
        assert (facts.inputs == 512) == (facts.size == "large")
        assert facts.reason.endswith(".")
        assert facts.reason.count(". ") == 0
        parts = (facts.split.train, facts.split.validation, facts.split.test)
        if None in parts:
            assert name in ("olympic_sports", "hollywood3d")
        else:
            assert sum(parts) == pytest.approx(1)
            assert facts.split.validation == (0.2 if facts.size == "large" else 0)
    shapes = {n: (f.samples, f.inputs, f.classes) for n, f in DATASETS.items()}
    assert shapes["pima"] == (768, 8, 2)
    assert shapes["olympic_sports"] == (774, 100, 16)
    assert shapes["hollywood3d"] == (945, 100, 14)
    assert shapes["cmc"] == (1473, 9, 3)
    assert shapes["yeast"] == (1484, 8, 10)
    assert shapes["scene15"] == (4485, 512, 15)
    assert shapes["mit_indoor"] == (15620, 512, 67)
    assert shapes["caltech101"] == (9145, 512, 102)
    assert shapes["caltech256"] == (30607, 512, 257)
    assert shapes["pubfig"] == (13002, 512, 83)
    assert shapes["cfw60k"] == (60000, 512, 500)


def test_only_equal_inputs_are_comparable():
    assert {d for d, facts in DATASETS.items() if facts.comparable} == {"pima", "cmc", "yeast"}
    for name, facts in DATASETS.items():
        if facts.comparable:
            assert facts.local == name
        elif facts.local is not None:
            assert facts.local == f"{name}_gist512"
            assert "GIST" in facts.reason


def test_tables_are_numbered_as_captions_follow_each_other():
    assert [(t.number, t.label) for t in TABLES.values()] == [
        *((1, "t2"), (2, "t1"), (3, "t3"), (4, "t6"), (5, "t4"), (6, "t5"))
    ]
    assert set(QUANTITIES) < set(TABLES)


def test_methods_are_ours_and_settings_bear_the_names_of_our_parameters():
    assert set(METHODS) < set(methods())
    assert set(SETTINGS) == {(method, size) for method in METHODS for size in ("small", "large")}
    for (method, size), result in SETTINGS.items():
        assert (result.method, result.size) == (method, size)
        known = set(getattr(estimators, f"{method}Classifier")._get_param_names())
        stated = {k for k, v in dataclasses.asdict(result).items() if v is not None}
        other = {"method", "size", "operator_sets", "note"}
        if method in ("POP", "PMLP", "BLS"):
            other.add("max_layers")  # follows from the template, or from the method
        assert stated - other <= known


@pytest.mark.parametrize("dataset", ["yeast", "pubfig"])
def test_settings_are_those_of_the_paper(dataset):
    small = dataset == "yeast"
    decades = tuple(10.0**k for k in range(-3, 4))
    rates = (0.01, 0.001, 0.0001) if small else (0.01, 0.005, 0.001, 0.0005, 0.0001, 0.00001)
    for method in METHODS:
        result = settings(dataset, method)
        random, layered = method in ("PLN", "BLS"), method in ("POP", "PMLP")
        assert (result.n_min, result.n_step) == ((None, None) if layered else (40, 20))
        assert result.max_neurons == (None if layered else 300 if random else 200)
        assert result.widths == ((200,) * (4 if small else 8) if layered else None)
        assert result.block_threshold == (None if layered else 1e-4)
        assert result.layer_threshold == (None if method == "BLS" else 1e-4)
        if random:
            assert result.ridge == pytest.approx(decades)
            assert result.mu == pytest.approx(decades)
            assert (result.admm_iterations, result.dropout, result.learning_rates) == (500, None, None)
        else:
            assert result.ridge == (None if layered else (0.1, 1, 10))
            assert (result.weight_decay, result.max_norm) == ((0.0001,), (1, 2, 3))
            assert result.dropout == (0.5, 0.3, 0.1)
            assert result.input_dropout == (None if small else 0.2)
            assert (result.fine_tune_learning_rate, result.fine_tune_epochs) == (0.00005, 200)
            assert result.learning_rates == (None if method in ("HeMLRN", "HoMLRN") else rates)
        assert (result.alpha is not None) == (method == "PLN")
    assert settings(dataset, "POP").epochs == ((20, 40, 40) if small else (100,) * 5)
    assert bool(settings(dataset, "POP").note) != small


def test_unknown_names_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"^the paper has no data set 'iris'; it has: pima, .*, cfw60k$"):
        published("iris", "HeMLGOP")
    with pytest.raises(ValueError, match=r"^the paper has no method 'POPFast'; it has: HeMLGOP, .*, BLS$"):
        published("pima", "POPFast")
    with pytest.raises(ValueError, match=r"^the paper has no data set 'PIMA'"):
        settings("PIMA", "HeMLGOP")
    with pytest.raises(ValueError, match=r"^the paper has no 'size' of a method; it has: accuracy, "):
        printed("pima", "HeMLGOP", "size")


def test_facts_do_not_change():
    for fact in (published("pima", "POP"), settings("pima", "POP"), DATASETS["pima"], TABLES["flops"]):
        with pytest.raises(dataclasses.FrozenInstanceError):
            fact.note = "other"
    assert RUNS == 3
    assert len(set(UNSTATED)) == len(UNSTATED)
    assert set(module.__all__) <= set(dir(module))
