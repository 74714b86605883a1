"""What moves in a report, in a real browser: inputs, rows, curves, neurons, blocks, the replay of growth."""

from __future__ import annotations

import re
from copy import copy

import numpy as np
import pytest
from browser import NEEDED, PROGRAM, Browser
from moving_page import frame_of, opened, said, set_input, settled
from sklearn.base import is_classifier
from sklearn.datasets import load_digits

from opgrow import HeMLRNClassifier, load
from opgrow.report.explanation.sentences import called
from opgrow.report.live.data import as_json
from opgrow.report.live.table import values_of
from tests.report.live.tables import EVIL, TABLES, fitted
from tests.report.test_page import small

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=NEEDED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("moving")


@pytest.fixture(scope="module")
def browser(folder):
    with Browser(folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def models(folder):
    """Models with their rows, and a page about each."""
    result = {name: fitted(name) for name in TABLES}
    for name, (model, X, y) in result.items():
        model.report(folder / f"{name}.html", X, y)
    return result


@pytest.mark.parametrize("name", TABLES)
def test_every_row_is_predicted_as_in_python(name, models, folder, browser):
    model, X, _ = models[name]
    values = values_of(model, X, model.network_rows(X))
    opened(browser, folder, name)
    rows = as_json(values.rows(range(values.n_rows)))
    shares = np.array(browser.look(f"{rows}.map(row => opgrow.model.predict(row).shares)"))
    if is_classifier(model):
        assert (model.classes_[shares.argmax(axis=1)] == model.predict(X)).all()
        np.testing.assert_allclose(shares, model.predict_proba(X), rtol=1e-4, atol=1e-5)
    else:
        np.testing.assert_allclose(shares[:, 0], model.predict(X), rtol=1e-5)


def test_a_slider_moves_the_prediction_and_every_curve(models, folder, browser):
    model, X, _ = models["wine"]
    opened(browser, folder, "wine")
    before = said(browser)
    curves = "[...document.querySelectorAll('.curve path.response:not(.mean)')].map(p => p.getAttribute('d'))"
    drawn = browser.look(curves)
    place = list(X.columns).index("proline")
    low, high = (
        float(browser.look(f"document.getElementById('input-{place}').{end}")) for end in ("min", "max")
    )
    far = low if browser.look("opgrow.state.values")[place] > (low + high) / 2 else high
    set_input(browser, place, far)
    values = browser.look("opgrow.state.values")
    assert values[place] == far
    expected = model.predict_proba(X.iloc[:1].assign(**dict(zip(X.columns, values, strict=True))))[0]
    assert said(browser) == f"{expected.argmax()}, {100 * expected.max():.1f} %" != before
    shown = browser.look(
        "[...document.querySelectorAll('.share')].map(s => s.querySelector('.figure').textContent)"
    )
    assert shown == [f"{100 * share:.1f} %" for share in expected]
    assert len(drawn) == len(X.columns)
    moved = [old != new for old, new in zip(drawn, browser.look(curves), strict=True)]
    assert sum(moved) >= len(moved) - 1  # its own curve stays what it was, but for the common scale


def test_curves_are_responses_of_the_network(models, folder, browser):
    """The curve of a column is what Python predicts when that column alone is changed."""
    model, X, _ = models["sales"]
    opened(browser, folder, "sales")
    names = list(X.columns)
    values = browser.look("opgrow.state.values")
    place = names.index("price")
    tried = [1.0, 20.0, 60.0]
    row = dict(
        zip(
            names,
            [float("nan") if v is None and n == EVIL else v for n, v in zip(names, values, strict=True)],
            strict=True,
        )
    )
    frame = X.iloc[:0].reindex(range(3)).assign(**{n: [v] * 3 for n, v in row.items()}).assign(price=tried)
    expected = model.predict_proba(frame.astype(X.dtypes))[:, 1]
    actual = browser.look(
        f"{tried}.map(v => opgrow.model.predict(opgrow.state.values.with({place}, v)).shares[1])"
    )
    np.testing.assert_allclose(actual, expected, rtol=1e-4)


def test_text_gaps_and_dates_can_be_set(models, folder, browser):
    model, X, _ = models["sales"]
    opened(browser, folder, "sales")
    names = list(X.columns)
    colour, age, when = (names.index(name) for name in ("colour", EVIL, "when"))
    options = browser.look(f"[...document.getElementById('input-{colour}').options].map(o => o.textContent)")
    assert options == ["<img src=x onerror=alert(1)>", "blue", "d'or", "red", "(missing)", "(another)"]
    set_input(browser, colour, "gap", "change")
    assert browser.look("opgrow.state.values")[colour] is None
    set_input(browser, colour, "3", "change")
    assert browser.look("opgrow.state.values")[colour] == "red"
    box = f"document.querySelector('#input-{age}').parentElement.querySelector('input[type=checkbox]')"
    if browser.look(f"{box}.checked"):
        browser.look(f"{box}.click()")
    browser.look(f"{box}.click()")
    settled(browser)
    assert browser.look("opgrow.state.values")[age] is None
    set_input(browser, age, "50")
    assert browser.look("opgrow.state.values")[age] == 50
    set_input(browser, when, str(1.65e9))
    assert browser.look("opgrow.state.values")[when] == "2022-04-15"
    values = dict(zip(names, browser.look("opgrow.state.values"), strict=True))
    expected = model.predict_proba(X.iloc[:1].assign(**values).astype(X.dtypes))[0]
    assert f"{100 * expected.max():.1f} %" in said(browser)
    assert browser.look("document.images.length") == 0
    assert browser.complaints == []


def test_a_row_is_picked_and_its_neurons_add_up(models, folder, browser):
    model, X, y = models["sales"]
    opened(browser, folder, "sales")
    browser.look("document.querySelector('#rows').open = true")
    settled(browser)
    browser.look("document.querySelector('#rows button[data-row=\"7\"]').click()")
    settled(browser)
    probability = model.predict_proba(X.iloc[7:8])[0]
    assert said(browser) == f"{model.classes_[probability.argmax()]}, {100 * probability.max():.1f} %"
    assert f"The values of row 7, whose true class is {y[7]}." in browser.look(
        "document.querySelector('.panel .note').textContent"
    )
    for number in (7, 8):
        sums = browser.look("opgrow.state.sums")
        assert sums["base"] + sums["total"] == pytest.approx(sums["output"], abs=1e-5)
        assert sums["output"] == pytest.approx(
            model.decision_function(X.iloc[number : number + 1])[0], abs=1e-5
        )
        browser.look("document.getElementById('after').click()")
        settled(browser)
    wrong = np.flatnonzero(model.predict(X) != y)
    browser.look("document.getElementById('mistakes').click()")
    listed = browser.look("[...document.querySelectorAll('#rows td button')].map(b => Number(b.textContent))")
    assert listed == wrong[:10].tolist()


def test_a_head_of_neurons_is_said_to_be_approximate(models, folder, browser):
    note = "document.getElementById('neurons-note').textContent"
    for name, linear in (("wine", False), ("gaps", True)):
        opened(browser, folder, name)
        assert browser.look("opgrow.model.network.linear") is linear
        assert ("this view is approximate" in browser.look(note)) is not linear
        assert ("need not add up to the output" in browser.look(note)) is not linear


def test_contributions_of_inputs_add_up_and_changes_change_the_answer(models, folder, browser):
    for name in ("sales", "gaps", "wine"):
        model, X, _ = models[name]
        opened(browser, folder, name)
        why = browser.look("opgrow.state.why")
        assert why["base"] + why["total"] == pytest.approx(why["output"], rel=1e-5, abs=1e-5)
        assert sum(why["values"]) == pytest.approx(why["total"], abs=1e-9)
        values = browser.look("opgrow.state.values")
        if name == "sales":
            assert why["output"] == pytest.approx(
                model.decision_function(frame_of(X, values))[0], rel=1e-4, abs=1e-5
            )
        buttons = browser.look("document.querySelectorAll('#flips button').length")
        if is_classifier(model) and buttons:
            before = browser.look("opgrow.state.prediction.label")
            promised = browser.look("document.querySelector('#flips span').textContent")
            browser.look("document.querySelector('#flips button').click()")
            settled(browser)
            after = browser.look("opgrow.state.prediction.label")
            assert after != before
            assert promised.endswith(f"it would be {called(str(model.classes_[after]))}.")
            assert model.predict(frame_of(X, browser.look("opgrow.state.values")))[0] == model.classes_[after]


def test_what_it_computes_is_drawn_and_named_for_what_it_is(models, folder, browser):
    for name in ("sales", "wine"):
        model, X, _ = models[name]
        opened(browser, folder, name)
        told = model.explain(X).data((), 16, 9)
        shown = browser.look("[...document.querySelectorAll('.importance .name')].map(n => n.textContent)")
        names = [told["columns"][one["column"]]["name"] for one in told["importance"]]
        assert shown == names[: len(shown)]
        assert len(shown) == min(12, len(names))
        heads = browser.look("[...document.querySelectorAll('.portrait b')].map(n => n.textContent)")
        assert heads == [neuron["operators"].replace("/", " / ") for neuron in told["neurons"]]
        words = browser.look("document.getElementById('portraits').textContent")
        for neuron in told["neurons"]:
            assert told["words"][neuron["view"]] in words
        if told["formula"] is not None:
            assert browser.look("document.getElementById('formula').textContent") == told["formula"]["text"]


def test_what_a_block_costs_is_the_score_without_it(models, folder, browser):
    for name in ("sales", "gaps"):
        model, X, y = models[name]
        opened(browser, folder, name)
        n_blocks = sum(len(layer) for layer in model.network_.layers)
        assert n_blocks > 1
        taken = []
        for number in range(2):
            browser.look(f"document.querySelector('.block[data-block=\"{number}\"]').click()")
            settled(browser)
            taken.append(number)
            expected = without(model, taken)
            assert browser.look("opgrow.state.score") == pytest.approx(expected.score(X, y), abs=1e-6)
        pressed = "[...document.querySelectorAll('.block')].map(b => b.getAttribute('aria-pressed'))"
        assert browser.look(pressed) == ["true"] * 2 + ["false"] * (n_blocks - 2)
        words = browser.look("document.getElementById('pruned').textContent")
        blocks = [block for layer in model.network_.layers for block in layer]
        gone = sum(block.n_parameters() + block.n_neurons * model.network_.n_outputs for block in blocks[:2])
        if len(model.network_.layers) == 1:
            assert f"{model.network_.n_parameters() - gone:,} left" in words
        browser.look("document.getElementById('restore').click()")
        settled(browser)
        assert browser.look("opgrow.state.score") == pytest.approx(model.score(X, y), abs=1e-6)


def without(model, numbers):
    """The model with blocks that say 0."""
    changed = copy(model)
    changed.network_ = model.network_.copy()
    blocks = [block for layer in changed.network_.layers for block in layer]
    for number in numbers:
        blocks[number].norm.scale[:], blocks[number].norm.shift[:] = 0, 0
    return changed


def test_the_replay_shows_the_history(models, folder, browser):
    for name in ("sales", "gaps"):
        model = models[name][0]
        opened(browser, folder, name)
        assert int(browser.look("document.getElementById('step').max")) == len(model.history_) - 1
        for place, step in enumerate(model.history_):
            browser.look(f"(opgrow.replay.show({place}), 1)")
            words = browser.look("document.getElementById('step-words').textContent")
            assert f"Step {place + 1} of {len(model.history_)}" in words
            assert (", kept." in words) == step.accepted
            assert f"{step.n_parameters:,} parameter" in words
            assert float(re.search(r"(?:score|loss) ([\d.e-]+),", words)[1]) == pytest.approx(
                step.score.value, rel=1e-3
            )
            if step.operator_set is not None:
                assert f"{step.n_neurons} × {str(step.operator_set).replace('/', ' / ')}" in words
        chips = browser.look("[...document.querySelectorAll('.chip:not(.no)')].map(c => c.textContent)")
        blocks = [block for layer in model.network_.layers for block in layer]
        if not any(step.kind == "fine-tune" and step.member > 1 for step in model.history_):
            assert len(chips) == len(blocks)
        browser.look("document.getElementById('play').click()")
        assert "Pause" in browser.look("document.getElementById('play').textContent")
        browser.look("document.getElementById('play').click()")


def test_keys_move_a_slider_and_controls_have_names(models, folder, browser):
    opened(browser, folder, "wine")
    before = browser.look("opgrow.state.values")
    place = browser.look("Number(document.querySelector('.card input[type=range]').id.split('-')[1])")
    browser.look(f"document.getElementById('input-{place}').focus()")
    browser.press("ArrowRight")
    settled(browser)
    assert browser.look("opgrow.state.values")[place] > before[place]
    unnamed = browser.look(
        "[...document.querySelectorAll('input, select, button')].filter(c => "
        "!(c.labels && c.labels.length) && !c.getAttribute('aria-label') && !c.textContent.trim())"
        ".map(c => c.outerHTML)"
    )
    assert unnamed == []
    pictures = browser.look(
        "[...document.querySelectorAll('#live svg')].every(s => s.getAttribute('aria-label'))"
    )
    assert pictures is True


def contrast(first, second):
    def light(colour):
        parts = np.array([int(part) / 255 for part in re.findall(r"\d+", colour)[:3]])
        return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [
            0.2126,
            0.7152,
            0.0722,
        ]

    low, high = sorted((light(first), light(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [("sales", 1200, "light"), ("sales", 400, "dark"), ("gaps", 400, "light"), ("gaps", 1200, "dark")],
)
def test_pages_fit_into_their_windows_and_can_be_read(name, width, scheme, models, folder, browser):
    """Nothing is cut off, and contrasts are at least 4.5 to 1, as WCAG AA has it."""
    opened(browser, folder, name, width=width, scheme=scheme)
    assert browser.look("document.documentElement.scrollWidth") <= width
    cut = "s => s.getBoundingClientRect().right > innerWidth"
    charts = "[...document.querySelectorAll('#live svg, #replay svg, #how-good figure > svg')]"
    assert browser.look(f"{charts}.filter({cut}).length") == 0
    texts = ("body", ".note", ".panel .said", "nav a", ".curve text", "h2", ".card-head label", ".cost")
    colour = "(e => getComputedStyle(e)[e.namespaceURI.endsWith('svg') ? 'fill' : 'color'])"
    inks = browser.look(f"{list(texts)}.map(s => {colour}(document.querySelector(s)))")
    grounds = browser.look(
        "['body', '.card'].map(s => getComputedStyle(document.querySelector(s)).backgroundColor)"
    )
    for text, ink in zip(texts, inks, strict=True):
        assert min(contrast(ink, ground) for ground in grounds) >= 4.5, text
    browser.keep(f"moving-{name}-{width}-{scheme}.png")


def test_a_page_without_rows_still_moves(models, folder, browser):
    model, X, y = models["sales"]
    model.report(folder / "without.html", X, y, with_rows=False)
    opened(browser, folder, "without")
    assert browser.look("opgrow.data.rows.values.length") == 0
    assert browser.look("document.getElementById('rows')") is None
    before = said(browser)
    set_input(browser, list(X.columns).index("price"), 100)
    assert said(browser) != before
    assert browser.complaints == []


def test_a_model_that_was_loaded_has_the_rows_that_it_keeps(models, folder, browser):
    model, _, _ = models["sales"]
    model.save(folder / "model.safetensors")
    load(folder / "model.safetensors").report(folder / "loaded.html")
    opened(browser, folder, "loaded")
    assert browser.look("opgrow.data.rows.values.length") == len(model.sample_)
    assert "what it costs is not known" in browser.look("document.getElementById('pruned').textContent")


def test_many_inputs_open_quickly_and_are_found_by_name(folder, browser):
    X, y = load_digits(return_X_y=True)
    model = small(HeMLRNClassifier).fit(X, y)
    model.report(folder / "digits.html", X, y)
    assert (folder / "digits.html").stat().st_size < 1_000_000
    opened(browser, folder, "digits")
    assert browser.look("document.querySelectorAll('.inputs .card').length") == 24
    browser.look(
        "(f => (f.value = 'x36', f.dispatchEvent(new Event('input'))))(document.getElementById('filter'))"
    )
    assert browser.look("[...document.querySelectorAll('.card label[for]')].map(l => l.textContent)") == [
        "x36"
    ]
